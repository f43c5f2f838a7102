#include "scheduler/assign/assignment_priv.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/lifecycle/transition.h"
#include "search/suggest.h"

#define GROUP_PATIENCE_MS 300 /* for the rest of a group, when its first suggestion is ready */

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

/* Opening: the document is read and parsed before its row is held, because what the search and the
 * shapes take from it never changes. */

struct open_arg {
    struct arena *a;
    int64_t key;
    struct sweep_making making;
    struct dataset_row *datasets;
    size_t n_datasets;
};

static as_status tx_open(struct tx *t, void *p, struct as_err *err)
{
    struct open_arg *arg = p;
    arg->n_datasets = 0;
    as_status st = store_sweep_search(t, arg->a, arg->key, &arg->making, err);
    if (st == AS_OK && arg->making.max_group > 0)
        st = store_dataset_of_sweep(t, arg->a, arg->key, &arg->datasets, &arg->n_datasets, err);
    return st;
}

static as_status read_document(struct handout *h, const struct open_arg *arg, struct as_err *err)
{
    JSON_AUTO tree = NULL;
    as_status st = json_parse(arg->making.document, strlen(arg->making.document), &tree, err);
    if (st == AS_OK && !arg->making.learns)
        st = sweep_doc_parse(tree, 0, &h->doc, err);
    if (st == AS_OK && arg->making.max_group > 0)
        st = shaper_create(tree, arg->datasets, arg->n_datasets, &h->shaper, err);
    if (st != AS_OK)
        return as_err_prefix(err, st == AS_E_NOMEM ? st : AS_E_INTERNAL,
                             "the stored document cannot be read");
    return AS_OK;
}

as_status handout_open(struct handout *h, int64_t sweep_key, struct as_err *err)
{
    struct open_arg arg = {.a = h->a, .key = sweep_key};
    as_status st = store_run(h->db, TX_READ, tx_open, &arg, err);
    h->is_there = st == AS_OK;
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st == AS_OK && arg.making.learns && !h->sg) {
        const struct suggester_opts opts = {.patience_ms = -1};
        st = suggester_create(h->db, &opts, &h->own, err);
        h->sg = h->own;
    }
    return st == AS_OK && arg.making.document ? read_document(h, &arg, err) : st;
}

void handout_close(struct handout *h)
{
    sweep_doc_free(h->doc);
    suggester_free(h->own);
    shaper_free(h->shaper);
    h->doc = NULL;
    h->own = NULL;
    h->shaper = NULL;
}

/* Taking: the queue. */

static as_status take_queued(struct tx *t, struct handout *h, const struct sweep_head *s,
                             struct as_err *err)
{
    struct grouping *g = &h->next;
    struct queued_trial *queue = NULL;
    size_t n = 0, n_begun = 0;
    if (s->counts.by_state[TRIAL_QUEUED] == 0 || grouping_wants(g) == 0)
        return AS_OK;
    int64_t look = h->groups ? GROUP_LOOK : g->slots;
    as_status st = store_assignment_queue(t, h->a, s->key, look, &queue, &n, err);
    if (st != AS_OK)
        return st;
    struct begun_trial *begun = arena_alloc(h->a, n + 1, sizeof *begun);
    if (!begun)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    if (h->fit.id)
        grouping_limit_reach(g, queue, n);
    st = grouping_queue(g, h->a, queue, n, begun, &n_begun, err);
    if (st == AS_OK && n_begun > 0)
        st = store_assignment_begin(t, s, h->holder, begun, n_begun, err);
    h->got += (int64_t)n_begun;
    g->ahead += (int64_t)n_begun;
    return st;
}

/* Taking: suggestions. */

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

/* Suggestions on their way to become trials. */
struct making {
    struct made_trial *rows;
    int64_t n, most;
    const char *state; /* that the last one passes on, and */
    int64_t mark;      /* its mark */
    bool is_dry;       /* the next one is not ready */
};

