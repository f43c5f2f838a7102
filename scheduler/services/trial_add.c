/* Trials that people add: enqueued trials, and known results.
 *
 * Work that needs no lock comes first: the document and the data sets are read, and the parameters
 * are checked against the space and converted to canonical text. Then one transaction locks the
 * sweep's row, gives the trial the next number and, for a known result, stores its values and its
 * end. A known result increases the number of planned trials, so that it takes nothing from the
 * budget. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "scheduler/lifecycle/feasibility.h"
#include "scheduler/lifecycle/idempotency.h"
#include "scheduler/sweep/stored_doc.h"
#include "scheduler/assign/shape.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/sweep/trial_seed.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/services/trials.h"
#include "search/space/config.h"
#include "search/space/param.h"

#define ADD_METRICS_MAX 100

/* The body; its pointers are views of it. */
struct request {
    json_t *params;
    bool is_known, has_failed;
    const char *reason;
    struct measurement metrics[ADD_METRICS_MAX];
    size_t n_metrics;
};

/* The properties of the sweep that an added trial depends on. */
struct target {
    const char *id;
    int64_t key;
    const char *document;
    struct dataset_row *datasets;
    size_t n_datasets;
};

/* A trial that will be added. */
struct addition {
    struct request x;
    char *params; /* canonical; owned */
    struct trial_shape shape;
    const struct idem_key *idem; /* NULL: none */
};

/* The document of the sweep. */

static as_status read_metrics(json_t *metrics, struct request *x, struct as_err *err)
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

