/* The child processes of peers, one of each for the program, because importing what they need takes
 * seconds: Optuna (peer_optuna.py), and the restated recipes of HEBO and BoTorch (peer_recipes.py).
 * Started at the first request, by the first of $ASSAY_PYTHON, /usr/bin/python3 and python3 that
 * can import what it needs; ends when its input does. One thread. */
#ifndef ASSAY_BENCH_SEARCH_PEER_H
#define ASSAY_BENCH_SEARCH_PEER_H

#include <jansson.h>

#include "base/status.h"

typedef enum peer_program { PEER_OPTUNA, PEER_RECIPES, PEER_PROGRAMS } peer_program;

/* Set the folder of another Optuna, used before the installed one; NULL: the environment's
 * OPTUNA_PATH. Call it before the first request; borrowed. */
void peer_set_path(const char *path);

/* Send one request (taken) and wait for its answer: new reference. AS_E_UNAVAILABLE: no interpreter
 * imports what the program needs. AS_E_IO: the child failed; err has its message, and the next
 * request starts another. */
AS_MUST_CHECK as_status peer_request(peer_program program, json_t *request, json_t **ret,
                                     struct as_err *err);

/* Does the program have this sampler ("gp", "tpe"; "hebo")? Starts the child. AS_E_UNAVAILABLE: no,
 * or no interpreter. */
AS_MUST_CHECK as_status peer_has(peer_program program, const char *sampler, struct as_err *err);

/* "Optuna 5.0.0.dev", "numpy 1.24.2, scipy 1.10.1"; NULL before the first request. */
const char *peer_version(peer_program program);

/* End the children, and forget them: the next request starts another. */
void peer_close(void);

#endif
