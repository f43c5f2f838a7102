/* Columns grow together, by a half, so adding a trial costs the same however many there are. The
 * words of a dict stay when no row has them any more; a file of changes has the words of its own
 * rows alone. Parameters and metrics stand in the same order in each row, so the column after the
 * last one that was found is looked at first. */
#include "scheduler/services/sweep_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_reader.h"
#include "scheduler/services/sweep_table_priv.h"

enum {
    C_NUMBER,
    C_STATE,
    C_ORIGIN,
    C_ATTEMPT,
    C_RESTARTS,
    C_VALUE,
    C_STEP,
    C_INFEASIBLE,
    C_RUNG,
    C_DECISION,
    C_CREATED,
    C_STARTED,
    C_ENDED,
    C_RAN,
    C_RUNNING_SINCE,
    C_RUNNER,
    C_CLIENT,
    C_GROUP,
    C_REASON,
    C_TAGS,
    C_PARENT,
    C_FORK_STEP,
    FIXED
};

static const struct fixed {
    const char *name;
    columnar_type type;
    bool is_exact;
} fixed[FIXED] = {
    [C_NUMBER] = {"number", COLUMNAR_U32, true},
    [C_STATE] = {"state", COLUMNAR_DICT, true},
    [C_ORIGIN] = {"origin", COLUMNAR_DICT, true},
    [C_ATTEMPT] = {"attempt", COLUMNAR_U32, true},
    [C_RESTARTS] = {"restarts", COLUMNAR_U32, true},
    [C_VALUE] = {"value", COLUMNAR_F64, false},
    [C_STEP] = {"step", COLUMNAR_F64, false},
    [C_INFEASIBLE] = {"infeasible", COLUMNAR_U8, true},
    [C_RUNG] = {"rung", COLUMNAR_U32, true},
    [C_DECISION] = {"decision", COLUMNAR_DICT, true},
    [C_CREATED] = {"created_at", COLUMNAR_F64, true},
    [C_STARTED] = {"started_at", COLUMNAR_F64, true},
    [C_ENDED] = {"ended_at", COLUMNAR_F64, true},
    [C_RAN] = {"ran_ms", COLUMNAR_F64, true},
    [C_RUNNING_SINCE] = {"running_since", COLUMNAR_F64, true},
    [C_RUNNER] = {"runner", COLUMNAR_DICT, true},
    [C_CLIENT] = {"client", COLUMNAR_DICT, true},
    [C_GROUP] = {"group", COLUMNAR_DICT, true},
    [C_REASON] = {"reason", COLUMNAR_DICT, true},
    [C_TAGS] = {"tags", COLUMNAR_DICT, true},
    [C_PARENT] = {"parent", COLUMNAR_F64, true},
    [C_FORK_STEP] = {"fork_step", COLUMNAR_F64, false},
};

/* ---- columns ---- */

static void clear_cells(struct table_column *c, size_t from, size_t to)
{
    size_t size = columnar_type_size(c->type);
    if (!c->values)
        return;
    if (c->type == COLUMNAR_F64)
        for (size_t i = from; i < to; i++)
            ((double *)c->values)[i] = NAN;
    else
        memset((char *)c->values + from * size, c->type == COLUMNAR_DICT ? 0xff : 0,
               (to - from) * size);
}

static as_status add_column(struct sweep_table *t, const char *prefix, const char *name,
                            columnar_type type, bool is_exact, struct as_err *err)
{
    AS_AUTO(str_done) struct str full = {0};
    as_status st =
        as_reserve_one(&t->columns, t->n_columns, &t->cap_columns, sizeof *t->columns, err);
    if (st != AS_OK)
        return st;
    struct table_column c = {.type = type, .is_exact = is_exact};
    str_puts(&full, prefix);
    str_puts(&full, name);
    c.values = as_calloc(t->cap + 1, columnar_type_size(type));
    c.name = str_take(&full);
    if (!c.values || !c.name) {
        free(c.values);
        free(c.name);
        return as_fail_nomem(err);
    }
    clear_cells(&c, 0, t->cap);
    t->columns[t->n_columns++] = c;
    return AS_OK;
}

static bool has_numbers_only(const struct space_param *p)
{
    for (size_t i = 0; i < p->n_values; i++)
        if (!json_is_number(json_array_get(p->values, i)))
            return false;
    return true;
}

/* Most methods predict nothing: these columns have values when the first prediction comes. */
static as_status add_predicted(struct sweep_table *t, const char *prefix, const char *name,
                               struct as_err *err)
{
    as_status st = add_column(t, prefix, name, COLUMNAR_F64, false, err);
    if (st != AS_OK)
        return st;
    struct table_column *c = &t->columns[t->n_columns - 1];
    free(c->values);
    c->values = NULL;
    t->n_predicted++;
    return AS_OK;
}

