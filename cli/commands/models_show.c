/* Tables from the API's JSON for one model or one version. Lists are cut (trials, values, metrics),
 * because an ensemble may have a hundred members. A version by a column shows each value with its
 * trial, any other its combination. */
#include "cli/commands/models_show.h"

#include "base/clock.h"
#include "base/json.h"
#include "cli/session/request.h"
#include "cli/view/format.h"
#include "cli/view/pairs.h"

#define TRIALS_SHOWN 8
#define VALUES_SHOWN 12
#define METRICS_SHOWN 4

void models_format_aliases(struct str *b, const json_t *aliases)
{
    const char *alias;
    json_t *version;
    size_t i;
    if (json_is_array(aliases))
        json_array_foreach(aliases, i, version)
            str_printf(b, "%s%s", i ? ", " : "", json_string_value(version));
    json_object_foreach((json_t *)aliases, alias, version) str_printf(
        b, "%s%s %" JSON_INTEGER_FORMAT, b->len ? ", " : "", alias, json_integer_value(version));
}

void models_format_origin(struct str *b, const json_t *version)
{
    const json_t *trials = json_object_get(version, "trials");
    const char *sweep = json_string_value(json_object_get(version, "sweep_id"));
    size_t i, n = json_array_size(trials);
    json_t *number;
    str_puts(b, sweep ? sweep : "?");
    json_array_foreach(trials, i, number)
    {
        if (i == TRIALS_SHOWN)
            break;
        str_printf(b, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "/", json_integer_value(number));
    }
    if (n > TRIALS_SHOWN)
        str_printf(b, ", … (%zu in all)", n);
}

void models_format_metrics(struct str *b, const json_t *version, bool tty)
{
    const char *name;
    json_t *value;
    size_t n = 0;
    json_object_foreach(json_object_get(version, "metrics"), name, value)
    {
        if (tty && n == METRICS_SHOWN)
            break;
        str_printf(b, "%s%s ", n++ ? ", " : "", name);
        format_value(b, value, tty ? FORMAT_SHORT : FORMAT_EXACT);
    }
}

static void version_path(struct str *path, const struct model_ref *ref)
{
    str_puts(path, "/v1/models");
    client_path_add(path, ref->name);
    str_puts(path, "/versions");
}

as_status models_get_version(const struct session *s, const struct model_ref *ref, json_t **ret,
                             struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    version_path(&path, ref);
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    st = request_one(s->client, path.s, ref->version, ret, err);
    if (st < 0)
        return st;
    if (!json_is_integer(json_object_get(*ret, "version")) ||
        !json_is_string(json_object_get(*ret, "sha256"))) {
        json_decref(*ret);
        *ret = NULL;
        return as_fail(err, AS_E_INTERNAL,
                       "the server returned a version without number or digest");
    }
    return AS_OK;
}

/* ---- one version ---- */

static void list_texts(const json_t *values, struct str *b)
{
    size_t i, n = json_array_size(values);
    json_t *v;
    json_array_foreach(values, i, v)
    {
        if (i == VALUES_SHOWN)
            break;
        str_puts(b, i ? ", " : "");
        format_value(b, v, FORMAT_EXACT);
    }
    if (n > VALUES_SHOWN)
        str_printf(b, ", … (%zu in all)", n);
}

static void add_texts(struct pairs *p, const char *name, const json_t *values)
{
    AS_AUTO(str_done) struct str b = {0};
    list_texts(values, &b);
    pairs_add(p, name, STYLE_PLAIN, str_cstr(&b));
}

static void put_trial(const json_t *trial, struct str *b)
{
    const char *sweep = json_string_value(json_object_get(trial, "sweep"));
    str_printf(b, "trial %s%s%" JSON_INTEGER_FORMAT, sweep ? sweep : "", sweep ? "/" : "",
               json_integer_value(json_object_get(trial, "number")));
}

/* "by region: north trial 3, south trial 5, others trial 3". */
static void put_buckets(const json_t *combine, struct str *b)
{
    const json_t *buckets = json_object_get(combine, "buckets"), *bucket;
    size_t i;
    format_value(b, json_object_get(combine, "column"), FORMAT_EXACT);
    str_puts(b, ": ");
    json_array_foreach(buckets, i, bucket)
    {
        if (i == VALUES_SHOWN)
            break;
        format_value(b, json_object_get(bucket, "value"), FORMAT_EXACT);
        str_puts(b, " ");
        put_trial(bucket, b);
        str_puts(b, ", ");
    }
    if (json_array_size(buckets) > VALUES_SHOWN)
        str_printf(b, "… (%zu in all), ", json_array_size(buckets));
    str_puts(b, "others ");
    put_trial(json_object_get(combine, "other"), b);
}

