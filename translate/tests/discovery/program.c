#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTSIDE __attribute__((noinline, noclone))

OUTSIDE int dense(int x, char *s) {
    switch (x) {
    case 10: return puts(s);
    case 11: return atoi(s) * 3;
    case 12: return (int)strlen(s);
    case 13: return s[3];
    case 14: return strcmp(s, "x");
    case 15: return printf("%s", s);
    case 16: return putchar(*s);
    case 17: return strspn(s, "abc");
    case 18: return system(s);
    case 19: return remove(s);
    case 20: return rename(s, s);
    case 21: return abs(atoi(s + 1));
    }
    return -1;
}

OUTSIDE int loop(const unsigned char *code, int n) {
    int a = 0, b = 1;
    for (int i = 0; i < n; i++) {
        switch (code[i]) {
        case 0: a += b; break;
        case 1: b = a ^ 77; break;
        case 2: a = putchar(a); break;
        case 3: b *= a; break;
        case 4: a = b / 3; break;
        case 5: b = getchar(); break;
        case 6: a = a << (b & 7); break;
        case 7: puts("seven"); break;
        case 8: return a;
        default: b--; break;
        }
    }
    return a + b;
}

OUTSIDE int computed(const unsigned char *code) {
    static void *const labels[] = {&&add, &&sub, &&twice, &&print, &&swap, &&stop};
    int a = 1, b = 2, t;
    goto *labels[*code++];
add:
    a += b;
    goto *labels[*code++];
sub:
    a -= b;
    goto *labels[*code++];
twice:
    a *= 2;
    goto *labels[*code++];
print:
    printf("%d\n", a);
    goto *labels[*code++];
swap:
    t = a, a = b, b = t;
    goto *labels[*code++];
stop:
    return a;
}

/* Reached by pointers only: from constant data, from data that changes, and from code. */
static int first(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int second(const void *a, const void *b) { return *(const int *)b - *(const int *)a; }
static int third(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }
static int (*const constant[])(const void *, const void *) = {first, second};
int (*variable)(const void *, const void *) = third;

static void at_end(void) { puts("bye"); }

OUTSIDE static _Noreturn void fail(const char *why) {
    fprintf(stderr, "%s\n", why);
    exit(3);
}

OUTSIDE static int even(int n);
OUTSIDE static int odd(int n) { return n == 0 ? 0 : even(n - 1); }
OUTSIDE static int even(int n) { return n == 0 ? 1 : odd(n - 1); }

int main(int argc, char **argv) {
    int numbers[] = {3, 1, 2};
    if (argc > 9)
        fail("too many");
    atexit(at_end);
    qsort(numbers, 3, sizeof *numbers, constant[argc & 1]);
    qsort(numbers, 3, sizeof *numbers, variable);
    return dense(argc, argv[0]) + loop((const unsigned char *)argv[0], argc) +
           computed((const unsigned char *)"\0\1\2\3\4\5") + even(argc) + numbers[0];
}