static as_status add_objectives(struct sweep_table *t, const struct sweep_doc *doc,
                                struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < doc->n_objectives && st == AS_OK; i++) {
        const char *name = doc->objectives[i].name;
        st = add_predicted(t, PREDICTED, name, err);
        if (st == AS_OK)
            st = add_predicted(t, DEVIATION, name, err);
    }
    return st;
}

as_status sweep_table_create(const struct sweep_doc *doc, struct sweep_table **ret,
                             struct as_err *err)
{
    const struct space *s = doc->space;
    AS_AUTO(sweep_table_freep) struct sweep_table *t = as_calloc(1, sizeof *t);
    as_status st = t ? AS_OK : as_fail_nomem(err);
    for (size_t i = 0; i < FIXED && st == AS_OK; i++)
        st = add_column(t, "", fixed[i].name, fixed[i].type, fixed[i].is_exact, err);
    for (size_t i = 0; i < s->n && st == AS_OK; i++)
        st = add_column(t, PARAM, s->params[i].name,
                        has_numbers_only(&s->params[i]) ? COLUMNAR_F64 : COLUMNAR_DICT, false, err);
    if (st == AS_OK)
        st = add_objectives(t, doc, err);
    if (st != AS_OK)
        return st;
    t->n_params = s->n;
    *ret = as_steal(t);
    return AS_OK;
}

void sweep_table_free(struct sweep_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_columns; i++) {
        free(t->columns[i].name);
        free(t->columns[i].values);
        column_words_done(&t->columns[i].words);
    }
    free(t->columns);
    free(t->changed);
    free(t);
}

size_t sweep_table_rows(const struct sweep_table *t)
{
    return t->n;
}

size_t sweep_table_bytes(const struct sweep_table *t)
{
    size_t n = sizeof *t + t->cap * sizeof *t->changed;
    for (size_t i = 0; i < t->n_columns; i++)
        n += sizeof *t->columns + t->columns[i].words.bytes +
             (t->columns[i].values ? t->cap * columnar_type_size(t->columns[i].type) : 0);
    return n;
}

size_t sweep_table_changed(const struct sweep_table *t, int64_t since)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->changed[i] > since;
    return n;
}

/* ---- rows ---- */

static as_status grow(struct sweep_table *t, struct as_err *err)
{
    if (t->n < t->cap)
        return AS_OK;
    size_t cap = t->cap + t->cap / 2 + 256;
    as_status st = as_grow(&t->changed, cap, sizeof *t->changed, err);
    for (size_t i = 0; i < t->n_columns && st == AS_OK; i++) {
        struct table_column *c = &t->columns[i];
        if (!c->values)
            continue;
        st = as_grow(&c->values, cap + 1, columnar_type_size(c->type), err);
        if (st == AS_OK)
            clear_cells(c, t->cap, cap);
    }
    if (st == AS_OK)
        t->cap = cap;
    return st;
}

static void put_u32(struct sweep_table *t, size_t row, size_t column, int64_t v)
{
    ((uint32_t *)t->columns[column].values)[row] = (uint32_t)v;
}

static void put_f64(struct sweep_table *t, size_t row, size_t column, bool has, double v)
{
    ((double *)t->columns[column].values)[row] = has ? v : NAN;
}

/* NULL: no word. */
static as_status put_word(struct sweep_table *t, size_t row, size_t column, const char *word,
                          struct as_err *err)
{
    struct table_column *c = &t->columns[column];
    uint32_t *cell = (uint32_t *)c->values + row;
    *cell = COLUMNAR_NO_WORD;
    return word ? column_words_add(&c->words, word, strlen(word), cell, err) : AS_OK;
}

/* ---- parameters and metrics ---- */