/* ", calibrated: slope 0.83, bias -0.1; threshold 0.31", "…; class weights 1, 2.5, 4". */
static void put_calibration(const json_t *combine, struct str *b)
{
    const json_t *calibration = json_object_get(combine, "calibration");
    const json_t *bias = json_object_get(calibration, "bias");
    const json_t *threshold = json_object_get(combine, "threshold");
    if (!calibration)
        return;
    str_puts(b, ", calibrated: slope ");
    format_value(b, json_object_get(calibration, "slope"), FORMAT_EXACT);
    if (bias) {
        str_puts(b, ", bias ");
        format_value(b, bias, FORMAT_EXACT);
    }
    if (threshold) {
        str_puts(b, "; threshold ");
        format_value(b, threshold, FORMAT_EXACT);
    }
    const json_t *weights = json_object_get(combine, "class_weights");
    for (size_t i = 0; i < json_array_size(weights); i++) {
        str_puts(b, i ? ", " : "; class weights ");
        format_value(b, json_array_get(weights, i), FORMAT_EXACT);
    }
}

/* How an ensemble was made: "stacking, number 2", and "linear, of logarithms of probabilities,
 * biases 0.1, -0.1", or the trials of values. */
static void add_ensemble(struct pairs *p, const json_t *e)
{
    AS_AUTO(str_done) struct str method = {0};
    AS_AUTO(str_done) struct str how = {0};
    const json_t *combine = json_object_get(e, "combine"), *number = json_object_get(e, "number");
    const char *kind = json_string_value(json_object_get(combine, "kind"));
    const char *inputs = json_string_value(json_object_get(combine, "inputs"));
    format_value(&method, json_object_get(e, "method"), FORMAT_EXACT);
    if (number)
        str_printf(&method, ", number %" JSON_INTEGER_FORMAT, json_integer_value(number));
    pairs_add(p, "method", STYLE_PLAIN, str_cstr(&method));
    str_puts(&how, kind ? kind : "");
    if (inputs)
        str_printf(&how, ", of %s, biases ",
                   as_streq(inputs, "log") ? "logarithms of probabilities" : "numbers");
    list_texts(json_object_get(combine, "biases"), &how);
    if (as_streq(kind, "by")) {
        str_puts(&how, " ");
        put_buckets(combine, &how);
    }
    put_calibration(combine, &how);
    pairs_add(p, "combination", STYLE_PLAIN, str_cstr(&how));
}

static void add_members(struct pairs *p, const json_t *members)
{
    size_t i;
    json_t *m;
    json_array_foreach(members, i, m)
    {
        const char *kind = json_string_value(json_object_get(m, "kind"));
        const char *seed = json_string_value(json_object_get(m, "seed"));
        const char *sweep = json_string_value(json_object_get(m, "sweep"));
        pairs_addf(p, "member",
                   "%s trial %s%s%" JSON_INTEGER_FORMAT ", attempt %" JSON_INTEGER_FORMAT
                   ", seed %s, weight %.4g",
                   kind ? kind : "model", sweep ? sweep : "", sweep ? "/" : "",
                   json_integer_value(json_object_get(m, "trial")),
                   json_integer_value(json_object_get(m, "attempt")), seed ? seed : "?",
                   json_number_value(json_object_get(m, "weight")));
    }
}

static void add_version(struct pairs *p, const json_t *v, bool tty)
{
    AS_AUTO(str_done) struct str b = {0};
    const json_t *outputs = json_object_get(v, "outputs");
    const json_t *dataset = json_object_get(json_object_get(v, "lineage"), "dataset");
    pairs_add_json(p, "model", json_object_get(v, "model"));
    pairs_add_json(p, "version", json_object_get(v, "version"));
    models_format_aliases(&b, json_object_get(v, "aliases"));
    pairs_add(p, "aliases", STYLE_PLAIN, str_cstr(&b));
    pairs_add_json(p, "kind", json_object_get(v, "kind"));
    str_clear(&b);
    models_format_origin(&b, v);
    pairs_add(p, "from", STYLE_PLAIN, str_cstr(&b));
    pairs_add_json(p, "sweep", json_object_get(v, "sweep"));
    pairs_add_json(p, "data set", json_object_get(dataset, "name"));
    pairs_add_json(p, "its digest", json_object_get(dataset, "sha256"));
    if (json_object_get(json_object_get(v, "lineage"), "ensemble"))
        add_ensemble(p, json_object_get(json_object_get(v, "lineage"), "ensemble"));
    add_members(p, json_object_get(v, "members"));
    str_clear(&b);
    models_format_metrics(&b, v, tty);
    pairs_add(p, "metrics", STYLE_PLAIN, str_cstr(&b));
    pairs_add_json(p, "measured on", json_object_get(v, "measured_on"));
    pairs_add_json(p, "task", json_object_get(v, "task"));
    pairs_add_json(p, "target", json_object_get(outputs, "target"));
    add_texts(p, "classes", json_object_get(outputs, "classes"));
    add_texts(p, "targets", json_object_get(outputs, "targets"));
    pairs_add_json(p, "digest", json_object_get(v, "sha256"));
    pairs_add_json(p, "size", json_object_get(v, "size"));
    pairs_add_json(p, "added by", json_object_get(v, "created_by"));
    pairs_add_json(p, "created", json_object_get(v, "created_at"));
}

