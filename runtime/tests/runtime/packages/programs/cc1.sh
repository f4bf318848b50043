cat >program.c <<'C'
#include <stdio.h>
#include <stdlib.h>
static double half(int n) { return n / 2.0; }
int main(int argc, char **argv)
{
    for (int i = 0; i < 10 + argc; i++)
        printf("%d %g %s\n", i * i, half(i), argv[0]);
    return EXIT_SUCCESS;
}
C
$RUN /usr/lib/gcc/x86_64-linux-gnu/12/cc1 -quiet -O2 program.c -o program.s
sha256sum program.s
