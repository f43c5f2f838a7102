/* Trials that people add: enqueued ones, and known results. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "scheduler/lifecycle/feasibility.h"
#include "scheduler/assign/shape.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/idempotency_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/sweep/trial_seed.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/services/trials.h"
#include "search/space/config.h"
#include "search/space/param.h"

#define ADD_METRICS_MAX 100

/* The body, read. Views of it. */
struct addition {
    json_t *params;
    bool is_known, has_failed;
    const char *reason;
    struct measurement metrics[ADD_METRICS_MAX];
    size_t n_metrics;
};

struct add_arg {
    struct arena *a;
    const char *sweep;
    const struct idem_key *idem;
    struct addition x;
    const char *document;
    int64_t key;
    struct dataset_row *datasets;
    size_t n_datasets;
    char *params; /* canonical; owned */
    struct trial_shape shape;
    struct trial_row ret;
};

/* The document of the sweep. */

static as_status read_metrics(json_t *metrics, struct addition *x, struct as_err *err)
{
    const char *name;
    json_t *v;
    json_object_foreach(metrics, name, v)
    {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child("/metrics", name, at);
        if (!param_name_valid(name))
            return as_fail_at(err, AS_E_INVAL, at, "%s: not the name of a metric", at);
        if (!json_is_number(v) || !isfinite(json_number_value(v)))
            return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected a number", at,
                              json_type_name(v));
        if (x->n_metrics == ADD_METRICS_MAX)
            return as_fail_at(err, AS_E_TOO_LARGE, "/metrics", "/metrics: more than %d",
                              ADD_METRICS_MAX);
        x->metrics[x->n_metrics++] = (struct measurement){0, name, json_number_value(v)};
    }
    return AS_OK;
}

static as_status read_body(const json_t *body, struct addition *x, struct as_err *err)
{
    static const char *const states[] = {"completed", "failed", NULL};
    struct json_fields f;
    json_t *metrics = NULL;
    int state = -1;
    as_status st = json_fields_init(&f, body, "", err);
    if (st == AS_OK)
        st = json_fields_object(&f, "params", JSON_REQUIRED, &x->params, err);
    if (st == AS_OK)
        st = json_fields_object(&f, "metrics", JSON_OPTIONAL, &metrics, err);
    if (st == AS_OK)
        st = json_fields_word(&f, "state", JSON_OPTIONAL, states, &state, err);
    if (st == AS_OK)
        st = json_fields_text(&f, "reason", JSON_OPTIONAL, 0, 2000, &x->reason, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st == AS_OK && metrics)
        st = read_metrics(metrics, x, err);
    x->is_known = metrics || state >= 0;
    x->has_failed = state == 1;
    if (st == AS_OK && x->reason && !x->has_failed)
        return as_fail_at(err, AS_E_INVAL, "/reason", "/reason: only a failed trial has one");
    return st;
}

static as_status check_rules(const struct space *space, const struct config *config,
                             const json_t *doc, struct as_err *err)
{
    int k = space_violation(space, config);
    if (k < 0)
        return AS_OK;
    const char *rule =
        json_string_value(json_array_get(json_object_get(doc, "parameter_constraints"), (size_t)k));
    if ((size_t)k < space->n_constraints && rule)
        return as_fail_at(err, AS_E_INVAL, "/params",
                          "/params: the sweep's constraint '%.200s' does not hold", rule);
    return as_fail_at(err, AS_E_INVAL, "/params",
                      "/params: this combination is forbidden (/forbidden/%zu of the sweep)",
                      (size_t)k - space->n_constraints);
}