/* NaN and the infinities are texts in JSON. */
static bool number_of_text(struct json_text text, double *ret)
{
    static const struct {
        const char *word;
        double value;
    } numbers[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    for (size_t i = 0; i < AS_ARRAY_LEN(numbers); i++) {
        if (strlen(numbers[i].word) == text.len && memcmp(numbers[i].word, text.s, text.len) == 0) {
            *ret = numbers[i].value;
            return true;
        }
    }
    return false;
}

static void put_number(struct sweep_table *t, size_t row, size_t column, struct json_reader *r)
{
    struct json_text text;
    double number = 0;
    char next = json_reader_peek(r);
    bool has = false;
    if (next == '0' || next == '-')
        has = json_reader_number(r, "a value", &number);
    else if (next == '"')
        has = json_reader_text(r, "a value", &text) && number_of_text(text, &number);
    else
        (void)json_reader_skip(r);
    put_f64(t, row, column, has, number);
}

/* A value that is no text, as JSON writes it. */
static as_status put_value(struct sweep_table *t, size_t row, size_t column, const char *text,
                           size_t len, struct as_err *err)
{
    JSON_AUTO v = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    AS_AUTO(as_freep) char *word = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    return word ? put_word(t, row, column, word, err) : as_fail_nomem(err);
}

static as_status put_dict(struct sweep_table *t, size_t row, size_t column, struct json_reader *r,
                          struct as_err *err)
{
    struct table_column *c = &t->columns[column];
    struct json_text text;
    bool is_text = json_reader_peek(r) == '"'; /* and no white space is left before the value */
    const char *from = r->at;
    if (is_text && json_reader_text(r, "a value", &text))
        return column_words_add(&c->words, text.s, text.len, (uint32_t *)c->values + row, err);
    if (is_text || !json_reader_skip(r))
        return AS_OK; /* a fault, which the reader keeps */
    return put_value(t, row, column, from, (size_t)(r->at - from), err);
}

/* The column prefix + name in [from, to), or `to`. *guess is looked at first, and becomes the one
 * after it. */
static size_t find_column(const struct sweep_table *t, const char *prefix, struct json_text name,
                          size_t from, size_t to, size_t *guess)
{
    size_t skip = strlen(prefix);
    for (size_t i = 0; i < to - from; i++) {
        size_t at = from + (*guess - from + i) % (to - from);
        const char *there = t->columns[at].name + skip;
        if (strncmp(there, name.s, name.len) == 0 && there[name.len] == '\0') {
            *guess = at + 1 < to ? at + 1 : from;
            return at;
        }
    }
    return to;
}

static as_status put_params(struct sweep_table *t, size_t row, struct json_reader *r,
                            struct as_err *err)
{
    const size_t to = FIXED + t->n_params;
    size_t guess = FIXED;
    struct json_text name;
    bool is_first = true;
    as_status st = AS_OK;
    (void)json_reader_enter(r, '{', "parameters");
    while (st == AS_OK && json_reader_key(r, &is_first, &name)) {
        size_t at = find_column(t, PARAM, name, FIXED, to, &guess);
        if (at == to)
            (void)json_reader_skip(r);
        else if (t->columns[at].type == COLUMNAR_F64)
            put_number(t, row, at, r);
        else
            st = put_dict(t, row, at, r, err);
    }
    return st == AS_OK ? json_reader_end(r, err) : st;
}

static as_status add_metric(struct sweep_table *t, struct json_text name, struct as_err *err)
{
    AS_AUTO(str_done) struct str copy = {0};
    str_add(&copy, name.s, name.len);
    as_status st = str_check(&copy, err);
    return st == AS_OK ? add_column(t, METRIC, str_cstr(&copy), COLUMNAR_F64, false, err) : st;
}

static as_status put_metrics(struct sweep_table *t, size_t row, struct json_reader *r,
                             struct as_err *err)
{
    const size_t from = FIXED + t->n_params + t->n_predicted;
    size_t guess = from;
    struct json_text name;
    bool is_first = true;
    as_status st = AS_OK;
    (void)json_reader_enter(r, '{', "metrics");
    while (st == AS_OK && json_reader_key(r, &is_first, &name)) {
        size_t at = find_column(t, METRIC, name, from, t->n_columns, &guess);
        bool is_new = at == t->n_columns;
        if (is_new && t->n_columns - from == SWEEP_TABLE_METRICS) {
            (void)json_reader_skip(r);
            continue;
        }
        if (is_new)
            st = add_metric(t, name, err);
        if (st == AS_OK)
            put_number(t, row, at, r);
    }
    return st == AS_OK ? json_reader_end(r, err) : st;
}

static bool is_key(struct json_text key, const char *word)
{
    return strlen(word) == key.len && memcmp(word, key.s, key.len) == 0;
}

/* {"mean", "deviation"} into the two columns that begin there. */
static as_status put_prediction(struct sweep_table *t, size_t row, size_t column,
                                struct json_reader *r, struct as_err *err)
{
    struct json_text key;
    bool is_first = true;
    for (size_t i = column; i < column + 2; i++) {
        struct table_column *c = &t->columns[i];
        if (c->values)
            continue;
        c->values = as_calloc(t->cap + 1, columnar_type_size(c->type));
        if (!c->values)
            return as_fail_nomem(err);
        clear_cells(c, 0, t->cap);
    }
    (void)json_reader_enter(r, '{', "a prediction");
    while (json_reader_key(r, &is_first, &key)) {
        if (is_key(key, "mean"))
            put_number(t, row, column, r);
        else if (is_key(key, "deviation"))
            put_number(t, row, column + 1, r);
        else
            (void)json_reader_skip(r);
    }
    return AS_OK; /* the reader keeps a fault */
}

/* A prediction, or one of each objective. */
static as_status put_predicted(struct sweep_table *t, size_t row, struct json_reader *r,
                               struct as_err *err)
{
    size_t at = FIXED + t->n_params;
    const size_t to = at + t->n_predicted;
    bool is_first = true;
    as_status st = AS_OK;
    if (json_reader_peek(r) == '{')
        st = put_prediction(t, row, at, r, err);
    else if (json_reader_peek(r) != '[')
        (void)json_reader_skip(r);
    else if (json_reader_enter(r, '[', "predictions"))
        for (; st == AS_OK && json_reader_more(r, &is_first); at += 2) {
            if (at < to)
                st = put_prediction(t, row, at, r, err);
            else
                (void)json_reader_skip(r);
        }
    return st == AS_OK ? json_reader_end(r, err) : st;
}

/* Read one text of a row by `put`. */
static as_status put_object(struct sweep_table *t, size_t row, const char *text,
                            as_status (*put)(struct sweep_table *t, size_t row,
                                             struct json_reader *r, struct as_err *err),
                            struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0}; /* for texts with escapes alone */
    struct json_reader r;
    json_reader_init(&r, text, strlen(text), &a);
    return put(t, row, &r, err);
}

