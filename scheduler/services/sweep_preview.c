/* The first suggestions of a sweep are made as a runner with that many slots would get them: the
 * history has the earlier ones as pending trials. */
#include "scheduler/services/sweep_preview.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "scheduler/services/sweep_reading.h"
#include "scheduler/services/sweep_stack.h"
#include "search/search_cache.h"
#include "search/suggest.h"

/* What the suggestions so far leave to the next one. */
struct chain {
    struct search_spec spec;
    struct search_cache *cache;
    struct suggestion made[PREVIEW_MAX_SUGGESTIONS];
    struct observation pending[PREVIEW_MAX_SUGGESTIONS];
    size_t n;
};

static void chain_done(struct chain *c)
{
    for (size_t i = 0; i < c->n; i++)
        suggestion_done(&c->made[i]);
    search_cache_free(c->cache);
}

static as_status suggest_next(struct chain *c, struct as_err *err)
{
    const struct history history = {c->pending, c->n};
    const json_t *state = c->n > 0 ? c->made[c->n - 1].state : NULL;
    as_status st = suggest(&c->spec, &history, state, c->n, c->n, c->cache, &c->made[c->n], err);
    if (st != AS_OK)
        return st;
    c->pending[c->n] = (struct observation){.number = c->n,
                                            .config = c->made[c->n].config,
                                            .state = OBSERVED_PENDING,
                                            .is_suggested = true};
    c->n++;
    return AS_OK;
}

static as_status write_suggestion(struct arena *a, const struct space *space,
                                  const struct suggestion *s, struct preview_suggestion *ret,
                                  struct as_err *err)
{
    AS_AUTO(str_done) struct str why = {0};
    JSON_AUTO params = config_to_json(space, s->config);
    AS_AUTO(as_freep) char *text = params ? json_dumps(params, JSON_COMPACT) : NULL;
    suggest_explain(s->reason, NULL, &why);
    as_status st = str_check(&why, err);
    if (st != AS_OK)
        return st;
    ret->params = text ? arena_strdup(a, text) : NULL;
    ret->why = arena_strdup(a, str_cstr(&why));
    return ret->params && ret->why ? AS_OK : as_fail_nomem(err);
}

static as_status write_suggestions(struct arena *a, const struct chain *c, struct preview_row *ret,
                                   struct as_err *err)
{
    ret->suggestions = arena_alloc(a, c->n + 1, sizeof *ret->suggestions);
    as_status st = ret->suggestions ? AS_OK : as_fail_nomem(err);
    for (size_t i = 0; i < c->n && st == AS_OK; i++)
        st = write_suggestion(a, c->spec.space, &c->made[i], &ret->suggestions[i], err);
    ret->n = c->n;
    return st;
}

static as_status suggest_first(struct arena *a, const struct sweep_doc *doc, size_t n,
                               struct preview_row *ret, struct as_err *err)
{
    AS_AUTO(chain_done) struct chain c = {.cache = search_cache_create()};
    int64_t until_ns = clock_mono_ns() + PREVIEW_MAX_MS * NS_PER_MS;
    as_status st = c.cache ? AS_OK : as_fail_nomem(err);
    if (n > (size_t)doc->limits.max_trials)
        n = (size_t)doc->limits.max_trials;
    sweep_doc_search_spec(doc, &c.spec);
    while (c.n < n && st == AS_OK && clock_mono_ns() < until_ns)
        st = suggest_next(&c, err);
    if (st != AS_OK && st != AS_E_EXHAUSTED)
        return st;
    return write_suggestions(a, &c, ret, err);
}

static as_status check_data(struct store *db, const struct sweep_doc *doc, struct faults *faults,
                            struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run)) {
        run.status = sweep_check_datasets(run.tx, &a, doc, faults, err);
        if (run.status == AS_OK)
            run.status = sweep_check_stack(run.tx, &a, doc, faults, err);
    }
    return run.status;
}

static as_status preview(struct store *db, struct arena *a, const json_t *doc, size_t n,
                         struct faults *faults, struct preview_row *ret, struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *parsed = NULL;
    uint64_t seed = 0;
    random_bytes(&seed, sizeof seed);
    as_status st = sweep_read_new(db, doc, seed, faults, &parsed, err);
    if (st == AS_OK)
        st = check_data(db, parsed, faults, err);
    if (st != AS_OK)
        return st;
    *ret = (struct preview_row){.is_valid = true,
                                .name = arena_strdup(a, parsed->name),
                                .method = parsed->method->name,
                                .seed = (int64_t)parsed->seed,
                                .planned = parsed->limits.max_trials,
                                .n_cells = (int64_t)parsed->n_listed};
    return ret->name ? suggest_first(a, parsed, n, ret, err) : as_fail_nomem(err);
}

as_status sweep_preview(struct store *db, struct arena *a, const json_t *doc, size_t n,
                        struct faults *faults, struct preview_row *ret, struct as_err *err)
{
    struct preview_row row = {0};
    if (!json_is_object(doc))
        return as_fail_at(err, AS_E_INVAL, "", "the body is %s, expected a sweep document",
                          json_type_name(doc));
    as_status st = preview(db, a, doc, n, faults, &row, err);
    if (st != AS_OK)
        row = (struct preview_row){0};
    if (st == AS_E_INVAL || st == AS_E_TOO_LARGE || st == AS_E_UNSUPPORTED) {
        st = AS_OK; /* a fault of the document */
        if (faults->n == 0)
            st = faults_note(faults, AS_E_INVAL, err);
    }
    if (st == AS_OK)
        *ret = row;
    return st;
}
