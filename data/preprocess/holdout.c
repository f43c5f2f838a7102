/* Columns that decide which rows are held out.
 *
 * Order: each cell becomes a double, numbers as they are and times as seconds. A double has room
 * for microseconds of our time. One column has one kind: a number among dates is an error and not a
 * date of its own.
 *
 * Groups: rows are sorted by their text, so that a group is a run. The groups are shuffled in byte
 * order, which does not depend on the order of the rows. */
#include "data/preprocess/holdout.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "data/date.h"
#include "data/random_purpose.h"
#include "data/preprocess/split.h"

#define MAX_WEIGHT 1e30

static as_status bad_cell(const char *name, size_t row, const char *found, const char *expected,
                          struct as_err *err)
{
    if (!*found)
        return as_fail(err, AS_E_INVAL, "column '%.60s', row %zu: the cell is empty, expected %s",
                       name, row + 1, expected);
    return as_fail(err, AS_E_INVAL, "column '%.60s', row %zu: found '%.60s', expected %s", name,
                   row + 1, found, expected);
}

/* A whole cell as a finite number. */
static bool number_of(const char *s, double *ret)
{
    char *end;
    errno = 0;
    double v = strtod(s, &end);
    if (end == s || *end || errno == ERANGE || !isfinite(v) || s[strspn(s, "+-.0123456789eE")])
        return false; /* strtod takes hexadecimal numbers too */
    *ret = v;
    return true;
}

static as_status both_sides(const unsigned char *part, size_t n, const char *name,
                            struct as_err *err)
{
    size_t rows[3] = {0};
    for (size_t i = 0; i < n; i++)
        rows[part[i]]++;
    if (rows[HOLDOUT_TRAIN] > 0 && rows[HOLDOUT_HELD] > 0)
        return AS_OK;
    return as_fail(
        err, AS_E_INVAL,
        "column '%.60s': %zu rows to train on and %zu held out, expected at least 1 each", name,
        rows[HOLDOUT_TRAIN], rows[HOLDOUT_HELD]);
}

/* ---- words ---- */

static const struct {
    const char *text;
    unsigned char part; /* HOLDOUT_UNUSED: test */
} words[] = {
    {"1", HOLDOUT_HELD},         {"true", HOLDOUT_HELD},       {"t", HOLDOUT_HELD},
    {"yes", HOLDOUT_HELD},       {"y", HOLDOUT_HELD},          {"val", HOLDOUT_HELD},
    {"valid", HOLDOUT_HELD},     {"validation", HOLDOUT_HELD}, {"dev", HOLDOUT_HELD},
    {"held-out", HOLDOUT_HELD},  {"held_out", HOLDOUT_HELD},   {"holdout", HOLDOUT_HELD},
    {"0", HOLDOUT_TRAIN},        {"false", HOLDOUT_TRAIN},     {"f", HOLDOUT_TRAIN},
    {"no", HOLDOUT_TRAIN},       {"n", HOLDOUT_TRAIN},         {"train", HOLDOUT_TRAIN},
    {"training", HOLDOUT_TRAIN}, {"test", HOLDOUT_UNUSED},     {"testing", HOLDOUT_UNUSED},
};

static bool part_of(const char *s, unsigned char *ret)
{
    double v;
    if (number_of(s, &v)) {
        *ret = v == 1 ? HOLDOUT_HELD : HOLDOUT_TRAIN;
        return v == 0 || v == 1;
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(words); i++)
        if (strcasecmp(words[i].text, s) == 0) {
            *ret = words[i].part;
            return true;
        }
    return false;
}

as_status holdout_by_words(const struct dataset_cells *cells, const char *name, unsigned char *ret,
                           struct as_err *err)
{
    bool any_held = false;
    for (size_t i = 0; i < cells->n; i++) {
        if (!part_of(dataset_cell(cells, i), &ret[i]))
            return bad_cell(name, i, dataset_cell(cells, i),
                            "1, true or validation for a row that is held out, 0, false or train "
                            "for one to train on, or test",
                            err);
        any_held = any_held || ret[i] == HOLDOUT_HELD;
    }
    for (size_t i = 0; !any_held && i < cells->n; i++)
        ret[i] = ret[i] == HOLDOUT_UNUSED ? HOLDOUT_HELD : ret[i];
    return both_sides(ret, cells->n, name, err);
}

/* ---- order ---- */

/* Seconds since 1970 of a date or time. */
static bool time_of(const char *s, double *ret)
{
    struct date d;
    if (!date_parse(s, strlen(s), &d))
        return false;
    *ret = (double)(d.day * 86400) + d.seconds;
    return true;
}

struct placed {
    double at;
    size_t row;
};

static int by_place(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->at < y->at || x->at > y->at)
        return x->at < y->at ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