/* The next suggestion of a method that does not learn. */
static as_status next_drawn(struct handout *h, const struct sweep_head *s, struct making *m,
                            struct made_trial *ret, struct as_err *err)
{
    AS_AUTO(suggestion_done) struct suggestion drawn = {0};
    struct search_spec spec;
    int64_t number = s->counts.total + m->n, index = s->suggested + m->n;
    sweep_doc_search_spec(h->doc, &spec);
    as_status st = suggest(&spec, NULL, NULL, (uint64_t)number, (uint64_t)index, NULL, &drawn, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO params = config_to_json(spec.space, drawn.config);
    bool bad = json_object_set_new(drawn.reason, "index", json_integer(index)) != 0;
    AS_AUTO(as_freep)
    char *params_text = params ? json_format_ordered(params) : NULL; /* as the document has them */
    AS_AUTO(as_freep) char *reason_text = bad ? NULL : json_format_ordered(drawn.reason);
    *ret = (struct made_trial){.number = number,
                               .index = index,
                               .seen = -1,
                               .params = arena_strdup(h->a, params_text),
                               .suggestion = arena_strdup(h->a, reason_text)};
    return ret->params && ret->suggestion ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

/* The next suggestion of the suggester, whose state and mark go to *ret_p. An error of the search,
 * not of the database, is noted in h. */
static as_status next_prepared(struct handout *h, const struct sweep_head *s, struct making *m,
                               struct made_trial *ret, struct prepared *ret_p, struct as_err *err)
{
    struct search_place place = place_of(h, s, m->n, m->mark);
    bool ready = false;
    as_status st = suggester_peek(h->sg, h->a, &place, &ready, ret_p, err);
    h->search_failed = st != AS_OK;
    m->is_dry = st == AS_OK && !ready;
    if (st == AS_OK && ready)
        *ret = (struct made_trial){.number = place.number,
                                   .index = ret_p->index,
                                   .seen = ret_p->seen,
                                   .params = ret_p->params,
                                   .suggestion = ret_p->reason};
    return st;
}

static as_status shape_of(const struct handout *h, struct made_trial *x, struct trial_shape *ret,
                          struct as_err *err)
{
    JSON_AUTO params = NULL;
    as_status st = AS_OK;
    *ret = (struct trial_shape){0};
    if (h->shaper)
        st = json_parse(x->params, strlen(x->params), &params, err);
    if (st == AS_OK && h->shaper)
        st = shaper_shape(h->shaper, h->a, params, ret, err);
    x->shape = ret->text;
    x->bytes_per_member = ret->bytes_per_member;
    return st;
}

/* One more suggestion, if it has a place. *ret_done is false when there is none, or it has not. */
static as_status make_one(struct handout *h, const struct sweep_head *s, struct making *m,
                          bool *ret_done, struct as_err *err)
{
    struct made_trial *x = &m->rows[m->n];
    struct prepared p = {0};
    struct trial_shape shape;
    grouping_verdict verdict = GROUPING_ENOUGH;
    *ret_done = false;
    as_status st = s->learns ? next_prepared(h, s, m, x, &p, err) : next_drawn(h, s, m, x, err);
    if (st != AS_OK || m->is_dry)
        return st;
    st = shape_of(h, x, &shape, err);
    if (st == AS_OK)
        st = grouping_suggestion(&h->next, h->a, x->number, &shape, &verdict, &x->group, err);
    if (st != AS_OK || verdict == GROUPING_ENOUGH)
        return st;
    x->seed = trial_seed_of(s->seed, x->number);
    x->runs = verdict == GROUPING_RUNS;
    h->got += x->runs;
    h->n_taken += s->learns;
    m->state = p.state;
    m->mark = p.mark;
    m->n++;
    *ret_done = true;
    return AS_OK;
}

/* Is it too early to take what is ready? */
static bool is_early(const struct handout *h, int64_t want)
{
    if (!h->is_whole && (!h->is_patient || h->got > 0))
        return false;
    if (!h->is_whole && want > SUGGESTER_AHEAD_MAX)
        want = SUGGESTER_AHEAD_MAX;
    if (suggester_ready(h->sg, &h->place, (size_t)want) >= (size_t)want)
        return false;
    return h->is_whole ||
           clock_mono_ns() - suggester_since(h->sg, &h->place) < GROUP_PATIENCE_MS * NS_PER_MS;
}

static as_status write_made(struct tx *t, const struct handout *h, const struct sweep_head *s,
                            const struct making *m, struct as_err *err)
{
    if (m->n == 0)
        return AS_OK;
    as_status st = store_assignment_add(t, s, h->holder, m->rows, (size_t)m->n, err);
    if (st == AS_OK && s->learns)
        st = store_sweep_searched(t, s->key, m->state, m->mark, err);
    return st;
}

/* Suggestions until nothing wants one, or there is none. AS_E_EXHAUSTED: there will be no more. */
static as_status take_suggested(struct tx *t, struct handout *h, const struct sweep_head *s,
                                struct as_err *err)
{
    struct grouping *g = &h->next;
    struct making m = {.mark = s->search_mark};
    struct as_err why = {0};
    int64_t left = s->planned - s->counts.total, want = grouping_wants(g);
    want = want < left ? want : left;
    h->place = place_of(h, s, 0, m.mark);
    if (want <= 0)
        return AS_OK;
    m.most = want + (g->ahead > 0 ? g->ahead : 0);
    m.most = m.most < left ? m.most : left;
    m.rows = arena_alloc(h->a, (size_t)m.most, sizeof *m.rows);
    if (!m.rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    m.is_dry = s->learns && is_early(h, want);
    as_status st = AS_OK;
    for (bool more = !m.is_dry; more && m.n < m.most && grouping_wants(g) > 0;)
        st = make_one(h, s, &m, &more, &why);
    if (st != AS_OK && !h->search_failed && st != AS_E_EXHAUSTED)
        return as_fail_at(err, st, why.pointer, "%s", why.msg);
    as_status written = write_made(t, h, s, &m, err);
    if (written != AS_OK)
        return written;
    h->place = place_of(h, s, m.n, m.mark);
    want = grouping_wants(g);
    if (m.is_dry)
        h->lacking = (size_t)(want < left - m.n ? want : left - m.n);
    if (st == AS_OK || (st != AS_E_EXHAUSTED && h->got > 0))
        return AS_OK; /* whoever asks next hears why there are no more */
    return as_fail_at(err, st, why.pointer, "%s", why.msg);
}

/* The slots and groups of this look. */
static void begin_look(struct handout *h, const struct sweep_head *s, int64_t slots, int64_t room)
{
    struct grouping *g = &h->next;
    int64_t queued = s->counts.by_state[TRIAL_QUEUED];
    const struct group_rule rule = {s->max_group, s->group_given};
    int64_t most = h->fit.id ? h->fit.places : h->groups ? group_most(h->groups, rule) : 0;
    *g = h->grouping;
    g->limits = h->groups;
    g->sweep = s->id;
    g->rule = rule;
    g->reach = INT64_MAX;
    g->ahead = GROUP_AHEAD(s->learns) * most - queued;
    if (h->fit.id) {
        g->groups[0] = h->fit;
        g->n_groups = 1;
        slots = 0;
    }
    grouping_begin(g, slots, room, queued + s->planned - s->counts.total);
    h->got = 0;
    h->lacking = 0;
    h->n_taken = 0;
    h->search_failed = false;
    h->has_ended = false;
}

as_status handout_take(struct tx *t, struct handout *h, const struct sweep_head *s, int64_t slots,
                       int64_t room, struct as_err *err)
{
    begin_look(h, s, slots > 0 ? slots : 0, room > 0 ? room : 0);
    as_status st = take_queued(t, h, s, err);
    if (st == AS_OK)
        st = take_suggested(t, h, s, err);
    h->slots = slots > 0 ? slots - h->next.slots : 0;
    if (st == AS_E_EXHAUSTED)
        st = store_sweep_exhausted(t, s->key, err);
    if (st == AS_OK && grouping_wants(&h->next) > 0 && h->lacking == 0)
        st = sweep_settle(t, h->a, s->key, &h->has_ended, err);
    if (st == AS_OK && h->got > 0)
        st = store_sweep_started(t, s->key, err);
    return st;
}

bool handout_done(struct handout *h)
{
    h->grouping = h->next;
    if (h->n_taken > 0)
        suggester_taken(h->sg, h->n_taken);
    return h->lacking > 0 && suggester_want(h->sg, &h->place, h->lacking, !h->is_hasty);
}
