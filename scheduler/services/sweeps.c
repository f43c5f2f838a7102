/* Sweeps as the API sees them. */
#include "scheduler/services/sweeps.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "model/document/train_spec.h"
#include "base/str.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/services/datasets.h"
#include "scheduler/assign/grouping.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/idempotency_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/lifecycle/transition.h"

#define SWEEP_ID_TRIES 10000 /* name-2 … name-10000 */

/* Creation. */

struct create_arg {
    struct arena *a;
    const struct sweep_doc *doc;
    char *document;              /* canonical JSON */
    char *objectives, *outcomes; /* JSON; NULL */
    bool is_paused;
    const struct idem_key *idem;
    struct sweep_row *ret;
};

/* The train document of the first trial. */
static as_status first_spec(const struct sweep_doc *doc, struct train_spec *ret, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *config = NULL;
    JSON_AUTO trial = NULL;
    as_status st = sampler_suggest(doc->space, doc->method, doc->seed, 0, &config, NULL, err);
    if (st == AS_OK)
        st = sweep_doc_trial(doc, config, &trial, err);
    if (st == AS_OK)
        st = train_spec_parse(json_object_get(trial, "train"), "/trial/train", ret, err);
    return st;
}

static as_status check_dataset(struct create_arg *arg, const struct train_spec *spec,
                               const struct dataset_row *row, struct as_err *err)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    as_status st = dataset_row_info(row, &info, err);
    if (st != AS_OK)
        return st;
    st = sweep_doc_check_metrics(arg->doc, spec, info.task, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "the data set '%s' is for %s", row->name, row->task);
    if (!as_streq(spec->dataset, row->name))
        return AS_OK; /* another trial's; its split and loss are checked by the trainer */
    return train_spec_check(spec, &info, "/trial/train", err);
}

static as_status check_datasets(struct tx *t, struct create_arg *arg, struct as_err *err)
{
    AS_AUTO(train_spec_done) struct train_spec spec = {0};
    if (arg->doc->n_datasets == 0)
        return AS_OK;
    as_status st = first_spec(arg->doc, &spec, err);
    for (size_t i = 0; i < arg->doc->n_datasets && st == AS_OK; i++) {
        struct dataset_row row;
        st = store_dataset_get(t, arg->a, arg->doc->datasets[i], true, &row, err);
        if (st == AS_E_NOT_FOUND)
            return as_fail_at(err, AS_E_INVAL, "/trial/train/dataset",
                              "there is no data set '%s': add it first (assay data add)",
                              arg->doc->datasets[i]);
        if (st == AS_OK)
            st = check_dataset(arg, &spec, &row, err);
    }
    return st;
}

