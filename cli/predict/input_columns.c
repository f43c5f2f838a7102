/* Matches the columns of a table with those of a model.
 *
 * A model that was trained on a table with a header has names, and new tables need a header: their
 * columns may stand in any order, and others may stand between them. A model without names (arrays,
 * and tables without a header, whose columns are named by their index) takes columns by their
 * place. Its table may have the target's columns among them, or not: the number of columns
 * tells. */
#include "cli/predict/input_columns.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "data/csv_table.h"
#include "data/dataset_csv.h"
#include "data/target.h"

#define MOST_LISTED 600 /* bytes of a list of names */

void predict_columns_done(struct predict_columns *c)
{
    free(c->of);
    free(c->ignored);
    *c = (struct predict_columns){0};
}

bool predict_columns_named(const struct dataset_info *info)
{
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        if (info->columns[i].name[0] == '\0')
            return true;
    return info->columns && dataset_csv_named(info);
}

static as_status alloc(size_t n, struct predict_columns *c, struct as_err *err)
{
    c->n = n;
    c->of = as_calloc(n, sizeof *c->of);
    if (!c->of)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        c->of[i] = PREDICT_NO_COLUMN;
    return AS_OK;
}

static void list_names(const char *const *names, size_t n, struct str *b)
{
    size_t i = 0;
    for (; i < n && b->len < MOST_LISTED; i++)
        str_printf(b, "%s%.80s", i ? ", " : "", names[i]);
    if (i < n)
        str_printf(b, ", … (%zu in all)", n);
}

/* ---- by name ---- */

static as_status find_name(const char *name, const char *const *names, size_t n, size_t *ret,
                           struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    size_t hits = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) {
            *ret = i;
            hits++;
        }
    if (hits == 1)
        return AS_OK;
    if (hits > 1)
        return as_fail(err, AS_E_INVAL, "%zu columns are named '%.80s', expected one", hits, name);
    list_names(names, n, &list);
    return as_fail(err, AS_E_INVAL,
                   "line 1: there is no column '%.80s', which the model needs; the columns are: %s",
                   name, str_cstr(&list));
}

/* Is a column one of the model's targets? They may be there, and are not read. */
static bool is_target(const struct dataset_info *info, const char *const *names, size_t n,
                      size_t column)
{
    AS_AUTO(as_freep) size_t *targets = NULL;
    size_t n_targets = 0;
    if (!info->target ||
        target_find_columns(info->target, n, names, &targets, &n_targets, NULL) != AS_OK)
        return false;
    for (size_t i = 0; i < n_targets; i++)
        if (targets[i] == column)
            return true;
    return false;
}

/* Did the data set leave the column out? Then it is no surprise. */
static bool was_left_out(const struct dataset_info *info, const char *name)
{
    return dataset_names_match(&info->options.drop, name) ||
           (info->options.select.n > 0 && !dataset_names_match(&info->options.select, name));
}

static as_status list_ignored(const struct dataset_info *info, const char *const *names,
                              struct predict_columns *c, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    AS_AUTO(as_freep) const char **ignored = as_calloc(c->n, sizeof *ignored);
    size_t n = 0;
    if (!ignored)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n; i++)
        if (c->of[i] == PREDICT_NO_COLUMN && !is_target(info, names, c->n, i) &&
            !was_left_out(info, names[i]))
            ignored[n++] = names[i];
    if (n == 0)
        return AS_OK;
    list_names(ignored, n, &b);
    c->ignored = str_take(&b);
    return c->ignored ? AS_OK : as_fail_nomem(err);
}

static as_status match_names(const struct dataset_info *info, const char *const *names,
                             struct predict_columns *c, struct as_err *err)
{
    for (size_t k = 0; k < info->n_features; k = dataset_next_column(info, k)) {
        size_t at = 0;
        as_status st = find_name(info->columns[k].name, names, c->n, &at, err);
        if (st != AS_OK)
            return st;
        c->of[at] = k;
    }
    return list_ignored(info, names, c, err);
}

/* ---- by place ---- */

/* The model's names are the indices that its columns had in its data set, which left some out. */
static bool match_indices(const struct dataset_info *info, struct predict_columns *c)
{
    size_t found = 0;
    if (!info->columns || (info->options.drop.n == 0 && info->options.select.n == 0))
        return false;
    for (size_t k = 0; k < info->n_features; k = dataset_next_column(info, k), found++) {
        int64_t at = -1;
        if (as_parse_i64(info->columns[k].name, &at, NULL) != AS_OK || at >= (int64_t)c->n)
            return false;
        c->of[at] = k;
    }
    return found == dataset_file_columns(info);
}

/* The columns of the targets when the table has them, by the model's own name for them. */
static as_status match_places(const struct dataset_info *info, const char *const *names,
                              struct predict_columns *c, struct as_err *err)
{
    AS_AUTO(as_freep) size_t *targets = NULL;
    size_t n_targets = 0, k = 0;
    bool one = info->task == DATASET_CLASSIFICATION || info->task == DATASET_CLUSTERING;
    size_t expected = one ? 1 : info->n_outputs;
    size_t inputs = dataset_file_columns(info);
    if (c->n != inputs && info->target && c->n == inputs + expected &&
        target_find_columns(info->target, c->n, names, &targets, &n_targets, NULL) != AS_OK)
        n_targets = 0;
    if (c->n > inputs + expected && match_indices(info, c))
        return AS_OK;
    if (c->n != inputs + n_targets)
        return as_fail(err, AS_E_INVAL, "found %zu columns, expected %zu: the inputs of the model",
                       c->n, inputs);
    for (size_t i = 0; i < c->n; i++) {
        bool target = false;
        for (size_t t = 0; t < n_targets; t++)
            target = target || targets[t] == i;
        if (target)
            continue;
        c->of[i] = k;
        k = dataset_next_column(info, k);
    }
    return AS_OK;
}

as_status predict_columns_match(const struct dataset_info *info, const char *const *names, size_t n,
                                struct predict_columns *ret, struct as_err *err)
{
    AS_AUTO(predict_columns_done) struct predict_columns c = {0};
    as_status st = alloc(n, &c, err);
    if (st != AS_OK)
        return st;
    st = names && predict_columns_named(info) ? match_names(info, names, &c, err)
                                              : match_places(info, names, &c, err);
    if (st != AS_OK)
        return st;
    *ret = c;
    c = (struct predict_columns){0};
    return AS_OK;
}
