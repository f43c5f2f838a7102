/* A request that is not served: its answer is a problem. */
#ifndef ASSAY_API_SERVER_REFUSE_H
#define ASSAY_API_SERVER_REFUSE_H

#include <stdbool.h>
#include <stddef.h>

#include "api/server/problem_document.h"

struct call;
struct dispatch;

/* Set the answer of the call, in place of one that it may have. The faults of its body are told if
 * `err` is the first of them. */
void refuse(struct call *c, problem_kind kind, const struct as_err *err);
/* The same with an error of this status and these words. */
void refuse_with(struct call *c, problem_kind kind, as_status st, const char *detail);

/* Does the disk of the database lack room? That explains what fails meanwhile, also where
 * PostgreSQL cannot even start. Writes which disk and how much for people. */
bool refuse_is_for_disk(const struct dispatch *d, char *ret_text, size_t size);

#endif