static as_status read_body(const json_t *body, struct request *x, struct as_err *err)
{
    static const char *const states[] = {"completed", "failed", NULL};
    struct json_fields f;
    json_t *metrics = NULL;
    int state = -1;
    as_status st = json_fields_init(&f, body, "", err);
    if (st < 0 || (st = json_fields_object(&f, "params", JSON_REQUIRED, &x->params, err)) < 0 ||
        (st = json_fields_object(&f, "metrics", JSON_OPTIONAL, &metrics, err)) < 0 ||
        (st = json_fields_word(&f, "state", JSON_OPTIONAL, states, &state, err)) < 0 ||
        (st = json_fields_text(&f, "reason", JSON_OPTIONAL, 0, 2000, &x->reason, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (metrics)
        st = read_metrics(metrics, x, err);
    if (st != AS_OK)
        return st;
    x->is_known = metrics || state >= 0;
    x->has_failed = state == 1;
    if (x->reason && !x->has_failed)
        return as_fail_at(err, AS_E_INVAL, "/reason", "/reason: only a failed trial has one");
    return AS_OK;
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

/* Check the parameters against the space. The canonical text is stored. */
static as_status check_params(struct arena *a, const struct target *to, struct addition *add,
                              struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    AS_AUTO(config_freep) struct config *config = NULL;
    AS_AUTO(shaper_freep) struct shaper *shaper = NULL;
    JSON_AUTO tree = NULL;
    as_status st = stored_doc_read(to->document, &tree, &doc, err);
    if (st != AS_OK)
        return st;
    if (doc->method->is_enumeration)
        return as_fail(
            err, AS_E_CONFLICT,
            "the sweep '%.80s' runs each cell of its grid once and takes no other trials", to->id);
    st = config_from_json(doc->space, add->x.params, "/params", &config, err);
    if (st != AS_OK)
        return st;
    st = check_rules(doc->space, config, tree, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO params = config_to_json(doc->space, config);
    add->params = params ? json_format_ordered(params) : NULL;
    if (!add->params)
        return as_fail_nomem(err);
    st = shaper_create(tree, to->datasets, to->n_datasets, &shaper, err);
    if (st != AS_OK)
        return st;
    return shaper_shape(shaper, a, params, &add->shape, err);
}

static as_status read_target(struct tx *t, struct arena *a, struct target *to, struct as_err *err)
{
    as_status st = store_sweep_key(t, to->id, &to->key, err);
    if (st != AS_OK)
        return st;
    st = store_sweep_document(t, a, to->key, &to->document, err);
    if (st != AS_OK)
        return st;
    return store_dataset_of_sweep(t, a, to->key, &to->datasets, &to->n_datasets, err);
}

/* Write. */

static as_status check_state(const struct sweep_head *s, bool is_known, struct as_err *err)
{
    if (s->state != SWEEP_RUNNING && s->state != SWEEP_PAUSED)
        return as_fail(err, AS_E_CONFLICT, "the sweep '%s' is %s and takes no more trials", s->id,
                       sweep_state_format(s->state));
    if (!is_known && s->counts.total >= s->planned)
        return as_fail(err, AS_E_CONFLICT,
                       "all %lld trials of the sweep '%s' exist: raise limits.max_trials first",
                       (long long)(s->planned - s->known), s->id);
    return AS_OK;
}

/* Does the known result have the required values? A failed one needs none. */
static as_status judge_known(struct tx *t, struct arena *a, const struct sweep_head *s,
                             int64_t number, bool *ret_feasible, struct as_err *err)
{
    struct trial_head head;
    struct feasibility v;
    as_status st = store_trial_lock(t, a, s->key, number, &head, err);
    if (st != AS_OK)
        return st;
    st = trial_feasibility(t, a, s, &head, &v, err);
    if (st != AS_OK)
        return st;
    if (v.missing) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child("/metrics", v.missing, at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s is missing: a completed trial needs a value of it", at);
    }
    *ret_feasible = v.feasible;
    return AS_OK;
}

/* Store the values of a known result, then its end. */
static as_status settle_known(struct tx *t, struct arena *a, const struct request *x,
                              const struct sweep_head *s, int64_t number, struct as_err *err)
{
    struct measured measured;
    bool feasible = false;
    as_status st = AS_OK;
    if (x->n_metrics > 0)
        st = store_measurement_add(t, s->key, number, 0, x->metrics, x->n_metrics, &measured, err);
    if (st != AS_OK)
        return st;
    if (!x->has_failed)
        st = judge_known(t, a, s, number, &feasible, err);
    if (st != AS_OK)
        return st;
    const struct trial_move move = {.from = TRIAL_QUEUED,
                                    .to = x->has_failed ? TRIAL_FAILED : TRIAL_COMPLETED,
                                    .feasible = feasible,
                                    .reason = !x->has_failed ? NULL
                                              : x->reason    ? x->reason
                                                             : "added as a failed trial"};
    return store_trial_move(t, s->key, number, &move, err);
}

static as_status insert_trial(struct tx *t, struct arena *a, const struct addition *add,
                              const struct sweep_head *s, int64_t number, struct as_err *err)
{
    bool is_known = add->x.is_known;
    const struct trial_new n = {.sweep_key = s->key,
                                .number = number,
                                .seed = trial_seed_of(s->seed, number),
                                .params = add->params,
                                .shape = add->shape.text,
                                .bytes_per_member = add->shape.bytes_per_member,
                                .origin = is_known ? ORIGIN_KNOWN : ORIGIN_ENQUEUED,
                                .suggestion = is_known ? "{\"method\":\"known\"}"
                                                       : "{\"method\":\"enqueued\"}"};
    as_status st = is_known ? store_sweep_known(t, s->key, err) : AS_OK;
    if (st != AS_OK)
        return st;
    st = store_trial_add(t, &n, err);
    if (st != AS_OK)
        return st;
    return is_known ? settle_known(t, a, &add->x, s, number, err) : AS_OK;
}

static as_status tell_added(struct tx *t, const struct sweep_head *s, const struct trial_row *row,
                            struct as_err *err)
{
    struct event_new e = {.type = "trial.changed",
                          .sweep_key = s->key,
                          .sweep = s->id,
                          .has_number = true,
                          .number = row->number,
                          .state = trial_state_format(row->state),
                          .has_value = row->has_value,
                          .value = row->value,
                          .reason = row->reason};
    return store_event_add(t, &e, err);
}

static as_status add_trial(struct tx *t, struct arena *a, const struct target *to,
                           const struct addition *add, struct trial_row *ret, struct as_err *err)
{
    struct idem_made made;
    struct sweep_head s;
    as_status st = idempotency_begin(t, a, add->idem, to->id, &made, err);
    if (st != AS_OK)
        return st;
    if (made.sweep)
        return store_trial_get(t, a, to->key, made.number, ret, err);
    st = store_sweep_lock(t, a, to->key, &s, err);
    if (st != AS_OK)
        return st;
    int64_t number = s.counts.total;
    if ((st = check_state(&s, add->x.is_known, err)) < 0 ||
        (st = insert_trial(t, a, add, &s, number, err)) < 0 ||
        (st = idempotency_end(t, add->idem, s.id, number, err)) < 0 ||
        (st = store_trial_get(t, a, s.key, number, ret, err)) < 0)
        return st;
    return tell_added(t, &s, ret, err);
}

static as_status find_target(struct store *db, struct arena *a, struct target *to,
                             struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_target(run.tx, a, to, err);
    return run.status;
}

static void addition_done(struct addition *add)
{
    free(add->params);
}

as_status trial_add(struct store *db, struct arena *a, const char *sweep, const json_t *body,
                    const struct idem_key *idem, struct trial_row *ret, struct as_err *err)
{
    struct target to = {.id = sweep};
    AS_AUTO(addition_done) struct addition add = {.idem = idem};
    struct trial_row row;
    as_status st = find_target(db, a, &to, err);
    if (st != AS_OK)
        return st;
    st = read_body(body, &add.x, err);
    if (st != AS_OK)
        return st;
    st = check_params(a, &to, &add, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_trial(run.tx, a, &to, &add, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}
