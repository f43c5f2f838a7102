/* The answers of a peer in a child process: a line of JSON for each request. */
#ifndef ASSAY_BENCH_ANSWER_H
#define ASSAY_BENCH_ANSWER_H

#include <jansson.h>
#include <stdio.h>

#include "base/status.h"

/* Read one line. `who` is the peer's name, for messages. *ret is a new reference. AS_E_IO: the
 * process ended, or the line is {"error": "…"}; AS_E_INVAL: it is not JSON. */
AS_MUST_CHECK as_status answer_read(FILE *from, const char *who, json_t **ret, struct as_err *err);

#endif
