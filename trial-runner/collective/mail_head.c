#include "trial-runner/collective/mail_head.h"

#include <endian.h>
#include <string.h>

/* Little endian: 0 type  4 kind  8 id  16 step  24 n. */
void mail_head_encode(const struct mail_head *h, uint8_t ret[MAIL_HEAD_BYTES])
{
    uint32_t small[2] = {htole32((uint32_t)h->type), htole32((uint32_t)h->kind)};
    uint64_t large[3] = {htole64(h->id), htole64(h->step), htole64(h->n)};
    memcpy(ret, small, sizeof small);
    memcpy(ret + sizeof small, large, sizeof large);
}

as_status mail_head_decode(const uint8_t head[MAIL_HEAD_BYTES], uint64_t max_bytes,
                           struct mail_head *ret, struct as_err *err)
{
    uint32_t small[2];
    uint64_t large[3];
    memcpy(small, head, sizeof small);
    memcpy(large, head + sizeof small, sizeof large);
    uint32_t type = le32toh(small[0]);
    int32_t kind = (int32_t)le32toh(small[1]);
    uint64_t n = le64toh(large[2]);
    if (type != MAIL_REQUEST && type != MAIL_ANSWER)
        return as_fail(err, AS_E_INVAL, "a message of unknown type %u", (unsigned)type);
    if (type == MAIL_ANSWER && kind > 0)
        return as_fail(err, AS_E_INVAL, "an answer with the status %d, expected 0 or below",
                       (int)kind);
    if (n > max_bytes)
        return as_fail(err, AS_E_INVAL, "a message of %llu bytes; at most %llu are allowed",
                       (unsigned long long)n, (unsigned long long)max_bytes);
    *ret = (struct mail_head){.type = (mail_type)type,
                              .kind = kind,
                              .id = le64toh(large[0]),
                              .step = le64toh(large[1]),
                              .n = n};
    return AS_OK;
}
