/* A line is an array of the points that it keeps. Each knows its place among all points of the
 * line, so the run that it belongs to follows from its place and the length of runs. A line begins
 * with runs of two, which keep everything. When it has too many points, two runs become one: the
 * extremes of the longer run are among those of the two, so thinning again loses nothing that
 * thinning once would have kept. */
#include "scheduler/services/points_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "data/formats/columnar.h"

struct point {
    double value;
    int64_t step;
    float seconds;
    uint32_t place; /* among all points of the line */
};

struct line {
    struct point *points; /* owned */
    uint32_t n, cap;
    uint32_t n_all;   /* points that were added */
    uint32_t run;     /* places of one run */
    int64_t attempt;  /* the latest that has points */
    int64_t changed;  /* the event of its last change; 0: none since it was read */
    bool is_mixed;    /* its last point is of an earlier attempt */
    bool is_complete; /* it has all points that there were when it was read */
};

struct points_table {
    char *metric;       /* owned */
    struct line *lines; /* owned: one for each trial */
    size_t n, cap;
    size_t n_points, max_points;
    size_t resolution; /* points of a line */
};

#define FIRST_RUN 2

struct points_table *points_table_create(const char *metric, size_t max_points)
{
    AS_AUTO(points_table_freep) struct points_table *t = as_calloc(1, sizeof *t);
    if (!t || !(t->metric = as_strdup(metric)))
        return NULL;
    t->max_points = max_points;
    t->resolution = POINTS_LINE_MAX;
    return as_steal(t);
}

void points_table_free(struct points_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        free(t->lines[i].points);
    free(t->lines);
    free(t->metric);
    free(t);
}

const char *points_table_metric(const struct points_table *t)
{
    return t->metric;
}

size_t points_table_trials(const struct points_table *t)
{
    return t->n;
}

size_t points_table_resolution(const struct points_table *t)
{
    return t->resolution;
}

size_t points_table_bytes(const struct points_table *t)
{
    /* an array of points has room for as many again at most; malloc's own are 16 bytes */
    return sizeof *t + t->cap * (sizeof *t->lines + 16) + t->n_points * 2 * sizeof(struct point);
}

size_t points_table_changed(const struct points_table *t, int64_t since)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->lines[i].changed > since;
    return n;
}

void points_table_mark(struct points_table *t, int64_t number, int64_t event)
{
    if (number >= 0 && number < (int64_t)t->n && t->lines[number].changed < event)
        t->lines[number].changed = event;
}

as_status points_table_extend(struct points_table *t, size_t n, struct as_err *err)
{
    if (n > t->cap) {
        size_t cap = n + n / 2 + 256;
        as_status st = as_grow(&t->lines, cap, sizeof *t->lines, err);
        if (st != AS_OK)
            return st;
        t->cap = cap;
    }
    for (; t->n < n; t->n++)
        t->lines[t->n] = (struct line){.run = FIRST_RUN};
    return AS_OK;
}

/* ---- thinning ---- */

/* NaN is never an extreme beside a number. */
static bool is_lower(double a, double b)
{
    return a < b || (isnan(b) && !isnan(a));
}

static bool is_higher(double a, double b)
{
    return a > b || (isnan(b) && !isnan(a));
}

/* Keep of points[from..n), which are of one run, what a line of n_all points keeps. Returns how
 * many there are; they are moved to points[to]. */
static size_t thin_run(struct point *points, size_t from, size_t n, size_t to, uint32_t n_all)
{
    size_t low = from, high = from, first = to;
    for (size_t i = from + 1; i < n; i++) {
        if (is_lower(points[i].value, points[low].value))
            low = i;
        if (is_higher(points[i].value, points[high].value))
            high = i;
    }
    for (size_t i = from; i < n; i++)
        if (i == low || i == high || points[i].place == 0 || points[i].place == n_all - 1)
            points[to++] = points[i];
    return to - first;
}

