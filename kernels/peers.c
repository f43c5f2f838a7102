#include "kernels/peers.h"

#include <string.h>

#include "kernels/peers_priv.h"
#include "kernels/plugin.h"

static as_status find_ops(struct backend *be, const struct peers_ops **ret, struct as_err *err)
{
    if (strcmp(backend_name(be), "cuda") != 0)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "back end %s has no messages between devices, expected cuda",
                       backend_name(be));
    return plugin_peers(ret, err);
}

as_status peers_new_id(struct backend *be, uint8_t ret[PEERS_ID_BYTES], struct as_err *err)
{
    const struct peers_ops *ops = NULL;
    as_status st = find_ops(be, &ops, err);
    return st < 0 ? st : ops->new_id(ret, err);
}

as_status peers_card(struct backend *be, struct peers_card *ret, struct as_err *err)
{
    const struct peers_ops *ops = NULL;
    as_status st = find_ops(be, &ops, err);
    return st < 0 ? st : ops->card(be, ret, err);
}

as_status peers_open(struct backend *be, const struct peers_group *group, struct peers **ret,
                     struct as_err *err)
{
    const struct peers_ops *ops = NULL;
    if (group->rank < 0 || group->rank >= group->n)
        return as_fail(err, AS_E_INVAL, "rank is %d of %d ranks", (int)group->rank, (int)group->n);
    as_status st = find_ops(be, &ops, err);
    return st < 0 ? st : ops->open(be, group, ret, err);
}

void peers_free(struct peers *p)
{
    if (p)
        p->ops->free(p);
}

void peers_freep(struct peers **p)
{
    peers_free(*p);
    *p = NULL;
}

as_status peers_exchange(struct peers *p, const struct peers_message *messages, size_t n,
                         struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct peers_message *m = &messages[i];
        if (m->peer < 0 || m->peer >= p->n || m->peer == p->rank)
            return as_fail(err, AS_E_INVAL, "message %zu is for rank %d; this is rank %d of %d", i,
                           (int)m->peer, (int)p->rank, (int)p->n);
        if (!m->buf || buf_kind_get(m->buf) != BUF_F32 || m->at > buf_len(m->buf) ||
            m->n > buf_len(m->buf) - m->at)
            return as_fail(err, AS_E_INVAL,
                           "message %zu: elements %zu to %zu are not in a float32 "
                           "buffer",
                           i, m->at, m->at + m->n);
    }
    return p->ops->exchange(p, messages, n, err);
}

as_status peers_wait(struct peers *p, int64_t timeout_ms, struct as_err *err)
{
    return p->ops->wait(p, timeout_ms, err);
}

void peers_interrupt(struct peers *p)
{
    p->ops->interrupt(p);
}
