// Debian's Lua 5.4 interpreter library, running the script that the first argument names.
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

int main(int argc, char **argv) {
    lua_State *lua = luaL_newstate();
    luaL_openlibs(lua);
    if (argc != 2 || luaL_dofile(lua, argv[1])) {
        fprintf(stderr, "lua: %s\n", argc == 2 ? lua_tostring(lua, -1) : "usage: lua SCRIPT");
        return 1;
    }
    lua_close(lua);
}
