/* What the methods of search/ensemble/ share: the candidates ranked on a list of rows, sums of
 * their predictions, and the combination that a method returns. */
#ifndef ASSAY_SEARCH_ENSEMBLE_SELECTION_PRIV_H
#define ASSAY_SEARCH_ENSEMBLE_SELECTION_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/combine/combine.h"
#include "search/ensemble/ensemble_input.h"

/* The metric as a loss; and the loss that guides steps and settles ties. */
struct rank {
    double loss, guide;
};
bool rank_less(struct rank a, struct rank b);

/* Rows in a list: [n]. */
struct row_list {
    const size_t *rows;
    size_t n;
};

/* What a method returns; the meaning is that of struct ensemble (ensemble.h). */
struct combination {
    unsigned *counts; /* [candidates] */
    double *weights;  /* [candidates] */
    double *biases;   /* [outputs] */
    bool is_linear;   /* biases count */
    double penalty;
    size_t *of_bucket; /* [n_buckets + 1] */
    bool is_by_bucket; /* of_bucket counts, and weights say only how much each has */
    struct combine_calibration calibration; /* slope 0: none */
    double threshold;                       /* NaN: none */
    double *class_weights;  /* [outputs] of more than two classes, for which class is predicted */
    size_t n_class_weights; /* outputs, or 0: they do not count */
};
AS_MUST_CHECK as_status combination_init(struct combination *c, const struct ensemble_input *in,
                                         struct as_err *err);
void combination_done(struct combination *c);
void combination_clear(struct combination *c, const struct ensemble_input *in);
/* The weights of a mean, from the counts. */
void combination_average(struct combination *c, const struct ensemble_input *in);
/* The members in the order in which their predictions are added: of falling weight, equal ones in
 * the order of the candidates. ret has room for all candidates; returns how many there are. */
size_t combination_members(const unsigned *counts, const double *weights, size_t candidates,
                           size_t *ret);
/* ret[n, outputs]. */
void combination_predict(const struct combination *c, const struct ensemble_input *in,
                         struct row_list l, double *ret);
/* Where there is a threshold or there are weights of classes: p[n, outputs] becomes 1 for the class
 * that is predicted, and 0 for the others, for metrics that count classes. */
void combination_decide(const struct combination *c, size_t n, double *p);
/* Calibrate a combination of classes that is not, and choose its threshold.
 *   p  [l.n, outputs]: what it predicts for the rows; overwritten
 * O(n outputs) for each of a few steps; with a threshold a sort of the rows. */
AS_MUST_CHECK as_status calibration_fit(const struct ensemble_input *in, struct row_list l,
                                        double *p, struct combination *ret, struct as_err *err);

/* Of more than two classes, where the metric looks at all of them alike: choose the weights of
 * classes (class_weights.c).
 *   p  [l.n, outputs]: the probabilities of the rows; overwritten */
AS_MUST_CHECK as_status class_weights_fit(const struct ensemble_input *in, struct row_list l,
                                          double *p, struct combination *ret, struct as_err *err);

struct selection {
    const struct ensemble_input *in;
    const size_t *places; /* [rows] (ensemble_places); borrowed */
    bool *usable;         /* [candidates]: all predictions are finite */
    size_t n_usable;
    struct rank *alone; /* [candidates], on the rows of selection_rank_singles() */
    size_t *order;      /* [n_usable]: the usable candidates, best first */
    double *sum;        /* [rows, outputs]: of the members so far */
    size_t *picks;      /* [size] */
};
/* AS_E_INVAL: no candidate is usable. AS_E_NOMEM. */
AS_MUST_CHECK as_status selection_init(struct selection *s, const struct ensemble_input *in,
                                       const size_t *places, struct as_err *err);
void selection_done(struct selection *s);

/* Rank each candidate alone: s->alone, s->order. */
AS_MUST_CHECK as_status selection_rank_singles(struct selection *s, struct row_list l,
                                               struct as_err *err);
/* Do so many picks and one more candidate keep within the input's bytes? */
bool selection_fits(const struct selection *s, const size_t *picks, size_t n, size_t candidate);
/* The best candidates that keep within its bytes together, the best first: s->picks, at most as
 * many as the input's size. One that does not fit is passed over. AS_E_INVAL: none fits. */
AS_MUST_CHECK as_status selection_best(struct selection *s, size_t *ret_n, struct as_err *err);
void selection_clear(struct selection *s, struct row_list l);
/* Add a candidate's predictions of the rows to s->sum. */
void selection_add(struct selection *s, struct row_list l, size_t candidate);
/* The guide of s->sum with one more candidate (or none: the number of candidates), which makes it a
 * mean of `members`: the log loss, the squared error, or for mae the absolute error. */
double selection_guide(const struct selection *s, struct row_list l, size_t candidate,
                       double members);
/* The rank of s->sum as a mean of `members`. A metric without a value leaves the choice to the
 * guide. */
AS_MUST_CHECK as_status selection_rank(const struct selection *s, struct row_list l, double members,
                                       struct rank *ret, struct as_err *err);

/* The methods. The candidates have been ranked on the rows of the list; ret is cleared. */
typedef as_status (*ensemble_fit_fn)(struct selection *s, struct row_list l,
                                     struct combination *ret, struct as_err *err);
as_status greedy_fit(struct selection *s, struct row_list l, struct combination *ret,
                     struct as_err *err);
as_status stacking_fit(struct selection *s, struct row_list l, struct combination *ret,
                       struct as_err *err);
as_status average_fit(struct selection *s, struct row_list l, struct combination *ret,
                      struct as_err *err);
as_status bucketing_fit(struct selection *s, struct row_list l, struct combination *ret,
                        struct as_err *err);

#endif
