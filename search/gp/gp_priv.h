/* What one suggestion works on. For search/gp/ alone. */
#ifndef ASSAY_SEARCH_GP_GP_PRIV_H
#define ASSAY_SEARCH_GP_GP_PRIV_H

#include <jansson.h>

#include "search/gp/acquisition.h"
#include "search/gp/bend.h"
#include "search/gp/branch.h"
#include "search/gp/free_numbers.h"
#include "search/gp/reliability.h"
#include "search/gp/gp.h"
#include "search/gp/influence.h"
#include "search/gp/optimize.h"
#include "search/gp/left_part.h"
#include "search/gp/relevance.h"
#include "search/gp/acquisition_schedule.h"
#include "search/gp/surrogate.h"
#include "search/gp/trust_region.h"
#include "search/prior/trust.h"

/* Kept between suggestions. */
struct gp_cache {
    struct surrogate_store store;
    struct surrogate_store own; /* the model of a part's trials, or of a value's */
    struct gp_optimizer_work optimizer;
    struct training_places places, own_places;
};

struct gp_ask {
    struct training_set *set;
    struct gp_cache *cache;
    const json_t *state; /* borrowed; left by the previous suggestion */
    uint64_t number, index;
    const struct schedule_row *row; /* NULL: no model is used */
    size_t n_models;
    struct surrogate models[ACQUISITION_MAX_MODELS];
    struct acquisition acquisition;
    struct gp_ehvi *ehvi;
    struct trust_region trust;
    struct branch branch;  /* of a row for branches */
    char own_model[48];    /* of a part or a value: the name of its state; "": another was used */
    bool is_quadratic;     /* the point is the quadratic's */
    bool is_repeat;        /* the point is the best trial's */
    size_t basin;          /* of a row for basins: the head; TRAINING_SET_NONE: elsewhere */
    struct left_part part; /* of a row for parts */
    bool is_spread;        /* the point is far from the part's trials; no model chose it */
    bool is_nearby;        /* the point is a move of one of the few successes */
    bool is_crossing;      /* the best trial, moved into the branch */
    struct free_numbers free;       /* all others are as in the best trial, or as in the branch's */
    struct relevance relevance;     /* what was learned of the parameters; `set` is encoded so */
    struct bends bends;             /* and of their scales */
    struct idle_numbers idle;       /* which of them have no effect among the good trials */
    struct influence influence;     /* whether the parameters matter at all */
    struct reliability reliability; /* what came of the models' predictions; one objective */
    struct prior_weights priors;
    struct gp_found found;
    double *point;               /* [enc->n] */
    const struct config *config; /* that of the point; borrowed */
};

/* Does the point lie in the part, or in the branch, whose trials have a model of their own? */
typedef bool gp_own_fn(const struct gp_ask *a, const double *point);

/* The trials of a->set that `holds` takes, as a set of their own.
 *   trials  [a->set->n], written; lasts as long as *ret
 *   ret     owned by the caller
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_own_set(const struct gp_ask *a, gp_own_fn *holds,
                                   const struct encoding_learned *learned,
                                   struct observation *trials, struct training_set **ret,
                                   struct as_err *err);
/* Set the point, and what is found of it, by a model of such a set.
 *   name         of the model's state among those of the models
 *   acquisition  all but what it compares with, which is the best trial of the set
 * AS_E_NUMERIC: the model cannot be fitted. AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_own_optimize(struct gp_ask *a, const struct training_set *s,
                                        const char *name, surrogate_target target,
                                        const struct acquisition *acquisition,
                                        const struct gp_region *region, struct as_err *err);

#define GP_PART_MODEL "part" /* the name of its state among those of the models */

/* Set the point, and what is found of it, in a->part (a row for parts). AS_E_NUMERIC: its model
 * cannot be fitted. AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_part_suggest(struct gp_ask *a, struct as_err *err);

/* Is the suggestion in a->branch (a row for branches) for the model of its own trials? It takes
 * turns with that of all trials. */
bool gp_value_has_turn(const struct gp_ask *a);
/* Set the point, and what is found of it, by that model. AS_E_NUMERIC: it cannot be fitted.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_value_suggest(struct gp_ask *a, struct as_err *err);

/* UCB's number of deviations. */
double gp_ucb_beta(const struct training_set *s);

/* With rungs or noise: predict every trial that has a value, at the last step, so that trials at
 * different steps can be compared, and lucky ones with others. AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_set_expected(struct gp_ask *a, struct as_err *err);
/* Set what the acquisition compares with. AS_E_NUMERIC, AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_set_marks(struct gp_ask *a, struct as_err *err);

/* Set the point, and what is found of it, by the models of all trials, which are prepared.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_find_point(struct gp_ask *a, struct as_err *err);

/* The hyperparameters that the last fit of the model of this name found, borrowed from the state;
 * NULL: there was none. */
const json_t *gp_state_theta(const struct gp_ask *a, const char *model);
/* Write the state that the next suggestion reads, a new reference. AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_state_write(const struct gp_ask *a, json_t **ret, struct as_err *err);

/* Write the reason.
 *   fallback  why the models were not used, or NULL
 *   ret       a new reference
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_reason_write(const struct gp_ask *a, const char *fallback, json_t **ret,
                                        struct as_err *err);

#endif
