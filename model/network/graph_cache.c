#include "model/network/graph_cache.h"

void replay_done(struct replay *r)
{
    for (size_t i = 0; i < REPLAY_RECORDS; i++)
        graph_freep(&r->records[i].g);
}

static bool same(const struct replay_key *a, const struct replay_key *b)
{
    return a->first == b->first && a->n == b->n && a->rows == b->rows && a->flags == b->flags;
}

/* The key's record; where there is none, the oldest makes room. */
static struct replay_record *record_of(struct replay *r, const struct replay_key *key)
{
    for (size_t i = 0; i < REPLAY_RECORDS; i++)
        if (r->records[i].seen > 0 && same(&r->records[i].key, key))
            return &r->records[i];
    struct replay_record *e = &r->records[r->next];
    r->next = (r->next + 1) % REPLAY_RECORDS;
    graph_freep(&e->g);
    *e = (struct replay_record){.key = *key};
    return e;
}

/* After backend_graph_begin. The record is ended whatever the calls gave. */
static as_status record(struct replay_record *e, struct backend *be,
                        as_status (*calls)(void *arg, struct as_err *err), void *arg,
                        struct as_err *err)
{
    as_status st = calls(arg, err);
    as_status end = backend_graph_end(be, &e->g, st < 0 ? NULL : err);
    if (st < 0) {
        if (end == AS_OK)
            graph_freep(&e->g);
        return st;
    }
    return end < 0 ? end : backend_graph_run(be, e->g, err);
}

as_status replay_step(struct replay *r, struct backend *be, struct replay_key key,
                      as_status (*calls)(void *arg, struct as_err *err), void *arg,
                      struct as_err *err)
{
    if (r->off)
        return calls(arg, err);
    struct replay_record *e = record_of(r, &key);
    if (e->g != NULL)
        return backend_graph_run(be, e->g, err);
    if (e->seen++ == 0)
        return calls(arg, err);
    as_status st = backend_graph_begin(be, err);
    if (st == AS_E_UNSUPPORTED) {
        r->off = true;
        return calls(arg, err);
    }
    return st < 0 ? st : record(e, be, calls, arg, err);
}