/* Against the space: what is stored is the canonical text. */
static as_status check_params(struct add_arg *arg, struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    AS_AUTO(config_freep) struct config *config = NULL;
    JSON_AUTO tree = NULL;
    as_status st = json_parse(arg->document, strlen(arg->document), &tree, err);
    if (st == AS_OK)
        st = sweep_doc_parse(tree, 0, &doc, err);
    if (st != AS_OK)
        return as_err_prefix(err, st == AS_E_NOMEM ? st : AS_E_INTERNAL,
                             "the stored document cannot be read");
    if (doc->method == SEARCH_GRID)
        return as_fail(
            err, AS_E_CONFLICT,
            "the sweep '%.80s' runs each cell of its grid once and takes no other trials",
            arg->sweep);
    st = config_from_json(doc->space, arg->x.params, "/params", &config, err);
    if (st == AS_OK)
        st = check_rules(doc->space, config, tree, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO params = config_to_json(doc->space, config);
    arg->params = params ? json_format_ordered(params) : NULL;
    if (!arg->params)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    AS_AUTO(shaper_freep) struct shaper *shaper = NULL;
    st = shaper_create(tree, arg->datasets, arg->n_datasets, &shaper, err);
    return st == AS_OK ? shaper_shape(shaper, arg->a, params, &arg->shape, err) : st;
}

static as_status tx_read(struct tx *t, void *p, struct as_err *err)
{
    struct add_arg *arg = p;
    as_status st = store_sweep_key(t, arg->sweep, &arg->key, err);
    if (st == AS_OK)
        st = store_sweep_document(t, arg->a, arg->key, &arg->document, err);
    if (st == AS_OK)
        st = store_dataset_of_sweep(t, arg->a, arg->key, &arg->datasets, &arg->n_datasets, err);
    return st;
}

/* Writing. */

/* The key was used: hand back what it made. */
static as_status replay(struct tx *t, struct add_arg *arg, struct as_err *err)
{
    struct idem_row row;
    as_status st = store_idempotency_get(t, arg->a, arg->idem, &row, err);
    if (st != AS_OK)
        return st;
    if (!row.same_body)
        return as_fail(err, AS_E_CONFLICT, "the idempotency key was used with another body");
    if (row.number < 0 || !as_streq(row.sweep, arg->sweep))
        return as_fail(err, AS_E_CONFLICT, "the idempotency key was used for something else");
    return store_trial_get(t, arg->a, arg->key, row.number, &arg->ret, err);
}

static as_status check_state(const struct add_arg *arg, const struct sweep_head *s,
                             struct as_err *err)
{
    if (s->state != SWEEP_RUNNING && s->state != SWEEP_PAUSED)
        return as_fail(err, AS_E_CONFLICT, "the sweep '%s' is %s and takes no more trials", s->id,
                       sweep_state_format(s->state));
    if (!arg->x.is_known && s->counts.total >= s->planned)
        return as_fail(err, AS_E_CONFLICT,
                       "all %lld trials of the sweep '%s' exist: raise limits.max_trials first",
                       (long long)(s->planned - s->known), s->id);
    return AS_OK;
}

/* Of a known result: its values, then its end. */
static as_status settle_known(struct tx *t, struct add_arg *arg, const struct sweep_head *s,
                              int64_t number, struct as_err *err)
{
    const struct addition *x = &arg->x;
    struct trial_head head;
    struct measured measured;
    struct verdict v = {0};
    as_status st = AS_OK;
    if (x->n_metrics > 0)
        st = store_measurement_add(t, s->key, number, 0, x->metrics, x->n_metrics, &measured, err);
    if (st == AS_OK)
        st = store_trial_lock(t, arg->a, s->key, number, &head, err);
    if (st == AS_OK && !x->has_failed)
        st = trial_judge(t, arg->a, s, &head, &v, err);
    if (st == AS_OK && v.missing) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child("/metrics", v.missing, at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s is missing: a trial that completed has a value of it", at);
    }
    if (st != AS_OK)
        return st;
    const struct trial_move move = {.from = TRIAL_QUEUED,
                                    .to = x->has_failed ? TRIAL_FAILED : TRIAL_COMPLETED,
                                    .feasible = v.feasible,
                                    .reason = !x->has_failed ? NULL
                                              : x->reason    ? x->reason
                                                             : "added as a failed trial"};
    return store_trial_move(t, s->key, number, &move, err);
}

static as_status add(struct tx *t, struct add_arg *arg, const struct sweep_head *s,
                     struct as_err *err)
{
    const struct addition *x = &arg->x;
    int64_t number = s->counts.total;
    const struct trial_new n = {.sweep_key = s->key,
                                .number = number,
                                .seed = trial_seed_of(s->seed, number),
                                .params = arg->params,
                                .shape = arg->shape.text,
                                .bytes_per_member = arg->shape.bytes_per_member,
                                .origin = x->is_known ? ORIGIN_KNOWN : ORIGIN_ENQUEUED,
                                .suggestion = x->is_known ? "{\"method\":\"known\"}"
                                                          : "{\"method\":\"enqueued\"}"};
    as_status st = x->is_known ? store_sweep_known(t, s->key, err) : AS_OK;
    if (st == AS_OK)
        st = store_trial_add(t, &n, err);
    if (st == AS_OK && x->is_known)
        st = settle_known(t, arg, s, number, err);
    if (st == AS_OK && arg->idem)
        st = store_idempotency_made(t, arg->idem, s->id, number, err);
    if (st == AS_OK)
        st = store_trial_get(t, arg->a, s->key, number, &arg->ret, err);
    struct event_new e = {.type = "trial.changed",
                          .sweep_key = s->key,
                          .sweep = s->id,
                          .has_number = true,
                          .number = number,
                          .state = st == AS_OK ? trial_state_format(arg->ret.state) : NULL,
                          .has_value = arg->ret.has_value,
                          .value = arg->ret.value,
                          .reason = arg->ret.reason};
    return st == AS_OK ? store_event_add(t, &e, err) : st;
}

static as_status tx_add(struct tx *t, void *p, struct as_err *err)
{
    struct add_arg *arg = p;
    struct sweep_head s;
    bool fresh = true;
    as_status st = arg->idem ? store_idempotency_add(t, arg->idem, &fresh, err) : AS_OK;
    if (st == AS_OK && !fresh)
        return replay(t, arg, err);
    if (st == AS_OK)
        st = store_sweep_lock(t, arg->a, arg->key, &s, err);
    if (st == AS_OK)
        st = check_state(arg, &s, err);
    return st == AS_OK ? add(t, arg, &s, err) : st;
}

as_status trial_add(struct store *db, struct arena *a, const char *sweep, const json_t *body,
                    const struct idem_key *idem, struct trial_row *ret, struct as_err *err)
{
    struct add_arg arg = {.a = a, .sweep = sweep, .idem = idem};
    as_status st = store_run(db, TX_READ, tx_read, &arg, err);
    if (st == AS_OK)
        st = read_body(body, &arg.x, err);
    if (st == AS_OK)
        st = check_params(&arg, err);
    if (st == AS_OK)
        st = store_run(db, TX_WRITE, tx_add, &arg, err);
    free(arg.params);
    if (st == AS_OK)
        *ret = arg.ret;
    return st;
}
