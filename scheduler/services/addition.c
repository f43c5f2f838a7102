/* Reading added trials: one body or a list of them.
 *
 * The sweep's document and the shapes of its trials are read once for all rows. Everything that a
 * row can be refused for is found here, before a transaction begins: its parameters against the
 * space and its rules, its metrics against the objectives and constraints. So a list is refused as
 * a whole, with the pointer of the first wrong field. */
#include "scheduler/services/addition_priv.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/metric_name.h"
#include "base/str.h"
#include "scheduler/assign/shape.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/sweep/stored_doc.h"
#include "search/space/config.h"

#define ADD_METRICS_MAX 100
#define ADD_KEY_MAX 128

/* What all rows share. */
struct reading {
    struct arena *a;
    struct sweep_doc *doc; /* owned, as the next two */
    json_t *tree;
    struct shaper *shaper;
    bool is_list;
    json_t *keys_seen; /* owned: {key: true} */
    size_t n_keys;
};

static void reading_done(struct reading *x)
{
    shaper_free(x->shaper);
    sweep_doc_free(x->doc);
    json_decref(x->tree);
    json_decref(x->keys_seen);
}

/* One body; its pointers are views of it. */
struct request {
    const char *at; /* its pointer: "" or "/17" */
    json_t *params, *metrics;
    int state; /* 0: completed, 1: failed, -1: not given */
    const char *reason, *key;
};

static as_status read_fields(const json_t *body, struct request *x, struct as_err *err)
{
    static const char *const states[] = {"completed", "failed", NULL};
    struct json_fields f;
    as_status st = json_fields_init(&f, body, x->at, err);
    if (st < 0 || (st = json_fields_object(&f, "params", JSON_REQUIRED, &x->params, err)) < 0 ||
        (st = json_fields_object(&f, "metrics", JSON_OPTIONAL, &x->metrics, err)) < 0 ||
        (st = json_fields_word(&f, "state", JSON_OPTIONAL, states, &x->state, err)) < 0 ||
        (st = json_fields_text(&f, "reason", JSON_OPTIONAL, 0, 2000, &x->reason, err)) < 0)
        return st;
    if (*x->at &&
        (st = json_fields_text(&f, "key", JSON_OPTIONAL, 1, ADD_KEY_MAX, &x->key, err)) < 0)
        return st;
    if ((st = json_fields_end(&f, err)) < 0)
        return st;
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(x->at, "reason", at);
    if (x->reason && x->state != 1)
        return as_fail_at(err, AS_E_INVAL, at, "%s: only a failed trial has one", at);
    return AS_OK;
}

static as_status read_metrics(struct arena *a, const struct request *x, struct added_trial *row,
                              struct as_err *err)
{
    char list[AS_ERR_POINTER_MAX], at[AS_ERR_POINTER_MAX];
    size_t n = json_object_size(x->metrics);
    const char *name;
    json_t *v;
    json_pointer_child(x->at, "metrics", list);
    if (n > ADD_METRICS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, list, "%s: %zu metrics, at most %d are allowed",
                          list, n, ADD_METRICS_MAX);
    row->points = arena_alloc(a, n + 1, sizeof *row->points);
    if (!row->points)
        return as_fail_nomem(err);
    JSON_AUTO values = json_object();
    json_object_foreach(x->metrics, name, v)
    {
        json_pointer_child(list, name, at);
        if (!metric_name_valid(name))
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: not the name of a metric: expected " METRIC_NAME_RULE, at);
        if (!json_is_number(v) || !isfinite(json_number_value(v)))
            return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected a number", at,
                              json_type_name(v));
        row->points[row->n_points++] = (struct measurement){0, name, json_number_value(v)};
        if (json_object_set_new(values, name, json_real(json_number_value(v))) != 0)
            return as_fail_nomem(err);
    }
    AS_AUTO(as_freep) char *text = values ? json_format(values) : NULL;
    row->metrics_json = arena_strdup(a, text);
    return row->metrics_json ? AS_OK : as_fail_nomem(err);
}