/* The same for all runs of points[from..n); those of FIRST_RUN keep equal values too. Returns the
 * number of points that are left. */
static size_t thin_points(struct point *points, size_t from, size_t n, uint32_t run, uint32_t n_all)
{
    size_t to = from;
    if (run == FIRST_RUN)
        return n;
    for (size_t i = from, end; i < n; i = end) {
        for (end = i + 1; end < n && points[end].place / run == points[i].place / run;)
            end++;
        to += thin_run(points, i, end, to, n_all);
    }
    return to;
}

/* Make runs longer until at most `max` points are left. */
static size_t thin_to(struct point *points, size_t n, uint32_t *run, uint32_t n_all, size_t max)
{
    while (n > max) {
        *run *= 2; /* at the latest one run has all points, and keeps POINTS_LINE_MIN of them */
        n = thin_points(points, 0, n, *run, n_all);
    }
    return n;
}

static void thin_line(struct points_table *t, struct line *l)
{
    size_t n = thin_to(l->points, l->n, &l->run, l->n_all, t->resolution);
    t->n_points -= l->n - n;
    l->n = (uint32_t)n;
}

/* The last run again, with a point that was just added to it. The last point of before may have
 * been kept only because it was the last one: it may stand in the run before. */
static void thin_tail(struct points_table *t, struct line *l)
{
    size_t from = l->n - 1;
    uint32_t run = l->points[from].place / l->run;
    while (from > 0 && l->points[from - 1].place / l->run + 1 >= run)
        from--;
    size_t n = thin_points(l->points, from, l->n, l->run, l->n_all);
    t->n_points -= l->n - n;
    l->n = (uint32_t)n;
}

static void halve_resolution(struct points_table *t)
{
    t->resolution /= 2;
    for (size_t i = 0; i < t->n; i++) {
        struct line *l = &t->lines[i];
        thin_line(t, l);
        if (l->cap > 2 * l->n + 8 &&
            as_grow(&l->points, l->n + 1, sizeof *l->points, NULL) == AS_OK) /* to fewer */
            l->cap = l->n + 1;
    }
}

/* ---- points ---- */

struct point_want points_table_want(struct points_table *t, const struct table_change *change)
{
    struct line *l = &t->lines[change->number];
    struct point_want w = {change->number, POINTS_ANY_ATTEMPT, -1};
    bool goes_on = l->is_complete && !l->is_mixed && l->n > 0;
    l->is_complete = false;
    if (goes_on && change->is_measured_only && change->attempt == l->attempt) {
        w.attempt = l->attempt;
        w.after = l->points[l->n - 1].step;
        return w;
    }
    t->n_points -= l->n;
    l->n = l->n_all = 0;
    l->run = FIRST_RUN;
    l->attempt = 0;
    l->is_mixed = false;
    return w;
}

void points_table_complete(struct points_table *t, int64_t number)
{
    t->lines[number].is_complete = true;
}

static as_status reserve_point(struct line *l, struct as_err *err)
{
    if (l->n < l->cap)
        return AS_OK;
    uint32_t cap = l->cap + l->cap / 2 + 4;
    as_status st = as_grow(&l->points, cap, sizeof *l->points, err);
    if (st == AS_OK)
        l->cap = cap;
    return st;
}

as_status points_table_add(struct points_table *t, const struct point_row *p, struct as_err *err)
{
    if (p->number < 0 || p->number >= (int64_t)t->n)
        return as_fail(err, AS_E_INTERNAL, "trial %lld has no line", (long long)p->number);
    struct line *l = &t->lines[p->number];
    if (l->n > 0 && l->points[l->n - 1].step >= p->step)
        return as_fail(err, AS_E_INTERNAL, "step %lld of trial %lld is out of order",
                       (long long)p->step, (long long)p->number);
    as_status st = reserve_point(l, err);
    if (st != AS_OK)
        return st;
    l->points[l->n++] = (struct point){.value = p->value,
                                       .step = p->step,
                                       .seconds = p->has_seconds ? (float)p->seconds : NAN,
                                       .place = l->n_all++};
    l->is_mixed = p->attempt < l->attempt;
    if (!l->is_mixed)
        l->attempt = p->attempt;
    t->n_points++;
    if (l->n > 1)
        thin_tail(t, l);
    if (l->n > t->resolution)
        thin_line(t, l);
    while (t->n_points > t->max_points && t->resolution > POINTS_LINE_MIN)
        halve_resolution(t);
    return AS_OK;
}

