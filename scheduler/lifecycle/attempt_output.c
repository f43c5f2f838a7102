/* What an attempt leaves beside its measurements: the end of its output, its use of the machine,
 * files. */
#include "scheduler/lifecycle/attempts_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "base/utf8.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/usage_store.h"

/* Log. */

static as_status put_log(struct tx *t, const struct attempt_ref *ref,
                         const struct attempt_writer *by, const char *text, bool truncated,
                         struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct trial_head x;
    as_status st = attempt_lock_fenced(t, &a, ref, by, &x, err);
    if (st != AS_OK)
        return st;
    return store_attempt_log_put(t, x.sweep_key, x.number, x.attempt, text, truncated, err);
}

as_status attempt_log(struct store *db, const struct attempt_ref *ref,
                      const struct attempt_writer *by, const char *text, bool truncated,
                      struct as_err *err)
{
    size_t len = strlen(text);
    if (len > LOG_TAIL_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/text", "%zu bytes, at most %d", len, LOG_TAIL_MAX);
    if (!as_utf8_valid(text, len))
        return as_fail_at(err, AS_E_INVAL, "/text", "not UTF-8");
    struct tx_run run = tx_run_start(db, TX_SOFT, err);
    while (tx_run_again(&run))
        run.status = put_log(run.tx, ref, by, text, truncated, err);
    return run.status;
}

/* Use of the machine. */

/* Find the attempt for what each of its ranks writes of itself, whether the attempt is current or
 * lost. *ret_seat: of the rank; USAGE_NO_SEAT: it has no ranks. */
static as_status find_for_rank(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                               const struct attempt_writer *by, struct attempt_holder *ret,
                               int64_t *ret_seat, struct as_err *err)
{
    as_status st = attempt_find(t, a, ref, by, ret, err);
    if (st != AS_OK)
        return st;
    if (!ret->is_there)
        return as_fail(err, AS_E_NOT_FOUND, "trial %lld has no attempt %lld",
                       (long long)ref->number, (long long)ref->attempt);
    if (ret->gang && !(by && by->has_seat))
        return as_fail(err, AS_E_UNSUPPORTED,
                       "the attempt has several ranks: the header Assay-Seat is missing");
    *ret_seat = ret->gang ? by->seat : USAGE_NO_SEAT;
    return AS_OK;
}

static as_status put_usage(struct tx *t, const struct attempt_ref *ref,
                           const struct attempt_writer *by, const char *usage, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct attempt_holder holder;
    int64_t seat = USAGE_NO_SEAT;
    as_status st = find_for_rank(t, &a, ref, by, &holder, &seat, err);
    return st == AS_OK
               ? store_usage_put(t, holder.sweep_key, ref->number, ref->attempt, seat, usage, err)
               : st;
}

as_status attempt_usage(struct store *db, const struct attempt_ref *ref,
                        const struct attempt_writer *by, const char *usage, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_SOFT, err);
    while (tx_run_again(&run))
        run.status = put_usage(run.tx, ref, by, usage, err);
    return run.status;
}

/* Files. */

/* The files that an attempt has of a kind. */
struct file_set {
    file_kind kind;
    int64_t step; /* of FILE_KEPT */
    const struct file_row *files;
    size_t n;
};

static as_status put_set(struct tx *t, const struct trial_head *x, const struct file_set *s,
                         int64_t *ret_missing, struct as_err *err)
{
    static const char *const kinds[] = {"artifact", "checkpoint"};
    return s->kind == FILE_KEPT ? store_file_keep(t, x->sweep_key, x->number, s->step, s->files,
                                                  s->n, ret_missing, err)
                                : store_file_replace(t, x->sweep_key, x->number, kinds[s->kind],
                                                     s->files, s->n, ret_missing, err);
}

/* Content that was there when it was looked for may be removed before a row refers to it. */
static as_status removed_meanwhile(as_status st, int64_t missing, struct as_err *err)
{
    return st == AS_E_NOT_FOUND && missing < 0
               ? as_fail_at(err, AS_E_UNSUPPORTED, "/files", "content was removed meanwhile")
               : st;
}

static as_status put_fenced(struct tx *t, const struct attempt_ref *ref,
                            const struct attempt_writer *by, const struct file_set *s,
                            int64_t *ret_missing, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct trial_head x;
    as_status st = attempt_lock_fenced(t, &a, ref, by, &x, err);
    return st == AS_OK ? removed_meanwhile(put_set(t, &x, s, ret_missing, err), *ret_missing, err)
                       : st;
}

