/* Trials for people: lists, one trial with its records, and cancelling it.
 *
 * A list continues from a place in its order (the sort key of the last row and its number), not
 * from an offset. So trials that are added meanwhile do not shift the next page. */
#include "scheduler/services/trials.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/metric_name.h"
#include "base/str.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/services/trial_orders.h"
#include "scheduler/services/trial_test.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/fork_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/note_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/sweep_row_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_row_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/usage_store.h"
#include "scheduler/lifecycle/transition.h"
#include "search/space/param.h"
#include "search/suggest.h"

/* The list's cursor: sort, name of what is sorted by, direction, whether it has a key, key,
 * number. */
#define PLACE_FIELDS 6
#define ROWS_FIRST 128 /* trials that a page reads first; then twice as many each time */

/* Parse a value that place_write() wrote; infinities are valid values here. */
static bool read_key(const char *s, double *ret)
{
    bool is_infinite = as_streq(s, "Infinity") || as_streq(s, "-Infinity");
    if (is_infinite)
        *ret = s[0] == '-' ? -INFINITY : INFINITY;
    return is_infinite || as_parse_double(s, ret, NULL) == AS_OK;
}

static as_status place_read(struct arena *a, const struct trial_query *q, struct trial_place *ret,
                            struct as_err *err)
{
    const char *f[PLACE_FIELDS];
    if (!q->page.cursor)
        return AS_OK;
    as_status st = cursor_read(a, q->page.cursor, "trials", f, PLACE_FIELDS, err);
    if (st != AS_OK)
        return st;
    if (!as_streq(f[0], trial_sort_words[q->sort]) || !as_streq(f[1], q->name ? q->name : "") ||
        !as_streq(f[2], q->descending ? "d" : "a"))
        return as_fail(err, AS_E_INVAL, "the cursor belongs to another order of this list");
    ret->set = true;
    ret->has_key = as_streq(f[3], "1");
    st = cursor_i64(f[5], &ret->number, err);
    if (st != AS_OK)
        return st;
    if (!read_key(f[4], &ret->key) || ret->number < 0 || ret->number > INT32_MAX)
        return as_fail(err, AS_E_INVAL, "the cursor is not one that this list gave");
    return AS_OK;
}

static const char *place_write(struct arena *a, const struct trial_query *q,
                               const struct trial_place *p)
{
    char buf[32], number[24];
    const char *key = as_format_double(p->has_key ? p->key : 0, buf, sizeof buf);
    snprintf(number, sizeof number, "%" PRId64, p->number);
    const char *const f[PLACE_FIELDS] = {trial_sort_words[q->sort],
                                         q->name ? q->name : "",
                                         q->descending ? "d" : "a",
                                         p->has_key ? "1" : "0",
                                         key,
                                         number};
    return cursor_make(a, "trials", f, PLACE_FIELDS);
}

static as_status list_trials(struct tx *t, struct arena *a, const char *sweep,
                             const struct trial_query *q, const struct trial_place *after,
                             struct trial_page *ret, struct trial_place *ret_next,
                             struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, sweep, &key, err);
    if (st != AS_OK)
        return st;
    return store_trial_list(t, a, key, q, after, ret, ret_next, err);
}

static as_status list_by_number(struct store *db, struct arena *a, const char *sweep,
                                const struct trial_query *q, const struct trial_place *after,
                                struct trial_page *ret, struct trial_place *ret_next,
                                struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = list_trials(run.tx, a, sweep, q, after, ret, ret_next, err);
    return run.status;
}

/* What a row costs of a page's bytes. */
static int64_t bytes_of(const struct trial_row *r)
{
    const char *const texts[] = {r->params,  r->metrics, r->suggestion,
                                 r->retries, r->rungs,   r->reason};
    size_t n = sizeof *r;
    for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++)
        n += texts[i] ? strlen(texts[i]) : 0;
    return (int64_t)n;
}

