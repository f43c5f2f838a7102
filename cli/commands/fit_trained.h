/* assay fit: what a model is chosen from. */
#ifndef ASSAY_CLI_COMMANDS_FIT_TRAINED_H
#define ASSAY_CLI_COMMANDS_FIT_TRAINED_H

#include <jansson.h>

#include "cli/session/request.h"

/* Borrowed. */
struct fit_trained {
    const struct trial_ref *sweep;
    const char *also[2]; /* other sweeps on the same rows, whose trials take part in ensembles */
    size_t n_also;
    const char *layer;   /* the one of `also` that is a further layer; NULL: none */
    const json_t *stack; /* the trials that it sees: SWEEP/NUMBER */
};

#endif
