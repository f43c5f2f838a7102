/* Hand trials out.
 *
 * All data that needs no lock is read before the sweep's row is locked (assignment_open), because
 * all claims and asks of a sweep wait for that row. One look (assignment_take) then runs in the
 * transaction that holds the row: trials of the queue first, then suggestions. Grouping gives each
 * trial its place, and one statement for each of the two kinds writes them all.
 *
 * A look changes only `next` and its own results, because a transaction may run again.
 * assignment_done() makes the result final after the commit. */
#include "scheduler/assign/assignment_priv.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/store/sweep_change_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/sweep/stored_doc.h"
#include "scheduler/sweep/trial_seed.h"
#include "search/suggest.h"

/* Open. The document is read and parsed before its row is locked, because the parts that the search
 * and the shapes use never change. */

/* The inputs of the search and the shapes of a sweep. */
struct source {
    struct sweep_making making;
    struct dataset_row *datasets;
    size_t n_datasets;
};

static as_status read_source(struct tx *t, struct arena *a, int64_t sweep_key, struct source *ret,
                             struct as_err *err)
{
    ret->n_datasets = 0;
    as_status st = store_sweep_search(t, a, sweep_key, &ret->making, err);
    if (st != AS_OK || ret->making.max_group <= 0)
        return st;
    return store_dataset_of_sweep(t, a, sweep_key, &ret->datasets, &ret->n_datasets, err);
}

static as_status read_document(struct assignment *asg, const struct source *src, struct as_err *err)
{
    as_status st = doc_cache_read(store_docs(asg->db), src->making.document, !src->making.learns,
                                  &asg->doc, err);
    if (st != AS_OK || src->making.max_group <= 0)
        return st;
    st = shaper_create(asg->doc.tree, src->datasets, src->n_datasets, &asg->shaper, err);
    return st == AS_OK ? AS_OK : stored_doc_failed(st, err);
}

static as_status create_own_suggester(struct assignment *asg, struct as_err *err)
{
    const struct suggester_opts opts = {.patience_ms = -1};
    as_status st = suggester_create(asg->db, &opts, &asg->own, err);
    asg->sg = asg->own;
    return st;
}

as_status assignment_open(struct assignment *asg, int64_t sweep_key, struct as_err *err)
{
    struct source src = {0};
    struct tx_run run = tx_run_start(asg->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_source(run.tx, asg->a, sweep_key, &src, err);
    as_status st = run.status;
    asg->is_there = st == AS_OK;
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st == AS_OK && src.making.learns && !asg->sg)
        st = create_own_suggester(asg, err);
    if (st != AS_OK || !src.making.document)
        return st;
    return read_document(asg, &src, err);
}

void assignment_close(struct assignment *asg)
{
    doc_ref_done(&asg->doc);
    suggester_free(asg->own);
    shaper_free(asg->shaper);
    asg->own = NULL;
    asg->shaper = NULL;
}

/* Take from the queue. */

static as_status take_queued(struct tx *t, struct assignment *asg, const struct sweep_head *s,
                             struct as_err *err)
{
    struct grouping *g = &asg->next;
    struct queued_trial *queue = NULL;
    size_t n = 0, n_begun = 0;
    if (s->counts.by_state[TRIAL_QUEUED] == 0 || grouping_wants(g) == 0)
        return AS_OK;
    int64_t look = asg->groups ? GROUP_LOOK : g->slots;
    as_status st = store_assignment_queue(t, asg->a, s->key, look, &queue, &n, err);
    if (st != AS_OK)
        return st;
    struct begun_trial *begun = arena_alloc(asg->a, n + 1, sizeof *begun);
    if (!begun)
        return as_fail_nomem(err);
    if (asg->fit.id)
        grouping_limit_reach(g, queue, n);
    /* Trials past the look count as suggestions, so that a long queue of promotions never hides how
     * many there are. */
    g->ahead -= as_max_i64(s->counts.by_state[TRIAL_QUEUED] - (int64_t)n, 0);
    st = grouping_queue(g, asg->a, queue, n, begun, &n_begun, err);
    if (st != AS_OK || n_begun == 0)
        return st;
    asg->got += (int64_t)n_begun;
    return store_assignment_begin(t, s, asg->owner, begun, n_begun, err);
}

/* Take suggestions. */

/* The place of the sweep after `more` further suggestions. */
static struct search_place place_of(const struct assignment *asg, const struct sweep_head *s,
                                    int64_t more, int64_t mark)
{
    return (struct search_place){.key = s->key,
                                 .number = s->counts.total + more,
                                 .mark = mark,
                                 .finish_seq = s->finish_seq,
                                 .arrived_ns = asg->arrived_ns};
}