/* ---- rows of trials ---- */

static as_status put_texts(struct sweep_table *t, size_t row, const struct table_row *r,
                           struct as_err *err)
{
    const struct {
        size_t column;
        const char *word;
    } cells[] = {{C_STATE, trial_state_format(r->state)},
                 {C_ORIGIN, r->origin},
                 {C_DECISION, r->decision},
                 {C_RUNNER, r->runner},
                 {C_CLIENT, r->client},
                 {C_GROUP, r->group},
                 {C_REASON, r->reason},
                 {C_TAGS, r->tags}};
    as_status st = AS_OK;
    for (size_t i = 0; i < AS_ARRAY_LEN(cells) && st == AS_OK; i++)
        st = put_word(t, row, cells[i].column, cells[i].word, err);
    return st;
}

static as_status put_row(struct sweep_table *t, size_t row, const struct table_row *r,
                         struct as_err *err)
{
    for (size_t i = 0; i < t->n_columns; i++)
        clear_cells(&t->columns[i], row, row + 1);
    put_u32(t, row, C_NUMBER, r->number);
    put_u32(t, row, C_ATTEMPT, r->attempt);
    put_u32(t, row, C_RESTARTS, r->restarts);
    put_u32(t, row, C_RUNG, r->rungs);
    put_f64(t, row, C_VALUE, r->has_value, r->value);
    put_f64(t, row, C_STEP, r->has_step, (double)r->step);
    put_f64(t, row, C_PARENT, r->parent >= 0, (double)r->parent);
    put_f64(t, row, C_FORK_STEP, r->fork_step >= 0, (double)r->fork_step);
    put_f64(t, row, C_CREATED, true, (double)r->created_ms);
    put_f64(t, row, C_STARTED, r->started_ms != 0, (double)r->started_ms);
    put_f64(t, row, C_ENDED, r->finished_ms != 0, (double)r->finished_ms);
    put_f64(t, row, C_RAN, r->ran_ms >= 0, (double)r->ran_ms);
    put_f64(t, row, C_RUNNING_SINCE, r->running_since_ms != 0, (double)r->running_since_ms);
    ((uint8_t *)t->columns[C_INFEASIBLE].values)[row] = r->infeasible;
    as_status st = put_texts(t, row, r, err);
    if (st == AS_OK)
        st = put_object(t, row, r->params, put_params, err);
    if (st == AS_OK)
        st = put_object(t, row, r->metrics, put_metrics, err);
    if (st == AS_OK && r->predicted)
        st = put_object(t, row, r->predicted, put_predicted, err);
    if (st != AS_OK && st != AS_E_NOMEM)
        return as_err_prefix(err, AS_E_INTERNAL, "trial %lld", (long long)r->number);
    return st;
}

as_status sweep_table_put(struct sweep_table *t, const struct table_row *row, struct as_err *err)
{
    if (row->number < 0 || row->number > (int64_t)t->n)
        return as_fail(err, AS_E_INTERNAL, "trial %zu is missing", t->n);
    size_t at = (size_t)row->number;
    as_status st = at == t->n ? grow(t, err) : AS_OK;
    if (st == AS_OK)
        st = put_row(t, at, row, err);
    if (st == AS_OK && at == t->n)
        t->changed[t->n++] = 0;
    return st;
}

void sweep_table_mark(struct sweep_table *t, int64_t number, int64_t event)
{
    if (number >= 0 && number < (int64_t)t->n && t->changed[number] < event)
        t->changed[number] = event;
}
