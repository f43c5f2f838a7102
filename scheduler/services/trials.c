/* Trials as people see them. */
#include "scheduler/services/trials.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/lifecycle/transition.h"
#include "search/space/param.h"

/* The list's cursor: sort, direction, has a key, key, number. */
#define PLACE_FIELDS 5

/* A value as place_write() writes it; infinities are values like others here. */
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
    if (!as_streq(f[0], trial_sort_words[q->sort]) || !as_streq(f[1], q->descending ? "d" : "a"))
        return as_fail(err, AS_E_INVAL, "the cursor belongs to another order of this list");
    ret->set = true;
    ret->has_key = as_streq(f[2], "1");
    st = cursor_i64(f[4], &ret->number, err);
    if (st == AS_OK && !read_key(f[3], &ret->key))
        st = as_fail(err, AS_E_INVAL, "the cursor is not one that this list gave");
    if (st == AS_OK && (ret->number < 0 || ret->number > INT32_MAX))
        st = as_fail(err, AS_E_INVAL, "the cursor is not one that this list gave");
    return st;
}

static const char *place_write(struct arena *a, const struct trial_query *q,
                               const struct trial_place *p)
{
    char buf[32], number[24];
    const char *key = as_format_double(p->has_key ? p->key : 0, buf, sizeof buf);
    snprintf(number, sizeof number, "%" PRId64, p->number);
    const char *const f[PLACE_FIELDS] = {trial_sort_words[q->sort], q->descending ? "d" : "a",
                                         p->has_key ? "1" : "0", key, number};
    return cursor_make(a, "trials", f, PLACE_FIELDS);
}

struct list_arg {
    struct arena *a;
    const char *sweep;
    const struct trial_query *q;
    struct trial_place after, next;
    struct trial_page page;
};

static as_status tx_list(struct tx *t, void *p, struct as_err *err)
{
    struct list_arg *arg = p;
    int64_t key = 0;
    as_status st = store_sweep_key(t, arg->sweep, &key, err);
    if (st == AS_OK)
        st = store_trial_list(t, arg->a, key, arg->q, &arg->after, &arg->page, &arg->next, err);
    return st;
}

as_status trial_list(struct store *db, struct arena *a, const char *sweep,
                     const struct trial_query *q, struct trial_page *ret, struct as_err *err)
{
    struct trial_query query = *q;
    struct list_arg arg = {.a = a, .sweep = sweep, .q = &query};
    as_status st = page_size(&q->page, &query.page.size, err);
    if (st == AS_OK)
        st = place_read(a, q, &arg.after, err);
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_list, &arg, err);
    if (st == AS_OK && arg.next.set) {
        arg.page.next_cursor = place_write(a, q, &arg.next);
        if (!arg.page.next_cursor)
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    if (st == AS_OK)
        *ret = arg.page;
    return st;
}

/* What most operations here are about. */
struct one_arg {
    struct arena *a;
    const char *sweep;
    int64_t number;
    int64_t attempt, top;
    const char *metric;
    struct trial_page page;
    struct trial_detail detail;
    struct trial_row row;
    struct series_list series;
    struct log_row log;
    struct file_list files;
};

static as_status tx_best(struct tx *t, void *p, struct as_err *err)
{
    struct one_arg *arg = p;
    int64_t key = 0;
    struct sweep_row s;
    as_status st = store_sweep_key(t, arg->sweep, &key, err);
    if (st == AS_OK)
        st = store_sweep_get(t, arg->a, key, &s, err);
    if (st == AS_OK)
        st = store_trial_best(t, arg->a, key, s.maximize, arg->top, &arg->page, err);
    return st;
}

as_status trial_best(struct store *db, struct arena *a, const char *sweep, int64_t top,
                     struct trial_page *ret, struct as_err *err)
{
    if (top < 1 || top > 1000)
        return as_fail(err, AS_E_INVAL, "top is %lld, expected 1 to 1000", (long long)top);
    struct one_arg arg = {.a = a, .sweep = sweep, .top = top};
    as_status st = store_run(db, TX_READ, tx_best, &arg, err);
    if (st == AS_OK)
        *ret = arg.page;
    return st;
}

/* The sweep's key and the trial, or AS_E_NOT_FOUND. */
static as_status find(struct tx *t, struct one_arg *arg, int64_t *ret_key, struct as_err *err)
{
    as_status st = store_sweep_key(t, arg->sweep, ret_key, err);
    return st == AS_OK ? store_trial_get(t, arg->a, *ret_key, arg->number, &arg->row, err) : st;
}

