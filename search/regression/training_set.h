/* A sweep as the models see it: its history, classified and encoded.
 *
 * A completed trial whose objectives and outcomes are not all finite and credible (credible.h)
 * counts as failed. Costs are the objectives with a sign such that small is good. Trials are
 * ordered by number, not by the time at which they ended.
 *
 * Failures that came without a value are to be avoided: a model predicts where more would come.
 * Values that are not credible are, too, where they come in one region (neighbour_test.h), as those
 * of diverged runs do. If they come anywhere, they say nothing of a place.
 *
 * With early stopping trials have values at rungs. A trial that has some and none of the last step
 * is neither completed nor failed: it is *at a rung*. Rungs of failed trials are left out. */
#ifndef ASSAY_SEARCH_REGRESSION_TRAINING_SET_H
#define ASSAY_SEARCH_REGRESSION_TRAINING_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/encoding.h"
#include "search/regression/covariance.h"
#include "search/regression/repeats.h"
#include "search/problem/problem.h"

#define TRAINING_SET_NONE SIZE_MAX

/* The values of a trial at a rung. */
struct training_rung {
    double place;                        /* ln step / ln max_step, within 0 and 1 */
    double costs[SEARCH_MAX_OBJECTIVES]; /* INFINITY where the value is not finite */
};

struct training_set {
    const struct search_spec *spec; /* borrowed */
    struct encoding *enc;
    struct gp_columns columns; /* of the features; `group` is the set's */
    uint32_t *group;
    struct config *scratch;           /* for encoding_allows */
    size_t n;                         /* trials; the arrays have a row for each */
    const struct observation *trials; /* borrowed */
    observation_state *state;         /* as above */
    double *points;                   /* n x enc->n, snapped */
    double *x;                        /* n x enc->n_real */
    int32_t *z;                       /* n x enc->n_category */
    double *costs;                    /* n x spec->n_objectives; NaN unless completed */
    struct training_rung *rungs;      /* of all trials, by trial and step. NULL: no max_step */
    size_t *rung_from;                /* n + 1: those of trial i are rung_from[i].. of them */
    double *expected; /* n: set by a method whose model predicts the last step: the prediction, in
                           the model's unit; NaN: none. NULL: it has not */
    bool *feasible;   /* completed, with all outcomes within their bounds */
    bool *avoided;    /* failed, and says so of its neighbours: below */
    size_t n_completed, n_failed, n_pending, n_partial, n_feasible, n_avoided;
    size_t n_rungs; /* trials at a rung: partial or pending */
    size_t best;    /* the feasible trial of lowest first cost, TRAINING_SET_NONE without one */
    struct repeats repeats;
    bool in_doubt; /* the best value stands apart from all others, and was not measured again */
    bool stagnant; /* the last 10 + d completed trials gained almost nothing (one objective) */
    bool stalled;  /* the last eight completed trials, or the last fifth if that is more, gained
                       little (one objective) */
    bool
        crowded; /* a quarter of the trials lies very close to the best, and the newest 0.6 (10 + d)
                      gained almost nothing (one objective) */
};

/* Configurations of trials and their points, kept from one training set of a sweep to the next.
 * They only save time: finding the point of a float bit for bit costs as much as the rest of a
 * set. */
struct training_places {
    size_t n, d;
    uint64_t bends; /* of the encoding of the points */
    size_t cap_entries, cap_points;
    struct config_entry *entries; /* n x d */
    double *points;               /* n x d */
};
void training_places_done(struct training_places *p); /* accepts a zeroed one */
size_t training_places_bytes(const struct training_places *p);

/* spec and history (which may be NULL) are borrowed and must outlive the set. places: those of
 * earlier sets of the same sweep; this set adds its own. NULL: none are kept. O(n d).
 * AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status training_set_create(const struct search_spec *spec,
                                            const struct history *history,
                                            struct training_places *places,
                                            struct training_set **ret, struct as_err *err);
/* The same under an encoding with what was learned; borrowed for the call. */
AS_MUST_CHECK as_status training_set_create_with(const struct search_spec *spec,
                                                 const struct history *history,
                                                 const struct encoding_learned *learned,
                                                 struct training_places *places,
                                                 struct training_set **ret, struct as_err *err);
void training_set_free(struct training_set *s);
AS_DEFINE_FREEP(struct training_set, training_set_free)

/* The highest rung of a trial that is at one; NULL: it has completed, failed, or reached none. */
static inline const struct training_rung *training_set_rung(const struct training_set *s, size_t i)
{
    bool is_at_rung =
        s->rungs && s->state[i] != OBSERVED_COMPLETED && s->rung_from[i + 1] > s->rung_from[i];
    return is_at_rung ? &s->rungs[s->rung_from[i + 1] - 1] : NULL;
}

/* Trials that say something: completed, failed, or at a rung. */
static inline size_t training_set_results(const struct training_set *s)
{
    return s->n_completed + s->n_failed + s->n_rungs;
}

static inline const double *training_set_point(const struct training_set *s, size_t i)
{
    return s->points + i * s->enc->n;
}

/* The first observed or pending configuration within `tolerance` (encoding_same) of this point,
 * from the row `from` on and then from the beginning; TRAINING_SET_NONE: there is none. O(n d),
 * with an early end at most trials. */
size_t training_set_find(const struct training_set *s, const double *point, double tolerance,
                         size_t from);
/* Is an observed or pending configuration within `tolerance` of this point? */
bool training_set_tried(const struct training_set *s, const double *point, double tolerance);

#endif
