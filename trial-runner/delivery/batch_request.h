/* Many ends and measurements as one request, and its answer as one answer for each
 * (POST /v1/runners/{runner}/batch). Pure. */
#ifndef ASSAY_TRIAL_RUNNER_DELIVERY_BATCH_REQUEST_H
#define ASSAY_TRIAL_RUNNER_DELIVERY_BATCH_REQUEST_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"
#include "base/str.h"
#include "trial-runner/attempt/attempt_id.h"

#define BATCH_PARTS_MAX 256               /* of one request: the server's limit */
#define BATCH_BYTES_MAX ((size_t)1 << 20) /* of one request: the server's limit */
#define BATCH_FRAME_BYTES 64
#define BATCH_CODE_MAX 64

typedef enum batch_kind { BATCH_MEASUREMENTS, BATCH_END } batch_kind;
#define BATCH_KINDS 2

/* Write a part: the body that its single request would have (an object that is not empty), with the
 * attempt beside its fields, and for a rank its seat and the epoch of its world. A failure is noted
 * in `out`. */
void batch_part_write(const struct attempt_id *id, int64_t world_epoch, const json_t *body,
                      struct str *out);

struct batch_text {
    const char *s; /* written by batch_part_write() */
    size_t len;
    batch_kind kind;
};

/* Write the body of the request: at most BATCH_FRAME_BYTES, and for each part one byte more than it
 * has. A failure is noted in `out`. */
void batch_write(const struct batch_text *parts, size_t n, struct str *out);

/* What the server said about a part. */
struct batch_answer {
    as_status st;
    const json_t *body;        /* st is AS_OK; a view of the answer */
    char code[BATCH_CODE_MAX]; /* of the problem; "" */
    struct as_err err;         /* about the part, as its single request would have got it */
};

/* Read the answer to the part that stands at `index` among those of its kind. AS_E_INTERNAL in it:
 * the answer breaks the contract. */
void batch_answer_read(const json_t *answer, batch_kind kind, size_t index,
                       struct batch_answer *ret);

#endif
