// In the manner of the NAS kernel CG ("conjugate gradient"): the smallest eigenvalue of a large sparse symmetric
// matrix by inverse iteration, so mostly loads through an index.
#include "random.h"
#include <math.h>
#include <stdio.h>

enum { N = 7000, PER_ROW = 18, OUTER = 700, INNER = 25 };

static int columns[N][PER_ROW];
static double values[N][PER_ROW], diagonal[N];
static double x[N], z[N], p[N], q[N], r[N];

// Symmetric and diagonally dominant, hence positive definite: entries (i, j) and (j, i) come in pairs.
static void make_matrix(void) {
    static int used[N];
    uint64_t seed = 314159265;
    for (int i = 0; i < N; i++) diagonal[i] = 0.1;
    for (int i = 0; i < N; i++)
        while (used[i] < PER_ROW) {
            int j = (int)(random_next(&seed) * N);
            double value = random_next(&seed) - 0.5;
            if (used[j] == PER_ROW || j == i) {
                columns[i][used[i]++] = i;
                continue;
            }
            columns[i][used[i]] = j, values[i][used[i]++] = value;
            columns[j][used[j]] = i, values[j][used[j]++] = value;
            diagonal[i] += fabs(value), diagonal[j] += fabs(value);
        }
}

static void multiply(const double *in, double *out) {
    for (int i = 0; i < N; i++) {
        double sum = diagonal[i] * in[i];
        for (int k = 0; k < PER_ROW; k++) sum += values[i][k] * in[columns[i][k]];
        out[i] = sum;
    }
}

static double dot(const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += a[i] * b[i];
    return sum;
}

// Solves A z = x; yields the norm of the residual.
static double solve(void) {
    for (int i = 0; i < N; i++) z[i] = 0, r[i] = p[i] = x[i];
    double rho = dot(r, r);
    for (int step = 0; step < INNER; step++) {
        multiply(p, q);
        double alpha = rho / dot(p, q), before = rho;
        for (int i = 0; i < N; i++) z[i] += alpha * p[i], r[i] -= alpha * q[i];
        rho = dot(r, r);
        for (int i = 0; i < N; i++) p[i] = r[i] + rho / before * p[i];
    }
    return sqrt(rho);
}

int main(void) {
    make_matrix();
    for (int i = 0; i < N; i++) x[i] = 1;
    double zeta = 0, residual = 0;
    for (int round = 0; round < OUTER; round++) {
        residual = solve();
        zeta = 1 / dot(x, z);
        double scale = 1 / sqrt(dot(z, z));
        for (int i = 0; i < N; i++) x[i] = z[i] * scale;
    }
    printf("%.15e %.3e\n", zeta, residual);
}
