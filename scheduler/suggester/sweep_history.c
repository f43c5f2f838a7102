/* The history of one sweep.
 *
 * `known` has every trial that was read, by number, and only grows: a load reads the trials and the
 * ends that are new. `rows` is what the search sees. It is built from `known` after each load, for
 * the place that was read first. A trial that ended between the two reads still counts as running,
 * as it would for another server. */
#include "scheduler/suggester/sweep_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "scheduler/store/history_store.h"
#include "scheduler/sweep/stored_doc.h"
#include "search/trial_past.h"
#include "search/trial_rungs.h"

#define METRICS_MAX (SEARCH_MAX_OBJECTIVES + SEARCH_MAX_OUTCOMES)

/* One trial; its number is its index in `known` times `every`. */
struct known {
    struct config *config; /* owned */
    trial_state state;     /* final if the trial has ended */
    bool is_suggested;
    int64_t finish_seq;    /* 0: it had not ended when it was read */
    struct past_end *past; /* owned: the ends that retries took back */
    size_t n_past;
    struct trial_rung *rungs; /* owned: its results at rungs */
    size_t n_rungs;
    double values[SEARCH_MAX_OBJECTIVES];
    double outcomes[SEARCH_MAX_OUTCOMES];
};

struct sweep_history {
    int64_t key;
    struct sweep_doc *doc; /* owned; NULL before the first load */
    struct search_spec spec;
    const char *metrics[METRICS_MAX]; /* objectives, then outcomes; views of doc */
    size_t n_metrics;
    struct history_place place;
    char *state_text; /* owned */

    struct known *known; /* owned */
    size_t n_known, cap_known;
    int64_t every;            /* only every so-many-th trial is read; 1: all */
    struct observation *rows; /* owned: the visible trials */
    size_t n_rows, cap_rows;
    struct config **supposed; /* owned, and each configuration is owned */
    size_t n_supposed, cap_supposed;
};

struct sweep_history *sweep_history_create(int64_t sweep_key)
{
    struct sweep_history *h = as_calloc(1, sizeof *h);
    if (h) {
        h->key = sweep_key;
        h->every = 1;
    }
    return h;
}

static void forget_supposed(struct sweep_history *h)
{
    for (size_t i = 0; i < h->n_supposed; i++)
        config_free(h->supposed[i]);
    h->n_supposed = 0;
}

void sweep_history_free(struct sweep_history *h)
{
    if (!h)
        return;
    forget_supposed(h);
    for (size_t i = 0; i < h->n_known; i++) {
        config_free(h->known[i].config);
        free(h->known[i].past);
        free(h->known[i].rungs);
    }
    free(h->supposed);
    free(h->known);
    free(h->rows);
    free(h->state_text);
    sweep_doc_free(h->doc);
    free(h);
}

const struct history_place *sweep_history_place(const struct sweep_history *h)
{
    return &h->place;
}

const struct search_spec *sweep_history_spec(const struct sweep_history *h)
{
    return &h->spec;
}

const char *sweep_history_metric(const struct sweep_history *h)
{
    return h->metrics[0];
}

struct history sweep_history_view(const struct sweep_history *h)
{
    return (struct history){h->rows, h->n_rows};
}

size_t sweep_history_bytes(const struct sweep_history *h)
{
    size_t params = h->doc ? h->doc->space->n : 0;
    return sizeof *h + h->cap_rows * sizeof *h->rows + h->cap_known * sizeof *h->known +
           (h->n_known + h->n_supposed) *
               (sizeof(struct config) + params * sizeof(struct config_entry) + 32);
}

as_status sweep_history_config(const struct sweep_history *h, const char *params,
                               struct config **ret, struct as_err *err)
{
    JSON_AUTO tree = NULL;
    as_status st = json_parse(params, strlen(params), &tree, err);
    return st == AS_OK ? config_from_json(h->spec.space, tree, "/params", ret, err) : st;
}

