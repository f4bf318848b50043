// Mappings, the heap, and code that is made at run time. Prints the same natively and translated.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

static void heap(void) {
    char *start = sbrk(0);
    int ok = sbrk(100000) == start && sbrk(0) == start + 100000;
    memset(start, 1, 100000);
    ok &= sbrk(-50000) != (void *)-1 && sbrk(50000) != (void *)-1;
    printf("heap: %d, aligned %d, given back %d\n", ok, start[10], start[99999]);
    printf("refused: %d\n", sbrk((intptr_t)1 << 46) == (void *)-1);
}

static void mappings(void) {
    enum { RIGHTS = PROT_READ | PROT_WRITE, KIND = MAP_PRIVATE | MAP_ANONYMOUS };
    char *one = mmap(NULL, 10000, RIGHTS, KIND, -1, 0);
    printf("in range: %d\n", (uintptr_t)one < (uintptr_t)1 << 47 && (uintptr_t)one > 1 << 20);
    strcpy(one, "kept");
    char *bigger = mremap(one, 12288, 1 << 20, MREMAP_MAYMOVE);
    printf("mremap: %s %d\n", bigger, bigger[(1 << 20) - 1]);
    printf("low: %d\n", (uintptr_t)mmap(NULL, 4096, RIGHTS, KIND | MAP_32BIT, -1, 0) < (uintptr_t)1 << 32);
    char *at = (char *)0x20000000;
    printf("fixed: %d\n", mmap(at, 8192, RIGHTS, KIND | MAP_FIXED, -1, 0) == at);
    printf("taken: %d\n", mmap(at, 4096, RIGHTS, KIND | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    printf("low hint: %d\n", mmap((char *)0x50000000, 4096, RIGHTS, KIND | MAP_32BIT, -1, 0) == (char *)0x50000000);
    printf("hint: %d\n", mmap(at + 0x100000, 4096, RIGHTS, KIND, -1, 0) == at + 0x100000);
    printf("protect: %d\n", mprotect(at, 4096, PROT_READ));
    printf("nowhere: %d %d\n", mprotect((void *)-1, 4096, PROT_READ), errno);
    printf("unmap: %d, again %d\n", munmap(at, 8192), munmap(at, 8192));
    void *none = mmap(NULL, 0, RIGHTS, KIND, -1, 0);
    printf("empty: %d %d\n", none == MAP_FAILED, errno);
    none = mmap((void *)(uintptr_t)0x7ffffffff000, 4096, RIGHTS, KIND | MAP_FIXED, -1, 0);
    printf("too high: %d %d\n", none == MAP_FAILED, errno);
    for (int n = 0; n < 1000; n++) {
        char *piece = mmap(NULL, 4096 << n % 6, RIGHTS, KIND, -1, 0);
        if (piece == MAP_FAILED || *piece) printf("piece %d\n", n);
        if (n % 3) munmap(piece, 4096 << n % 6);
        else *piece = 1;
    }
    int id = shmget(IPC_PRIVATE, 5000, IPC_CREAT | 0600);
    if (id == -1) { // a kernel without System V IPC
        puts("shm: none");
        return;
    }
    char *first = shmat(id, NULL, 0), *second = shmat(id, NULL, SHM_RDONLY);
    shmctl(id, IPC_RMID, NULL);
    strcpy(first, "shared");
    printf("shm: %s\n", second);
    printf("detached: %d %d\n", shmdt(first), shmdt(second));
}

static void generated_code(void) {
    uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t load[] = {0xb8, 1, 0, 0, 0, 0xc3}; // mov eax, 1; ret
    memcpy(code, load, sizeof load);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    int sum = ((int (*)(void))code)();
    mprotect(code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (int n = 0; n < 100; n++) {
        code[1] = n;
        sum += ((int (*)(void))code)();
    }
    uint8_t patch[] = {0xc6, 0x05, 0, 0, 0, 0, 0xc3, 0x90, 0xc3}; // mov byte [rip], ret: overwrites the nop behind
    patch[2] = 0;
    memcpy(code, patch, sizeof patch);
    code[7] = 0x0f; // invalid, unless it is overwritten just before
    ((void (*)(void))code)();
    printf("generated: %d, patched %#x\n", sum, code[7]);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    heap(), mappings(), generated_code();
    return 0;
}
