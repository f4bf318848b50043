// Fills so many bytes of heap and then waits for a signal.
// usage: heap BYTES
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t bytes = strtoul(argv[1], 0, 0);
    unsigned *words = malloc(bytes);
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = i * 2654435761u;
    puts("filled");
    fflush(stdout);
    for (;;)
        pause();
}
