// A nested function whose address is taken: its trampoline lies on the stack, which the file asks to be executable.
#include <stdio.h>

static int twice(int (*function)(int), int value) { return function(function(value)); }

int main(void) {
    volatile int step = 20;
    int add(int value) { return value + step; }
    printf("%d\n", twice(add, 2));
    step = 3;
    printf("%d\n", twice(add, 2));
    return 0;
}
