/* The file of a model, as the trainer writes it. */
#ifndef ASSAY_TESTS_SCHEDULER_SERVICES_MODEL_BYTES_H
#define ASSAY_TESTS_SCHEDULER_SERVICES_MODEL_BYTES_H

#include <stddef.h>

/* The bytes of a trial's file with this weight, which are written in `dir` on the way; owned by the
 * caller. */
char *model_bytes(const char *dir, float weight, size_t *ret_len);

#endif