/* Read and parse the document, once. */
static as_status read_document(struct sweep_history *h, const char *text, struct as_err *err)
{
    as_status st = stored_doc_read(text, NULL, &h->doc, err);
    if (st != AS_OK)
        return st;
    sweep_doc_search_spec(h->doc, &h->spec);
    for (size_t i = 0; i < h->doc->n_objectives; i++)
        h->metrics[h->n_metrics++] = h->doc->objectives[i].name;
    for (size_t i = 0; i < h->doc->n_outcomes; i++)
        h->metrics[h->n_metrics++] = h->doc->outcomes[i].metric;
    return AS_OK;
}

static as_status read_past(const struct history_trial *x, struct past_end **ret, size_t *ret_n,
                           struct as_err *err)
{
    JSON_AUTO tree = NULL;
    *ret = NULL;
    *ret_n = 0;
    if (!x->retries)
        return AS_OK;
    as_status st = json_parse(x->retries, strlen(x->retries), &tree, err);
    if (st == AS_OK)
        st = trial_past_read(tree, "/retries", ret, ret_n, err);
    if (st == AS_OK || st == AS_E_NOMEM)
        return st;
    return as_err_prefix(err, AS_E_INTERNAL, "trial %lld", (long long)x->number);
}

static as_status read_rungs(const struct sweep_history *h, const struct history_trial *x,
                            struct trial_rung **ret, size_t *ret_n, struct as_err *err)
{
    JSON_AUTO tree = NULL;
    *ret = NULL;
    *ret_n = 0;
    if (!x->rungs)
        return AS_OK;
    as_status st = json_parse(x->rungs, strlen(x->rungs), &tree, err);
    if (st == AS_OK)
        st = trial_rungs_read(tree, h->spec.n_objectives, h->doc->stopping.metric, "/rungs", ret,
                              ret_n, err);
    if (st == AS_OK || st == AS_E_NOMEM)
        return st;
    return as_err_prefix(err, AS_E_INTERNAL, "trial %lld", (long long)x->number);
}

static as_status take_result(struct sweep_history *h, struct known *k,
                             const struct history_trial *x, struct as_err *err)
{
    AS_AUTO(as_freep) struct past_end *past = NULL;
    struct trial_rung *rungs = NULL;
    size_t n_past = 0, n_rungs = 0;
    as_status st = read_past(x, &past, &n_past, err);
    if (st == AS_OK)
        st = read_rungs(h, x, &rungs, &n_rungs, err);
    if (st != AS_OK)
        return st;
    free(k->rungs);
    k->rungs = rungs;
    k->n_rungs = n_rungs;
    free(k->past);
    k->past = as_steal(past);
    k->n_past = n_past;
    k->state = x->state;
    k->is_suggested = x->is_suggested;
    k->finish_seq = x->finish_seq;
    for (size_t i = 0; i < h->spec.n_objectives; i++)
        k->values[i] = x->values[i];
    for (size_t i = 0; i < h->spec.n_outcomes; i++)
        k->outcomes[i] = x->values[h->spec.n_objectives + i];
    return AS_OK;
}

static as_status take_trial(struct sweep_history *h, const struct history_trial *x,
                            struct as_err *err)
{
    int64_t next = (int64_t)h->n_known * h->every;
    if (x->number < next)
        return take_result(h, &h->known[x->number / h->every], x, err);
    if (x->number != next)
        return as_fail(err, AS_E_INTERNAL, "trial %lld is missing", (long long)next);
    struct known k = {0};
    as_status st = as_reserve_one(&h->known, h->n_known, &h->cap_known, sizeof *h->known, err);
    if (st != AS_OK)
        return st;
    st = sweep_history_config(h, x->params, &k.config, err);
    if (st == AS_E_INVAL)
        return as_err_prefix(err, AS_E_INTERNAL, "trial %lld", (long long)x->number);
    if (st != AS_OK)
        return st;
    if ((st = take_result(h, &k, x, err)) != AS_OK) {
        config_free(k.config);
        return st;
    }
    h->known[h->n_known++] = k;
    return AS_OK;
}