/* Suggestions that become trials. */
struct making {
    struct made_trial *rows;
    int64_t n, most;
    const char *state; /* the search state that the last one leaves */
    int64_t mark;      /* the mark of the last one */
    bool is_dry;       /* the next one is not ready */
};

/* The next suggestion of a method that does not learn. */
static as_status next_drawn(struct assignment *asg, const struct sweep_head *s, struct making *m,
                            struct made_trial *ret, struct as_err *err)
{
    return draw_suggestion(asg->a, asg->doc.doc, s->counts.total + m->n, s->suggested + m->n, ret,
                           err);
}

/* The next suggestion of the suggester. Its state and mark go to *ret_p. Sets asg->search_failed if
 * the error came from the search and not from the database. */
static as_status next_prepared(struct assignment *asg, const struct sweep_head *s, struct making *m,
                               struct made_trial *ret, struct prepared *ret_p, struct as_err *err)
{
    struct search_place place = place_of(asg, s, m->n, m->mark);
    bool ready = false;
    as_status st = suggester_peek(asg->sg, asg->a, &place, &ready, ret_p, err);
    asg->search_failed = st != AS_OK;
    m->is_dry = st == AS_OK && !ready;
    if (st != AS_OK || !ready)
        return st;
    *ret = prepared_suggestion(ret_p, place.number);
    return AS_OK;
}

static as_status shape_of(const struct assignment *asg, struct made_trial *x,
                          struct trial_shape *ret, struct as_err *err)
{
    JSON_AUTO params = NULL;
    *ret = (struct trial_shape){0};
    if (!asg->shaper)
        return AS_OK;
    as_status st = json_parse(x->params, strlen(x->params), &params, err);
    if (st != AS_OK)
        return st;
    st = shaper_shape(asg->shaper, asg->a, params, ret, err);
    if (st != AS_OK)
        return st;
    x->shape = ret->text;
    x->bytes_per_member = ret->bytes_per_member;
    return AS_OK;
}

/* Take one more suggestion if it has a place. *ret_done is false if there is no suggestion, or no
 * place. */
static as_status make_one(struct assignment *asg, const struct sweep_head *s, struct making *m,
                          bool *ret_done, struct as_err *err)
{
    struct made_trial *x = &m->rows[m->n];
    struct prepared p = {0};
    struct trial_shape shape;
    grouping_decision decision = GROUPING_ENOUGH;
    *ret_done = false;
    as_status st = s->learns ? next_prepared(asg, s, m, x, &p, err) : next_drawn(asg, s, m, x, err);
    /* The suggestion must be drawn before its place is known, because its shape decides the
     * place. A suggestion without a place is not written; the next look draws or reads the same
     * one again. */
    if (st != AS_OK || m->is_dry)
        return st;
    st = shape_of(asg, x, &shape, err);
    if (st != AS_OK)
        return st;
    st = grouping_suggestion(&asg->next, asg->a, x->number, &shape, &decision, &x->group, err);
    if (st != AS_OK || decision == GROUPING_ENOUGH)
        return st;
    x->seed = trial_seed_of(s->seed, x->number);
    x->runs = decision == GROUPING_RUNS && !asg->queues;
    asg->got += decision == GROUPING_RUNS;
    asg->n_taken += s->learns;
    m->state = p.state;
    m->mark = p.mark;
    m->n++;
    *ret_done = true;
    return AS_OK;
}

static bool wants_whole_group(assign_policy policy)
{
    return policy == ASSIGN_WHOLE_GROUP || policy == ASSIGN_WHOLE_GROUP_READY;
}

static bool waits_in_thread(assign_policy policy)
{
    return policy != ASSIGN_READY && policy != ASSIGN_WHOLE_GROUP_READY;
}

/* Is it too early to take what is ready? */
static bool is_early(const struct assignment *asg, int64_t want)
{
    bool is_all = asg->policy == ASSIGN_ALL;
    if (!is_all && (!wants_whole_group(asg->policy) || asg->got > 0))
        return false;
    if (!is_all && want > SUGGESTER_AHEAD_MAX)
        want = SUGGESTER_AHEAD_MAX;
    if (suggester_ready(asg->sg, &asg->place, (size_t)want) >= (size_t)want)
        return false;
    return is_all ||
           clock_mono_ns() - suggester_since(asg->sg, &asg->place) < GROUP_PATIENCE_MS * NS_PER_MS;
}

static as_status write_made(struct tx *t, const struct assignment *asg, const struct sweep_head *s,
                            const struct making *m, struct as_err *err)
{
    if (m->n == 0)
        return AS_OK;
    as_status st = store_assignment_add(t, s, asg->owner, m->rows, (size_t)m->n, err);
    if (st != AS_OK || !s->learns)
        return st;
    return store_sweep_searched(t, s->key, m->state, m->mark, err);
}

