#include "trial-runner/collective/exchange.h"

void exchange_init(struct exchange *x, struct mesh *mesh, struct coll_id id, struct transfer *t,
                   size_t max)
{
    *x = (struct exchange){.mesh = mesh, .id = id, .t = t, .max = max};
}

static struct transfer *post(struct exchange *x, struct transfer t)
{
    struct transfer *at = &x->t[x->n++];
    *at = t;
    at->step = x->id.step;
    at->tag = x->id.tag;
    at->what = x->id.what;
    mesh_post(x->mesh, at);
    return at;
}

struct transfer *exchange_send(struct exchange *x, int32_t peer, const void *from, size_t bytes,
                               const size_t *ready)
{
    return post(x, (struct transfer){
                       .peer = peer, .sends = true, .from = from, .length = bytes, .ready = ready});
}

struct transfer *exchange_receive(struct exchange *x, int32_t peer, void *to, size_t bytes,
                                  const struct reduction *reduce, const void *with)
{
    return post(x, (struct transfer){.peer = peer,
                                     .to = to,
                                     .from = with,
                                     .reduce = reduce,
                                     .streams = x->streams,
                                     .length = bytes});
}

as_status exchange_wait(struct exchange *x, struct as_err *err)
{
    as_status st = mesh_wait(x->mesh, x->t, x->n, err);
    x->n = 0;
    return st;
}
