/* Distances of categories as loops that gcc vectorises for each target (vec_exp.h).
 *
 * With many categories these loops were a third of a small suggestion. So four columns share what
 * is read and written, and rows without an inactive category, which most spaces have, need one
 * comparison for each entry. Each entry adds its terms in the order of the columns. Each sum over a
 * row adds eight partial sums in a fixed order. So every path gives the same bits. */
#include "search/regression/category.h"

#include <math.h>

#include "search/regression/vec_exp.h"

#define GROUP 4   /* columns that are handled together */
#define PIECE 256 /* entries of a row whose terms are kept before they are added */

/* v t for one category. */
GP_INLINE double times_distance(double v, double own, double z, bool has_inactive)
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

GP_INLINE void add_columns(const struct group *k, size_t columns, bool has_inactive, size_t n,
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

/* The number of columns as a constant, so that loops over them are unrolled. */
#define WITH_CONSTANT_COLUMNS(columns, call)                                                       \
    switch (columns) {                                                                             \
    case 1:                                                                                        \
        call(1);                                                                                   \
        break;                                                                                     \
    case 2:                                                                                        \
        call(2);                                                                                   \
        break;                                                                                     \
    case 3:                                                                                        \
        call(3);                                                                                   \
        break;                                                                                     \
    default:                                                                                       \
        call(4);                                                                                   \
    }

GP_CLONES static void add_group(const struct group *k, size_t columns, size_t n, double *r2){
#define CALL(constant) add_columns(k, constant, false, n, r2)
    WITH_CONSTANT_COLUMNS(columns, CALL)
#undef CALL
}

GP_CLONES
    static void add_group_inactive(const struct group *k, size_t columns, size_t n, double *r2)
{
#define CALL(constant) add_columns(k, constant, true, n, r2)
    WITH_CONSTANT_COLUMNS(columns, CALL)
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

/* Eight doubles at any address. gcc compiles it to the vector instructions of the clone's
 * target. */
typedef double vec8 __attribute__((vector_size(64), aligned(8)));

/* The terms of n <= PIECE entries of a row of g, with zeros behind them up to a multiple of 8. */
GP_INLINE void fill_terms(const struct group *k, size_t columns, bool has_inactive,
                          const double *restrict g, size_t at, size_t n,
                          double (*restrict terms)[PIECE])
{
    for (size_t c = 0; c < columns; c++) {
        const double *restrict z = k->z + c * k->stride + at;
        double *restrict to = terms[c], own = k->own[c];
        for (size_t j = 0; j < n; j++)
            to[j] = times_distance(g[at + j], own, z[j], has_inactive);
        for (size_t j = n; j % 8; j++)
            to[j] = 0;
    }
}

/* Add row i of g times the distances in each column to sum. */
GP_INLINE void add_row(const struct group *k, size_t columns, bool has_inactive, const double *g,
                       size_t i, double *sum)
{
    double terms[GROUP][PIECE] __attribute__((aligned(64)));
    vec8 part[GROUP];
    for (size_t c = 0; c < columns; c++)
        part[c] = (vec8){0};
    for (size_t at = 0; at < i; at += PIECE) {
        size_t n = i - at < PIECE ? i - at : PIECE;
        fill_terms(k, columns, has_inactive, g, at, n, terms);
        for (size_t j = 0; j < n; j += 8)
            for (size_t c = 0; c < columns; c++)
                part[c] += *(const vec8 *)(terms[c] + j);
    }
    for (size_t c = 0; c < columns; c++)
        sum[c] += ((part[c][0] + part[c][4]) + (part[c][2] + part[c][6])) +
                  ((part[c][1] + part[c][5]) + (part[c][3] + part[c][7]));
}

GP_INLINE void sum_columns(struct group k, size_t columns, bool has_inactive, size_t n,
                           const double *g, size_t ld, double *ret)
{
    double sum[GROUP] = {0};
    for (size_t i = 1; i < n; i++) {
        for (size_t c = 0; c < columns; c++)
            k.own[c] = k.z[c * k.stride + i];
        add_row(&k, columns, has_inactive, g + i * ld, i, sum);
    }
    for (size_t c = 0; c < columns; c++)
        ret[c] = sum[c];
}

GP_CLONES static void sum_group(const struct group *k, size_t columns, size_t n, const double *g,
                                size_t ld, double *ret){
#define CALL(constant) sum_columns(*k, constant, false, n, g, ld, ret)
    WITH_CONSTANT_COLUMNS(columns, CALL)
#undef CALL
}

GP_CLONES static void sum_group_inactive(const struct group *k, size_t columns, size_t n,
                                         const double *g, size_t ld, double *ret)
{
#define CALL(constant) sum_columns(*k, constant, true, n, g, ld, ret)
    WITH_CONSTANT_COLUMNS(columns, CALL)
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
