/* The child process that runs Optuna (peer_optuna.py), one for the program: importing it takes
 * seconds. Started at the first request, by the first of $ASSAY_PYTHON, /usr/bin/python3 and
 * python3 that can import it; ends when its input does. One thread. */
#ifndef ASSAY_BENCH_SEARCH_PEER_H
#define ASSAY_BENCH_SEARCH_PEER_H

#include <jansson.h>

#include "base/status.h"

/* Set the folder of another Optuna, used before the installed one; NULL: the environment's
 * OPTUNA_PATH. Call it before the first request; borrowed. */
void peer_set_path(const char *path);

/* Send one request (taken) and wait for its answer: new reference. AS_E_UNAVAILABLE: no interpreter
 * imports Optuna. AS_E_IO: the child failed; err has its message, and the next request starts
 * another. */
AS_MUST_CHECK as_status peer_request(json_t *request, json_t **ret, struct as_err *err);

/* Does Optuna have this sampler ("gp", "tpe")? Starts the child. AS_E_UNAVAILABLE: no, or no
 * Optuna. */
AS_MUST_CHECK as_status peer_has(const char *sampler, struct as_err *err);

/* "Optuna 5.0.0.dev", or NULL before the first request. */
const char *peer_version(void);

/* End the child, and forget it: the next request starts another. */
void peer_close(void);

#endif
