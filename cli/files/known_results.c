/* Reads files of known results and checks them against the space of the sweep.
 *
 * The server would check each trial, too, but one at a time: an error in row 500 would leave 499
 * trials behind. So the whole file is checked here before the first request, with the same code as
 * the server's (search/space), and errors name the line of the file instead of a JSON pointer.
 *
 * Both formats end in add_trial(), which has the rules. CSV knows no types, so a cell is converted
 * by the parameter of its column: a categorical parameter compares the cell with its values. */
#include "cli/files/known_results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/formats/csv.h"
#include "base/json.h"
#include "base/yaml_reader.h"
#include "cli/files/param_args.h"
#include "cli/view/format.h"
#include "search/space/config.h"
#include "search/space/space.h"

/* The state while a file is read. */
struct reader {
    struct known_results *file;
    const json_t *sweep; /* borrowed */
    struct space *space; /* owned */
    const char *text;    /* borrowed */
    size_t len;
};

static void reader_done(struct reader *r)
{
    space_free(r->space);
}

void known_results_done(struct known_results *f)
{
    for (size_t i = 0; i < f->n; i++)
        json_decref(f->trials[i].body);
    free(f->trials);
    free(f->name);
    *f = (struct known_results){0};
}

/* Whether `name` is an objective or a constrained metric of the sweep. */
static bool is_metric(const json_t *sweep, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(sweep, "metrics"), i, item)
    {
        if (as_streq(json_string_value(json_object_get(item, "name")), name))
            return true;
    }
    json_array_foreach(json_object_get(sweep, "constraints"), i, item)
    {
        if (as_streq(json_string_value(json_object_get(item, "metric")), name))
            return true;
    }
    return false;
}

/* A file may omit constants, because a constant has only one value. */
static as_status add_constants(const struct space *space, json_t *params, struct as_err *err)
{
    for (size_t i = 0; i < space->n; i++) {
        const struct space_param *p = &space->params[i];
        if (p->n_values != 1 || p->n_conds > 0 || json_object_get(params, p->name))
            continue;
        if (json_object_set(params, p->name, json_array_get(p->values, 0)) != 0)
            return as_fail_nomem(err);
    }
    return AS_OK;
}

typedef enum row_kind { ROW_KNOWN, ROW_FAILED, ROW_ENQUEUED, ROW_SKIPPED } row_kind;

/* The kind of a row by its state; the states are those of the API. */
static as_status kind_of_state(const char *state, row_kind *ret, struct as_err *err)
{
    static const struct {
        const char *state;
        row_kind kind;
    } kinds[] = {
        {"completed", ROW_KNOWN}, {"failed", ROW_FAILED},   {"pruned", ROW_SKIPPED},
        {"queued", ROW_SKIPPED},  {"running", ROW_SKIPPED}, {"cancelled", ROW_SKIPPED},
        {"paused", ROW_SKIPPED},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(kinds); i++) {
        if (as_streq(kinds[i].state, state)) {
            *ret = kinds[i].kind;
            return AS_OK;
        }
    }
    return as_fail_at(err, AS_E_INVAL, "/state", "expected completed or failed, found '%.40s'",
                      state);
}

/* Every objective and constrained metric must be present. A value that is not finite makes the
 * trial a failed one. */
static as_status check_result(const json_t *sweep, const json_t *metrics, row_kind *kind,
                              struct as_err *err)
{
    static const char *const lists[][2] = {{"metrics", "name"}, {"constraints", "metric"}};
    for (size_t k = 0; k < AS_ARRAY_LEN(lists); k++) {
        size_t i;
        json_t *item;
        json_array_foreach(json_object_get(sweep, lists[k][0]), i, item)
        {
            const char *name = json_string_value(json_object_get(item, lists[k][1]));
            const json_t *v = name ? json_object_get(metrics, name) : NULL;
            double d;
            char pointer[AS_ERR_POINTER_MAX];
            json_pointer_child("/metrics", name ? name : "", pointer);
            if (!v)
                return as_fail_at(err, AS_E_INVAL, pointer,
                                  "expected a value of '%.60s' (NaN, or the state failed, for a "
                                  "trial that failed)",
                                  name ? name : "?");
            if (!json_number_get(v, &d))
                return as_fail_at(err, AS_E_INVAL, pointer, "expected a number, found %s",
                                  json_type_name(v));
            if (!isfinite(d))
                *kind = ROW_FAILED;
        }
    }
    return AS_OK;
}