/* Take suggestions until no place is left, none is ready, or one fails. */
static as_status make_suggestions(struct assignment *asg, const struct sweep_head *s,
                                  struct making *m, struct as_err *err)
{
    as_status st = AS_OK;
    for (bool more = !m->is_dry; more && m->n < m->most && grouping_wants(&asg->next) > 0;)
        st = make_one(asg, s, m, &more, err);
    return st;
}

/* Write the suggestions that could be made, also if the next one failed. AS_E_EXHAUSTED: the sweep
 * gets no more trials. */
static as_status take_suggested(struct tx *t, struct assignment *asg, const struct sweep_head *s,
                                struct as_err *err)
{
    struct grouping *g = &asg->next;
    struct making m = {.mark = s->search_mark};
    struct as_err why = {0};
    int64_t left = s->planned - s->counts.total, want = grouping_wants(g);
    want = want < left ? want : left;
    asg->place = place_of(asg, s, 0, m.mark);
    if (want <= 0)
        return AS_OK;
    m.most = want + (g->ahead > 0 ? g->ahead : 0);
    m.most = m.most < left ? m.most : left;
    m.rows = arena_alloc(asg->a, (size_t)m.most, sizeof *m.rows);
    if (!m.rows)
        return as_fail_nomem(err);
    m.is_dry = s->learns && is_early(asg, want);
    as_status made = make_suggestions(asg, s, &m, &why);
    if (made != AS_OK && !asg->search_failed && made != AS_E_EXHAUSTED)
        return as_fail_at(err, made, why.pointer, "%s", why.msg);
    as_status st = write_made(t, asg, s, &m, err);
    if (st != AS_OK)
        return st;
    asg->place = place_of(asg, s, m.n, m.mark);
    want = grouping_wants(g);
    if (m.is_dry)
        asg->lacking = (size_t)(want < left - m.n ? want : left - m.n);
    if (made == AS_OK || (made != AS_E_EXHAUSTED && asg->got > 0))
        return AS_OK; /* the next request returns the reason why there are no more */
    return as_fail_at(err, made, why.pointer, "%s", why.msg);
}

/* The slots and groups of this look. */
static void begin_look(struct assignment *asg, const struct sweep_head *s, int64_t slots,
                       int64_t room)
{
    struct grouping *g = &asg->next;
    int64_t queued = s->counts.by_state[TRIAL_QUEUED];
    const struct group_rule rule = {s->max_group, s->group_given, s->gpus > 0};
    int64_t most = asg->fit.id ? asg->fit.places : asg->groups ? group_most(asg->groups, rule) : 0;
    *g = asg->grouping;
    g->limits = asg->groups;
    g->sweep = s->id;
    g->rule = rule;
    g->reach = INT64_MAX;
    g->ahead = GROUP_AHEAD(s->learns) * most;
    if (asg->fit.id) {
        g->groups[0] = asg->fit;
        g->n_groups = 1;
        slots = 0;
    }
    grouping_begin(g, slots, room, queued + s->planned - s->counts.total);
    asg->got = 0;
    asg->lacking = 0;
    asg->n_taken = 0;
    asg->search_failed = false;
    asg->has_ended = false;
}

as_status assignment_take(struct tx *t, struct assignment *asg, const struct sweep_head *s,
                          int64_t slots, int64_t room, struct as_err *err)
{
    int64_t steps_room = INT64_MAX;
    as_status st =
        s->limits_steps ? store_sweep_steps_room(t, &s->key, 1, &steps_room, err) : AS_OK;
    if (st != AS_OK)
        return st;
    room = as_min_i64(room, steps_room);
    begin_look(asg, s, slots > 0 ? slots : 0, room > 0 ? room : 0);
    st = take_queued(t, asg, s, err);
    if (st != AS_OK)
        return st;
    st = take_suggested(t, asg, s, err);
    asg->slots = slots > 0 ? slots - asg->next.slots : 0;
    if (st == AS_E_EXHAUSTED)
        st = store_sweep_exhausted(t, s->key, err);
    if (st != AS_OK)
        return st;
    if (grouping_wants(&asg->next) > 0 && asg->lacking == 0) {
        st = sweep_settle(t, asg->a, s->key, &asg->has_ended, err);
        if (st != AS_OK)
            return st;
    }
    return asg->got > 0 && !asg->queues && !s->has_started ? store_sweep_started(t, s->key, err)
                                                           : AS_OK;
}

bool assignment_done(struct assignment *asg)
{
    asg->grouping = asg->next;
    if (asg->n_taken > 0)
        suggester_taken(asg->sg, asg->n_taken);
    return asg->lacking > 0 &&
           suggester_want(asg->sg, &asg->place, asg->lacking, waits_in_thread(asg->policy));
}
