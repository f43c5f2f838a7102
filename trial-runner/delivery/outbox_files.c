/* Files of one attempt: checkpoints, artifacts, all of its output, and what is kept for forks.
 *
 * The trial may change its files while they are read. Digest and bytes come from one open file, and
 * a checkpoint whose files changed meanwhile is not sent at all (upload_files, `whole`).
 *
 * A checkpoint and the measurements before it are two files that the trial writes one after the
 * other, at any moment. So the measurements are read to their end, and sent, after the last byte of
 * the checkpoint was read and before the server is told of it (outbox_lines_before).
 *
 * What is kept for forks goes the other way round: by a measurement at a rung the server decides
 * who is forked, so the files of that step are there before the measurement is sent
 * (outbox_keep_for_forks). */
#include "trial-runner/delivery/outbox_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "trial-runner/delivery/cache.h"

#define OUTPUT_PATIENCE_MS 10000 /* for the output of an attempt without a result */

static void on_skip(void *arg, const char *path, const char *why)
{
    char what[200];
    snprintf(what, sizeof what, "%.160s is not kept", path);
    outbox_warn(arg, what, why);
}

/* Upload the content of one file. Digest and bytes come from the same open file, so that the trial
 * may replace the file by rename meanwhile. */
static as_status upload_one(struct outbox *o, const char *dir, struct fileset_file *f,
                            int64_t retry_ms, struct as_err *err)
{
    const struct client_opts patience = {.retry_ms = retry_ms};
    AS_AUTO(as_freep) char *path = file_join(dir, f->path);
    char open_path[40];
    int64_t size = 0;
    if (!path)
        return as_fail_nomem(err);
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "%s: %s", f->path, strerror(errno));
    snprintf(open_path, sizeof open_path, "/proc/self/fd/%d", fd);
    as_status st = sha256_of_file(open_path, f->sha256, &size, err);
    if (st == AS_OK)
        st = client_upload_file(o->attempt->send, open_path, f->sha256, &patience, NULL, err);
    if (st == AS_OK)
        f->size = size;
    else
        f->sha256[0] = '\0';
    return st;
}

/* May the failure come from a file that changed or disappeared while it was read? */
static bool is_moved(as_status st)
{
    return st == AS_E_INVAL || st == AS_E_IO || st == AS_E_NOT_FOUND;
}

/* Upload the files whose digest is not known. Files that cannot be kept are noted and left out.
 * AS_E_CONFLICT: `whole` asks for all files or none, and one has changed. */
static as_status upload_files(struct outbox *o, const char *dir, struct fileset *set, bool whole,
                              struct as_err *err)
{
    as_status st;
    for (size_t i = 0; i < set->n; i++) {
        if (set->files[i].sha256[0] ||
            (st = upload_one(o, dir, &set->files[i], CLIENT_RETRY_FOREVER, err)) == AS_OK)
            continue;
        if (!outbox_is_refused(st) && !is_moved(st))
            return st;
        if (whole && is_moved(st))
            return as_fail(err, AS_E_CONFLICT, "%s changed while it was read", set->files[i].path);
        on_skip(o, set->files[i].path, err->msg);
    }
    return AS_OK;
}

/* Send the list of files: what the attempt has of this kind. */
static as_status put_list(struct outbox *o, const struct fileset *set, const char *kind,
                          struct as_err *err)
{
    JSON_AUTO body = fileset_to_json(set, kind);
    if (!body)
        return as_fail_nomem(err);
    as_status st = outbox_send(o, &outbox_replace_files, body, NULL, err);
    if (outbox_is_refused(st)) {
        outbox_warn(o, kind, err->msg);
        st = AS_OK;
    }
    return st;
}

/* List the files below `dir`. A folder that the trial made unreadable is noted and counts as
 * empty. */
static as_status scan_folder(struct outbox *o, const char *dir, struct fileset *ret,
                             const char *what, struct as_err *err)
{
    as_status st = fileset_scan(dir, ret, on_skip, o, err);
    if (st != AS_E_INVAL)
        return st;
    outbox_warn(o, what, err->msg);
    return AS_OK;
}

/* ---- forks ---- */

#define KEPT_FOLDER "step-%" PRId64 /* as the trainer names it (train/checkpoint.h) */
#define KEEP_TRIES 5                /* a program may write its checkpoint just then */

/* Is the file below a folder "step-5", which holds what is kept and no checkpoint? */
static bool is_kept_file(const struct fileset_file *f)
{
    size_t prefix = strlen("step-"), digits = 0;
    if (strncmp(f->path, "step-", prefix) != 0)
        return false;
    digits = strspn(f->path + prefix, "0123456789");
    return digits > 0 && f->path[prefix + digits] == '/';
}

