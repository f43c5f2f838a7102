#include "search/regression/square.h"

#include "search/regression/vec_exp.h"

#define GROUP 4 /* columns that are handled together */

/* Add the squares of some columns, from `x` on, to the first i + 1 entries of row i. */
CPU_INLINE void add_row(const double *restrict x, size_t stride, size_t columns, size_t i,
                        double *restrict row)
{
    double own[GROUP];
    for (size_t c = 0; c < columns; c++)
        own[c] = x[c * stride + i];
    for (size_t j = 0; j <= i; j++) {
        double sum = row[j];
        for (size_t c = 0; c < columns; c++) {
            double off = x[c * stride + j] - own[c];
            sum += off * off;
        }
        row[j] = sum;
    }
}

CPU_INLINE void add_rows(const double *x, size_t stride, size_t columns, size_t n, double *ret,
                         size_t ld)
{
    for (size_t i = 0; i < n; i++)
        add_row(x, stride, columns, i, ret + i * ld);
}

CPU_CLONES static void add_columns(const double *x, size_t stride, size_t columns, size_t n,
                                   double *ret, size_t ld)
{
#define CALL(constant) add_rows(x, stride, constant, n, ret, ld)
    GP_WITH_CONSTANT(columns, CALL);
#undef CALL
}

void gp_square_gram(const struct gp_real_columns *c, size_t n, double *ret, size_t ld)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            ret[i * ld + j] = 0;
    for (size_t q = 0; q < c->d; q += GROUP)
        add_columns(c->x + q * c->stride, c->stride, c->d - q < GROUP ? c->d - q : GROUP, n, ret,
                    ld);
}

CPU_INLINE void sum_rows(const double *x, size_t stride, size_t columns, size_t n, const double *g,
                         size_t ld, double *ret)
{
    gp_vec4 sum[GROUP];
    for (size_t c = 0; c < columns; c++)
        sum[c] = (gp_vec4){0};
    for (size_t i = 1; i < n; i++)
        for (size_t j = 0; j < i; j += 4) {
            gp_vec4 weight = *(const gp_vec4 *)(g + i * ld + j);
            for (size_t c = 0; c < columns; c++) {
                gp_vec4 off = *(const gp_vec4 *)(x + c * stride + j) - x[c * stride + i];
                sum[c] += weight * (off * off);
            }
        }
    for (size_t c = 0; c < columns; c++)
        ret[c] = gp_vec4_total(&sum[c]);
}

CPU_CLONES static void sum_columns(const double *x, size_t stride, size_t columns, size_t n,
                                   const double *g, size_t ld, double *ret)
{
#define CALL(constant) sum_rows(x, stride, constant, n, g, ld, ret)
    GP_WITH_CONSTANT(columns, CALL);
#undef CALL
}

void gp_square_sums(const struct gp_real_columns *c, size_t n, const double *g, size_t ld,
                    double *ret)
{
    for (size_t q = 0; q < c->d; q += GROUP)
        sum_columns(c->x + q * c->stride, c->stride, c->d - q < GROUP ? c->d - q : GROUP, n, g, ld,
                    ret + q);
}