static void add_input(struct table *t, const json_t *input)
{
    AS_AUTO(str_done) struct str b = {0};
    list_texts(json_object_get(input, "values"), &b);
    list_texts(json_object_get(input, "shape"), &b);
    format_value(&b, json_object_get(input, "size"), FORMAT_EXACT);
    table_cell(t, json_string_value(json_object_get(input, "name")));
    table_cell(t, json_string_value(json_object_get(input, "kind")));
    table_cell(t, json_is_true(json_object_get(input, "missing")) ? "yes" : "no");
    table_cell(t, b.len ? str_cstr(&b) : NULL);
}

static as_status print_inputs(const struct session *s, const json_t *inputs, struct as_err *err)
{
    AS_AUTO(table_freep) struct table *t = table_create();
    size_t i;
    json_t *input;
    if (!t)
        return as_fail_nomem(err);
    table_column(t, "input", TABLE_LEFT, 8);
    table_column(t, "kind", TABLE_LEFT, 0);
    table_column(t, "may be missing", TABLE_LEFT, 0);
    table_column(t, "values", TABLE_LEFT, 20);
    json_array_foreach(inputs, i, input) add_input(t, input);
    return session_print_table(s, t, err);
}

static as_status show_version(const struct session *s, const struct model_ref *ref,
                              struct as_err *err)
{
    JSON_AUTO v = NULL;
    as_status st = models_get_version(s, ref, &v, err);
    if (st < 0)
        return st;
    if (s->json)
        return session_print_json(v, err);
    struct pairs p = {.terminal = s->terminal};
    add_version(&p, v, s->terminal.tty);
    st = pairs_print(&p, err);
    return st < 0 ? st : print_inputs(s, json_object_get(v, "inputs"), err);
}

/* ---- one model ---- */

static void add_row(const struct session *s, struct table *t, const json_t *v, int64_t now_ms)
{
    AS_AUTO(str_done) struct str b = {0};
    char buf[32];
    const json_t *created = json_object_get(v, "created_at");
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(v, "version")));
    models_format_aliases(&b, json_object_get(v, "aliases"));
    table_cell(t, b.len ? str_cstr(&b) : NULL);
    table_cell(t, json_string_value(json_object_get(v, "kind")));
    str_clear(&b);
    models_format_origin(&b, v);
    table_cell(t, str_cstr(&b));
    str_clear(&b);
    models_format_metrics(&b, v, s->terminal.tty);
    table_cell(t, b.len ? str_cstr(&b) : NULL);
    table_cell(t, s->terminal.tty ? format_ago(created, now_ms, buf) : json_string_value(created));
}

static as_status print_versions(const struct session *s, const json_t *versions, struct as_err *err)
{
    AS_AUTO(table_freep) struct table *t = table_create();
    size_t i;
    json_t *v;
    if (!t)
        return as_fail_nomem(err);
    table_column(t, "version", TABLE_RIGHT, 0);
    table_column(t, "aliases", TABLE_LEFT, 8);
    table_column(t, "kind", TABLE_LEFT, 0);
    table_column(t, "from", TABLE_LEFT, 12);
    table_column(t, "metrics", TABLE_LEFT, 16);
    table_column(t, "created", TABLE_LEFT, 8);
    json_array_foreach(versions, i, v) add_row(s, t, v, clock_wall_ms());
    return session_print_table(s, t, err);
}

static as_status print_model(const struct session *s, const json_t *model, const json_t *versions,
                             struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    struct pairs p = {.terminal = s->terminal};
    pairs_add_json(&p, "model", json_object_get(model, "name"));
    models_format_aliases(&b, json_object_get(model, "aliases"));
    pairs_add(&p, "aliases", STYLE_PLAIN, str_cstr(&b));
    pairs_add_json(&p, "the name alone is", json_object_get(model, "default_version"));
    pairs_add_json(&p, "changed", json_object_get(model, "changed_at"));
    as_status st = pairs_print(&p, err);
    return st < 0 ? st : print_versions(s, versions, err);
}

as_status models_show(const struct session *s, const struct model_ref *ref, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO model = NULL;
    JSON_AUTO versions = NULL;
    if (ref->has_version)
        return show_version(s, ref, err);
    version_path(&path, ref);
    as_status st = str_check(&path, err);
    if (st == AS_OK)
        st = request_one(s->client, "/v1/models", ref->name, &model, err);
    if (st == AS_OK)
        st = request_list(s->client, path.s, NULL, 0, &versions, err);
    if (st < 0)
        return st;
    if (!s->json)
        return print_model(s, model, versions, err);
    if (json_object_set(model, "items", versions) != 0)
        return as_fail_nomem(err);
    return session_print_json(model, err);
}
