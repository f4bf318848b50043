// In the manner of the NAS kernel MG ("multigrid"): V-cycles for a Poisson equation on a cube with periodic
// borders, so mostly stencils over three-dimensional arrays.
#include "random.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 6, FINEST = 1 << LEVELS, CYCLES = 240 };

typedef struct {
    int n;                // points per edge, borders not counted
    double *u, *f, *rest; // solution, right-hand side, residual; (n + 2)^3 each
} Grid;

static Grid grids[LEVELS + 1];

static size_t points(const Grid *g) { return (size_t)(g->n + 2) * (g->n + 2) * (g->n + 2); }
static size_t at(const Grid *g, int i, int j, int k) { return ((size_t)i * (g->n + 2) + j) * (g->n + 2) + k; }

// The borders repeat the opposite side.
static void wrap(const Grid *g, double *v) {
    int n = g->n;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= n; j++) v[at(g, i, j, 0)] = v[at(g, i, j, n)], v[at(g, i, j, n + 1)] = v[at(g, i, j, 1)];
    for (int i = 1; i <= n; i++)
        for (int k = 0; k < n + 2; k++) v[at(g, i, 0, k)] = v[at(g, i, n, k)], v[at(g, i, n + 1, k)] = v[at(g, i, 1, k)];
    size_t plane = (size_t)(n + 2) * (n + 2);
    memcpy(v, v + n * plane, plane * sizeof *v);
    memcpy(v + (n + 1) * plane, v + plane, plane * sizeof *v);
}

static double neighbours(const double *v, size_t p, size_t row, size_t plane) {
    return v[p - 1] + v[p + 1] + v[p - row] + v[p + row] + v[p - plane] + v[p + plane];
}

static void residual(const Grid *g) {
    size_t row = g->n + 2, plane = row * row;
    for (int i = 1; i <= g->n; i++)
        for (int j = 1; j <= g->n; j++)
            for (int k = 1; k <= g->n; k++) {
                size_t p = at(g, i, j, k);
                g->rest[p] = g->f[p] - neighbours(g->u, p, row, plane) + 6 * g->u[p];
            }
    wrap(g, g->rest);
}

// Damped Jacobi step from the residual.
static void smooth(const Grid *g) {
    residual(g);
    size_t all = points(g);
    for (size_t p = 0; p < all; p++) g->u[p] -= g->rest[p] * 0.125;
}

static void restrict_to(const Grid *coarse, const Grid *fine) {
    size_t row = fine->n + 2, plane = row * row;
    for (int i = 1; i <= coarse->n; i++)
        for (int j = 1; j <= coarse->n; j++)
            for (int k = 1; k <= coarse->n; k++) {
                size_t p = at(fine, 2 * i, 2 * j, 2 * k);
                double near = neighbours(fine->rest, p, row, plane);
                coarse->f[at(coarse, i, j, k)] = 4 * (fine->rest[p] / 2 + near / 12);
            }
    wrap(coarse, coarse->f);
    memset(coarse->u, 0, points(coarse) * sizeof *coarse->u);
}

static void prolong_to(const Grid *fine, const Grid *coarse) {
    for (int i = 1; i <= fine->n; i++)
        for (int j = 1; j <= fine->n; j++)
            for (int k = 1; k <= fine->n; k++) {
                double sum = 0;
                for (int corner = 0; corner < 8; corner++) {
                    int ci = (i + (corner & 1)) / 2, cj = (j + (corner >> 1 & 1)) / 2, ck = (k + (corner >> 2)) / 2;
                    sum += coarse->u[at(coarse, ci, cj, ck)];
                }
                fine->u[at(fine, i, j, k)] += sum / 8;
            }
    wrap(fine, fine->u);
}

static void cycle(int level) {
    const Grid *g = &grids[level];
    smooth(g), smooth(g);
    if (level > 1) {
        residual(g);
        restrict_to(g - 1, g);
        cycle(level - 1);
        prolong_to(g, g - 1);
    }
    smooth(g), smooth(g);
}

int main(void) {
    for (int level = 1; level <= LEVELS; level++) {
        Grid *g = &grids[level];
        g->n = 1 << level;
        double **arrays[] = {&g->u, &g->f, &g->rest};
        for (int i = 0; i < 3; i++) *arrays[i] = calloc(points(g), sizeof(double));
    }
    const Grid *finest = &grids[LEVELS];
    uint64_t seed = 314159265;
    for (int charge = 0; charge < 20; charge++) {
        int place[3];
        for (int axis = 0; axis < 3; axis++) place[axis] = 1 + (int)(random_next(&seed) * FINEST);
        finest->f[at(finest, place[0], place[1], place[2])] += charge & 1 ? 1 : -1;
    }
    wrap(finest, finest->f);
    for (int i = 0; i < CYCLES; i++) cycle(LEVELS);
    residual(finest);
    double norm = 0, sum = 0;
    for (size_t p = 0, all = points(finest); p < all; p++) {
        norm += finest->rest[p] * finest->rest[p];
        sum += fabs(finest->u[p]);
    }
    printf("%.12e %.3e\n", sum, sqrt(norm));
}
