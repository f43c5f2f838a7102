/* The name of a trial: SWEEP/NUMBER. */
#ifndef ASSAY_BASE_TRIAL_NAME_H
#define ASSAY_BASE_TRIAL_NAME_H

#include <stdint.h>

#include "base/status.h"

#define TRIAL_NAME_SWEEP 80 /* bytes of a sweep's id with its NUL */

struct trial_name {
    char sweep[TRIAL_NAME_SWEEP];
    int64_t number;
};

/* AS_E_INVAL: the text (NULL: there is none) is not SWEEP/NUMBER. */
AS_MUST_CHECK as_status trial_name_parse(const char *text, struct trial_name *ret,
                                         struct as_err *err);

#endif
