#include "trial-runner/collective/frame.h"

#include <endian.h>
#include <string.h>

#include "base/crc32c.h"

#define MAGIC 0x4c4c4f43U /* "COLL" */

/* Little endian, in this order:
 *   0 magic  4 kind  8 epoch  12 length  16 attempt  24 step  32 tag  40 offset
 *   48 payload_sum  52 CRC-32C of bytes 0 to 51 */
static void put32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

static void put64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}

static uint32_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static uint64_t get64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

void frame_encode(const struct frame *f, uint8_t ret[FRAME_HEAD_BYTES])
{
    put32(ret, MAGIC);
    put32(ret + 4, (uint32_t)f->kind);
    put32(ret + 8, f->epoch);
    put32(ret + 12, f->length);
    put64(ret + 16, f->attempt);
    put64(ret + 24, f->step);
    put64(ret + 32, f->tag);
    put64(ret + 40, f->offset);
    put32(ret + 48, f->payload_sum);
    put32(ret + 52, crc32c(0, ret, 52));
}

as_status frame_decode(const uint8_t head[FRAME_HEAD_BYTES], struct frame *ret, struct as_err *err)
{
    if (get32(head) != MAGIC)
        return as_fail(err, AS_E_INVAL, "bytes that are no frame");
    if (get32(head + 52) != crc32c(0, head, 52))
        return as_fail(err, AS_E_INVAL, "the head of a frame is damaged");
    uint32_t kind = get32(head + 4), length = get32(head + 12);
    if (kind < FRAME_DATA || kind > FRAME_GOODBYE)
        return as_fail(err, AS_E_INVAL, "a frame of unknown kind %u", (unsigned)kind);
    if (length > FRAME_PAYLOAD_MAX || (kind != FRAME_DATA && length > 0))
        return as_fail(err, AS_E_INVAL, "a frame of %u bytes; at most %d are allowed",
                       (unsigned)length, kind == FRAME_DATA ? FRAME_PAYLOAD_MAX : 0);
    *ret = (struct frame){.kind = (frame_kind)kind,
                          .epoch = get32(head + 8),
                          .length = length,
                          .attempt = get64(head + 16),
                          .step = get64(head + 24),
                          .tag = get64(head + 32),
                          .offset = get64(head + 40),
                          .payload_sum = get32(head + 48)};
    return AS_OK;
}
