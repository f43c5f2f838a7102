/* Shared by optimize.c and optimize_moves.c: one search for the highest acquisition. */
#ifndef ASSAY_SEARCH_GP_OPTIMIZE_PRIV_H
#define ASSAY_SEARCH_GP_OPTIMIZE_PRIV_H

#include "search/gp/optimize.h"

#define STARTS 4
#define NEIGHBOURS 16 /* of one discrete parameter; a parameter with more levels is relaxed */
#define BATCH CANDIDATES_MAX

struct search {
    const struct gp_optimizer_problem *p;
    const struct encoding *e;
    struct gp_optimizer_work *w;
    size_t d, n_models;
    bool has_numeric, has_discrete, refused;
    size_t left;           /* predictions that the local search may still make */
    size_t climbs_left;    /* calls with gradients that the climbs may still make */
    double *points;        /* [BATCH x d] */
    double *values;        /* [BATCH] */
    double *x;             /* [BATCH x n_real] */
    int32_t *z;            /* [BATCH x n_category] */
    double *mean, *var;    /* [models x BATCH] */
    double *dmean, *dvar;  /* [models x STARTS x n_real] */
    double *dx;            /* [n_real] */
    double *scale;         /* [d] */
    double *lower, *upper; /* [STARTS x d] */
    size_t n_starts;
    double *start; /* [STARTS x d] */
    double *trial; /* [STARTS x d] */
    double best[STARTS];
    size_t owner[BATCH];
};

static inline bool is_wide(const struct encoded_param *p)
{
    return p->kind == ENCODED_LEVELS && p->levels > NEIGHBOURS;
}

static inline bool is_discrete(const struct encoded_param *p)
{
    return p->kind == ENCODED_LEVELS || p->kind == ENCODED_CHOICE;
}

/* The acquisition at place i of the predictions, which lie `stride` apart for each model, and its
 * derivatives by the means and deviations, or NULL. */
double optimize_value(const struct search *s, size_t i, size_t stride, double *d_mean,
                      double *d_sd);

/* Fill s->x and s->z with the features of n points; a view of them. */
struct gp_rows optimize_features(struct search *s, const double *points, size_t n);

/* The acquisition at n <= BATCH points, with what the priors say. */
void optimize_values(struct search *s, const double *points, size_t n, double *ret);

/* The same for n points whose features lie in s->x and s->z. */
void optimize_values_of_features(struct search *s, const double *points, size_t n, double *ret);

/* Improve all starts with moves until none of them helps. */
void optimize_improve(struct search *s);

#endif