static const struct measurement *point_of(const struct added_trial *row, const char *metric)
{
    for (size_t i = 0; i < row->n_points; i++)
        if (as_streq(row->points[i].metric, metric))
            return &row->points[i];
    return NULL;
}

static as_status missing_metric(const struct request *x, const char *metric, struct as_err *err)
{
    char list[AS_ERR_POINTER_MAX], at[AS_ERR_POINTER_MAX];
    json_pointer_child(x->at, "metrics", list);
    json_pointer_child(list, metric, at);
    return as_fail_at(err, AS_E_INVAL, at, "%s is missing: a completed trial needs a value of it",
                      at);
}

/* The value of a known result, and whether it is feasible. A failed one needs no values. */
static as_status judge(const struct sweep_doc *doc, const struct request *x,
                       struct added_trial *row, struct as_err *err)
{
    const struct measurement *p = point_of(row, doc->metric);
    row->has_value = p != NULL;
    row->value = p ? p->value : 0;
    row->feasible = row->state == TRIAL_COMPLETED;
    if (row->state != TRIAL_COMPLETED)
        return AS_OK;
    for (size_t i = 0; i < doc->n_objectives; i++)
        if (!point_of(row, doc->objectives[i].name))
            return missing_metric(x, doc->objectives[i].name, err);
    for (size_t i = 0; i < doc->n_outcomes; i++) {
        const struct sweep_outcome *o = &doc->outcomes[i];
        p = point_of(row, o->metric);
        if (!p)
            return missing_metric(x, o->metric, err);
        row->feasible &= p->value >= o->min && p->value <= o->max;
    }
    return AS_OK;
}

static as_status check_rules(const struct reading *r, const struct config *config, const char *at,
                             struct as_err *err)
{
    const struct space *space = r->doc->space;
    int k = space_violation(space, config);
    if (k < 0)
        return AS_OK;
    const json_t *rules = json_object_get(r->tree, "parameter_constraints");
    const char *rule = json_string_value(json_array_get(rules, (size_t)k));
    if ((size_t)k < space->n_constraints && rule)
        return as_fail_at(err, AS_E_INVAL, at, "%s: the sweep's constraint '%.200s' does not hold",
                          at, rule);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: this combination is forbidden (/forbidden/%zu of the sweep)", at,
                      (size_t)k - space->n_constraints);
}

/* Check the parameters against the space. The canonical text is stored. */
static as_status read_params(const struct reading *r, const struct request *x,
                             struct added_trial *row, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *config = NULL;
    struct trial_shape shape = {0};
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(x->at, "params", at);
    as_status st = config_from_json(r->doc->space, x->params, at, &config, err);
    if (st != AS_OK)
        return st;
    if ((st = check_rules(r, config, at, err)) != AS_OK)
        return st;
    JSON_AUTO params = config_to_json(r->doc->space, config);
    AS_AUTO(as_freep) char *text = params ? json_format_ordered(params) : NULL;
    row->params = arena_strdup(r->a, text);
    if (!row->params)
        return as_fail_nomem(err);
    if ((st = shaper_shape(r->shaper, r->a, params, &shape, err)) != AS_OK)
        return st;
    row->shape = shape.text;
    row->bytes_per_member = shape.bytes_per_member;
    return AS_OK;
}

/* Who gave the parameters, with the row's key: so everybody can tell which of a program's results
 * are here. */
static as_status say_origin(const struct reading *r, const char *key, struct added_trial *row,
                            struct as_err *err)
{
    const char *method =
        trial_origin_words[row->state == TRIAL_QUEUED ? ORIGIN_ENQUEUED : ORIGIN_KNOWN];
    JSON_AUTO said = json_pack("{s:s, s:s*}", "method", method, "key", key);
    AS_AUTO(as_freep) char *text = said ? json_format_ordered(said) : NULL;
    row->suggestion = arena_strdup(r->a, text);
    return row->suggestion ? AS_OK : as_fail_nomem(err);
}

