/* Which attempt of which trial, and which rank of it: what the server, the folders and the threads
 * of the runner know an attempt by. */
#ifndef ASSAY_TRIAL_RUNNER_ATTEMPT_ATTEMPT_ID_H
#define ASSAY_TRIAL_RUNNER_ATTEMPT_ATTEMPT_ID_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

#define ATTEMPT_NO_SEAT INT64_C(-1)

struct attempt_id {
    const char *sweep;       /* a safe name (claimed_name_safe); borrowed */
    int64_t number, attempt; /* of the trial; of the attempt at it, from 1 */
    int64_t seat;            /* of a rank: its seat in the gang, from 0; ATTEMPT_NO_SEAT: no rank */
};

bool attempt_id_same(const struct attempt_id *a, const struct attempt_id *b);

/* {"sweep", "number", "attempt"} and for a rank "seat": a new reference, or NULL if memory is
 * out. */
json_t *attempt_id_json(const struct attempt_id *id);
/* Read what attempt_id_json writes. What is missing is "", 0, 0 and no seat. A view of j. */
struct attempt_id attempt_id_of(const json_t *j);

/* Append the path of the attempt's folder below WORK/trials: SWEEP/NUMBER/ATTEMPT, for a rank
 * SWEEP/NUMBER/ATTEMPT.SEAT. */
void attempt_id_folder(const struct attempt_id *id, struct str *path);
/* Read the last part of that path into attempt and seat. Returns whether it is one. */
bool attempt_id_read_folder(const char *name, struct attempt_id *ret);

/* Append "/v1/sweeps/SWEEP/trials/NUMBER/attempts/ATTEMPT". */
void attempt_id_url(const struct attempt_id *id, struct str *path);

/* Append "trial=SWEEP/NUMBER attempt=N", for a rank with " seat=N": for logs. */
void attempt_id_label(const struct attempt_id *id, struct str *label);

#endif
