// A function, and code made at run time, which is interpreted: they jump to one another. The function calls another each time.
#include "program.h"

enum { JUMPS = 100000, PAGE = 4096, ALL = 7 };

// rdi: itself, rsi: jumps left, rdx: the other's address, rax: the sum. The other returns at the end.
long compiled(void *self, long left, void *other);
__asm__(".globl compiled\n"
        ".type compiled, @function\n"
        "compiled: add %rsi, %rax\n"
        "push %rax; push %rdi; push %rsi; push %rdx\n"
        "call wide\n"
        "pop %rdx; pop %rsi; pop %rdi; pop %rax\n"
        "jmp *%rdx\n"
        ".size compiled, . - compiled\n");

// dec %rsi; jz 1f; jmp *%rdi; 1: ret
static const unsigned char other[] = {0x48, 0xff, 0xce, 0x74, 0x02, 0xff, 0xe7, 0xc3};

static unsigned char run(void) {
    unsigned char *page = (unsigned char *)call(MMAP, 0, PAGE, ALL);
    for (unsigned long n = 0; n < sizeof other; n++)
        page[n] = other[n];
    return (unsigned char)compiled(compiled, JUMPS, page);
}
