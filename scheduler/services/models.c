/* Models for the API: lists, versions, aliases, deletes. model_add.c makes versions.
 *
 * Whoever changes anything of a model holds its row, and an event is written in the same
 * transaction. An alias moves in one statement: who asks for it gets the old version or the new. */
#include "scheduler/services/models.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/services/models_priv.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/model_store.h"

const char *const model_use_words[] = {"recommended", "ensemble", "single", NULL};

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool has_form(const char *s, const char *first)
{
    size_t len = strlen(s);
    return len >= 1 && len <= MODEL_NAME_MAX && strchr(first, s[0]) != NULL &&
           strspn(s, LETTERS DIGITS "._-") == len;
}

as_status model_name_check(const char *name, struct as_err *err)
{
    if (has_form(name, LETTERS DIGITS))
        return AS_OK;
    return as_fail(
        err, AS_E_INVAL,
        "'%.80s' is not the name of a model: letters, digits, '.', '_' and '-', a letter "
        "or a digit first, at most %d",
        name, MODEL_NAME_MAX);
}

static as_status check_alias(const char *alias, struct as_err *err)
{
    if (as_streq(alias, "default"))
        return as_fail(err, AS_E_INVAL,
                       "the alias 'default' cannot be set: it is the champion, or the newest "
                       "version where no version is the champion");
    if (has_form(alias, LETTERS))
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "'%.80s' is not an alias: letters, digits, '.', '_' and '-', a letter first, at "
                   "most %d",
                   alias, MODEL_NAME_MAX);
}

as_status model_note_change(struct tx *t, const char *name, int64_t version, struct as_err *err)
{
    const struct event_new e = {.type = "model.changed", .model = name};
    as_status st = store_model_changed(t, name, version, err);
    return st == AS_OK ? store_event_add(t, &e, err) : st;
}

/* The number that `version` means. */
static as_status find_version(struct tx *t, const char *model, const char *version, int64_t *ret,
                              struct as_err *err)
{
    if (version[0] && strspn(version, DIGITS) == strlen(version)) {
        if (as_parse_i64(version, ret, NULL) == AS_OK && *ret <= INT32_MAX)
            return AS_OK;
        return as_fail(err, AS_E_NOT_FOUND, "the model '%.64s' has no version %.40s", model,
                       version);
    }
    return store_model_alias_get(t, model, version, ret, err);
}

/* ---- models ---- */

