// Product of two dense matrices of doubles, the textbook triple loop.
#include <stdio.h>

enum { N = 384, ROUNDS = 48 };

static double a[N][N], b[N][N], c[N][N];

static void multiply(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)((i * 7 + j * 3) % 101) / 101;
            b[i][j] = (double)((i * 5 + j * 11) % 97) / 97;
        }
    double trace = 0;
    for (int round = 0; round < ROUNDS; round++) {
        multiply();
        for (int i = 0; i < N; i++) trace += c[i][i];
        a[round][round] += trace / 1e6;
    }
    printf("%.17g\n", trace);
}