/* How the search sees a trial when it knows the ends up to `seen`. False: not at all, because it
 * was cancelled. */
static bool state_of(const struct known *k, int64_t seen, observation_state *ret)
{
    trial_view view = trial_past_view(k->past, k->n_past, k->finish_seq, seen);
    *ret = view == TRIAL_SEEN_PENDING                                ? OBSERVED_PENDING
           : view == TRIAL_SEEN_ENDED && k->state == TRIAL_COMPLETED ? OBSERVED_COMPLETED
           : view == TRIAL_SEEN_ENDED && k->state == TRIAL_PRUNED    ? OBSERVED_PARTIAL
                                                                     : OBSERVED_FAILED;
    return view != TRIAL_SEEN_CANCELLED &&
           !(view == TRIAL_SEEN_ENDED && k->state == TRIAL_CANCELLED);
}

/* Build the visible trials from the known ones, as they were at a place of the order. */
static as_status build_rows(struct sweep_history *h, int64_t seen, struct as_err *err)
{
    h->n_rows = 0;
    for (size_t i = 0; i < h->n_known; i++) {
        const struct known *k = &h->known[i];
        observation_state state;
        if (!state_of(k, seen, &state))
            continue;
        as_status st = as_reserve_one(&h->rows, h->n_rows, &h->cap_rows, sizeof *h->rows, err);
        if (st != AS_OK)
            return st;
        struct observation *o = &h->rows[h->n_rows++];
        *o = (struct observation){.number = i * (uint64_t)h->every,
                                  .config = k->config,
                                  .state = state,
                                  .is_suggested = k->is_suggested};
        bool has = o->state == OBSERVED_COMPLETED;
        for (size_t m = 0; m < SEARCH_MAX_OBJECTIVES; m++)
            o->values[m] = has && m < h->spec.n_objectives ? k->values[m] : NAN;
        for (size_t m = 0; m < SEARCH_MAX_OUTCOMES; m++)
            o->outcomes[m] = has && m < h->spec.n_outcomes ? k->outcomes[m] : NAN;
        trial_rungs_view(k->rungs, k->n_rungs, seen, o);
    }
    return AS_OK;
}

/* The trials from `from` to below `to`, and the earlier ones that ended after `seq`. */
static as_status read_part(struct store *db, struct sweep_history *h, int64_t from, int64_t seq,
                           int64_t to, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct history_trial *trials = NULL;
    size_t n = 0;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = h->every == 1
                         ? store_history_trials(run.tx, &a, h->key, from, seq, to, h->metrics,
                                                h->n_metrics, &trials, &n, err)
                         : store_history_sample(run.tx, &a, h->key, from, to, h->every, h->metrics,
                                                h->n_metrics, &trials, &n, err);
    as_status st = run.status;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = take_trial(h, &trials[i], err);
    return st;
}

/* In parts: a statement has a time limit, and its answer is held in memory. Where more has ended
 * than a part holds, every trial is read again. */
static as_status read_trials(struct store *db, struct sweep_history *h,
                             const struct history_head *head, struct as_err *err)
{
    bool is_far = head->finish_seq - h->place.finish_seq > HISTORY_PART;
    int64_t from = is_far ? 0 : (int64_t)h->n_known;
    int64_t seq = is_far ? HISTORY_NO_END : h->place.finish_seq;
    as_status st;
    do {
        int64_t to = head->total - from > HISTORY_PART ? from + HISTORY_PART : head->total;
        st = read_part(db, h, from, seq, to, err);
        from = to;
        seq = HISTORY_NO_END;
    } while (from < head->total && st == AS_OK);
    return st;
}

/* Read where the sweep stands; the strings of *ret are in `a`. */
static as_status read_head(struct store *db, struct sweep_history *h, struct arena *a,
                           struct history_head *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_history_head(run.tx, a, h->key, !h->doc, ret, err);
    return run.status == AS_OK && !h->doc ? read_document(h, ret->document, err) : run.status;
}