static as_status check_allowed(const struct reader *r, const struct config *config,
                               struct as_err *err)
{
    int rule = space_violation(r->space, config);
    const json_t *document = json_object_get(r->sweep, "document");
    if (rule < 0)
        return AS_OK;
    size_t k = (size_t)rule, n = r->space->n_constraints;
    struct str text = {0};
    format_value(&text,
                 k < n ? json_array_get(json_object_get(document, "parameter_constraints"), k)
                       : json_array_get(json_object_get(document, "forbidden"), k - n),
                 FORMAT_EXACT);
    as_status st =
        as_fail(err, AS_E_INVAL, "%s %.200s",
                k < n ? "the parameters break the constraint" : "the combination is forbidden:",
                str_cstr(&text));
    str_done(&text);
    return st;
}

/* Check one trial and append it. `params` and `metrics` are borrowed. */
static as_status add_trial(struct reader *r, size_t place, json_t *params, json_t *metrics,
                           row_kind kind, const char *reason, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *config = NULL;
    as_status st = AS_OK;
    if (kind == ROW_SKIPPED) {
        r->file->n_skipped++;
        return AS_OK;
    }
    st = add_constants(r->space, params, err);
    if (st < 0)
        return st;
    st = config_from_json(r->space, params, "/params", &config, err);
    if (st < 0)
        return st;
    st = check_allowed(r, config, err);
    if (st < 0)
        return st;
    if (kind == ROW_KNOWN)
        st = check_result(r->sweep, metrics, &kind, err);
    if (st < 0)
        return st;
    JSON_AUTO body = json_pack("{s:O}", "params", params);
    int bad = body ? 0 : 1;
    if (!bad && kind == ROW_KNOWN)
        bad |= json_object_set(body, "metrics", metrics);
    if (!bad && kind == ROW_FAILED)
        bad |= json_object_set_new(body, "state", json_string("failed"));
    if (!bad && kind == ROW_FAILED && reason && *reason)
        bad |= json_object_set_new(body, "reason", json_string(reason));
    if (bad || as_reserve_one(&r->file->trials, r->file->n, &r->file->cap, sizeof *r->file->trials,
                              NULL) < 0)
        return as_fail_nomem(err);
    r->file->trials[r->file->n++] = (struct known_trial){.body = as_steal(body), .place = place};
    return AS_OK;
}

/* Reading CSV. */

typedef enum column_kind {
    COLUMN_PARAM,
    COLUMN_METRIC,
    COLUMN_STATE,
    COLUMN_REASON,
    COLUMN_PASSED
} column_kind;

struct column {
    column_kind kind;
    const char *name;                /* view of the CSV reader's header */
    const struct space_param *param; /* COLUMN_PARAM */
};

struct columns {
    struct column *at; /* owned */
    size_t n;
    bool has_result; /* there is a metric or a state column: rows are results */
};

