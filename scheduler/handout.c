#include "scheduler/handout_priv.h"

#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/transition_priv.h"
#include "search/suggest.h"

int64_t trial_seed_of(int64_t sweep_seed, int64_t number)
{
    return (int64_t)(rng_mix((uint64_t)sweep_seed, (uint64_t)number) & 0x7fffffff);
}

as_status inactive_names(struct arena *a, const json_t *doc, const json_t *params,
                         const char ***ret, size_t *ret_n, struct as_err *err)
{
    json_t *all = json_object_get(doc, "parameters");
    const char **names = arena_alloc(a, json_object_size(all) + 1, sizeof *names);
    const char *name;
    json_t *v;
    size_t n = 0;
    if (!names)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    json_object_foreach(all, name, v)
    {
        if (json_object_get(params, name))
            continue;
        names[n] = arena_strdup(a, name);
        if (!names[n++])
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    *ret = names;
    *ret_n = n;
    return AS_OK;
}

/* Opening: the document is read and parsed before its row is held, because what the search takes
 * from it never changes. */

struct open_arg {
    struct arena *a;
    int64_t key;
    bool learns;
    const char *document;
};

static as_status tx_open(struct tx *t, void *p, struct as_err *err)
{
    struct open_arg *arg = p;
    return store_sweep_search(t, arg->a, arg->key, &arg->learns, &arg->document, err);
}

as_status handout_open(struct handout *h, int64_t sweep_key, struct as_err *err)
{
    struct open_arg arg = {.a = h->a, .key = sweep_key};
    JSON_AUTO tree = NULL;
    as_status st = store_run(h->db, TX_READ, tx_open, &arg, err);
    h->is_there = st == AS_OK;
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st != AS_OK)
        return st;
    if (arg.learns) {
        const struct suggester_opts opts = {.patience_ms = -1};
        if (!h->sg)
            st = suggester_create(h->db, &opts, &h->own, err);
        h->sg = h->sg ? h->sg : h->own;
        return st;
    }
    st = json_parse(arg.document, strlen(arg.document), &tree, err);
    if (st == AS_OK)
        st = sweep_doc_parse(tree, 0, &h->doc, err);
    if (st != AS_OK)
        return as_err_prefix(err, st == AS_E_NOMEM ? st : AS_E_INTERNAL,
                             "the stored document cannot be read");
    return AS_OK;
}

void handout_close(struct handout *h)
{
    sweep_doc_free(h->doc);
    suggester_free(h->own);
    h->doc = NULL;
    h->own = NULL;
}

/* Taking. */

static as_status begin_attempt(struct tx *t, const struct handout *h, const struct sweep_head *s,
                               int64_t number, int64_t attempt, struct as_err *err)
{
    struct attempt_new n = {
        .sweep_key = s->key, .number = number, .attempt = attempt, .holder = h->holder};
    as_status st = store_attempt_add(t, &n, err);
    struct event_new e = {.type = "trial.changed",
                          .sweep_key = s->key,
                          .sweep = s->id,
                          .has_number = true,
                          .number = number,
                          .state = "running",
                          .attempt = attempt,
                          .runner = h->holder->runner};
    return st == AS_OK ? store_event_add(t, &e, err) : st;
}

/* Where the sweep stands after `more` further suggestions. */
static struct search_place place_of(const struct handout *h, const struct sweep_head *s,
                                    int64_t more, int64_t mark)
{
    return (struct search_place){.key = s->key,
                                 .number = s->counts.total + more,
                                 .mark = mark,
                                 .finish_seq = s->finish_seq,
                                 .arrived_ns = h->arrived_ns};
}

static as_status insert(struct tx *t, const struct handout *h, const struct sweep_head *s,
                        struct trial_new *n, struct as_err *err)
{
    n->sweep_key = s->key;
    n->origin = ORIGIN_SUGGESTED;
    n->seed = trial_seed_of(s->seed, n->number);
    n->holder = h->holder;
    as_status st = store_trial_add(t, n, err);
    return st == AS_OK ? begin_attempt(t, h, s, n->number, 1, err) : st;
}

