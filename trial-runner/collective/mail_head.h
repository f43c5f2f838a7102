/* The head of a request or an answer of the mailbox, as it travels. Its bytes lie in frames
 * (frame.h), which say the attempt and the epoch and have checksums. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_MAIL_HEAD_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_MAIL_HEAD_H

#include <stdint.h>

#include "base/status.h"

#define MAIL_HEAD_BYTES 32

typedef enum mail_type { MAIL_REQUEST = 1, MAIL_ANSWER = 2 } mail_type;

struct mail_head {
    mail_type type;
    int32_t kind;  /* a request's kind; an answer's status, 0 or below */
    uint64_t id;   /* of the request, among those of its sender; an answer repeats it */
    uint64_t step; /* of the training */
    uint64_t n;    /* bytes that follow */
};

void mail_head_encode(const struct mail_head *h, uint8_t ret[MAIL_HEAD_BYTES]);

/* AS_E_INVAL: an unknown type, an answer with a status above 0, or more than max_bytes. */
AS_MUST_CHECK as_status mail_head_decode(const uint8_t head[MAIL_HEAD_BYTES], uint64_t max_bytes,
                                         struct mail_head *ret, struct as_err *err);

#endif