static bool is_export_column(const char *name)
{
    static const char *const names[] = {
        "number",     "value",       "attempt",  "restarts", "runner",     "client", "origin",
        "seen",       "finish_seq",  "feasible", "index",    "created_at", "rank",   "trial",
        "started_at", "finished_at", "seed",     "step",     "time",       "shape",  "group",
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        if (as_streq(names[i], name))
            return true;
    return false;
}

static as_status fail_column(const struct reader *r, const char *name, struct as_err *err)
{
    struct str known = {0};
    for (size_t i = 0; i < r->space->n && known.len < 100; i++)
        str_printf(&known, "%s%s", known.len ? ", " : "", r->space->params[i].name);
    as_status st = as_fail(err, AS_E_INVAL,
                           "column '%.60s' is neither a parameter (%.110s) nor a metric of the "
                           "sweep; metric.NAME adds any metric",
                           name, str_cstr(&known));
    str_done(&known);
    return st;
}

static as_status find_column(const struct reader *r, const char *name, struct column *ret,
                             struct as_err *err)
{
    bool is_param = as_starts_with(name, "param."), is_other = as_starts_with(name, "metric.");
    const char *bare = name + (is_param ? 6 : is_other ? 7 : 0);
    int i = is_other ? -1 : space_find(r->space, bare);
    struct column c = {.kind = COLUMN_PASSED, .name = bare};
    bool both = i >= 0 && !is_param && is_metric(r->sweep, bare);
    if (both)
        return as_fail(err, AS_E_INVAL,
                       "column '%.60s' is a parameter and a metric: name it param.%.60s or "
                       "metric.%.60s",
                       name, bare, bare);
    if (i >= 0) {
        c.kind = COLUMN_PARAM;
        c.param = &r->space->params[i];
    } else if (is_other || is_metric(r->sweep, bare)) {
        c.kind = COLUMN_METRIC;
    } else if (as_streq(name, "state")) {
        c.kind = COLUMN_STATE;
    } else if (as_streq(name, "reason")) {
        c.kind = COLUMN_REASON;
    } else if (is_param || !is_export_column(name)) {
        return fail_column(r, name, err);
    }
    *ret = c;
    return AS_OK;
}

static void columns_done(struct columns *c)
{
    free(c->at);
}

/* Fill c->at, which has room for all columns of the file. */
static as_status read_columns(const struct reader *r, const struct csv *csv, struct columns *c,
                              struct as_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        struct column *column = &c->at[i];
        as_status st = find_column(r, csv_column_name(csv, i), column, err);
        if (st < 0)
            return st;
        for (size_t k = 0; k < i; k++)
            if (c->at[k].kind == column->kind && column->kind != COLUMN_PASSED &&
                as_streq(c->at[k].name, column->name))
                return as_fail(err, AS_E_INVAL, "column '%.60s' is given twice", column->name);
        c->has_result =
            c->has_result || column->kind == COLUMN_METRIC || column->kind == COLUMN_STATE;
    }
    return AS_OK;
}

/* *ret must be zeroed; the caller frees it with columns_done(), also on failure. */
static as_status find_columns(const struct reader *r, const struct csv *csv, struct columns *ret,
                              struct as_err *err)
{
    ret->n = csv_columns(csv);
    ret->at = as_calloc(ret->n, sizeof *ret->at);
    as_status st = ret->at ? read_columns(r, csv, ret, err) : as_fail_nomem(err);
    return st < 0 ? as_err_prefix(err, st, "%s:1", r->file->name) : AS_OK;
}

/* The value of a categorical parameter that equals the cell, as text or as number. New reference;
 * NULL: none. */
static json_t *choice_of(const struct space_param *p, const struct csv_cell *cell)
{
    double number, value;
    bool is_number = csv_cell_kind(cell, &number) == CSV_NUMBER;
    /* `assay export` puts a ' before a text that a spreadsheet would take for a formula. */
    const char *bare = cell->s[0] == '\'' ? cell->s + 1 : cell->s;
    for (size_t i = 0; i < p->n_values; i++) {
        json_t *v = json_array_get(p->values, i);
        struct str text = {0};
        format_param(&text, v, FORMAT_EXACT);
        bool same =
            as_streq(str_cstr(&text), cell->s) || as_streq(str_cstr(&text), bare) ||
            (is_number && json_is_number(v) && json_number_get(v, &value) && value == number);
        str_done(&text);
        if (same)
            return json_incref(v);
    }
    return NULL;
}

static as_status put_param(const struct column *c, const struct csv_cell *cell, json_t *params,
                           struct as_err *err)
{
    int64_t whole;
    double real;
    json_t *v = NULL;
    if (cell->len == 0)
        return AS_OK; /* the parameter is not active in this trial */
    if (c->param->n_values > 0)
        v = choice_of(c->param, cell);
    else if (as_parse_i64(cell->s, &whole, NULL) == AS_OK)
        v = json_integer(whole);
    else if (csv_cell_kind(cell, &real) == CSV_NUMBER)
        v = json_real(real);
    if (!v)
        return as_fail(err, AS_E_INVAL, "column '%.60s': expected %s, found '%.60s'", c->name,
                       c->param->n_values > 0 ? "one of its values" : "a number", cell->s);
    return json_object_set_new(params, c->name, v) == 0 ? AS_OK : as_fail_nomem(err);
}

