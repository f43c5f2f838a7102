#include "model/network/graph_cache.h"

void graph_cache_done(struct graph_cache *c)
{
    for (size_t i = 0; i < GRAPH_CACHE_ENTRIES; i++)
        graph_freep(&c->entries[i].g);
}

static bool same_key(const struct graph_cache_key *a, const struct graph_cache_key *b)
{
    return a->first == b->first && a->n == b->n && a->rows == b->rows && a->flags == b->flags;
}

/* The entry of the key; if there is none, a new one in place of the oldest. */
static struct graph_cache_entry *find_entry(struct graph_cache *c,
                                            const struct graph_cache_key *key)
{
    for (size_t i = 0; i < GRAPH_CACHE_ENTRIES; i++)
        if (c->entries[i].seen > 0 && same_key(&c->entries[i].key, key))
            return &c->entries[i];
    struct graph_cache_entry *e = &c->entries[c->next];
    c->next = (c->next + 1) % GRAPH_CACHE_ENTRIES;
    graph_freep(&e->g);
    *e = (struct graph_cache_entry){.key = *key};
    return e;
}

/* Record the calls, after backend_graph_begin(). The recording is ended even if the calls
 * failed. */
static as_status record_calls(struct graph_cache_entry *e, struct backend *be,
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

as_status graph_cache_step(struct graph_cache *c, struct backend *be, struct graph_cache_key key,
                           as_status (*calls)(void *arg, struct as_err *err), void *arg,
                           struct as_err *err)
{
    if (c->off)
        return calls(arg, err);
    struct graph_cache_entry *e = find_entry(c, &key);
    if (e->g != NULL)
        return backend_graph_run(be, e->g, err);
    if (e->seen++ == 0)
        return calls(arg, err);
    as_status st = backend_graph_begin(be, err);
    if (st == AS_E_UNSUPPORTED) {
        c->off = true;
        return calls(arg, err);
    }
    return st < 0 ? st : record_calls(e, be, calls, arg, err);
}