/* Note where the sweep stood, and show the trials. */
static as_status show(struct sweep_history *h, const struct history_head *head, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = as_strdup(head->search_state);
    if (head->search_state && !text)
        return as_fail_nomem(err);
    free(h->state_text);
    h->state_text = as_steal(text);
    h->place = (struct history_place){.state = head->state,
                                      .total = head->total,
                                      .suggested = head->suggested,
                                      .planned = head->planned,
                                      .finish_seq = head->finish_seq,
                                      .mark = head->search_mark,
                                      .state_text = h->state_text};
    return build_rows(h, h->place.finish_seq, err);
}

/* Read what is new into `known`. The head first: all trials that it counts are then visible to the
 * later reads. `most`: of trials; 0: all. */
static as_status load(struct store *db, struct sweep_history *h, int64_t most, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct history_head head = {0};
    forget_supposed(h);
    as_status st = read_head(db, h, &a, &head, err);
    if (st == AS_OK && most > 0 && head.total > most)
        h->every = (head.total + most - 1) / most;
    if (st == AS_OK)
        st = read_trials(db, h, &head, err);
    return st == AS_OK ? show(h, &head, err) : st;
}

as_status sweep_history_load(struct store *db, struct sweep_history *h, struct as_err *err)
{
    return load(db, h, 0, err);
}

as_status sweep_history_sample(struct store *db, struct sweep_history *h, int64_t most,
                               int64_t *ret_every, struct as_err *err)
{
    if (h->doc)
        return as_fail(err, AS_E_INTERNAL, "a sample is the first load of a history");
    as_status st = load(db, h, most, err);
    *ret_every = h->every;
    return st;
}

static int by_place(const void *a, const void *b)
{
    return as_compare_i64(*(const int64_t *)a, *(const int64_t *)b);
}

as_status sweep_history_completion(const struct sweep_history *h, int64_t n, int64_t *ret_seq,
                                   struct as_err *err)
{
    AS_AUTO(as_freep) int64_t *places = as_calloc(h->n_known, sizeof *places);
    size_t n_places = 0;
    if (!places)
        return as_fail_nomem(err);
    for (size_t i = 0; i < h->n_known; i++) {
        const struct known *k = &h->known[i];
        if (k->state == TRIAL_COMPLETED && k->finish_seq > 0 &&
            k->finish_seq <= h->place.finish_seq)
            places[n_places++] = k->finish_seq;
    }
    qsort(places, n_places, sizeof *places, by_place);
    *ret_seq = n >= 1 && (size_t)n <= n_places ? places[n - 1] : 0;
    return AS_OK;
}

as_status sweep_history_cut(struct sweep_history *h, int64_t seq, struct as_err *err)
{
    forget_supposed(h);
    return build_rows(h, seq, err);
}

as_status sweep_history_suppose(struct sweep_history *h, struct config *c, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *owned = c;
    as_status st =
        as_reserve_one(&h->supposed, h->n_supposed, &h->cap_supposed, sizeof *h->supposed, err);
    if (st != AS_OK)
        return st;
    st = as_reserve_one(&h->rows, h->n_rows, &h->cap_rows, sizeof *h->rows, err);
    if (st != AS_OK)
        return st;
    struct observation o = {.number = (uint64_t)h->place.total + h->n_supposed,
                            .config = owned,
                            .state = OBSERVED_PENDING,
                            .is_suggested = true};
    for (size_t m = 0; m < SEARCH_MAX_OBJECTIVES; m++)
        o.values[m] = NAN;
    for (size_t m = 0; m < SEARCH_MAX_OUTCOMES; m++)
        o.outcomes[m] = NAN;
    h->rows[h->n_rows++] = o;
    h->supposed[h->n_supposed++] = as_steal(owned);
    return AS_OK;
}
