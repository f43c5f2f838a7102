/* Points of trials, read from the database into a table (points_table.h).
 *
 * Trials that the table does not have yet are read by ranges of their numbers: a statement goes
 * along the index and reads a number of chunks. Read by trial are those that changed, those of
 * which several attempts have points, so that the statement must say which count, and those that
 * have too many chunks for one statement.
 *
 * A statement by trial reads a limited number of points of each of some trials, so that its answer
 * is bounded however unequal the trials are: a round reads few points of many trials, and the
 * trials that have more go into the next round, with more points of fewer trials. */
#include "scheduler/services/points_table.h"

#include <stdlib.h>

#include "scheduler/services/read_ahead.h"
#include "scheduler/store/table_store.h"

#define READ_POINTS (1 << 17) /* of one statement: some 20 MB */
#define FIRST_POINTS 256      /* of one trial in the first round */
#define NEXT_ROUND 8          /* times as many of one trial in the next one */
#define READ_TRIALS 10000     /* begun together */
#define READ_CHUNKS 2048      /* of one statement: up to READ_POINTS points */

/* Trials that are read, some points of each. */
struct round {
    struct point_want *wants; /* owned */
    size_t n;
    int64_t limit;
};

/* Keep wants that got as many points as they might, for the next round. */
static size_t keep_unread(const struct round *r, size_t at, size_t n, const struct point_row *rows,
                          size_t n_rows, struct points_table *t, struct point_want *kept)
{
    size_t row = 0, n_kept = 0;
    for (size_t i = at; i < at + n; i++) {
        struct point_want w = r->wants[i];
        int64_t got = 0;
        for (; row < n_rows && rows[row].number == w.number; row++, got++)
            w.after = rows[row].step;
        if (got == r->limit)
            kept[n_kept++] = w;
        else
            points_table_complete(t, w.number);
    }
    return n_kept;
}

static as_status read_some(struct points_table *t, struct store *db, int64_t key, struct round *r,
                           size_t at, size_t n, size_t *n_kept, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct point_row *rows = NULL;
    size_t n_rows = 0;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_table_points(run.tx, &a, key, points_table_metric(t), r->wants + at, n,
                                        r->limit, &rows, &n_rows, err);
    as_status st = run.status;
    for (size_t i = 0; i < n_rows && st == AS_OK; i++)
        st = points_table_add(t, &rows[i], err);
    if (st == AS_OK) /* the wants of before are done, so there is room */
        *n_kept += keep_unread(r, at, n, rows, n_rows, t, r->wants + *n_kept);
    return st;
}

static as_status read_wanted(struct points_table *t, struct store *db, int64_t key,
                             struct point_want *wants, size_t n, struct as_err *err)
{
    struct round r = {wants, n, FIRST_POINTS};
    while (r.n > 0) {
        size_t n_kept = 0, at_once = (size_t)(READ_POINTS / r.limit);
        for (size_t i = 0; i < r.n; i += at_once) {
            size_t part = r.n - i < at_once ? r.n - i : at_once;
            as_status st = read_some(t, db, key, &r, i, part, &n_kept, err);
            if (st != AS_OK)
                return st;
        }
        r.n = n_kept;
        if (r.limit < READ_POINTS / NEXT_ROUND)
            r.limit *= NEXT_ROUND;
    }
    return AS_OK;
}

/* The wants are made when their part is read, since a want empties its line. */
static as_status read_changed(struct points_table *t, struct store *db,
                              const struct table_news *news, struct point_want *wants,
                              struct as_err *err)
{
    as_status st = AS_OK;
    size_t i = 0;
    while (i < news->n_changes && st == AS_OK) {
        size_t n = 0;
        while (i < news->n_changes && n < READ_TRIALS)
            wants[n++] = points_table_want(t, &news->changes[i++]);
        st = read_wanted(t, db, news->key, wants, n, err);
    }
    return st;
}

/* Trials that a range leaves to be read one by one. */
struct left {
    struct point_want *wants; /* READ_TRIALS */
    size_t n;
};

static void leave(struct left *left, int64_t number)
{
    left->wants[left->n++] = (struct point_want){number, POINTS_ANY_ATTEMPT, -1};
}

/* The n points of a trial, in the order of the index. */
static as_status take_trial(struct points_table *t, int64_t number, const struct point_row *rows,
                            size_t n, struct left *left, struct as_err *err)
{
    as_status st = AS_OK;
    if (n > 0 && rows[0].attempt != rows[n - 1].attempt) {
        leave(left, number);
        return AS_OK;
    }
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = points_table_add(t, &rows[i], err);
    points_table_complete(t, number);
    return st;
}

