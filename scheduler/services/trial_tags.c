/* A change of tags is one statement on all trials, so that two people who tag the same trials do
 * not lose each other's tags: the tags that a trial has are read under its lock. The sweep's row is
 * not locked, because nothing that counts or searches depends on tags. */
#include "scheduler/services/trial_tags.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/tag_store.h"

/* ---- the request ---- */

/* A comma separates tags in the table of trials. */
static bool is_tag(const json_t *j)
{
    const char *s = json_string_value(j);
    size_t len = json_string_length(j);
    if (!s || len == 0 || strlen(s) != len || as_utf8_length(s) > TRIAL_TAG_TEXT_MAX)
        return false;
    for (const char *p = s; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == ',')
            return false;
    return s[0] != ' ' && s[len - 1] != ' ';
}

static as_status read_tags(const json_t *list, const char *pointer, struct arena *a,
                           const char ***ret, size_t *ret_n, struct as_err *err)
{
    size_t n = json_array_size(list);
    if (n > TRIAL_TAGS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, pointer, "%s: %zu tags, at most %d are allowed",
                          pointer, n, TRIAL_TAGS_MAX);
    *ret = arena_alloc(a, n + 1, sizeof **ret);
    if (!*ret)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        char at[AS_ERR_POINTER_MAX];
        const json_t *tag = json_array_get(list, i);
        json_pointer_index(pointer, i, at);
        if (!is_tag(tag))
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: expected a text of 1 to %d characters without commas, control "
                              "characters and blanks at its ends",
                              at, TRIAL_TAG_TEXT_MAX);
        (*ret)[i] = json_string_value(tag);
    }
    *ret_n = n;
    return AS_OK;
}

static as_status read_numbers(const json_t *list, struct arena *a, struct tags_request *ret,
                              struct as_err *err)
{
    size_t n = json_array_size(list);
    if (n > TRIAL_TAGS_AT_ONCE)
        return as_fail_at(err, AS_E_TOO_LARGE, "/numbers",
                          "/numbers: %zu trials, at most %d are allowed", n, TRIAL_TAGS_AT_ONCE);
    int64_t *numbers = arena_alloc(a, n + 1, sizeof *numbers);
    if (!numbers)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        char at[AS_ERR_POINTER_MAX];
        const json_t *v = json_array_get(list, i);
        json_pointer_index("/numbers", i, at);
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX)
            return as_fail_at(err, AS_E_INVAL, at, "%s: expected the number of a trial", at);
        numbers[i] = json_integer_value(v);
    }
    ret->numbers = numbers;
    ret->n_numbers = n;
    return AS_OK;
}

static as_status check_request(const struct tags_request *q, struct as_err *err)
{
    if (q->n_add + q->n_remove == 0)
        return as_fail_at(err, AS_E_INVAL, "/add", "/add: expected tags here or in /remove");
    for (size_t i = 0; i < q->n_add; i++)
        for (size_t k = 0; k < q->n_remove; k++)
            if (as_streq(q->add[i], q->remove[k]))
                return as_fail_at(err, AS_E_INVAL, "/remove",
                                  "/remove: '%.64s' is added and removed", q->add[i]);
    return AS_OK;
}

as_status tags_request_parse(const json_t *body, struct arena *a, struct tags_request *ret,
                             struct as_err *err)
{
    struct json_fields f;
    struct tags_request q = {0};
    json_t *numbers = NULL, *add = NULL, *remove = NULL;
    as_status st = json_fields_init(&f, body, "", err);
    if (st < 0 || (st = json_fields_array(&f, "numbers", JSON_REQUIRED, &numbers, err)) < 0 ||
        (st = json_fields_array(&f, "add", JSON_OPTIONAL, &add, err)) < 0 ||
        (st = json_fields_array(&f, "remove", JSON_OPTIONAL, &remove, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0 || (st = read_numbers(numbers, a, &q, err)) < 0 ||
        (st = read_tags(add, "/add", a, &q.add, &q.n_add, err)) < 0 ||
        (st = read_tags(remove, "/remove", a, &q.remove, &q.n_remove, err)) < 0 ||
        (st = check_request(&q, err)) < 0)
        return st;
    *ret = q;
    return AS_OK;
}

/* ---- the change ---- */

static as_status write_events(struct tx *t, struct arena *a, int64_t key, const char *sweep,
                              const struct tagged_trial *rows, size_t n, struct as_err *err)
{
    struct event_new *events = arena_alloc(a, n + 1, sizeof *events);
    if (!events)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        events[i] = (struct event_new){.type = "trial.changed",
                                       .sweep_key = key,
                                       .sweep = sweep,
                                       .has_number = true,
                                       .number = rows[i].number,
                                       .state = trial_state_format(rows[i].state),
                                       .attempt = rows[i].attempt,
                                       .reason = "other tags"};
    return n > 0 ? store_event_add_many(t, events, n, err) : AS_OK;
}

static as_status tag_trials(struct tx *t, struct arena *a, const char *sweep,
                            const struct tags_request *q, int64_t *ret_changed, struct as_err *err)
{
    int64_t key = 0;
    struct tagged_trial *rows = NULL;
    size_t n = 0;
    const struct trial_tagging tagging = {.numbers = q->numbers,
                                          .n_numbers = q->n_numbers,
                                          .add = q->add,
                                          .n_add = q->n_add,
                                          .remove = q->remove,
                                          .n_remove = q->n_remove};
    as_status st = store_sweep_key(t, sweep, &key, err);
    if (st == AS_OK)
        st = store_trial_tag(t, a, key, &tagging, &rows, &n, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        if (rows[i].n_tags > TRIAL_TAGS_MAX)
            st = as_fail_at(err, AS_E_INVAL, "/add",
                            "/add: trial %lld would have %lld tags, at most %d are allowed",
                            (long long)rows[i].number, (long long)rows[i].n_tags, TRIAL_TAGS_MAX);
    if (st == AS_OK)
        st = write_events(t, a, key, sweep, rows, n, err);
    if (st == AS_OK)
        *ret_changed = (int64_t)n;
    return st;
}

as_status trials_tag(struct store *db, const char *sweep, const struct tags_request *q,
                     int64_t *ret_changed, struct as_err *err)
{
    int64_t changed = 0;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run)) {
        AS_AUTO(arena_done) struct arena a = {0};
        run.status = tag_trials(run.tx, &a, sweep, q, &changed, err);
    }
    if (run.status == AS_OK)
        *ret_changed = changed;
    return run.status;
}