static as_status read_rows_at(struct store *db, struct arena *a, int64_t sweep_key,
                              const struct trial_place *at, size_t n, struct trial_row *ret,
                              struct as_err *err)
{
    struct trial_key *keys = arena_alloc(a, n, sizeof *keys);
    struct arena **arenas = arena_alloc(a, n, sizeof *arenas);
    if (!keys || !arenas)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        keys[i] = (struct trial_key){sweep_key, at[i].number};
        arenas[i] = a;
    }
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_trial_get_many(run.tx, keys, n, arenas, ret, err);
    return run.status;
}

/* Read the trials at the places, until they pass the bytes of a page. */
static as_status read_places(struct store *db, struct arena *a, int64_t sweep_key,
                             const struct trial_place *at, size_t n, struct trial_page *ret,
                             struct as_err *err)
{
    struct trial_page page = {.rows = arena_alloc(a, n + 1, sizeof *page.rows)};
    int64_t bytes = 0;
    if (!page.rows)
        return as_fail_nomem(err);
    for (size_t done = 0, ask = ROWS_FIRST; done < n; ask *= 2) {
        size_t part = n - done < ask ? n - done : ask;
        as_status st = read_rows_at(db, a, sweep_key, at + done, part, page.rows + done, err);
        if (st != AS_OK)
            return st;
        done += part;
        while (page.n < done) {
            bytes += bytes_of(&page.rows[page.n]);
            if (page.n > 0 && bytes > PAGE_BYTES_MAX) {
                *ret = page;
                return AS_OK; /* this row begins the next page */
            }
            page.n++;
        }
    }
    *ret = page;
    return AS_OK;
}

static as_status list_by_order(struct store *db, struct trial_orders *orders, struct arena *a,
                               const char *sweep, const struct trial_query *q,
                               const struct trial_place *after, struct trial_page *ret,
                               struct trial_place *ret_next, struct as_err *err)
{
    int64_t key = 0;
    size_t size = (size_t)q->page.size, n = 0;
    struct trial_place *at = arena_alloc(a, size + 1, sizeof *at);
    if (!at)
        return as_fail_nomem(err);
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_sweep_key(run.tx, sweep, &key, err);
    as_status st = run.status;
    if (st == AS_OK)
        st = trial_orders_page(db, orders, key, q, after, size + 1, at, &n, err);
    if (st == AS_OK)
        st = read_places(db, a, key, at, n < size ? n : size, ret, err);
    if (st == AS_OK && ret->n < n)
        *ret_next = at[ret->n - 1];
    return st;
}

as_status trial_list(struct store *db, struct trial_orders *orders, struct arena *a,
                     const char *sweep, const struct trial_query *q, struct trial_page *ret,
                     struct as_err *err)
{
    struct trial_query query = *q;
    struct trial_place after = {0}, next = {0};
    struct trial_page page = {0};
    as_status st = page_size(&q->page, &query.page.size, err);
    if (st == AS_OK)
        st = place_read(a, q, &after, err);
    if (st == AS_OK && q->sort == TRIAL_BY_NUMBER)
        st = list_by_number(db, a, sweep, &query, &after, &page, &next, err);
    else if (st == AS_OK)
        st = list_by_order(db, orders, a, sweep, &query, &after, &page, &next, err);
    if (st != AS_OK)
        return st;
    if (next.set) {
        page.next_cursor = place_write(a, q, &next);
        if (!page.next_cursor)
            return as_fail_nomem(err);
    }
    *ret = page;
    return AS_OK;
}

/* Put the trial that is best by a model first, with what that expects, and leave it out behind: the
 * page has at most `top` trials and room for them. */
