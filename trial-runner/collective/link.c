#include "trial-runner/collective/link.h"

#include <string.h>

#include "trial-runner/collective/streaming_copy.h"

void link_post(struct link *l, struct transfer *t)
{
    struct transfer_queue *q = t->sends ? &l->sends : &l->receives;
    t->next = NULL;
    t->done = t->framed = 0;
    if (t->length == 0) /* nothing travels */
        return;
    if (q->head)
        q->tail->next = t;
    else
        q->head = t;
    q->tail = t;
}

static void advance(struct transfer_queue *q, size_t n)
{
    struct transfer *t = q->head;
    t->done += n;
    if (transfer_is_done(t))
        q->head = t->next;
}

bool link_next_frame(struct link *l, size_t most, struct frame *ret, const uint8_t **ret_payload)
{
    struct transfer *t = l->sends.head;
    while (t && t->framed == t->length)
        t = t->next;
    if (!t)
        return false;
    size_t ready = t->ready && *t->ready < t->length ? *t->ready : t->length;
    size_t n = ready - t->framed < most ? ready - t->framed : most;
    if (n == 0)
        return false;
    *ret = (struct frame){.kind = FRAME_DATA,
                          .epoch = l->epoch,
                          .attempt = l->attempt,
                          .step = t->step,
                          .tag = t->tag,
                          .offset = t->framed,
                          .length = (uint32_t)n};
    *ret_payload = t->from + t->framed;
    t->framed += n;
    return true;
}

void link_frame_sent(struct link *l, const struct frame *f)
{
    l->bytes_sent += f->length;
    advance(&l->sends, f->length);
}

as_status link_expect(struct link *l, const struct frame *f, struct transfer **ret_to,
                      struct as_err *err)
{
    struct transfer *t = l->receives.head;
    if (f->attempt != l->attempt || f->epoch != l->epoch)
        return as_fail(err, AS_E_STALE, "a frame of attempt %llx, epoch %u",
                       (unsigned long long)f->attempt, (unsigned)f->epoch);
    if (!t)
        return AS_E_EXHAUSTED;
    if (f->step != t->step || f->tag != t->tag || f->offset != t->done ||
        f->length > t->length - t->done)
        return as_fail(err, AS_E_CONFLICT,
                       "rank %d sends tensor %llu of step %llu (bytes %llu to %llu); this rank "
                       "expects '%.60s', tensor %llu of step %llu (bytes %zu to %zu)",
                       (int)l->peer, (unsigned long long)f->tag, (unsigned long long)f->step,
                       (unsigned long long)f->offset, (unsigned long long)(f->offset + f->length),
                       t->what ? t->what : "", (unsigned long long)t->tag,
                       (unsigned long long)t->step, t->done, t->length);
    if (t->reduce && f->length % t->reduce->item_bytes != 0)
        return as_fail(err, AS_E_CONFLICT, "rank %d sends %u bytes for items of %zu", (int)l->peer,
                       (unsigned)f->length, t->reduce->item_bytes);
    *ret_to = t;
    return AS_OK;
}

void link_frame_received(struct link *l, const struct frame *f, const uint8_t *payload)
{
    struct transfer *t = l->receives.head;
    uint8_t *to = t->to + t->done;
    const uint8_t *with = t->from + t->done;
    if (t->reduce)
        t->reduce->combine(to, t->received_first ? payload : with,
                           t->received_first ? with : payload, f->length / t->reduce->item_bytes);
    else if (t->streams)
        streaming_copy(to, payload, f->length);
    else
        memcpy(to, payload, f->length);
    advance(&l->receives, f->length);
}