static as_status tx_get(struct tx *t, void *p, struct as_err *err)
{
    struct one_arg *arg = p;
    int64_t key = 0;
    as_status st = find(t, arg, &key, err);
    if (st != AS_OK)
        return st;
    arg->detail.trial = arg->row;
    return store_attempt_list(t, arg->a, key, arg->number, &arg->detail.attempts,
                              &arg->detail.n_attempts, err);
}

as_status trial_get(struct store *db, struct arena *a, const char *sweep, int64_t number,
                    struct trial_detail *ret, struct as_err *err)
{
    struct one_arg arg = {.a = a, .sweep = sweep, .number = number};
    as_status st = store_run(db, TX_READ, tx_get, &arg, err);
    if (st == AS_OK)
        *ret = arg.detail;
    return st;
}

static as_status tx_series(struct tx *t, void *p, struct as_err *err)
{
    struct one_arg *arg = p;
    int64_t key = 0;
    as_status st = find(t, arg, &key, err);
    return st == AS_OK ? store_measurement_series(t, arg->a, key, arg->number, arg->metric,
                                                  &arg->series, err)
                       : st;
}

as_status trial_series(struct store *db, struct arena *a, const char *sweep, int64_t number,
                       const char *metric, struct series_list *ret, struct as_err *err)
{
    struct one_arg arg = {.a = a, .sweep = sweep, .number = number, .metric = metric};
    if (metric && !param_name_valid(metric))
        return as_fail(err, AS_E_INVAL, "'%.80s' is not the name of a metric", metric);
    as_status st = store_run(db, TX_READ, tx_series, &arg, err);
    if (st == AS_OK)
        *ret = arg.series;
    return st;
}

static as_status tx_log(struct tx *t, void *p, struct as_err *err)
{
    struct one_arg *arg = p;
    int64_t key = 0;
    as_status st = find(t, arg, &key, err);
    if (st == AS_OK && arg->attempt > arg->row.attempt)
        return as_fail(err, AS_E_NOT_FOUND, "trial %lld has no attempt %lld",
                       (long long)arg->number, (long long)arg->attempt);
    if (st == AS_OK)
        st = store_attempt_log_get(t, arg->a, key, arg->number, arg->attempt, &arg->log, err);
    return st;
}

as_status trial_log(struct store *db, struct arena *a, const char *sweep, int64_t number,
                    int64_t attempt, struct log_row *ret, struct as_err *err)
{
    struct one_arg arg = {.a = a, .sweep = sweep, .number = number, .attempt = attempt};
    as_status st = store_run(db, TX_READ, tx_log, &arg, err);
    if (st == AS_OK)
        *ret = arg.log;
    return st;
}

static as_status tx_artifacts(struct tx *t, void *p, struct as_err *err)
{
    struct one_arg *arg = p;
    int64_t key = 0;
    as_status st = find(t, arg, &key, err);
    return st == AS_OK ? store_file_list(t, arg->a, key, arg->number, "artifact", &arg->files, err)
                       : st;
}

as_status trial_artifacts(struct store *db, struct arena *a, const char *sweep, int64_t number,
                          struct file_list *ret, struct as_err *err)
{
    struct one_arg arg = {.a = a, .sweep = sweep, .number = number};
    as_status st = store_run(db, TX_READ, tx_artifacts, &arg, err);
    if (st == AS_OK)
        *ret = arg.files;
    return st;
}

static as_status tx_cancel(struct tx *t, void *p, struct as_err *err)
{
    static const struct trial_change change = {
        .event = TRIAL_EV_CANCEL, .reason = "cancelled by a user", .outcome = "cancelled"};
    struct one_arg *arg = p;
    struct sweep_head s;
    struct trial_head x = {0};
    int64_t key = 0;
    as_status st = store_sweep_key(t, arg->sweep, &key, err);
    if (st == AS_OK)
        st = store_sweep_lock(t, arg->a, key, &s, err);
    if (st == AS_OK)
        st = store_trial_lock(t, arg->a, key, arg->number, &x, err);
    if (st == AS_OK && x.state != TRIAL_CANCELLED)
        st = trial_transition(t, arg->a, &s, &x, &change, NULL, err);
    if (st == AS_E_CONFLICT)
        return as_fail(err, st, "trial %lld has ended: it is %s", (long long)arg->number,
                       trial_state_format(x.state));
    if (st == AS_OK)
        st = sweep_settle(t, arg->a, key, NULL, err);
    return st == AS_OK ? store_trial_get(t, arg->a, key, arg->number, &arg->row, err) : st;
}

as_status trial_cancel(struct store *db, struct arena *a, const char *sweep, int64_t number,
                       struct trial_row *ret, struct as_err *err)
{
    struct one_arg arg = {.a = a, .sweep = sweep, .number = number};
    as_status st = store_run(db, TX_WRITE, tx_cancel, &arg, err);
    if (st == AS_OK)
        *ret = arg.row;
    return st;
}