static as_status put_first(struct tx *t, struct arena *a, int64_t key,
                           const struct regret_check *expected, bool is_first, int64_t top,
                           struct trial_page *page, struct as_err *err)
{
    int64_t number = expected->best;
    struct trial_row best;
    size_t n = 0;
    for (size_t i = 0; i < page->n; i++)
        if (page->rows[i].number != number)
            page->rows[n++] = page->rows[i];
    page->n = n;
    if (!is_first)
        return AS_OK;
    as_status st = store_trial_get(t, a, key, number, &best, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : st;
    page->n = n < (size_t)top ? n + 1 : n;
    memmove(page->rows + 1, page->rows, (page->n - 1) * sizeof *page->rows);
    page->rows[0] = best;
    page->expected = expected;
    return AS_OK;
}

static as_status list_best_trials(struct tx *t, struct arena *a, const char *sweep, int64_t top,
                                  const struct trial_place *after, struct trial_page *ret,
                                  struct trial_place *ret_next, struct as_err *err)
{
    int64_t key = 0;
    struct sweep_row s;
    struct regret_check *expected = arena_alloc(a, 1, sizeof *expected);
    if (!expected)
        return as_fail_nomem(err);
    as_status st = store_sweep_key(t, sweep, &key, err);
    if (st != AS_OK)
        return st;
    st = store_sweep_get(t, a, key, &s, err);
    if (st != AS_OK)
        return st;
    st = store_trial_best(t, a, key, s.maximize, top, after, ret, ret_next, err);
    if (st != AS_OK || !s.best_is_by_model)
        return st;
    *expected = s.regret;
    return put_first(t, a, key, expected, !after->set, top, ret, err);
}

as_status trial_best(struct store *db, struct arena *a, const char *sweep, int64_t top,
                     const char *cursor, struct trial_page *ret, struct as_err *err)
{
    /* a cursor of this list is one of trials by value: a sweep has one direction */
    const struct trial_query q = {.sort = TRIAL_BY_VALUE, .page.cursor = cursor};
    struct trial_place after = {0}, next = {0};
    struct trial_page page = {0};
    if (top < 1 || top > PAGE_SIZE_MAX)
        return as_fail(err, AS_E_INVAL, "top is %lld, expected 1 to %d", (long long)top,
                       PAGE_SIZE_MAX);
    as_status st = place_read(a, &q, &after, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = list_best_trials(run.tx, a, sweep, top, &after, &page, &next, err);
    if (run.status != AS_OK)
        return run.status;
    if (next.set && page.n < (size_t)top) { /* the page ended early; else the list ends here */
        page.next_cursor = place_write(a, &q, &next);
        if (!page.next_cursor)
            return as_fail_nomem(err);
    }
    *ret = page;
    return AS_OK;
}

/* Find the sweep's key and the trial. AS_E_NOT_FOUND. */
static as_status find_trial(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                            int64_t *ret_key, struct trial_row *ret, struct as_err *err)
{
    as_status st = store_sweep_key(t, sweep, ret_key, err);
    if (st != AS_OK)
        return st;
    return store_trial_get(t, a, *ret_key, number, ret, err);
}

/* The names of the objectives, for the reason of a suggestion that predicts several. *ret: a new
 * reference; NULL: the sweep has one metric. */
static as_status read_objectives(struct tx *t, struct arena *a, int64_t key, json_t **ret,
                                 struct as_err *err)
{
    struct sweep_row sweep;
    as_status st = store_sweep_get(t, a, key, &sweep, err);
    if (st != AS_OK || !sweep.objectives)
        return st;
    return json_parse(sweep.objectives, strlen(sweep.objectives), ret, err);
}

/* The reason for the parameters in words: the search's own, or who added the trial. */
static as_status explain(struct tx *t, struct arena *a, int64_t key, const struct trial_row *row,
                         const char **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    JSON_AUTO reason = NULL;
    JSON_AUTO metrics = NULL;
    const char *text = row->suggestion ? row->suggestion : "null";
    as_status st = json_parse(text, strlen(text), &reason, err);
    if (st == AS_OK && json_is_array(json_object_get(reason, "predicted")))
        st = read_objectives(t, a, key, &metrics, err);
    if (st != AS_OK)
        return st;
    if (row->origin == ORIGIN_ENQUEUED)
        str_puts(&b, "enqueued by hand");
    else if (row->origin == ORIGIN_KNOWN)
        str_puts(&b, "a known result, added by hand");
    else if (row->is_fork)
        str_printf(&b,
                   "goes on from trial %" PRId64 " at step %" PRId64 ", in place of trial %" PRId64,
                   row->parent, row->fork_step,
                   (int64_t)json_integer_value(json_object_get(reason, "replaces")));
    else
        suggest_explain(reason, metrics, &b);
    if ((st = str_check(&b, err)) != AS_OK)
        return st;
    *ret = arena_strdup(a, str_cstr(&b));
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status get_detail(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                            struct trial_detail *ret, struct file_list *ret_files,
                            struct as_err *err)
{
    int64_t key = 0;
    as_status st = find_trial(t, a, sweep, number, &key, &ret->trial, err);
    if (st != AS_OK ||
        (st = store_note_list(t, a, key, number, &ret->notes, &ret->n_notes, err)) != AS_OK ||
        (st = store_file_list(t, a, key, number, "artifact", ret_files, err)) != AS_OK ||
        (st = explain(t, a, key, &ret->trial, &ret->why, err)) != AS_OK ||
        (st = store_fork_list(t, a, key, number, FORKS_SHOWN, &ret->forks, &ret->n_forks, err)) !=
            AS_OK)
        return st;
    return store_attempt_list(t, a, key, number, &ret->attempts, &ret->n_attempts, err);
}

as_status trial_get(struct store *db, struct arena *a, const char *sweep, int64_t number,
                    struct trial_detail *ret, struct as_err *err)
{
    struct trial_detail detail = {0};
    struct file_list files = {0};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = get_detail(run.tx, a, sweep, number, &detail, &files, err);
    if (run.status != AS_OK)
        return run.status;
    as_status st = trial_test_read(db, a, &files, &detail.test, err);
    if (st == AS_OK)
        *ret = detail;
    return st;
}

static as_status get_series(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                            const struct series_query *q, struct series_list *ret,
                            struct as_err *err)
{
    struct trial_row row;
    int64_t key = 0;
    as_status st = find_trial(t, a, sweep, number, &key, &row, err);
    if (st != AS_OK)
        return st;
    return store_measurement_series(t, a, key, number, q, ret, err);
}

/* The point after which the page begins. */
static as_status read_point(struct arena *a, const char *cursor, struct series_query *q,
                            struct as_err *err)
{
    const char *f[2]; /* step, metric */
    if (!cursor)
        return AS_OK;
    as_status st = cursor_read(a, cursor, "series", f, 2, err);
    if (st != AS_OK)
        return st;
    q->after_metric = f[1];
    st = cursor_i64(f[0], &q->after_step, err);
    if (st == AS_OK && !metric_name_valid(q->after_metric))
        return as_fail(err, AS_E_INVAL, "the cursor is not one that this list gave");
    return st;
}

static as_status write_point(struct arena *a, struct series_list *l, struct as_err *err)
{
    const struct series_row *last = &l->rows[l->n - 1];
    char step[24];
    snprintf(step, sizeof step, "%" PRId64, last->steps[last->n - 1]);
    l->next_cursor = cursor_make(a, "series", (const char *const[]){step, last->metric}, 2);
    return l->next_cursor ? AS_OK : as_fail_nomem(err);
}

as_status trial_series(struct store *db, struct arena *a, const char *sweep, int64_t number,
                       const char *metric, const char *cursor, struct series_list *ret,
                       struct as_err *err)
{
    struct series_list series = {0};
    struct series_query q = {.metric = metric, .limit = SERIES_POINTS_MAX};
    if (metric && !metric_name_valid(metric))
        return as_fail(err, AS_E_INVAL,
                       "'%.80s' is not the name of a metric: expected " METRIC_NAME_RULE, metric);
    as_status st = read_point(a, cursor, &q, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = get_series(run.tx, a, sweep, number, &q, &series, err);
    if (run.status == AS_OK && series.has_more)
        run.status = write_point(a, &series, err);
    if (run.status == AS_OK)
        *ret = series;
    return run.status;
}

/* Find the key of the trial's sweep, for what is kept of an attempt. AS_E_NOT_FOUND: also when the
 * trial has not begun that attempt. */
static as_status find_attempt(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                              int64_t attempt, int64_t *ret_key, struct as_err *err)
{
    struct trial_row row;
    as_status st = find_trial(t, a, sweep, number, ret_key, &row, err);
    if (st == AS_OK && attempt > row.attempt)
        return as_fail(err, AS_E_NOT_FOUND, "trial %lld has no attempt %lld", (long long)row.number,
                       (long long)attempt);
    return st;
}

static as_status get_log(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                         int64_t attempt, struct log_row *ret, struct as_err *err)
{
    int64_t key = 0;
    as_status st = find_attempt(t, a, sweep, number, attempt, &key, err);
    return st == AS_OK ? store_attempt_log_get(t, a, key, number, attempt, ret, err) : st;
}

as_status trial_log(struct store *db, struct arena *a, const char *sweep, int64_t number,
                    int64_t attempt, struct log_row *ret, struct as_err *err)
{
    struct log_row log = {0};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = get_log(run.tx, a, sweep, number, attempt, &log, err);
    if (run.status == AS_OK)
        *ret = log;
    return run.status;
}

static as_status get_usage(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                           int64_t attempt, struct usage_list *ret, struct as_err *err)
{
    int64_t key = 0;
    as_status st = find_attempt(t, a, sweep, number, attempt, &key, err);
    return st == AS_OK ? store_usage_list(t, a, key, number, attempt, &ret->rows, &ret->n, err)
                       : st;
}

as_status trial_usage(struct store *db, struct arena *a, const char *sweep, int64_t number,
                      int64_t attempt, struct usage_list *ret, struct as_err *err)
{
    struct usage_list usage = {0};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = get_usage(run.tx, a, sweep, number, attempt, &usage, err);
    if (run.status == AS_OK)
        *ret = usage;
    return run.status;
}

static as_status get_files(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                           const char *kind, struct file_list *ret, struct as_err *err)
{
    struct trial_row row;
    int64_t key = 0;
    as_status st = find_trial(t, a, sweep, number, &key, &row, err);
    if (st != AS_OK)
        return st;
    return store_file_list(t, a, key, number, kind, ret, err);
}

as_status trial_files(struct store *db, struct arena *a, const char *sweep, int64_t number,
                      const char *kind, struct file_list *ret, struct as_err *err)
{
    struct file_list files = {0};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = get_files(run.tx, a, sweep, number, kind, &files, err);
    if (run.status == AS_OK)
        *ret = files;
    return run.status;
}

/* Lock the sweep, then the trial. */
static as_status lock_both(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                           struct sweep_head *ret_sweep, struct trial_head *ret_trial,
                           struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, sweep, &key, err);
    if (st != AS_OK)
        return st;
    st = store_sweep_lock(t, a, key, ret_sweep, err);
    if (st != AS_OK)
        return st;
    return store_trial_lock(t, a, key, number, ret_trial, err);
}

static as_status cancel_trial(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                              struct trial_row *ret, struct as_err *err)
{
    static const struct trial_change change = {
        .event = TRIAL_EV_CANCEL, .reason = "cancelled by a user", .outcome = "cancelled"};
    struct sweep_head s;
    struct trial_head x = {0};
    as_status st = lock_both(t, a, sweep, number, &s, &x, err);
    if (st != AS_OK)
        return st;
    if (x.state != TRIAL_CANCELLED)
        st = trial_transition(t, a, &s, &x, &change, NULL, err);
    if (st == AS_E_CONFLICT)
        return as_fail(err, st, "trial %lld has ended: it is %s", (long long)number,
                       trial_state_format(x.state));
    if (st != AS_OK)
        return st;
    st = sweep_settle(t, a, s.key, NULL, err);
    if (st != AS_OK)
        return st;
    return store_trial_get(t, a, s.key, number, ret, err);
}

as_status trial_cancel(struct store *db, struct arena *a, const char *sweep, int64_t number,
                       struct trial_row *ret, struct as_err *err)
{
    struct trial_row row;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = cancel_trial(run.tx, a, sweep, number, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}