/* ---- write ---- */

struct writing {
    const struct table_part *part;
    size_t n, cap;
    uint32_t *trial; /* owned, as all below: `cap` values */
    void *step;
    float *time;
    void *value;
};

static void writing_done(struct writing *w)
{
    free(w->trial);
    free(w->step);
    free(w->time);
    free(w->value);
}

static bool is_chosen(const struct line *l, const struct table_part *part)
{
    return l->n > 0 && (part->is_whole || l->changed > part->since);
}

static as_status writing_init(struct writing *w, const struct points_table *t,
                              const struct table_part *part, struct as_err *err)
{
    size_t wide = part->is_single ? sizeof(float) : sizeof(double);
    w->part = part;
    for (size_t i = 0; i < t->n; i++)
        if (is_chosen(&t->lines[i], part))
            w->cap += t->lines[i].n < part->max_points ? t->lines[i].n : part->max_points;
    w->trial = as_calloc(w->cap + 1, sizeof *w->trial);
    w->time = as_calloc(w->cap + 1, sizeof *w->time);
    w->step = as_calloc(w->cap + 1, wide);
    w->value = as_calloc(w->cap + 1, wide);
    return w->trial && w->time && w->step && w->value ? AS_OK : as_fail_nomem(err);
}

static void put_number(const struct writing *w, void *column, double v)
{
    if (w->part->is_single)
        ((float *)column)[w->n] = (float)v;
    else
        ((double *)column)[w->n] = v;
}

static void put_points(struct writing *w, uint32_t trial, const struct point *points, size_t n)
{
    for (size_t i = 0; i < n; i++, w->n++) {
        w->trial[w->n] = trial;
        w->time[w->n] = points[i].seconds;
        put_number(w, w->step, (double)points[i].step);
        put_number(w, w->value, points[i].value);
    }
}

static void put_line(struct writing *w, uint32_t trial, const struct line *l)
{
    struct point some[POINTS_LINE_MAX];
    uint32_t run = l->run;
    if (l->n <= w->part->max_points) {
        put_points(w, trial, l->points, l->n);
        return;
    }
    memcpy(some, l->points, l->n * sizeof *some);
    put_points(w, trial, some, thin_to(some, l->n, &run, l->n_all, w->part->max_points));
}

as_status points_table_write(const struct points_table *t, const struct table_part *part,
                             struct str *ret, struct as_err *err)
{
    AS_AUTO(writing_done) struct writing w = {0};
    char version[24];
    as_status st = writing_init(&w, t, part, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < t->n; i++)
        if (is_chosen(&t->lines[i], part))
            put_line(&w, (uint32_t)i, &t->lines[i]);
    const columnar_type type = part->is_single ? COLUMNAR_F32 : COLUMNAR_F64;
    const struct columnar_column columns[] = {
        {.name = "trial", .type = COLUMNAR_U32, .values = w.trial},
        {.name = "step", .type = type, .values = w.step},
        {.name = "time", .type = COLUMNAR_F32, .values = w.time},
        {.name = "value", .type = type, .values = w.value}};
    (void)snprintf(version, sizeof version, "%lld", (long long)part->version);
    const struct columnar f = {.n_rows = w.n,
                               .version = version,
                               .is_whole = part->is_whole,
                               .columns = columns,
                               .n_columns = AS_ARRAY_LEN(columns),
                               .is_planar = part->is_planar};
    return columnar_write(&f, ret, err);
}