as_status model_list(struct store *db, struct arena *a, const struct page_req *page,
                     struct model_page *ret, struct as_err *err)
{
    const char *after = "";
    int64_t size = 0;
    struct model_page rows = {0};
    bool more = false;
    as_status st = page_size(page, &size, err);
    if (st == AS_OK && page->cursor)
        st = cursor_read(a, page->cursor, "models", &after, 1, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_model_list(run.tx, a, after, size, &rows, &more, err);
    if (run.status != AS_OK)
        return run.status;
    if (more) {
        const char *const place[] = {rows.rows[rows.n - 1].name};
        rows.next_cursor = cursor_make(a, "models", place, 1);
        if (!rows.next_cursor)
            return as_fail_nomem(err);
    }
    *ret = rows;
    return AS_OK;
}

as_status model_get(struct store *db, struct arena *a, const char *name, struct model_row *ret,
                    struct as_err *err)
{
    struct model_row row;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_model_get(run.tx, a, name, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}

static as_status delete_model(struct tx *t, const char *name, struct as_err *err)
{
    int64_t newest;
    as_status st = store_model_lock(t, name, false, &newest, err);
    if (st == AS_OK)
        st = store_model_delete(t, name, err);
    return st == AS_OK ? model_note_change(t, name, 0, err) : st;
}

as_status model_delete(struct store *db, const char *name, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = delete_model(run.tx, name, err);
    return run.status;
}

/* ---- versions ---- */

static as_status list_versions(struct tx *t, struct arena *a, const char *name, int64_t before,
                               int64_t size, struct model_version_page *ret, bool *ret_more,
                               struct as_err *err)
{
    struct model_row model;
    as_status st = store_model_get(t, a, name, &model, err);
    return st == AS_OK ? store_model_version_list(t, a, name, before, size, ret, ret_more, err)
                       : st;
}

as_status model_version_list(struct store *db, struct arena *a, const char *name,
                             const struct page_req *page, struct model_version_page *ret,
                             struct as_err *err)
{
    const char *field = NULL;
    int64_t size = 0, before = 0;
    struct model_version_page rows = {0};
    bool more = false;
    as_status st = page_size(page, &size, err);
    if (st == AS_OK && page->cursor)
        st = cursor_read(a, page->cursor, "versions", &field, 1, err);
    if (st == AS_OK && field)
        st = cursor_i64(field, &before, err);
    if (st == AS_OK && (before < 0 || before > INT32_MAX))
        st = as_fail(err, AS_E_INVAL, "the cursor is not one that this list gave");
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = list_versions(run.tx, a, name, before, size, &rows, &more, err);
    if (run.status != AS_OK)
        return run.status;
    if (more) {
        char number[24];
        const char *const place[] = {number};
        (void)snprintf(number, sizeof number, "%" PRId64, rows.rows[rows.n - 1].version);
        rows.next_cursor = cursor_make(a, "versions", place, 1);
        if (!rows.next_cursor)
            return as_fail_nomem(err);
    }
    *ret = rows;
    return AS_OK;
}

/* The cursor is the last row's version and the name of its model. */
static as_status read_place(struct arena *a, const char *cursor, const char **ret_model,
                            int64_t *ret_before, struct as_err *err)
{
    const char *fields[2] = {0};
    *ret_model = "";
    *ret_before = 0;
    if (!cursor)
        return AS_OK;
    as_status st = cursor_read(a, cursor, "learned", fields, 2, err);
    if (st == AS_OK)
        st = cursor_i64(fields[0], ret_before, err);
    if (st == AS_OK && (*ret_before < 0 || *ret_before > INT32_MAX))
        st = as_fail(err, AS_E_INVAL, "the cursor is not one that this list gave");
    *ret_model = fields[1];
    return st;
}

as_status model_versions_learned(struct store *db, struct arena *a, const char *dataset,
                                 const struct page_req *page, struct model_version_page *ret,
                                 struct as_err *err)
{
    const char *model = NULL;
    int64_t size = 0, before = 0;
    struct model_version_page rows = {0};
    bool more = false;
    as_status st = page_size(page, &size, err);
    if (st == AS_OK)
        st = read_place(a, page->cursor, &model, &before, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run)) {
        run.status =
            store_model_version_learned(run.tx, a, dataset, model, before, size, &rows, &more, err);
        if (run.status == AS_OK && rows.n == 0) /* a name that nothing has */
            run.status =
                store_dataset_get(run.tx, a, dataset, false, &(struct dataset_row){0}, err);
    }
    if (run.status != AS_OK)
        return run.status;
    if (more) {
        char number[24];
        const struct model_version_row *last = &rows.rows[rows.n - 1];
        const char *const place[] = {number, last->model};
        (void)snprintf(number, sizeof number, "%" PRId64, last->version);
        rows.next_cursor = cursor_make(a, "learned", place, 2);
        if (!rows.next_cursor)
            return as_fail_nomem(err);
    }
    *ret = rows;
    return AS_OK;
}

static as_status get_version(struct tx *t, struct arena *a, const char *name, const char *version,
                             struct model_version_row *ret, struct as_err *err)
{
    struct model_row model;
    int64_t number = 0;
    as_status st = store_model_get(t, a, name, &model, err);
    if (st == AS_OK)
        st = find_version(t, name, version, &number, err);
    return st == AS_OK ? store_model_version_get(t, a, name, number, ret, err) : st;
}

as_status model_version_get(struct store *db, struct arena *a, const char *name,
                            const char *version, struct model_version_row *ret, struct as_err *err)
{
    struct model_version_row row;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = get_version(run.tx, a, name, version, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}

static as_status delete_version(struct tx *t, const char *name, const char *version,
                                struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct model_version_row row;
    int64_t newest, number = 0;
    if (as_streq(version, "default"))
        return as_fail(err, AS_E_INVAL, "version is 'default', expected a number or an alias");
    as_status st = store_model_lock(t, name, false, &newest, err);
    if (st == AS_OK)
        st = find_version(t, name, version, &number, err);
    if (st == AS_OK)
        st = store_model_version_get(t, &a, name, number, &row, err);
    if (st != AS_OK)
        return st;
    if (!as_streq(row.aliases, "[]"))
        return as_fail(err, AS_E_CONFLICT,
                       "version %lld of '%.64s' has aliases: %.120s; move or remove them first",
                       (long long)number, name, row.aliases);
    st = store_model_version_delete(t, name, number, err);
    return st == AS_OK ? model_note_change(t, name, 0, err) : st;
}

as_status model_version_delete(struct store *db, const char *name, const char *version,
                               struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = delete_version(run.tx, name, version, err);
    return run.status;
}

/* ---- aliases ---- */

static as_status set_alias(struct tx *t, struct arena *a, const char *name, const char *alias,
                           int64_t version, struct model_row *ret, struct as_err *err)
{
    int64_t newest;
    as_status st = store_model_lock(t, name, false, &newest, err);
    if (st == AS_OK)
        st = store_model_alias_set(t, name, alias, version, err);
    if (st == AS_OK)
        st = model_note_change(t, name, 0, err);
    return st == AS_OK ? store_model_get(t, a, name, ret, err) : st;
}

as_status model_alias_set(struct store *db, struct arena *a, const char *name, const char *alias,
                          int64_t version, struct model_row *ret, struct as_err *err)
{
    struct model_row row;
    as_status st = check_alias(alias, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = set_alias(run.tx, a, name, alias, version, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}

static as_status delete_alias(struct tx *t, const char *name, const char *alias, struct as_err *err)
{
    int64_t newest;
    as_status st = store_model_lock(t, name, false, &newest, err);
    if (st == AS_OK)
        st = store_model_alias_delete(t, name, alias, err);
    return st == AS_OK ? model_note_change(t, name, 0, err) : st;
}

as_status model_alias_delete(struct store *db, const char *name, const char *alias,
                             struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = delete_alias(run.tx, name, alias, err);
    return run.status;
}
