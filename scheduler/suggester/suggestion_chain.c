/* The chain of prepared suggestions.
 *
 * A link carries the mark of the link before it. So one comparison with the mark in the sweep's row
 * shows whether any other suggestion came between. A link holds text, not parsed values, because
 * another server that reads the suggestion from the database must continue from exactly the same
 * configuration. */
#include "scheduler/suggester/suggestion_chain_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"

static void link_done(struct chain_link *l)
{
    free(l->params);
    free(l->reason);
    free(l->state);
}

void chain_cut(struct chain *c, size_t first)
{
    for (size_t i = first; i < c->n; i++)
        link_done(&c->links[i]);
    c->n = first < c->n ? first : c->n;
}

/* Drop the first n links. */
static void drop_first_links(struct chain *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        link_done(&c->links[i]);
    memmove(c->links, c->links + n, (c->n - n) * sizeof *c->links);
    c->n -= n;
}

/* ---- what is ready ---- */

static bool is_known(const struct search_place *p, int64_t seen, int64_t loaded_ns)
{
    return seen >= p->finish_seq || loaded_ns >= p->arrived_ns;
}

/* The link for that place, or NULL. */
static const struct chain_link *find_link(const struct chain *c, const struct search_place *p)
{
    for (size_t i = 0; c && i < c->n; i++) {
        const struct chain_link *l = &c->links[i];
        if (l->number == p->number)
            return l->before == p->mark && is_known(p, l->seen, l->loaded_ns) ? l : NULL;
    }
    return NULL;
}

/* A failure is only for the requests that waited for it. AS_E_EXHAUSTED is permanent. */
static bool has_failed(const struct chain *c, const struct search_place *p)
{
    const struct chain_failure *f = &c->failure;
    if (f->st == AS_OK || (f->number >= 0 && (f->number != p->number || f->before != p->mark)))
        return false;
    return f->st == AS_E_EXHAUSTED ? is_known(p, f->seen, f->loaded_ns)
                                   : f->loaded_ns >= p->arrived_ns;
}

size_t chain_ready(const struct chain *c, const struct search_place *p, size_t max)
{
    if (!c)
        return 0;
    const struct chain_link *l = find_link(c, p);
    size_t n = l ? c->n - (size_t)(l - c->links) : 0;
    struct search_place end = *p;
    if (l) {
        end.number = p->number + (int64_t)n;
        end.mark = c->links[c->n - 1].mark;
    }
    return n < max && has_failed(c, &end) ? max : n < max ? n : max;
}

int64_t chain_since(const struct chain *c, const struct search_place *p)
{
    const struct chain_link *l = find_link(c, p);
    return l ? l->loaded_ns : 0;
}

static as_status copy_link(struct arena *a, const struct chain_link *l, struct prepared *ret,
                           struct as_err *err)
{
    *ret = (struct prepared){.index = l->index,
                             .seen = l->seen,
                             .mark = l->mark,
                             .params = arena_strdup(a, l->params),
                             .reason = arena_strdup(a, l->reason),
                             .state = arena_strdup(a, l->state)};
    bool full = ret->params && ret->reason && (ret->state || !l->state);
    return full ? AS_OK : as_fail_nomem(err);
}

as_status chain_peek(const struct chain *c, struct arena *a, const struct search_place *p,
                     bool *ret_ready, struct prepared *ret, struct as_err *err)
{
    const struct chain_link *l = find_link(c, p);
    *ret_ready = false;
    if (l) {
        as_status st = copy_link(a, l, ret, err);
        *ret_ready = st == AS_OK;
        return st;
    }
    if (c && has_failed(c, p))
        return as_fail_at(err, c->failure.st, c->failure.why.pointer, "%s", c->failure.why.msg);
    return AS_OK;
}

/* ---- what comes next ---- */

/* Parameters and state go through their text, as they do when another server reads them from the
 * database. */
static as_status write_link(const struct chain_step *x, const struct suggestion *s,
                            struct chain_link *l, struct as_err *err)
{
    const struct search_spec *spec = sweep_history_spec(x->history);
    JSON_AUTO params = config_to_json(spec->space, s->config);
    l->params = params ? json_format_ordered(params) : NULL;
    int bad = json_object_set_new(s->reason, "index", json_integer(l->index));
    bad |= json_object_set_new(s->reason, "seen", json_integer(l->seen));
    l->reason = bad ? NULL : json_format_ordered(s->reason);
    l->state = s->state ? json_format_ordered(s->state) : NULL;
    if (!l->params || !l->reason || (s->state && !l->state))
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    return AS_OK;
}

static as_status suppose_link(struct sweep_history *h, const struct chain_link *l,
                              struct as_err *err)
{
    struct config *c = NULL;
    as_status st = sweep_history_config(h, l->params, &c, err);
    return st == AS_OK ? sweep_history_suppose(h, c, err) : st;
}

as_status chain_compute(const struct chain_step *x, struct chain_link *ret, struct as_err *err)
{
    AS_AUTO(suggestion_done) struct suggestion s = {0};
    JSON_AUTO state = NULL;
    struct history view = sweep_history_view(x->history);
    int64_t mark = 0;
    as_status st = x->state ? json_parse(x->state, strlen(x->state), &state, err) : AS_OK;
    if (st != AS_OK)
        return st;
    st = suggest(sweep_history_spec(x->history), &view, state, (uint64_t)x->number,
                 (uint64_t)x->index, x->cache, &s, err);
    if (st != AS_OK)
        return st;
    random_bytes(&mark, sizeof mark);
    AS_AUTO(link_done)
    struct chain_link l = {.number = x->number,
                           .index = x->index,
                           .seen = sweep_history_place(x->history)->finish_seq,
                           .mark = (int64_t)((uint64_t)mark >> 1) | 1,
                           .before = x->before,
                           .loaded_ns = x->loaded_ns};
    st = write_link(x, &s, &l, err);
    if (st != AS_OK)
        return st;
    st = suppose_link(x->history, &l, err);
    if (st != AS_OK)
        return st;
    *ret = l;
    l = (struct chain_link){0}; /* the caller owns its texts now */
    return AS_OK;
}

void chain_trim(struct chain *c, struct sweep_history *h, int64_t loaded_ns)
{
    const struct history_place *place = sweep_history_place(h);
    size_t first = 0;
    while (first < c->n && c->links[first].number < place->total)
        first++;
    drop_first_links(c, first);
    if (c->n > 0 && (c->links[0].number != place->total || c->links[0].before != place->mark ||
                     c->links[0].seen != place->finish_seq))
        chain_cut(c, 0);
    for (size_t i = 0; i < c->n; i++) {
        c->links[i].loaded_ns = loaded_ns;
        if (suppose_link(h, &c->links[i], NULL) != AS_OK)
            chain_cut(c, i);
    }
}

struct chain_step chain_next(const struct chain *c, struct sweep_history *h,
                             struct search_cache *cache, int64_t loaded_ns)
{
    const struct history_place *place = sweep_history_place(h);
    struct chain_step x = {.history = h,
                           .cache = cache,
                           .number = place->total + (int64_t)c->n,
                           .index = place->suggested + (int64_t)c->n,
                           .before = place->mark,
                           .loaded_ns = loaded_ns,
                           .state = place->state_text};
    if (c->n > 0) {
        x.before = c->links[c->n - 1].mark;
        x.state = c->links[c->n - 1].state;
    }
    return x;
}
