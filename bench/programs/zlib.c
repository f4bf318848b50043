// Compression and expansion with zlib of text that has words, numbers and repeats.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SIZE = 8 << 20, ROUNDS = 3 };

static void write_text(char *text) {
    static const char *const words[] = {"harbour", "vessel", "cargo", "voyage", "anchor", "tide", "crew", "the", "of",
                                        "and",     "berth",  "crane", "pilot",  "mast",   "wind", "rope", "hull"};
    unsigned x = 2463534242u;
    char *end = text + SIZE - 32;
    while (text < end) {
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        if (x % 11 == 0) text += sprintf(text, "%u\n", x >> 8);
        else text += sprintf(text, "%s ", words[x % 17]);
    }
}

int main(void) {
    char *text = calloc(1, SIZE), *back = malloc(SIZE);
    write_text(text);
    uLong bound = compressBound(SIZE);
    Bytef *packed = malloc(bound);
    uLong checksum = crc32(0, NULL, 0);
    for (int round = 0; round < ROUNDS; round++) {
        uLongf length = bound, expanded = SIZE;
        if (compress2(packed, &length, (Bytef *)text, SIZE, 3 + 3 * round) != Z_OK) return 1;
        if (uncompress((Bytef *)back, &expanded, packed, length) != Z_OK || memcmp(text, back, SIZE)) return 2;
        checksum = crc32(checksum, packed, (uInt)length);
        printf("level %d: %lu bytes\n", 3 + 3 * round, length);
    }
    printf("%08lx\n", checksum);
}