static as_status put_metric(const struct column *c, const struct csv_cell *cell, json_t *metrics,
                            struct as_err *err)
{
    double v;
    if (cell->len == 0)
        return AS_OK;
    if (!param_args_number(cell->s, &v))
        return as_fail(err, AS_E_INVAL, "column '%.60s': expected a number (or NaN), found '%.60s'",
                       c->name, cell->s);
    return json_object_set_new(metrics, c->name, json_number_new(v)) == 0 ? AS_OK
                                                                          : as_fail_nomem(err);
}

static as_status read_row(struct reader *r, const struct columns *columns,
                          const struct csv_row *row, struct as_err *err)
{
    JSON_AUTO params = json_object();
    JSON_AUTO metrics = json_object();
    row_kind kind = columns->has_result ? ROW_KNOWN : ROW_ENQUEUED;
    const char *reason = NULL;
    if (!params || !metrics)
        return as_fail_nomem(err);
    for (size_t i = 0; i < columns->n; i++) {
        as_status st = AS_OK;
        const struct column *c = &columns->at[i];
        const struct csv_cell *cell = &row->cells[i];
        if (c->kind == COLUMN_PARAM)
            st = put_param(c, cell, params, err);
        else if (c->kind == COLUMN_METRIC)
            st = put_metric(c, cell, metrics, err);
        else if (c->kind == COLUMN_STATE && cell->len > 0)
            st = kind_of_state(cell->s, &kind, err);
        else if (c->kind == COLUMN_REASON)
            reason = cell->s;
        if (st < 0)
            return st;
    }
    return add_trial(r, row->line, params, metrics, kind, reason, err);
}

/* Put "FILE:LINE: column 'lr': " before an error about a row. The column comes from the pointer. */
static as_status explain_row(const char *name, size_t line, as_status st, struct as_err *err)
{
    char column[80] = "";
    const char *last = err && err->pointer[0] ? strrchr(err->pointer, '/') : NULL;
    if (last && !as_starts_with(err->msg, "column "))
        (void)snprintf(column, sizeof column, ": column '%.60s'", last + 1);
    if (err)
        err->pointer[0] = 0;
    return as_err_prefix(err, st, "%s:%zu%s", name, line, column);
}

static as_status read_rows(struct reader *r, struct csv *csv, const struct columns *columns,
                           struct as_err *err)
{
    for (;;) {
        struct csv_row row;
        as_status st = csv_next(csv, &row, err);
        if (st == AS_E_EXHAUSTED)
            return AS_OK;
        if (st < 0)
            return as_err_prefix(err, st, "%s", r->file->name);
        st = read_row(r, columns, &row, err);
        if (st < 0)
            return explain_row(r->file->name, row.line, st, err);
    }
}