static as_status put_output(struct tx *t, const struct attempt_ref *ref,
                            const struct attempt_writer *by, const struct file_set *s,
                            int64_t *ret_missing, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct attempt_holder holder;
    int64_t seat = USAGE_NO_SEAT;
    as_status st = find_for_rank(t, &a, ref, by, &holder, &seat, err);
    if (st != AS_OK)
        return st;
    st = store_file_put_log(t, holder.sweep_key, ref->number, ref->attempt, seat, s->files, s->n,
                            ret_missing, err);
    return removed_meanwhile(st, *ret_missing, err);
}

static as_status replace_files(struct tx *t, const struct attempt_ref *ref,
                               const struct attempt_writer *by, const struct file_set *s,
                               struct as_err *err)
{
    int64_t missing = -1;
    as_status st = s->kind == FILE_LOG ? put_output(t, ref, by, s, &missing, err)
                                       : put_fenced(t, ref, by, s, &missing, err);
    if (st < 0 || missing < 0)
        return st;
    char pointer[40];
    snprintf(pointer, sizeof pointer, "/files/%lld/sha256", (long long)missing);
    return as_fail_at(err, AS_E_UNSUPPORTED, pointer,
                      "no content %.64s of %lld bytes is stored: upload it first",
                      s->files[missing].sha256, (long long)s->files[missing].size);
}

/* Is the path relative, without empty, "." and ".." parts? */
static bool path_valid(const char *path)
{
    size_t len = strlen(path);
    if (len < 1 || !as_utf8_valid(path, len) || as_utf8_length(path) > 255)
        return false;
    for (const char *part = path;; part += strcspn(part, "/") + 1) {
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && strncmp(part, "..", 2) == 0))
            return false;
        if (!part[n])
            return true;
    }
}

static as_status file_check(const struct file_row *files, size_t i, struct as_err *err)
{
    char pointer[40];

    snprintf(pointer, sizeof pointer, "/files/%zu", i);
    if (!path_valid(files[i].path))
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "'%.80s' is not a relative path without '.' and '..'", files[i].path);
    if (!sha256_hex_valid(files[i].sha256) || files[i].size < 0)
        return as_fail_at(err, AS_E_INVAL, pointer, "the digest or the size is wrong");
    for (size_t k = 0; k < i; k++) {
        if (as_streq(files[k].path, files[i].path))
            return as_fail_at(err, AS_E_INVAL, pointer, "'%.80s' appears twice", files[i].path);
    }
    return AS_OK;
}

static as_status put_files(struct store *db, const struct attempt_ref *ref,
                           const struct attempt_writer *by, const struct file_set *s,
                           struct as_err *err)
{
    if (s->n > 1000)
        return as_fail_at(err, AS_E_TOO_LARGE, "/files", "%zu files, at most 1000", s->n);
    for (size_t i = 0; i < s->n; i++) {
        as_status st = file_check(s->files, i, err);
        if (st != AS_OK)
            return st;
    }
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = replace_files(run.tx, ref, by, s, err);
    return run.status;
}

as_status attempt_files(struct store *db, const struct attempt_ref *ref,
                        const struct attempt_writer *by, file_kind kind,
                        const struct file_row *files, size_t n, struct as_err *err)
{
    const struct file_set s = {.kind = kind, .files = files, .n = n};
    return put_files(db, ref, by, &s, err);
}

as_status attempt_keep(struct store *db, const struct attempt_ref *ref,
                       const struct attempt_writer *by, int64_t step, const struct file_row *files,
                       size_t n, struct as_err *err)
{
    const struct file_set s = {.kind = FILE_KEPT, .step = step, .files = files, .n = n};
    return put_files(db, ref, by, &s, err);
}

static as_status lose_checkpoint(struct tx *t, const struct attempt_ref *ref,
                                 const struct attempt_writer *by, const char *why,
                                 struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct trial_head x;
    int64_t missing = -1;
    as_status st = attempt_lock_fenced(t, &a, ref, by, &x, err);
    if (st == AS_OK)
        st = store_file_replace(t, x.sweep_key, x.number, "checkpoint", NULL, 0, &missing, err);
    if (st != AS_OK)
        return st;
    struct event_new e = {.type = "trial.changed",
                          .sweep_key = x.sweep_key,
                          .sweep = ref->sweep,
                          .has_number = true,
                          .number = x.number,
                          .state = trial_state_format(x.state),
                          .attempt = x.attempt,
                          .reason = why,
                          .runner = x.runner};
    return store_event_add(t, &e, err);
}

as_status attempt_lost_checkpoint(struct store *db, const struct attempt_ref *ref,
                                  const struct attempt_writer *by, const char *why,
                                  struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = lose_checkpoint(run.tx, ref, by, why, err);
    return run.status;
}