/* Leave out what is kept for forks. */
static void drop_kept(struct fileset *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (is_kept_file(&s->files[i]))
            free(s->files[i].path);
        else
            s->files[n++] = s->files[i];
    }
    s->n = n;
}

/* The checkpoint folder as another attempt would go on from it. */
static as_status scan_checkpoints(struct outbox *o, const char *dir, struct fileset *ret,
                                  struct as_err *err)
{
    as_status st = scan_folder(o, dir, ret, "the checkpoints are not kept", err);
    if (st == AS_OK && o->attempt->claimed.forks.json)
        drop_kept(ret);
    return st;
}

static char *kept_folder(const struct outbox *o, int64_t step)
{
    AS_AUTO(str_done) struct str path = {0};
    str_printf(&path, "%s/checkpoints/" KEPT_FOLDER, o->attempt->dir, step);
    return str_take(&path);
}

/* The bit of a step at which something is kept; 0: nothing is. */
static uint64_t bit_of(const struct outbox *o, int64_t step)
{
    const struct claimed_forks *k = &o->attempt->claimed.forks;
    if (!k->json || step <= 0 || step >= k->until || step % k->every != 0)
        return 0;
    return UINT64_C(1) << (step / k->every - 1);
}

static as_status put_kept(struct outbox *o, const struct fileset *set, int64_t step,
                          struct as_err *err)
{
    JSON_AUTO body = fileset_to_json(set, "kept");
    if (!body || json_object_set_new(body, "step", json_integer(step)) < 0)
        return as_fail_nomem(err);
    as_status st = outbox_send(o, &outbox_replace_files, body, NULL, err);
    if (!outbox_is_refused(st))
        return st;
    outbox_warn(o, "nothing is kept for forks", err->msg);
    return AS_OK;
}

/* Keep what the program has left for this step in the folder of its own, or else all that is in the
 * checkpoint folder now. */
static as_status keep_step(struct outbox *o, int64_t step, struct as_err *err)
{
    AS_AUTO(as_freep) char *all = file_join(o->attempt->dir, "checkpoints");
    AS_AUTO(as_freep) char *own = kept_folder(o, step);
    if (!all || !own)
        return as_fail_nomem(err);
    bool is_own = access(own, F_OK) == 0;
    as_status st = AS_E_CONFLICT;
    for (int tries = 0; tries < KEEP_TRIES && st == AS_E_CONFLICT; tries++) {
        AS_AUTO(fileset_done) struct fileset set = {0};
        st = is_own ? scan_folder(o, own, &set, "nothing is kept for forks", err)
                    : scan_checkpoints(o, all, &set, err);
        if (st == AS_OK)
            st = upload_files(o, is_own ? own : all, &set, true, err);
        if (st == AS_OK)
            st = put_kept(o, &set, step, err);
    }
    if (st != AS_E_CONFLICT)
        return st;
    outbox_warn(o, "nothing is kept for forks", err->msg);
    return AS_OK;
}

as_status outbox_keep_for_forks(struct outbox *o, struct as_err *err)
{
    size_t i;
    json_t *item;
    as_status st = AS_OK;
    json_array_foreach(o->items, i, item)
    {
        int64_t step = json_integer_value(json_object_get(item, "step"));
        uint64_t bit = bit_of(o, step);
        if (!bit || (o->kept & bit))
            continue;
        if ((st = keep_step(o, step, err)) < 0)
            return st;
        o->kept |= bit;
    }
    return st;
}

void outbox_forget_kept(const struct outbox *o)
{
    size_t i;
    json_t *item;
    json_array_foreach(o->items, i, item)
    {
        int64_t step = json_integer_value(json_object_get(item, "step"));
        AS_AUTO(as_freep) char *folder = bit_of(o, step) ? kept_folder(o, step) : NULL;
        if (folder)
            (void)!file_remove_tree(folder, NULL);
    }
}

as_status outbox_checkpoints(struct outbox *o, struct as_err *err)
{
    AS_AUTO(fileset_done) struct fileset now = {0};
    AS_AUTO(as_freep) char *dir = file_join(o->attempt->dir, "checkpoints");
    if (!dir)
        return as_fail_nomem(err);
    as_status st = scan_checkpoints(o, dir, &now, err);
    if (st < 0 || fileset_same(&now, &o->uploaded))
        return st;
    fileset_copy_digests(&now, &o->uploaded);
    st = upload_files(o, dir, &now, true, err);
    if (st == AS_E_CONFLICT) /* until the next look the server keeps the files that it has */
        return AS_OK;
    if (st < 0 || (st = outbox_lines_before(o, err)) < 0 ||
        (st = put_list(o, &now, "checkpoint", err)) < 0)
        return st;
    fileset_done(&o->uploaded);
    o->uploaded = now;
    now = (struct fileset){0};
    return AS_OK;
}