/* The next suggestion of a method that does not learn. */
static as_status insert_drawn(struct tx *t, const struct handout *h, const struct sweep_head *s,
                              int64_t more, struct as_err *err)
{
    AS_AUTO(suggestion_done) struct suggestion drawn = {0};
    struct search_spec spec;
    int64_t number = s->counts.total + more, index = s->suggested + more;
    sweep_doc_search_spec(h->doc, &spec);
    as_status st = suggest(&spec, NULL, NULL, (uint64_t)number, (uint64_t)index, NULL, &drawn, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO params = config_to_json(spec.space, drawn.config);
    bool bad = json_object_set_new(drawn.reason, "index", json_integer(index)) != 0;
    AS_AUTO(as_freep)
    char *params_text = params ? json_format_ordered(params) : NULL; /* as the document has them */
    AS_AUTO(as_freep) char *reason_text = bad ? NULL : json_format_ordered(drawn.reason);
    if (!params_text || !reason_text)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    struct trial_new n = {.number = number,
                          .index = index,
                          .seen = -1,
                          .params = params_text,
                          .suggestion = reason_text};
    return insert(t, h, s, &n, err);
}

/* The next suggestion of the suggester; *mark goes on to it. *ret_done is false when there is none
 * any more. An error of the search, not of the database, is noted in h. */
static as_status insert_prepared(struct tx *t, struct handout *h, const struct sweep_head *s,
                                 int64_t more, int64_t *mark, bool *ret_done, struct as_err *err)
{
    struct search_place place = place_of(h, s, more, *mark);
    struct prepared p;
    as_status st = suggester_peek(h->sg, h->a, &place, ret_done, &p, err);
    h->search_failed = st != AS_OK;
    if (st != AS_OK || !*ret_done)
        return st;
    struct trial_new n = {.number = place.number,
                          .index = p.index,
                          .seen = p.seen,
                          .params = p.params,
                          .suggestion = p.reason};
    st = insert(t, h, s, &n, err);
    if (st == AS_OK)
        st = store_sweep_searched(t, s->key, p.state, p.mark, err);
    *mark = p.mark;
    h->n_taken += st == AS_OK;
    return st;
}

static as_status take_queued(struct tx *t, struct handout *h, const struct sweep_head *s, int64_t n,
                             struct as_err *err)
{
    while (h->got < n) {
        int64_t number = 0, attempt = 0;
        as_status st = store_trial_take(t, s->key, h->holder, &number, &attempt, err);
        if (st == AS_OK && attempt > 0)
            st = begin_attempt(t, h, s, number, attempt, err);
        if (st != AS_OK || attempt == 0)
            return st;
        h->got++;
    }
    return AS_OK;
}

/* Suggestions of the suggester: all that are wanted, or those that are ready. */
static as_status take_prepared(struct tx *t, struct handout *h, const struct sweep_head *s,
                               int64_t want, struct as_err *err)
{
    int64_t done = 0, mark = s->search_mark;
    as_status st = AS_OK;
    bool more = true;
    h->place = place_of(h, s, 0, mark);
    if (h->is_whole && suggester_ready(h->sg, &h->place, (size_t)want) < (size_t)want)
        more = false;
    while (done < want && more && st == AS_OK) {
        st = insert_prepared(t, h, s, done, &mark, &more, err);
        done += st == AS_OK && more;
    }
    h->got += done;
    h->lacking = st == AS_OK ? (size_t)(want - done) : 0;
    h->place = place_of(h, s, done, mark);
    if (h->search_failed && st != AS_E_EXHAUSTED && h->got > 0)
        return AS_OK; /* whoever asks next hears why there are no more */
    return st;
}

static as_status take_drawn(struct tx *t, struct handout *h, const struct sweep_head *s,
                            int64_t want, struct as_err *err)
{
    as_status st = AS_OK;
    for (int64_t i = 0; i < want && st == AS_OK; i++) {
        st = insert_drawn(t, h, s, i, err);
        h->got += st == AS_OK;
    }
    return st;
}

as_status handout_take(struct tx *t, struct handout *h, const struct sweep_head *s, int64_t n,
                       struct as_err *err)
{
    h->got = 0;
    h->lacking = 0;
    h->n_taken = 0;
    h->search_failed = false;
    h->has_ended = false;
    as_status st = take_queued(t, h, s, n, err);
    int64_t room = s->planned - s->counts.total, want = n - h->got;
    want = want < room ? want : room;
    if (st == AS_OK && want > 0)
        st = s->learns ? take_prepared(t, h, s, want, err) : take_drawn(t, h, s, want, err);
    if (st == AS_E_EXHAUSTED)
        st = store_sweep_exhausted(t, s->key, err);
    if (st == AS_OK && h->got < n && h->lacking == 0)
        st = sweep_settle(t, h->a, s->key, &h->has_ended, err);
    if (st == AS_OK && h->got > 0)
        st = store_sweep_started(t, s->key, err);
    return st;
}

bool handout_done(struct handout *h)
{
    if (h->n_taken > 0)
        suggester_taken(h->sg, h->n_taken);
    return h->lacking > 0 && suggester_want(h->sg, &h->place, h->lacking, !h->is_hasty);
}
