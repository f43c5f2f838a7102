/* What models.c, model_add.c and model_choice.c share. */
#ifndef ASSAY_SCHEDULER_SERVICES_MODELS_PRIV_H
#define ASSAY_SCHEDULER_SERVICES_MODELS_PRIV_H

#include <jansson.h>

#include "base/arena.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/services/models.h"
#include "scheduler/store/tx.h"

/* A trial of a version. */
struct model_choice_member {
    const char *sweep; /* id */
    int64_t sweep_key, number;
    double weight; /* of a mean: > 0 */
};

/* What a version is made of. */
struct model_choice {
    const char *kind; /* trial, ensemble */
    struct model_choice_member *members;
    size_t n;
    json_t *ensemble; /* owned: the Ensemble object of the API; NULL: the sweep has none */
    json_t *combine;  /* owned: of the model file; NULL: a mean */
};
void model_choice_done(struct model_choice *c);

/* Choose what the request wants. Members live in `a`. ret is zeroed, or of an earlier call, and is
 * given to model_choice_done() in any case. Errors: model_add(). */
AS_MUST_CHECK as_status model_choose(struct tx *t, struct arena *a, const struct model_request *q,
                                     const struct sweep_row *sweep, struct model_choice *ret,
                                     struct as_err *err);

/* How an ensemble was made, for the lineage: {method, size, combine, number?}. New reference, NULL
 * when memory is out. */
json_t *model_choice_lineage(const struct model_choice *c, const struct model_request *q);

/* [A-Za-z0-9][A-Za-z0-9._-]{0,63}. AS_E_INVAL: no model can have that name. */
AS_MUST_CHECK as_status model_name_check(const char *name, struct as_err *err);

/* Record in its transaction that the model changed, with an event. `version`: the number of one
 * that was added; 0: something else changed. */
AS_MUST_CHECK as_status model_note_change(struct tx *t, const char *name, int64_t version,
                                          struct as_err *err);

#endif