/* Trials that are new, on their way into the table. */
struct new_trials {
    struct points_table *t;
    struct store *db;
    int64_t key;
    struct point_range range; /* what is left to read */
    struct left *left;
    struct {
        struct point_row *rows;
        size_t n;
        int64_t from, to; /* none: the trial `from` is to be read alone */
    } parts[READ_AHEAD_PLACES];
};

static as_status read_part(void *arg, size_t place, struct arena *a, bool *ret_is_left,
                           struct as_err *err)
{
    struct new_trials *x = arg;
    struct point_row *rows = NULL;
    size_t n = 0;
    int64_t from = x->range.from, to = x->range.to;
    struct tx_run run = tx_run_start(x->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_table_points_in(run.tx, a, x->key, points_table_metric(x->t), &x->range,
                                           &rows, &n, &to, err);
    x->parts[place].rows = rows;
    x->parts[place].n = n;
    x->parts[place].from = from;
    x->parts[place].to = to;
    x->range.from = to > from ? to : from + 1;
    *ret_is_left = x->range.from < x->range.to;
    return run.status;
}

static as_status put_part(void *arg, size_t place, struct as_err *err)
{
    struct new_trials *x = arg;
    const struct point_row *rows = x->parts[place].rows;
    const size_t n = x->parts[place].n;
    const int64_t from = x->parts[place].from, to = x->parts[place].to;
    as_status st = AS_OK;
    if (to == from)
        leave(x->left, from);
    size_t row = 0;
    for (int64_t number = from; number < to && st == AS_OK; number++) {
        size_t first = row;
        while (row < n && rows[row].number == number)
            row++;
        st = take_trial(x->t, number, rows + first, row - first, x->left, err);
    }
    return st;
}

static as_status read_new(struct points_table *t, struct store *db, const struct table_news *news,
                          struct point_want *wants, struct as_err *err)
{
    as_status st = AS_OK;
    while ((int64_t)points_table_trials(t) < news->n_trials && st == AS_OK) {
        size_t from = points_table_trials(t), n = (size_t)news->n_trials - from;
        if (n > READ_TRIALS)
            n = READ_TRIALS;
        struct left left = {wants, 0};
        struct new_trials x = {.t = t,
                               .db = db,
                               .key = news->key,
                               .range = {(int64_t)from, (int64_t)(from + n), READ_CHUNKS},
                               .left = &left};
        const struct read_ahead parts = {.arg = &x, .read = read_part, .put = put_part};
        st = points_table_extend(t, from + n, err);
        if (st == AS_OK)
            st = read_ahead(&parts, err);
        if (st == AS_OK)
            st = read_wanted(t, db, news->key, wants, left.n, err);
    }
    return st;
}

static as_status read_points(void *t, struct store *db, const struct table_news *news,
                             struct as_err *err)
{
    AS_AUTO(as_freep) struct point_want *wants = as_calloc(READ_TRIALS, sizeof *wants);
    if (!wants)
        return as_fail_nomem(err);
    as_status st = read_changed(t, db, news, wants, err);
    return st == AS_OK ? read_new(t, db, news, wants, err) : st;
}

/* ---- as a kind ---- */

static as_status create_points(const struct sweep_doc *doc, const char *subject, void **ret,
                               struct as_err *err)
{
    (void)doc;
    struct points_table *t = points_table_create(subject, POINTS_TABLE_MAX);
    if (!t)
        return as_fail_nomem(err);
    *ret = t;
    return AS_OK;
}

static void free_points(void *t)
{
    points_table_free(t);
}

static size_t points_trials(const void *t)
{
    return points_table_trials(t);
}

static size_t points_bytes(const void *t)
{
    return points_table_bytes(t);
}

static void mark_points(void *t, int64_t number, int64_t event)
{
    points_table_mark(t, number, event);
}

static size_t points_changed(const void *t, int64_t since)
{
    return points_table_changed(t, since);
}

static as_status write_points(const void *t, const struct table_part *part, struct str *ret,
                              struct as_err *err)
{
    return points_table_write(t, part, ret, err);
}

const struct table_kind table_of_points = {.create = create_points,
                                           .free = free_points,
                                           .trials = points_trials,
                                           .bytes = points_bytes,
                                           .read = read_points,
                                           .mark = mark_points,
                                           .changed = points_changed,
                                           .write = write_points};
