/* What must be known of all trials of a sweep before the first one is printed: the columns. It is
 * collected from any number of pages, and its size depends on the names alone. */
#ifndef ASSAY_CLI_VIEW_TRIAL_FACTS_H
#define ASSAY_CLI_VIEW_TRIAL_FACTS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"

struct trial_facts {
    json_t *params;      /* names: of the document in its order, then those that only trials have */
    json_t *metrics;     /* names that some trial has, in order of appearance */
    json_t *used_params; /* {name: true} of those that some trial has */
    json_t *known_params, *known_metrics; /* {name: true} of the lists */
    bool has_groups, has_reasons;         /* some trial has a text there */
};

/* Begin with the document of `sweep` (a Sweep of the API; NULL: no document). AS_E_NOMEM. Release
 * it in every case. */
AS_MUST_CHECK as_status trial_facts_init(struct trial_facts *f, const json_t *sweep,
                                         struct as_err *err);
void trial_facts_done(struct trial_facts *f);

/* Add trials; borrowed. AS_E_NOMEM. */
AS_MUST_CHECK as_status trial_facts_add(struct trial_facts *f, const json_t *items,
                                        struct as_err *err);

#endif
