/* Distances of categories as loops that gcc vectorises for each target (vec_exp.h).
 *
 * With many categories these loops were a third of a small suggestion. So four columns share what
 * is read and written, and rows without an inactive category, which most spaces have, need one
 * comparison for each entry. Each entry adds its terms in the order of the columns. */
#include "search/regression/category.h"

#include <math.h>

#include "search/regression/vec_exp.h"

/* Every function that takes or returns a vector is inlined, so no call has its ABI. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define GROUP 4 /* columns that are handled together */

/* v t for one category. */
CPU_INLINE double times_distance(double v, double own, double z, bool has_inactive)
{
    double other = has_inactive && (z < 0) != (own < 0) ? 0.5 * v : v;
    return z == own ? 0 : other;
}

bool gp_category_any_inactive(const int32_t *z, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= z[i] < 0;
    return any;
}

/* Some columns, at most GROUP. */
struct group {
    const double *z;
    size_t stride;
    double own[GROUP], weight[GROUP];
};

CPU_INLINE void add_columns(const struct group *k, size_t columns, bool has_inactive, size_t n,
                            double *restrict r2)
{
    double own[GROUP], weight[GROUP];
    for (size_t c = 0; c < columns; c++) {
        own[c] = k->own[c];
        weight[c] = k->weight[c];
    }
    const double *restrict z = k->z;
    size_t stride = k->stride;
    for (size_t j = 0; j < n; j++) {
        double sum = r2[j];
        for (size_t c = 0; c < columns; c++)
            sum += times_distance(weight[c], own[c], z[c * stride + j], has_inactive);
        r2[j] = sum;
    }
}

CPU_CLONES static void add_group(const struct group *k, size_t columns, size_t n, double *r2)
{
#define CALL(constant) add_columns(k, constant, false, n, r2)
    GP_WITH_CONSTANT(columns, CALL);
#undef CALL
}

CPU_CLONES
static void add_group_inactive(const struct group *k, size_t columns, size_t n, double *r2)
{
#define CALL(constant) add_columns(k, constant, true, n, r2)
    GP_WITH_CONSTANT(columns, CALL);
#undef CALL
}

void gp_category_add(const struct gp_categories *rows, const int32_t *own, const double *weight,
                     size_t n, double *r2)
{
    bool has_inactive = rows->has_inactive || gp_category_any_inactive(own, rows->n_cat);
    for (size_t from = 0; from < rows->n_cat; from += GROUP) {
        size_t columns = rows->n_cat - from < GROUP ? rows->n_cat - from : GROUP;
        struct group k = {.z = rows->z + from * rows->stride, .stride = rows->stride};
        for (size_t c = 0; c < columns; c++) {
            k.own[c] = own[from + c];
            k.weight[c] = weight[from + c];
        }
        (has_inactive ? add_group_inactive : add_group)(&k, columns, n, r2);
    }
}

/* ---- sums ---- */

/* The mask of a comparison of four doubles. */
typedef int64_t mask4 __attribute__((vector_size(32), aligned(8)));

/* v t for four rows. */
CPU_INLINE gp_vec4 times_distances(gp_vec4 v, double own, gp_vec4 z, bool has_inactive)
{
    mask4 differ = z != own;
    if (has_inactive) {
        mask4 half = own < 0 ? z >= 0 : z < 0;
        v -= (gp_vec4)((mask4)(0.5 * v) & half);
    }
    return (gp_vec4)((mask4)v & differ);
}

CPU_INLINE void sum_columns(const struct group *k, size_t columns, bool has_inactive, size_t n,
                            const double *g, size_t ld, double *ret)
{
    const double *z = k->z;
    size_t stride = k->stride;
    gp_vec4 sum[GROUP];
    for (size_t c = 0; c < columns; c++)
        sum[c] = (gp_vec4){0};
    for (size_t i = 1; i < n; i++)
        for (size_t j = 0; j < i; j += 4) {
            gp_vec4 weight = *(const gp_vec4 *)(g + i * ld + j);
            for (size_t c = 0; c < columns; c++)
                sum[c] += times_distances(weight, z[c * stride + i],
                                          *(const gp_vec4 *)(z + c * stride + j), has_inactive);
        }
    for (size_t c = 0; c < columns; c++)
        ret[c] = gp_vec4_total(&sum[c]);
}

CPU_CLONES static void sum_group(const struct group *k, size_t columns, size_t n, const double *g,
                                 size_t ld, double *ret)
{
#define CALL(constant) sum_columns(k, constant, false, n, g, ld, ret)
    GP_WITH_CONSTANT(columns, CALL);
#undef CALL
}

CPU_CLONES static void sum_group_inactive(const struct group *k, size_t columns, size_t n,
                                          const double *g, size_t ld, double *ret)
{
#define CALL(constant) sum_columns(k, constant, true, n, g, ld, ret)
    GP_WITH_CONSTANT(columns, CALL);
#undef CALL
}

void gp_category_sums(const struct gp_categories *rows, size_t n, const double *g, size_t ld,
                      double *ret)
{
    for (size_t from = 0; from < rows->n_cat; from += GROUP) {
        size_t columns = rows->n_cat - from < GROUP ? rows->n_cat - from : GROUP;
        struct group k = {.z = rows->z + from * rows->stride, .stride = rows->stride};
        (rows->has_inactive ? sum_group_inactive : sum_group)(&k, columns, n, g, ld, ret + from);
    }
}
