/* Which fields of trial.train differ between a fork and its parent (early_stopping: pbt), and what
 * the runner of a trial keeps for forks. Pure. */
#ifndef ASSAY_SCHEDULER_SWEEP_FORK_FIELDS_H
#define ASSAY_SCHEDULER_SWEEP_FORK_FIELDS_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"

/* The places in `train`, a template, whose text names one of these parameters, a list of names:
 * JSON pointers below `train`, such as "/optimizer/lr", in the order of the document; each once.
 * New reference. AS_E_INVAL as template_visit(); AS_E_NOMEM. */
AS_MUST_CHECK as_status fork_fields(const json_t *train, const json_t *names, json_t **ret,
                                    struct as_err *err);

/* The parameters that differ between a fork and its parent: those of `explore`, a list of names,
 * and those whose conditions (`when`) name one of them, in the end. `parameters` is the section of
 * a document. New reference; AS_E_NOMEM. */
AS_MUST_CHECK as_status fork_names(const json_t *parameters, const json_t *explore, json_t **ret,
                                   struct as_err *err);

/* What a stored document says of it. */
struct fork_rule {
    int64_t
        every; /* a trial keeps what it has left at multiples of this step; 0: nothing is forked */
    int64_t until;      /* … below this one */
    json_t *may_differ; /* owned: fork_fields() of trial.train; NULL: a command */
};

/* Read it from a canonical document. AS_E_NOMEM, or the text of a template is not well formed. */
AS_MUST_CHECK as_status fork_rule_read(const json_t *document, struct fork_rule *ret,
                                       struct as_err *err);
void fork_rule_done(struct fork_rule *r);

#endif