static as_status read_csv(struct reader *r, struct as_err *err)
{
    AS_AUTO(csv_freep) struct csv *csv = NULL;
    AS_AUTO(columns_done) struct columns columns = {0};
    as_status st = csv_open_bytes(r->text, r->len, CSV_HEADER_YES, &csv, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s", r->file->name);
    st = find_columns(r, csv, &columns, err);
    if (st < 0)
        return st;
    return read_rows(r, csv, &columns, err);
}

/* Reading JSON. */

static as_status read_item(struct reader *r, size_t i, json_t *item, struct as_err *err)
{
    struct json_fields f;
    json_t *given = NULL, *metrics = NULL;
    const char *state = NULL, *reason = NULL;
    as_status st = json_fields_init(&f, item, "", err);
    if (st < 0)
        return st;
    st = json_fields_object(&f, "params", JSON_REQUIRED, &given, err);
    if (st < 0)
        return st;
    st = json_fields_object(&f, "metrics", JSON_OPTIONAL, &metrics, err);
    if (st < 0)
        return st;
    st = json_fields_str(&f, "state", JSON_OPTIONAL, &state, err);
    if (st < 0)
        return st;
    st = json_fields_str(&f, "reason", JSON_OPTIONAL, &reason, err);
    if (st < 0)
        return st;
    row_kind kind = json_object_size(metrics) > 0 ? ROW_KNOWN : ROW_ENQUEUED;
    if (state)
        st = kind_of_state(state, &kind, err);
    if (st < 0)
        return st;
    JSON_AUTO params = json_copy(given);
    if (!params)
        return as_fail_nomem(err);
    return add_trial(r, i, params, metrics, kind, reason, err);
}

/* Put "FILE:LINE:COLUMN: item 3: /params/lr: " before an error about item i. */
static as_status explain_item(const struct reader *r, const char *list, size_t i, as_status st,
                              struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX + 64], place[AS_ERR_POINTER_MAX + 64] = "", field[140] = "";
    size_t line, column;
    if (!err)
        return st;
    (void)snprintf(pointer, sizeof pointer, "%s/%zu%s", list, i, err->pointer);
    if (err->pointer[0] && !strstr(err->msg, err->pointer))
        (void)snprintf(field, sizeof field, ": %s", err->pointer);
    if (yaml_locate(r->text, r->len, pointer, &line, &column, NULL) == AS_OK)
        (void)snprintf(place, sizeof place, ":%zu:%zu", line, column);
    err->pointer[0] = 0;
    return as_err_prefix(err, st, "%s%s: item %zu%s", r->file->name, place, i, field);
}

static as_status read_json(struct reader *r, struct as_err *err)
{
    JSON_AUTO tree = NULL;
    size_t i;
    json_t *item;
    as_status st = json_parse_file(r->text, r->len, &tree, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s", r->file->name);
    bool is_list = json_is_array(tree);
    json_t *items = is_list ? tree : json_object_get(tree, "items");
    if (!json_is_array(items))
        return as_fail(err, AS_E_INVAL, "%s: expected a list of trials, or {\"items\": […]}",
                       r->file->name);
    json_array_foreach(items, i, item)
    {
        st = read_item(r, i, item, err);
        if (st < 0)
            return explain_item(r, is_list ? "" : "/items", i, st, err);
    }
    return AS_OK;
}

/* *ret is owned by the caller, also on failure. */
static as_status read_space(const json_t *document, struct space **ret, struct as_err *err)
{
    as_status st = space_parse(json_object_get(document, "parameters"), "/parameters", ret, err);
    if (st < 0)
        return st;
    st = space_parse_constraints(*ret, json_object_get(document, "parameter_constraints"),
                                 "/parameter_constraints", err);
    if (st < 0)
        return st;
    return space_parse_forbidden(*ret, json_object_get(document, "forbidden"), "/forbidden", err);
}

as_status known_results_parse(const char *name, const char *text, size_t len, const json_t *sweep,
                              struct known_results *ret, struct as_err *err)
{
    AS_AUTO(known_results_done)
    struct known_results f = {.name = as_strdup(name), .is_csv = !as_ends_with(name, ".json")};
    AS_AUTO(reader_done)
    struct reader r = {.file = &f, .sweep = sweep, .text = text, .len = len};
    if (!f.name)
        return as_fail_nomem(err);
    as_status st = read_space(json_object_get(sweep, "document"), &r.space, err);
    if (st < 0)
        return st;
    st = f.is_csv ? read_csv(&r, err) : read_json(&r, err);
    if (st < 0)
        return st;
    *ret = f;
    f = (struct known_results){0};
    return AS_OK;
}

as_status known_results_read(const char *path, const json_t *sweep, struct known_results *ret,
                             struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len;
    as_status st = file_read_input(path, KNOWN_RESULTS_MAX_BYTES, &text, &len, err);
    return st < 0 ? st : known_results_parse(path, text, len, sweep, ret, err);
}

as_status known_results_explain(const struct known_results *f, size_t i, as_status st,
                                struct as_err *err)
{
    return f->is_csv ? explain_row(f->name, f->trials[i].place, st, err)
                     : as_err_prefix(err, st, "%s: item %zu", f->name, f->trials[i].place);
}