as_status outbox_skip_checkpoints(struct outbox *o, struct as_err *err)
{
    AS_AUTO(as_freep) char *dir = file_join(o->attempt->dir, "checkpoints");
    return dir ? scan_folder(o, dir, &o->uploaded, "the checkpoints are not kept", err)
               : as_fail_nomem(err);
}

void outbox_keep_checkpoints(const struct outbox *o)
{
    const struct options *opts = o->attempt->options;
    for (size_t i = 0; i < o->uploaded.n; i++) {
        const struct fileset_file *f = &o->uploaded.files[i];
        AS_AUTO(str_done) struct str path = {0};
        struct as_err err = {0};
        str_printf(&path, "%s/checkpoints/%s", o->attempt->dir, f->path);
        if (!f->sha256[0] || path.failed)
            continue;
        if (cache_keep(opts->cache, opts->cache_max_bytes, f->sha256, path.s, &err) < 0)
            log_write(LOG_WARN, "a checkpoint is not kept in the cache", "%s error=\"%s\"",
                      o->attempt->label, err.msg);
    }
}

as_status outbox_artifacts(struct outbox *o, struct as_err *err)
{
    AS_AUTO(fileset_done) struct fileset now = {0};
    AS_AUTO(as_freep) char *dir = file_join(o->attempt->dir, "artifacts");
    if (!dir)
        return as_fail_nomem(err);
    as_status st = scan_folder(o, dir, &now, "the artifacts are not kept", err);
    if (st < 0 || now.n == 0 || (st = upload_files(o, dir, &now, false, err)) < 0)
        return st;
    return put_list(o, &now, "artifact", err);
}

bool outbox_has_output(const struct outbox *o)
{
    const struct attempt *a = o->attempt;
    whole_log_flush(a->whole);
    return !o->output_sent && a->options->log_max_bytes > 0 && whole_log_exists(a->dir);
}

/* Say which content the output is. Each rank has its own, whoever leads. */
static as_status put_output(struct outbox *o, struct fileset_file *f, bool patiently,
                            struct as_err *err)
{
    const struct fileset set = {.files = f, .n = 1};
    JSON_AUTO body = fileset_to_json(&set, "log");
    if (!body)
        return as_fail_nomem(err);
    return patiently && !o->attempt->rank
               ? outbox_send(o, &outbox_replace_files, body, NULL, err)
               : outbox_send_alone(o, &outbox_replace_files, outbox_known_world(o->attempt), body,
                                   NULL, err);
}

as_status outbox_output(struct outbox *o, bool patiently, struct as_err *err)
{
    const struct attempt *a = o->attempt;
    AS_AUTO(as_freep) char *path = NULL;
    char name[] = WHOLE_LOG_NAME;
    struct fileset_file f = {.path = name};
    if (!outbox_has_output(o))
        return AS_OK;
    as_status st = whole_log_join(a->dir, a->options->log_max_bytes, &path, err);
    if (st == AS_OK)
        st = upload_one(o, a->dir, &f, patiently ? CLIENT_RETRY_FOREVER : OUTPUT_PATIENCE_MS, err);
    if (st == AS_OK)
        st = put_output(o, &f, patiently, err);
    o->output_sent = st == AS_OK;
    if (!outbox_is_refused(st) && !is_moved(st) && st != AS_E_STALE)
        return st;
    log_write(LOG_WARN, "the whole output is not kept", "%s error=\"%s\"", a->label, err->msg);
    return AS_OK;
}

as_status outbox_sync_artifacts(const struct outbox *o, size_t *ret_n, struct as_err *err)
{
    AS_AUTO(fileset_done) struct fileset now = {0};
    AS_AUTO(as_freep) char *dir = file_join(o->attempt->dir, "artifacts");
    if (!dir)
        return as_fail_nomem(err);
    as_status st = fileset_scan(dir, &now, NULL, NULL, err);
    *ret_n = st == AS_OK ? now.n : 0;
    if (st == AS_OK && now.n > 0)
        st = fileset_sync(&now, dir, err);
    return st == AS_E_INVAL ? AS_OK
                            : st; /* a folder that the trial made unreadable has no artifacts */
}
