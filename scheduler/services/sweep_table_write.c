/* The file of a table of trials: which columns and rows it has. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/metric_name.h"
#include "scheduler/services/sweep_table_priv.h"

/* What a file is made of. */
struct writing {
    const struct sweep_table *t;
    const struct table_part *part;
    struct arena *a;
    size_t *rows; /* the rows of a part; NULL: all */
    size_t n_rows;
    struct columnar_column *columns;
    size_t n_columns;
};

/* The values of the rows, without copying if they are all. */
static const void *pick_values(const struct writing *w, const struct table_column *c)
{
    size_t size = columnar_type_size(c->type);
    if (!w->rows)
        return c->values;
    char *values = arena_alloc(w->a, w->n_rows + 1, size);
    for (size_t i = 0; values && i < w->n_rows; i++)
        memcpy(values + i * size, (const char *)c->values + w->rows[i] * size, size);
    return values;
}

static as_status narrow_values(const struct writing *w, struct columnar_column *c,
                               struct as_err *err)
{
    const double *wide = c->values;
    float *narrow = arena_alloc(w->a, w->n_rows + 1, sizeof *narrow);
    if (!narrow)
        return as_fail_nomem(err);
    for (size_t i = 0; i < w->n_rows; i++)
        narrow[i] = (float)wide[i];
    c->type = COLUMNAR_F32;
    c->values = narrow;
    return AS_OK;
}

static as_status put_column(struct writing *w, const struct table_column *c, struct as_err *err)
{
    struct columnar_column *out = &w->columns[w->n_columns];
    *out = (struct columnar_column){.name = c->name, .type = c->type, .values = pick_values(w, c)};
    as_status st = out->values ? AS_OK : as_fail_nomem(err);
    if (st == AS_OK && c->type == COLUMNAR_F64 && w->part->is_single && !c->is_exact)
        st = narrow_values(w, out, err);
    if (st == AS_OK && c->type == COLUMNAR_DICT && w->rows)
        st = column_words_pick(&c->words, (uint32_t *)out->values, w->n_rows, w->a, &out->words,
                               &out->n_words, err); /* of a copy by pick_values() */
    if (c->type == COLUMNAR_DICT && !w->rows) {
        out->words = (const char *const *)c->words.list;
        out->n_words = c->words.n;
    }
    if (st == AS_OK)
        w->n_columns++;
    return st;
}

/* A metric that no trial has reported, or a prediction that none has. */
static as_status put_empty(struct writing *w, const char *name, struct as_err *err)
{
    double *values = arena_alloc(w->a, w->n_rows + 1, sizeof *values);
    if (!values)
        return as_fail_nomem(err);
    for (size_t i = 0; i < w->n_rows; i++)
        values[i] = NAN;
    struct columnar_column *out = &w->columns[w->n_columns++];
    *out = (struct columnar_column){.name = name, .type = COLUMNAR_F64, .values = values};
    return w->part->is_single ? narrow_values(w, out, err) : AS_OK;
}

static const struct table_column *column_named(const struct sweep_table *t, const char *name)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return &t->columns[i];
    return NULL;
}

/* Cut the next name off a list; NULL at its end. */
static char *next_name(char **list)
{
    char *name = *list;
    if (!name)
        return NULL;
    char *comma = strchr(name, ',');
    *list = comma ? comma + 1 : NULL;
    if (comma)
        *comma = '\0';
    return name;
}

static as_status check_name(const struct sweep_table *t, const char *name, struct as_err *err)
{
    if (column_named(t, name) ||
        (as_starts_with(name, METRIC) && metric_name_valid(name + strlen(METRIC))))
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "columns: there is no column '%.80s', expected number, state, origin, attempt, "
                   "restarts, value, step, infeasible, rung, decision, created_at, started_at, "
                   "ended_at, runner, client, group, reason, tags, parent, fork_step, param:NAME, "
                   "metric:NAME, or predicted:NAME or deviation:NAME of an objective",
                   name);
}

as_status sweep_table_check(const struct sweep_table *t, const char *columns, struct as_err *err)
{
    AS_AUTO(as_freep) char *copy = as_strdup(columns);
    if (columns && strlen(columns) > SWEEP_TABLE_NAMES)
        return as_fail(err, AS_E_INVAL, "columns: the list has %zu bytes, expected at most %d",
                       strlen(columns), SWEEP_TABLE_NAMES);
    if (columns && !copy)
        return as_fail_nomem(err);
    as_status st = AS_OK;
    char *rest = copy;
    for (char *name = next_name(&rest); name && st == AS_OK; name = next_name(&rest))
        st = check_name(t, name, err);
    return st;
}

static bool is_written(const struct writing *w, const char *name)
{
    for (size_t i = 0; i < w->n_columns; i++)
        if (strcmp(w->columns[i].name, name) == 0)
            return true;
    return false;
}

static as_status put_all(struct writing *w, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < w->t->n_columns && st == AS_OK; i++)
        if (w->t->columns[i].values)
            st = put_column(w, &w->t->columns[i], err);
    return st;
}

static as_status put_named(struct writing *w, struct as_err *err)
{
    char *rest = arena_strdup(w->a, w->part->columns);
    if (!rest)
        return as_fail_nomem(err);
    as_status st = put_column(w, &w->t->columns[0], err);
    for (char *name = next_name(&rest); name && st == AS_OK; name = next_name(&rest)) {
        const struct table_column *c = column_named(w->t, name);
        if (is_written(w, name))
            continue;
        st = c && c->values ? put_column(w, c, err) : put_empty(w, name, err);
    }
    return st;
}

static as_status choose_rows(struct writing *w, struct as_err *err)
{
    w->n_rows = w->t->n;
    if (w->part->is_whole)
        return AS_OK;
    w->rows = arena_alloc(w->a, w->t->n + 1, sizeof *w->rows);
    if (!w->rows)
        return as_fail_nomem(err);
    w->n_rows = 0;
    for (size_t i = 0; i < w->t->n; i++)
        if (w->t->changed[i] > w->part->since)
            w->rows[w->n_rows++] = i;
    return AS_OK;
}

as_status sweep_table_write(const struct sweep_table *t, const struct table_part *part,
                            struct str *ret, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct writing w = {.t = t, .part = part, .a = &a};
    char version[24];
    as_status st = sweep_table_check(t, part->columns, err);
    if (st == AS_OK)
        st = choose_rows(&w, err);
    if (st != AS_OK)
        return st;
    /* every name of the list takes two bytes of it */
    w.columns = arena_alloc(&a, t->n_columns + (part->columns ? strlen(part->columns) : 0) + 1,
                            sizeof *w.columns);
    if (!w.columns)
        return as_fail_nomem(err);
    st = part->columns ? put_named(&w, err) : put_all(&w, err);
    if (st != AS_OK)
        return st;
    (void)snprintf(version, sizeof version, "%lld", (long long)part->version);
    const struct columnar f = {.n_rows = w.n_rows,
                               .version = version,
                               .is_whole = part->is_whole,
                               .columns = w.columns,
                               .n_columns = w.n_columns,
                               .is_planar = part->is_planar};
    return columnar_write(&f, ret, err);
}
