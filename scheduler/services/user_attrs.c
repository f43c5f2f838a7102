/* User attributes. Each request is checked whole before its transaction; the sum of what a trial
 * has is checked after the write and undoes it. */
#include "scheduler/services/user_attrs.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "scheduler/store/attr_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_row_store.h"

static as_status check_name(const char *name, const char *at, struct as_err *err)
{
    size_t n = 0;
    for (const char *c = name; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return as_fail_at(err, AS_E_INVAL, at, "%s: a name has no control characters", at);
        n += ((unsigned char)*c & 0xc0) != 0x80; /* not a further byte of a character */
    }
    if (n < 1 || n > USER_ATTR_NAME_MAX)
        return as_fail_at(err, AS_E_INVAL, at, "%s: the name has %zu characters, expected 1 to %d",
                          at, n, USER_ATTR_NAME_MAX);
    return AS_OK;
}

static as_status read_one(struct arena *a, const char *name, const json_t *value,
                          struct user_attr *ret, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child("", name, at);
    as_status st = check_name(name, at, err);
    if (st != AS_OK)
        return st;
    *ret = (struct user_attr){.name = name};
    if (json_is_null(value))
        return AS_OK;
    AS_AUTO(as_freep) char *text = json_format_ordered(value);
    ret->value = arena_strdup(a, text);
    if (!ret->value)
        return as_fail_nomem(err);
    if (strlen(text) > USER_ATTR_VALUE_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, at, "%s: found %zu bytes of JSON, at most %d", at,
                          strlen(text), USER_ATTR_VALUE_MAX);
    return AS_OK;
}

static as_status read_patch(struct arena *a, const json_t *patch, struct user_attr **ret,
                            size_t *ret_n, struct as_err *err)
{
    const char *name;
    json_t *value;
    size_t n = json_object_size(patch), i = 0;
    if (!json_is_object(patch))
        return as_fail(err, AS_E_INVAL, "found %s, expected an object", json_type_name(patch));
    if (n > 2 * USER_ATTRS_MAX) /* half of them may be removed */
        return as_fail(err, AS_E_TOO_LARGE, "found %zu names, at most %d", n, 2 * USER_ATTRS_MAX);
    struct user_attr *attrs = arena_alloc(a, n + 1, sizeof *attrs);
    if (!attrs)
        return as_fail_nomem(err);
    json_object_foreach((json_t *)patch, name, value)
    {
        as_status st = read_one(a, name, value, &attrs[i++], err);
        if (st != AS_OK)
            return st;
    }
    *ret = attrs;
    *ret_n = n;
    return AS_OK;
}

static as_status find(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                      int64_t *ret_key, struct as_err *err)
{
    struct trial_row row;
    as_status st = store_sweep_key(t, sweep, ret_key, err);
    return st == AS_OK && number >= 0 ? store_trial_get(t, a, *ret_key, number, &row, err) : st;
}

static as_status get_attrs(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                           const char **ret, struct as_err *err)
{
    int64_t key = 0;
    as_status st = find(t, a, sweep, number, &key, err);
    return st == AS_OK ? store_attr_list(t, a, key, &number, 1, ret, err) : st;
}

static as_status change_attrs(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                              const struct user_attr *attrs, size_t n, const char **ret,
                              struct as_err *err)
{
    int64_t key = 0, count = 0, bytes = 0;
    as_status st = find(t, a, sweep, number, &key, err);
    if (st < 0 || (st = store_attr_put(t, key, number, attrs, n, err)) < 0 ||
        (st = store_attr_sum(t, key, number, &count, &bytes, err)) < 0)
        return st;
    if (count > USER_ATTRS_MAX || bytes > USER_ATTRS_BYTES_MAX)
        return as_fail(err, AS_E_TOO_LARGE,
                       "there would be %lld attributes of %lld bytes, at most %d of %d are kept",
                       (long long)count, (long long)bytes, USER_ATTRS_MAX, USER_ATTRS_BYTES_MAX);
    return store_attr_list(t, a, key, &number, 1, ret, err);
}

as_status user_attrs_change(struct store *db, struct arena *a, const char *sweep, int64_t number,
                            const json_t *patch, const char **ret, struct as_err *err)
{
    struct user_attr *attrs = NULL;
    size_t n = 0;
    as_status st = read_patch(a, patch, &attrs, &n, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = change_attrs(run.tx, a, sweep, number, attrs, n, ret, err);
    return run.status;
}

as_status user_attrs_get(struct store *db, struct arena *a, const char *sweep, int64_t number,
                         const char **ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = get_attrs(run.tx, a, sweep, number, ret, err);
    return run.status;
}

static as_status list_attrs(struct tx *t, struct arena *a, const char *sweep,
                            const int64_t *numbers, size_t n, const char **ret, struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, sweep, &key, err);
    return st == AS_OK ? store_attr_list(t, a, key, numbers, n, ret, err) : st;
}

as_status user_attrs_of_page(struct store *db, struct arena *a, const char *sweep,
                             struct trial_page *page, struct as_err *err)
{
    int64_t *numbers = arena_alloc(a, page->n + 1, sizeof *numbers);
    const char **found = arena_alloc(a, page->n + 1, sizeof *found);
    if (!numbers || !found)
        return as_fail_nomem(err);
    for (size_t i = 0; i < page->n; i++)
        numbers[i] = page->rows[i].number;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = list_attrs(run.tx, a, sweep, numbers, page->n, found, err);
    if (run.status == AS_OK)
        page->user_attrs = found;
    return run.status;
}
