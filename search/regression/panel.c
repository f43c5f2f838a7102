/* Right-hand sides are columns of a panel, so that one row of it is a few whole vectors, and an
 * entry of L is the same for all lanes: nothing is packed. Some rows at a time stay in registers
 * while all rows before them are subtracted. The products are of the form x' y, which has the same
 * property.
 *
 * Each entry of a solution is b - l_0 x_0 - l_1 x_1 - … in this order, times the reciprocal of the
 * diagonal; each entry of a product adds its rows in order. So the bits do not depend on the shape
 * of the kernel. */
#include "search/regression/panel.h"

#include <stdbool.h>
#include <string.h>

#include "search/regression/vec_exp.h"

/* Clones cannot differ in the width of a vector, and gcc keeps one that is wider than a register in
 * memory. So AVX-512, with 32 registers of eight doubles, has functions of its own. */
typedef double vec4 __attribute__((vector_size(32)));
typedef double vec8 __attribute__((vector_size(64)));

/* Row i of the identity of infinite size: its first 16 entries. */
CPU_INLINE const double *identity_row(size_t i)
{
    static const double rows[17][16] __attribute__((aligned(64))) = {
        {[0] = 1},  {[1] = 1},  {[2] = 1},  {[3] = 1},  {[4] = 1},  {[5] = 1},
        {[6] = 1},  {[7] = 1},  {[8] = 1},  {[9] = 1},  {[10] = 1}, {[11] = 1},
        {[12] = 1}, {[13] = 1}, {[14] = 1}, {[15] = 1}, {0}};
    return rows[i < 16 ? i : 16];
}

#define PANEL_VECTOR vec4
#define PANEL_LANES 4
#define PANEL_ROWS 4
#define PANEL_NAME(f) f##_four
#include "search/regression/panel_body.inc"
#undef PANEL_VECTOR
#undef PANEL_LANES
#undef PANEL_ROWS
#undef PANEL_NAME

#define PANEL_VECTOR vec8
#define PANEL_LANES 8
#define PANEL_ROWS 8
#define PANEL_NAME(f) f##_eight
#include "search/regression/panel_body.inc"

#ifdef CPU_HAS_CLONES
#define NARROW __attribute__((target_clones("default", "arch=x86-64-v3")))
#define WIDE __attribute__((target("arch=x86-64-v4")))

static bool has_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd");
}
#else
#define NARROW
#define WIDE

static bool has_wide(void)
{
    return false;
}
#endif

/* name(parameters), which calls kernel(arguments) of the right width. */
#define DISPATCH(name, kernel, parameters, arguments)                                              \
    NARROW static void name##_narrow parameters                                                    \
    {                                                                                              \
        kernel##_four arguments;                                                                   \
    }                                                                                              \
    WIDE static void name##_wide parameters                                                        \
    {                                                                                              \
        kernel##_eight arguments;                                                                  \
    }                                                                                              \
    static void name parameters                                                                    \
    {                                                                                              \
        if (has_wide())                                                                            \
            name##_wide arguments;                                                                 \
        else                                                                                       \
            name##_narrow arguments;                                                               \
    }

DISPATCH(solve_columns, solve,
         (const double *l, size_t n, size_t ld, double *x, size_t width, size_t ldx,
          double *square),
         (l, n, ld, x, width, ldx, square))
DISPATCH(subtract_square, subtract_square,
         (const double *x, size_t n, size_t width, size_t ldx, double *c, size_t ldc),
         (x, n, width, ldx, c, ldc))
DISPATCH(invert_triangle, invert, (double *l, size_t n, size_t ld), (l, n, ld))
DISPATCH(square_triangle, square, (double *m, size_t n, size_t ld), (m, n, ld))

void gp_panel_solve(const double *l, size_t n, size_t ld, double *x, size_t width, size_t ldx)
{
    solve_columns(l, n, ld, x, (width + 7) / 8 * 8, ldx, NULL);
}

void gp_panel_subtract_square(const double *x, size_t n, size_t width, size_t ldx, double *c,
                              size_t ldc)
{
    subtract_square(x, n, width, ldx, c, ldc);
}

void gp_panel_invert(double *l, size_t n, size_t ld)
{
    invert_triangle(l, n, ld);
}

void gp_panel_square(double *m, size_t n, size_t ld)
{
    square_triangle(m, n, ld);
}

/* Columns without a right-hand side are 0. */
static void fill_panel(const double *b, size_t n, size_t columns, size_t ldb, double *x)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t c = 0; c < columns; c++)
            x[j * GP_PANEL + c] = b[c * ldb + j];
        for (size_t c = columns; c % 8; c++)
            x[j * GP_PANEL + c] = 0;
    }
}

void gp_lower_squares(const double *l, size_t n, size_t ld, const double *b, size_t m, size_t ldb,
                      double *panel, double *ret)
{
    for (size_t at = 0; at < m; at += GP_PANEL) {
        double square[GP_PANEL] __attribute__((aligned(64))) = {0};
        size_t columns = m - at < GP_PANEL ? m - at : GP_PANEL;
        fill_panel(b + at * ldb, n, columns, ldb, panel);
        solve_columns(l, n, ld, panel, (columns + 7) / 8 * 8, GP_PANEL, square);
        memcpy(ret + at, square, columns * sizeof *ret);
    }
}