/* Of several objectives; *ret stays NULL for one. */
static as_status write_objectives(const struct sweep_doc *d, char **ret, struct as_err *err)
{
    JSON_AUTO list = json_array();
    if (d->n_objectives < 2)
        return AS_OK;
    int bad = list ? 0 : -1;
    for (size_t i = 0; i < d->n_objectives; i++)
        bad |= json_array_append_new(
            list, json_pack("{s:s, s:s}", "name", d->objectives[i].name, "goal",
                            d->objectives[i].maximize ? "maximize" : "minimize"));
    *ret = bad ? NULL : json_format(list);
    return *ret ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

static as_status write_outcomes(const struct sweep_doc *d, char **ret, struct as_err *err)
{
    JSON_AUTO list = json_array();
    if (d->n_outcomes == 0)
        return AS_OK;
    int bad = list ? 0 : -1;
    for (size_t i = 0; i < d->n_outcomes; i++) {
        const struct sweep_outcome *o = &d->outcomes[i];
        json_t *j = json_pack("{s:s}", "metric", o->metric);
        if (j && isfinite(o->min))
            bad |= json_object_set_new(j, "min", json_real(o->min));
        if (j && isfinite(o->max))
            bad |= json_object_set_new(j, "max", json_real(o->max));
        bad |= json_array_append_new(list, j);
    }
    *ret = bad ? NULL : json_format(list);
    return *ret ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

/* How many trials may share a process: as the document says; else few where the method learns,
 * whose suggestions of one group know nothing of each other's results, and what the runner finds
 * best. */
static int64_t max_group_of(const struct sweep_doc *d)
{
    if (d->trial.kind != TRIAL_TRAIN)
        return 0;
    if (d->group > 0)
        return d->group;
    return search_method_learns(d->method) ? GROUP_LEARNS : SWEEP_MAX_GROUP;
}

static struct sweep_new sweep_of(const struct sweep_doc *d, const char *id, const char *document)
{
    return (struct sweep_new){.id = id,
                              .name = d->name,
                              .document = document,
                              .metric = d->metric,
                              .method = search_method_format(d->method),
                              .maximize = d->maximize,
                              .seed = (int64_t)d->seed,
                              .planned = d->limits.max_trials,
                              .max_concurrent = d->limits.max_concurrent_trials,
                              .max_failed = d->limits.max_failed_trials,
                              .max_restarts = d->limits.max_restarts,
                              .trial_timeout_ms = d->limits.trial_timeout_ms,
                              .wall_time_ms = d->limits.wall_time_ms,
                              .grace_ms = d->limits.grace_ms,
                              .gpus = d->gpus,
                              .ensemble_size = (int64_t)d->ensemble_size,
                              .learns = search_method_learns(d->method),
                              .for_runners = d->trial.kind != TRIAL_NONE,
                              .max_group = max_group_of(d),
                              .group_given = max_group_of(d) > 0 && d->group > 0};
}

/* Insert under the first free id. */
static as_status insert_sweep(struct tx *t, struct create_arg *arg, int64_t *ret_key,
                              const char **ret_id, struct as_err *err)
{
    char id[96];
    for (int i = 1; i <= SWEEP_ID_TRIES; i++) {
        if (i == 1)
            snprintf(id, sizeof id, "%s", arg->doc->name);
        else
            snprintf(id, sizeof id, "%s-%d", arg->doc->name, i);
        struct sweep_new s = sweep_of(arg->doc, id, arg->document);
        s.objectives = arg->objectives;
        s.outcomes = arg->outcomes;
        s.is_paused = arg->is_paused;
        as_status st = store_sweep_add(t, &s, ret_key, err);
        if (st != AS_OK)
            return st;
        if (*ret_key != 0) {
            *ret_id = arena_strdup(arg->a, id);
            return *ret_id ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
        }
    }
    return as_fail_at(err, AS_E_CONFLICT, "/name", "%d sweeps are named '%s' already",
                      SWEEP_ID_TRIES, arg->doc->name);
}

/* The key was used: hand back what it made. */
static as_status replay(struct tx *t, struct create_arg *arg, struct as_err *err)
{
    struct idem_row row;
    int64_t key = 0;
    as_status st = store_idempotency_get(t, arg->a, arg->idem, &row, err);
    if (st != AS_OK)
        return st;
    if (!row.same_body)
        return as_fail(err, AS_E_CONFLICT, "the idempotency key was used with another body");
    if (!row.sweep || row.number >= 0)
        return as_fail(err, AS_E_CONFLICT, "the idempotency key was used for something else");
    st = store_sweep_key(t, row.sweep, &key, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail(err, AS_E_CONFLICT,
                       "the sweep '%s', which this idempotency key made, was "
                       "deleted",
                       row.sweep);
    return st == AS_OK ? store_sweep_get(t, arg->a, key, arg->ret, err) : st;
}

static as_status tx_create(struct tx *t, void *p, struct as_err *err)
{
    struct create_arg *arg = p;
    int64_t key = 0;
    const char *id = NULL;
    bool fresh = true;
    as_status st = arg->idem ? store_idempotency_add(t, arg->idem, &fresh, err) : AS_OK;
    if (st == AS_OK && !fresh)
        return replay(t, arg, err);
    if (st == AS_OK)
        st = check_datasets(t, arg, err);
    if (st == AS_OK)
        st = insert_sweep(t, arg, &key, &id, err);
    for (size_t i = 0; i < arg->doc->n_datasets && st == AS_OK; i++)
        st = store_sweep_add_dataset(t, key, arg->doc->datasets[i], err);
    if (st == AS_OK && arg->idem)
        st = store_idempotency_made(t, arg->idem, id, -1, err);
    struct event_new e = {.type = "sweep.created",
                          .sweep_key = key,
                          .sweep = id,
                          .state =
                              sweep_state_format(arg->is_paused ? SWEEP_PAUSED : SWEEP_RUNNING)};
    if (st == AS_OK)
        st = store_event_add(t, &e, err);
    return st == AS_OK ? store_sweep_get(t, arg->a, key, arg->ret, err) : st;
}

/* Bounds on a parameter belong elsewhere: as results nobody would report them. Sweeps that were
 * created before this was refused can still be read, so the document's parser does not say it. */
static as_status check_outcomes(const struct sweep_doc *d, struct as_err *err)
{
    for (size_t i = 0; i < d->n_outcomes; i++) {
        char list[AS_ERR_POINTER_MAX], at[AS_ERR_POINTER_MAX];
        json_pointer_index("/constraints", i, list);
        json_pointer_child(list, "metric", at);
        if (space_find(d->space, d->outcomes[i].metric) >= 0)
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: '%s' is a parameter, and constraints bound what trials report; "
                              "bound parameters by parameter_constraints",
                              at, d->outcomes[i].metric);
    }
    return AS_OK;
}

static as_status create(struct store *db, struct arena *a, const json_t *doc, bool is_paused,
                        const struct idem_key *idem, struct sweep_row *ret, struct as_err *err)
{
    uint64_t seed = 0;
    random_bytes(&seed, sizeof seed);
    AS_AUTO(sweep_doc_freep) struct sweep_doc *parsed = NULL;
    as_status st = sweep_doc_parse(doc, seed, &parsed, err);
    if (st == AS_OK)
        st = check_outcomes(parsed, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) char *document = sweep_doc_format(parsed);
    AS_AUTO(as_freep) char *objectives = NULL;
    AS_AUTO(as_freep) char *outcomes = NULL;
    if (!document)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    st = write_objectives(parsed, &objectives, err);
    if (st == AS_OK)
        st = write_outcomes(parsed, &outcomes, err);
    struct sweep_row row = {0};
    struct create_arg arg = {.a = a,
                             .doc = parsed,
                             .document = document,
                             .objectives = objectives,
                             .outcomes = outcomes,
                             .is_paused = is_paused,
                             .idem = idem,
                             .ret = &row};
    if (st == AS_OK)
        st = store_run(db, TX_WRITE, tx_create, &arg, err);
    if (st == AS_OK)
        *ret = row;
    return st;
}

as_status sweep_create(struct store *db, struct arena *a, const json_t *doc,
                       const struct idem_key *idem, struct sweep_row *ret, struct as_err *err)
{
    return create(db, a, doc, false, idem, ret, err);
}

as_status sweep_create_paused(struct store *db, struct arena *a, const json_t *doc,
                              const struct idem_key *idem, struct sweep_row *ret,
                              struct as_err *err)
{
    return create(db, a, doc, true, idem, ret, err);
}

/* Reading. */

struct get_arg {
    struct arena *a;
    const char *id;
    struct sweep_row *ret;
};

static as_status tx_get(struct tx *t, void *p, struct as_err *err)
{
    struct get_arg *arg = p;
    int64_t key = 0;
    as_status st = store_sweep_key(t, arg->id, &key, err);
    return st == AS_OK ? store_sweep_get(t, arg->a, key, arg->ret, err) : st;
}

as_status sweep_get(struct store *db, struct arena *a, const char *id, struct sweep_row *ret,
                    struct as_err *err)
{
    struct sweep_row row = {0};
    struct get_arg arg = {.a = a, .id = id, .ret = &row};
    as_status st = store_run(db, TX_READ, tx_get, &arg, err);
    if (st == AS_OK)
        *ret = row;
    return st;
}

struct list_arg {
    struct arena *a;
    const char *state;
    int64_t before, size, next;
    struct sweep_page page;
};

static as_status tx_list(struct tx *t, void *p, struct as_err *err)
{
    struct list_arg *arg = p;
    return store_sweep_list(t, arg->a, arg->state, arg->before, arg->size, &arg->page.rows,
                            &arg->page.n, &arg->next, err);
}

as_status sweep_list(struct store *db, struct arena *a, const sweep_state *state,
                     const struct page_req *page, struct sweep_page *ret, struct as_err *err)
{
    struct list_arg arg = {.a = a, .state = state ? sweep_state_format(*state) : NULL};
    as_status st = page_size(page, &arg.size, err);
    const char *field = NULL;
    if (st == AS_OK && page->cursor) {
        st = cursor_read(a, page->cursor, "sweeps", &field, 1, err);
        if (st == AS_OK)
            st = cursor_i64(field, &arg.before, err);
    }
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_list, &arg, err);
    if (st != AS_OK)
        return st;
    if (arg.next) {
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, arg.next);
        arg.page.next_cursor = cursor_make(a, "sweeps", (const char *const[]){text}, 1);
        if (!arg.page.next_cursor)
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    *ret = arg.page;
    return AS_OK;
}

/* Change. */

static as_status patch_limits(json_t *limits, struct sweep_patch *ret, struct as_err *err)
{
    struct json_fields f;
    json_t *concurrent = json_object_get(limits, "max_concurrent_trials");
    json_t *failed = json_object_get(limits, "max_failed_trials");
    as_status st = json_fields_init(&f, limits, "/limits", err);
    if (st == AS_OK)
        st = json_fields_i64(&f, "max_trials", JSON_OPTIONAL, 1, SWEEP_MAX_TRIALS, &ret->max_trials,
                             err);
    if (st == AS_OK)
        st = json_fields_i64(&f, "max_concurrent_trials", JSON_OPTIONAL, 1, SWEEP_MAX_TRIALS,
                             &ret->max_concurrent, err);
    if (st == AS_OK)
        st = json_fields_i64(&f, "max_failed_trials", JSON_OPTIONAL, 0, SWEEP_MAX_TRIALS,
                             &ret->max_failed, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    ret->set_max_trials = ret->max_trials > 0;
    ret->set_max_concurrent = concurrent != NULL;
    ret->set_max_failed = failed != NULL;
    return st;
}

as_status sweep_patch_parse(const json_t *doc, struct sweep_patch *ret, struct as_err *err)
{
    static const char *const words[] = {"running", "paused", "cancelled", NULL};
    static const sweep_state states[] = {SWEEP_RUNNING, SWEEP_PAUSED, SWEEP_CANCELLED};
    struct sweep_patch p = {.max_failed = -1};
    struct json_fields f;
    int word = -1;
    json_t *limits = NULL;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st == AS_OK)
        st = json_fields_word(&f, "state", JSON_OPTIONAL, words, &word, err);
    if (st == AS_OK)
        st = json_fields_object(&f, "limits", JSON_OPTIONAL, &limits, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st == AS_OK && limits)
        st = patch_limits(limits, &p, err);
    if (st != AS_OK)
        return st;
    if (word >= 0)
        p.state = &states[word];
    if (!p.state && !p.set_max_trials && !p.set_max_concurrent && !p.set_max_failed)
        return as_fail(err, AS_E_INVAL, "the patch changes nothing: expected state or limits");
    *ret = p;
    return AS_OK;
}

struct change_arg {
    struct arena *a;
    const char *id;
    const struct sweep_patch *patch;
    struct sweep_row *ret;
};

/* Write a limit into the document; < min removes it. */
static int set_limit(json_t *limits, const char *name, int64_t v, int64_t min)
{
    if (v >= min)
        return json_object_set_new(limits, name, json_integer(v));
    json_object_del(limits, name);
    return 0;
}

static as_status patched_document(const char *document, const struct sweep_patch *p,
                                  struct sweep_doc **ret, struct as_err *err)
{
    JSON_AUTO doc = NULL;
    as_status st = json_parse(document, strlen(document), &doc, err);
    if (st != AS_OK)
        return st;
    json_t *limits = json_object_get(doc, "limits");
    int bad = 0;
    if (!limits)
        bad |= json_object_set_new(doc, "limits", limits = json_object());
    if (p->set_max_trials)
        bad |= set_limit(limits, "max_trials", p->max_trials, 1);
    if (p->set_max_concurrent)
        bad |= set_limit(limits, "max_concurrent_trials", p->max_concurrent, 1);
    if (p->set_max_failed)
        bad |= set_limit(limits, "max_failed_trials", p->max_failed, 0);
    if (bad)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    return sweep_doc_parse(doc, 0, ret, err); /* the seed stands in the document */
}

static as_status change_limits(struct tx *t, struct change_arg *arg, const struct sweep_head *s,
                               struct as_err *err)
{
    const struct sweep_patch *p = arg->patch;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    const char *text = NULL;
    as_status st = store_sweep_document(t, arg->a, s->key, &text, err);
    if (st == AS_OK)
        st = patched_document(text, p, &doc, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) char *document = sweep_doc_format(doc);
    if (!document)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    int64_t budgeted = s->counts.total - s->known;
    if (doc->limits.max_trials < budgeted)
        return as_fail_at(err, AS_E_CONFLICT, "/limits/max_trials",
                          "max_trials cannot fall to %lld: there are %lld trials already",
                          (long long)doc->limits.max_trials, (long long)budgeted);
    struct sweep_new new = sweep_of(doc, s->id, document);
    st = store_sweep_limit(t, s->key, &new, err);
    struct event_new e = {.type = "sweep.changed",
                          .sweep_key = s->key,
                          .sweep = s->id,
                          .state = sweep_state_format(s->state),
                          .reason = "limits changed"};
    return st == AS_OK ? store_event_add(t, &e, err) : st;
}

static as_status change_state(struct tx *t, struct change_arg *arg, const struct sweep_head *s,
                              struct as_err *err)
{
    sweep_state want = *arg->patch->state;
    if (s->state == want)
        return AS_OK;
    sweep_event ev = want == SWEEP_RUNNING  ? SWEEP_EV_RESUME
                     : want == SWEEP_PAUSED ? SWEEP_EV_PAUSE
                                            : SWEEP_EV_CANCEL;
    as_status st = sweep_transition(t, arg->a, s, ev, NULL, err);
    if (st == AS_E_CONFLICT)
        return as_fail(err, st, "the sweep '%s' is %s and cannot become %s", s->id,
                       sweep_state_format(s->state), sweep_state_format(want));
    return st;
}

static as_status tx_change(struct tx *t, void *p, struct as_err *err)
{
    struct change_arg *arg = p;
    const struct sweep_patch *patch = arg->patch;
    struct sweep_head s;
    int64_t key = 0;
    as_status st = store_sweep_key(t, arg->id, &key, err);
    if (st == AS_OK)
        st = store_sweep_lock(t, arg->a, key, &s, err);
    bool limits = patch->set_max_trials || patch->set_max_concurrent || patch->set_max_failed;
    if (st == AS_OK && limits && s.state != SWEEP_RUNNING && s.state != SWEEP_PAUSED)
        return as_fail(err, AS_E_CONFLICT, "the sweep '%s' is %s: its limits are settled", s.id,
                       sweep_state_format(s.state));
    if (st == AS_OK && limits)
        st = change_limits(t, arg, &s, err);
    if (st == AS_OK && patch->state)
        st = change_state(t, arg, &s, err);
    if (st == AS_OK)
        st = sweep_settle(t, arg->a, key, NULL, err);
    return st == AS_OK ? store_sweep_get(t, arg->a, key, arg->ret, err) : st;
}

as_status sweep_change(struct store *db, struct arena *a, const char *id,
                       const struct sweep_patch *patch, struct sweep_row *ret, struct as_err *err)
{
    struct sweep_row row = {0};
    struct change_arg arg = {.a = a, .id = id, .patch = patch, .ret = &row};
    as_status st = store_run(db, TX_WRITE, tx_change, &arg, err);
    if (st == AS_OK)
        *ret = row;
    return st;
}

static as_status tx_delete(struct tx *t, void *p, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct sweep_head s;
    int64_t key = 0;
    as_status st = store_sweep_key(t, p, &key, err);
    if (st == AS_OK)
        st = store_sweep_lock(t, &a, key, &s, err);
    if (st == AS_OK && !sweep_state_is_final(s.state))
        return as_fail(err, AS_E_CONFLICT, "the sweep '%s' is %s: cancel it first", s.id,
                       sweep_state_format(s.state));
    return st == AS_OK ? store_sweep_delete(t, key, err) : st;
}

as_status sweep_delete(struct store *db, const char *id, struct as_err *err)
{
    AS_AUTO(as_freep) char *copy = as_strdup(id);
    return copy ? store_run(db, TX_WRITE, tx_delete, copy, err)
                : as_fail(err, AS_E_NOMEM, "out of memory");
}