as_status holdout_by_order(const struct dataset_cells *cells, const char *name, size_t n_held,
                           unsigned char *ret, struct as_err *err)
{
    AS_AUTO(as_freep) struct placed *rows = as_calloc(cells->n, sizeof *rows);
    double v = 0;
    if (!rows)
        return as_fail_nomem(err);
    bool times = cells->n > 0 && time_of(dataset_cell(cells, 0), &v);
    for (size_t i = 0; i < cells->n; i++) {
        const char *s = dataset_cell(cells, i);
        if (!(times ? time_of(s, &v) : number_of(s, &v)))
            return bad_cell(name, i, s,
                            times   ? "a date or time, as in the first row"
                            : i > 0 ? "a number, as in the first row"
                                    : "a number, or a date or time (2026-11-23)",
                            err);
        rows[i] = (struct placed){v, i};
    }
    qsort(rows, cells->n, sizeof *rows, by_place);
    for (size_t i = 0; i < cells->n; i++)
        ret[rows[i].row] = i < cells->n - n_held ? HOLDOUT_TRAIN : HOLDOUT_HELD;
    return both_sides(ret, cells->n, name, err);
}

/* ---- groups ---- */

struct grouped {
    const char *text;
    size_t row;
};

static int by_text(const void *a, const void *b)
{
    const struct grouped *x = a, *y = b;
    int c = strcmp(x->text, y->text);
    return c ? c : (x->row > y->row) - (x->row < y->row);
}

/* Rows [begin, begin + n) of the sorted list. */
struct group {
    size_t begin, n;
    bool held;
};

static size_t distance(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

/* Choose among the groups, in the order of `order`. */
static void choose_groups(struct group *g, size_t n_groups, const int32_t *order, size_t n_held)
{
    size_t held = 0, chosen = 0;
    struct group *least = NULL;
    for (size_t i = 0; i < n_groups; i++) {
        struct group *mine = &g[order[i]];
        mine->held = distance(held + mine->n, n_held) < distance(held, n_held);
        held += mine->held ? mine->n : 0;
        chosen += mine->held;
        least = !least || mine->n < least->n ? mine : least;
    }
    if (chosen == 0) /* each group is larger than twice what is wanted */
        least->held = true;
    if (chosen == n_groups)
        g[order[n_groups - 1]].held = false;
}

static size_t find_groups(const struct grouped *rows, size_t n, struct group *ret)
{
    size_t n_groups = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(rows[i].text, rows[i - 1].text) != 0)
            ret[n_groups++].begin = i;
        ret[n_groups - 1].n++;
    }
    return n_groups;
}

as_status holdout_by_groups(const struct dataset_cells *cells, const char *name, size_t n_held,
                            uint64_t seed, unsigned char *ret, struct as_err *err)
{
    size_t n = cells->n;
    AS_AUTO(as_freep) struct grouped *rows = as_calloc(n, sizeof *rows);
    AS_AUTO(as_freep) struct group *groups = as_calloc(n, sizeof *groups);
    AS_AUTO(as_freep) int32_t *order = as_calloc(n, sizeof *order);
    if (!rows || !groups || !order)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct grouped){dataset_cell(cells, i), i};
        if (!*rows[i].text)
            return bad_cell(name, i, "", "the name of its group", err);
    }
    qsort(rows, n, sizeof *rows, by_text);
    size_t n_groups = find_groups(rows, n, groups);
    if (n_groups < 2)
        return as_fail(err, AS_E_INVAL, "column '%.60s': found %zu group, expected 2 or more", name,
                       n_groups);
    for (size_t i = 0; i < n_groups; i++)
        order[i] = (int32_t)i;
    struct rng r = draw_stream(seed, DRAW_SPLIT, 0);
    draw_shuffle(&r, order, n_groups);
    choose_groups(groups, n_groups, order, n_held);
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < groups[g].n; i++)
            ret[rows[groups[g].begin + i].row] = groups[g].held ? HOLDOUT_HELD : HOLDOUT_TRAIN;
    return AS_OK;
}

/* ---- folds ---- */

as_status holdout_by_fold(const int32_t *labels, size_t n, size_t classes, size_t k, size_t fold,
                          uint64_t seed, unsigned char *ret, struct as_err *err)
{
    AS_AUTO(as_freep) int32_t *order = as_calloc(n, sizeof *order);
    AS_AUTO(as_freep) size_t *next = as_calloc((labels ? classes : 1) + 1, sizeof *next);
    if (!order || !next)
        return as_fail_nomem(err);
    split_random(n, seed, order);
    for (size_t i = 0; labels && i < n; i++)
        next[labels[i] + 1]++; /* where the rows of a class begin among all rows by class */
    for (size_t c = 0; labels && c < classes; c++)
        next[c + 1] += next[c];
    for (size_t i = 0; i < n; i++) {
        size_t turn = next[labels ? labels[order[i]] : 0]++;
        ret[order[i]] = turn % k == fold ? HOLDOUT_HELD : HOLDOUT_TRAIN;
    }
    return AS_OK;
}

/* ---- weights ---- */

as_status holdout_weights(const struct dataset_cells *cells, const char *name, float *ret,
                          struct as_err *err)
{
    for (size_t i = 0; i < cells->n; i++) {
        double v = 0;
        const char *s = dataset_cell(cells, i);
        if (!number_of(s, &v) || v < 0 || v > MAX_WEIGHT)
            return bad_cell(name, i, s, "a weight: a number of 0 or more", err);
        ret[i] = (float)v;
    }
    return AS_OK;
}