/* The idempotency key of a row of a list. */
static as_status read_key(struct reading *r, const struct request *x, const json_t *body,
                          struct addition_list *list, size_t i, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX], digest[SHA256_HEX_SIZE];
    if (!x->key)
        return AS_OK;
    json_pointer_child(x->at, "key", at);
    if (json_object_get(r->keys_seen, x->key))
        return as_fail_at(err, AS_E_INVAL, at, "%s: '%s' is given twice", at, x->key);
    if (json_object_set_new(r->keys_seen, x->key, json_true()) != 0)
        return as_fail_nomem(err);
    AS_AUTO(as_freep) char *text = json_format(body);
    if (!text)
        return as_fail_nomem(err);
    as_status st = sha256_of(text, strlen(text), digest, err);
    if (st != AS_OK)
        return st;
    list->keys[i] = x->key;
    list->digests[i] = arena_strdup(r->a, digest);
    r->n_keys++;
    return list->digests[i] ? AS_OK : as_fail_nomem(err);
}

static as_status read_one(struct reading *r, const json_t *body, size_t i,
                          struct addition_list *list, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX] = "";
    struct request x = {.at = at, .state = -1};
    struct added_trial *row = &list->rows[i];
    if (r->is_list)
        json_pointer_index("", i, at);
    as_status st = read_fields(body, &x, err);
    if (st != AS_OK)
        return st;
    bool is_known = x.metrics || x.state >= 0;
    row->state = !is_known ? TRIAL_QUEUED : x.state == 1 ? TRIAL_FAILED : TRIAL_COMPLETED;
    row->reason = row->state != TRIAL_FAILED ? NULL
                  : x.reason                 ? x.reason
                                             : "added as a failed trial";
    if ((st = read_metrics(r->a, &x, row, err)) != AS_OK)
        return st;
    if ((st = read_params(r, &x, row, err)) != AS_OK)
        return st;
    if (is_known && (st = judge(r->doc, &x, row, err)) != AS_OK)
        return st;
    if ((st = say_origin(r, x.key, row, err)) != AS_OK)
        return st;
    return read_key(r, &x, body, list, i, err);
}

static as_status open_reading(struct reading *r, const struct addition_target *to,
                              struct as_err *err)
{
    as_status st = stored_doc_read(to->document, &r->tree, &r->doc, err);
    if (st != AS_OK)
        return st;
    if (r->doc->method->is_enumeration)
        return as_fail(
            err, AS_E_CONFLICT,
            "the sweep '%.80s' runs each cell of its grid once and takes no other trials", to->id);
    r->keys_seen = json_object();
    if (!r->keys_seen)
        return as_fail_nomem(err);
    return shaper_create(r->tree, to->datasets, to->n_datasets, &r->shaper, err);
}

as_status additions_check_size(const json_t *body, struct as_err *err)
{
    size_t n = json_array_size(body);
    if (!json_is_array(body) || (n > 0 && n <= ADDITIONS_MAX))
        return AS_OK;
    return as_fail(err, n ? AS_E_TOO_LARGE : AS_E_INVAL,
                   "the list has %zu trials, expected 1 to %d", n, ADDITIONS_MAX);
}

as_status additions_read(struct arena *a, const json_t *body, const struct addition_target *to,
                         struct addition_list *ret, struct as_err *err)
{
    AS_AUTO(reading_done) struct reading r = {.a = a, .is_list = json_is_array(body)};
    size_t n = r.is_list ? json_array_size(body) : 1;
    as_status size = additions_check_size(body, err);
    if (size != AS_OK)
        return size;
    struct addition_list list = {.rows = arena_alloc(a, n, sizeof *list.rows),
                                 .keys = arena_alloc(a, n, sizeof *list.keys),
                                 .digests = arena_alloc(a, n, sizeof *list.digests),
                                 .n = n};
    if (!list.rows || !list.keys || !list.digests)
        return as_fail_nomem(err);
    as_status st = open_reading(&r, to, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = read_one(&r, r.is_list ? json_array_get(body, i) : body, i, &list, err);
    if (st != AS_OK)
        return st;
    if (r.n_keys > 0 && r.n_keys < n)
        return as_fail(err, AS_E_INVAL,
                       "%zu of %zu trials have a key: give one to each, or to none", r.n_keys, n);
    if (r.n_keys == 0)
        list.keys = NULL;
    *ret = list;
    return AS_OK;
}
