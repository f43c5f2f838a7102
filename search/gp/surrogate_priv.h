/* Shared by surrogate.c, surrogate_fit.c, surrogate_guided.c and surrogate_state.c. */
#ifndef ASSAY_SEARCH_GP_SURROGATE_PRIV_H
#define ASSAY_SEARCH_GP_SURROGATE_PRIV_H

#include "search/gp/surrogate.h"

/* A fit of the hyperparameters, finished or not. */
struct surrogate_fit {
    bool is_set;
    double *theta;  /* [gp_n_theta] */
    double *scale;  /* [gp_n_theta] gp_fit_scale of the fit that found it */
    bool *in_fit;   /* [n_done] the trials that it sees */
    uint64_t best;  /* the number of the best trial when it began */
    uint64_t evals; /* of an unfinished one: values of the posterior so far */
};

/* The work of one surrogate_prepare. */
struct surrogate_task {
    struct surrogate_store *store;
    const struct training_set *s;
    const struct surrogate_spec *spec;
    size_t slot;
    struct gp_columns columns; /* those of s, under the kernel of this target */
    /* trials that ended; those in the fit; rows of the base; all rows */
    size_t n_done, n_fit, n_base, n_all;
    /* [n_done] the trials of the values for this quantity, ascending; a trial may have some at
     * rungs, by step, and one of the last step */
    size_t *done;
    const struct training_rung **rung; /* [n_done] NULL: the last step */
    double *y;                         /* [n_done] their values for the model */
    double *cost;                      /* [n_done] decides the best trial: small is good */
    size_t *order; /* [n_all] rows as places in done, or n_done + i for pending trial i */
    double *row_y; /* [n_all] */
    double *x;     /* [n_all] rows */
    int32_t *z;
    double *steps;             /* [n_all] of each row; NULL: columns have no steps */
    struct surrogate_fit fit;  /* the last one that was finished; the model is built from it */
    struct surrogate_fit next; /* the one that is under way */
    size_t evals;              /* of all fits now */
};

/* The number of the trial at this place of `done`. */
static inline uint64_t surrogate_number(const struct surrogate_task *t, size_t place)
{
    return t->s->trials[t->done[place]].number;
}

/* The place of its step. */
static inline double surrogate_step(const struct surrogate_task *t, size_t place)
{
    return t->rung[place] ? t->rung[place]->place : 1;
}

/* Read what the last suggestion left (surrogate.h): fit and next. An invalid state leaves them
 * unset. */
void surrogate_read_state(struct surrogate_task *t, const json_t *state);

/* *ret: new reference. AS_E_NOMEM. */
AS_MUST_CHECK as_status surrogate_write_state(const struct surrogate_task *t, json_t **ret,
                                              struct as_err *err);

/* The rows of some places of `done`; owned by the caller. */
struct surrogate_rows {
    size_t n;
    double *x, *y, *cost, *steps; /* steps: NULL without */
    int32_t *z;
};
void surrogate_rows_done(struct surrogate_rows *g);
AS_MUST_CHECK as_status surrogate_gather(const struct surrogate_task *t, const size_t *places,
                                         size_t n, struct surrogate_rows *ret, struct as_err *err);

gp_warp_kind surrogate_warp_kind(const struct surrogate_task *t);

/* Choose at most `max` of n places; they stay ascending. */
AS_MUST_CHECK as_status surrogate_thin(const struct surrogate_task *t, size_t *places, size_t *n,
                                       size_t max, struct as_err *err);

/* Order the rows, and build the model with t->fit.theta, conditioned on t->y. */
AS_MUST_CHECK as_status surrogate_build(struct surrogate_task *t, struct as_err *err);

/* Rows of the model that have a value, after surrogate_build(). */
static inline size_t surrogate_n_valued(const struct surrogate_task *t)
{
    return t->n_base + t->n_done - t->n_fit;
}

/* The same with hyperparameters that are fitted if that is due. */
AS_MUST_CHECK as_status surrogate_settle(struct surrogate_task *t, struct surrogate *ret,
                                         struct as_err *err);

/* May earlier sweeps guide this model? Then surrogate_settle_guided() takes the place of
 * surrogate_settle(), and sets ret->guides. */
bool surrogate_is_guided(const struct surrogate_task *t);
AS_MUST_CHECK as_status surrogate_settle_guided(struct surrogate_task *t, struct surrogate *ret,
                                                struct as_err *err);

#endif
