/* The folders of attempts on disk, and the results in them.
 *
 * The folder tree is the whole journal; there is no index that could disagree with it. result.json
 * is written to a temporary file, fsynced and renamed, so it is either absent or complete. It is
 * removed with its folder after the server has the result. Recovery is therefore one walk over the
 * tree: a folder with a valid result is delivered, of one without a result its output, and
 * everything else is removed.
 *
 * Folders whose name begins with a dot (.groups) are not part of the journal. */
#include "trial-runner/attempt/result_journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "trial-runner/collect/whole_log.h"

#define RESULT_MAX_BYTES (1 << 20)

void trial_end_done(struct trial_end *r)
{
    free(r->reason);
    free(r->log);
    *r = (struct trial_end){0};
}

as_status result_journal_write(const char *dir, const struct trial_end *r, bool durably,
                               struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(dir, "result.json");
    AS_AUTO(as_freep) char *text = NULL;
    JSON_AUTO j = json_pack("{s:s, s:s?, s:s?, s:b}", "outcome", outcome_name(r->outcome), "reason",
                            r->reason, "log", r->log, "truncated", r->truncated);
    bool ok = j != NULL;
    if (ok && r->has_exit_code)
        ok = json_object_set_new(j, "exit_code", json_integer(r->exit_code)) == 0;
    if (ok && r->has_ran)
        ok = json_object_set_new(j, "ran_ms", json_integer(r->ran_ms)) == 0;
    if (ok && r->waited_ms)
        ok = json_object_set_new(j, "waited_ms", json_integer(r->waited_ms)) == 0;
    if (ok && r->world)
        ok = json_object_set_new(j, "world", json_integer(r->world)) == 0;
    AS_AUTO(file_draft_done) struct file_draft draft = {0};
    if (!ok || !path || !(text = json_format(j)))
        return as_fail_nomem(err);
    as_status st = file_draft_open(&draft, path, err);
    if (st == AS_OK)
        st = file_write_all(draft.fd, text, strlen(text), err);
    return st == AS_OK ? file_draft_commit(&draft, 0600, durably, err) : st;
}

static as_status copy_text(struct json_fields *f, const char *name, char **ret, struct as_err *err)
{
    const char *s = NULL;
    as_status st = json_fields_str(f, name, JSON_OPTIONAL, &s, err);
    if (st < 0)
        return st;
    if (s && !(*ret = as_strdup(s)))
        return as_fail_nomem(err);
    return AS_OK;
}

as_status result_journal_read(const char *dir, struct trial_end *r, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(dir, "result.json");
    AS_AUTO(as_freep) char *text = NULL;
    JSON_AUTO j = NULL;
    struct json_fields f;
    size_t len = 0;
    const char *word = NULL;
    if (!path)
        return as_fail_nomem(err);
    as_status st = file_read(path, RESULT_MAX_BYTES, &text, &len, err);
    if (st < 0 || (st = json_parse(text, len, &j, err)) < 0 ||
        (st = json_fields_init(&f, j, "", err)) < 0 ||
        (st = json_fields_str(&f, "outcome", JSON_REQUIRED, &word, err)) < 0)
        return st;
    if (!outcome_parse(word, &r->outcome))
        return as_fail(err, AS_E_INVAL, "%s: '%s' is not an outcome", path, word);
    r->has_exit_code = json_object_get(j, "exit_code") != NULL;
    r->has_ran = json_object_get(j, "ran_ms") != NULL;
    if ((st = json_fields_i64(&f, "exit_code", JSON_OPTIONAL, -255, 255, &r->exit_code, err)) < 0 ||
        (st = json_fields_i64(&f, "ran_ms", JSON_OPTIONAL, 0, INT64_MAX, &r->ran_ms, err)) < 0 ||
        (st = json_fields_i64(&f, "waited_ms", JSON_OPTIONAL, 0, INT64_MAX, &r->waited_ms, err)) <
            0 ||
        (st = json_fields_i64(&f, "world", JSON_OPTIONAL, 0, INT32_MAX, &r->world, err)) < 0 ||
        (st = json_fields_bool(&f, "truncated", JSON_OPTIONAL, &r->truncated, err)) < 0 ||
        (st = copy_text(&f, "reason", &r->reason, err)) < 0 ||
        (st = copy_text(&f, "log", &r->log, err)) < 0)
        return st;
    return json_fields_end(&f, err);
}

as_status result_journal_lock(const char *work, int *ret_fd, struct as_err *err)
{
    AS_AUTO(as_freep) char *trials = file_join(work, "trials");
    AS_AUTO(as_freep) char *path = file_join(work, "lock");
    if (!trials || !path)
        return as_fail_nomem(err);
    as_status st = file_mkdirs(trials, 0700, err);
    if (st < 0)
        return st;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        close(fd);
        return as_fail(err, AS_E_CONFLICT, "another runner uses the work folder %s", work);
    }
    *ret_fd = fd;
    return AS_OK;
}

bool result_journal_is_room(const struct statvfs *fs)
{
    uint64_t unit = fs->f_frsize, least = (uint64_t)fs->f_blocks * unit / 20;
    if (fs->f_blocks == 0) /* some network file systems report no size */
        return true;
    if (least > RESULT_JOURNAL_ROOM_BYTES)
        least = RESULT_JOURNAL_ROOM_BYTES;
    return (uint64_t)fs->f_bavail * unit >= least && (fs->f_files == 0 || fs->f_favail > 0);
}

bool result_journal_has_room(const char *work)
{
    struct statvfs fs;
    return statvfs(work, &fs) != 0 || result_journal_is_room(&fs);
}

char *result_journal_dir(const char *work, const struct attempt_id *id)
{
    struct str s = {0};
    str_printf(&s, "%s/trials/", work);
    attempt_id_folder(id, &s);
    return str_take(&s);
}

as_status result_journal_write_json(const char *dir, const char *name, const json_t *j,
                                    struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(dir, name);
    AS_AUTO(as_freep) char *text = json_format_ordered(j);
    if (!path || !text)
        return as_fail_nomem(err);
    AS_AUTO(file_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    return file_write_all(fd, text, strlen(text), err);
}

void result_journal_remove(const char *work, const struct attempt_id *id)
{
    AS_AUTO(as_freep) char *dir = result_journal_dir(work, id);
    if (!dir || file_remove_tree(dir, NULL) < 0)
        return;
    for (int i = 0; i < 2; i++) { /* NUMBER, then SWEEP; rmdir refuses what is not empty */
        *strrchr(dir, '/') = '\0';
        if (rmdir(dir) < 0)
            return;
    }
}

struct recovery {
    const char *work, *sweep;
    int64_t number;
    result_journal_found_fn found;
    void *arg;
};

typedef as_status (*entry_fn)(struct recovery *r, const char *name, const char *path,
                              struct as_err *err);

static as_status each_entry(struct recovery *r, const char *dir, entry_fn fn, struct as_err *err)
{
    DIR *d = opendir(dir);
    as_status st = AS_OK;
    if (!d)
        return errno == ENOENT || errno == ENOTDIR
                   ? AS_OK
                   : as_fail(err, AS_E_IO, "%s: %s", dir, strerror(errno));
    for (struct dirent *e; st == AS_OK && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        AS_AUTO(as_freep) char *path = file_join(dir, e->d_name);
        st = path ? fn(r, e->d_name, path, err) : as_fail_nomem(err);
    }
    closedir(d);
    return st;
}

static as_status recover_attempt(struct recovery *r, const char *name, const char *path,
                                 struct as_err *err)
{
    AS_AUTO(trial_end_done) struct trial_end result = {0};
    struct attempt_id id = {.sweep = r->sweep, .number = r->number};
    bool is_attempt = attempt_id_read_folder(name, &id) && r->number >= 0;
    bool has_end = is_attempt && result_journal_read(path, &result, NULL) == AS_OK;
    if (!has_end && !(is_attempt && whole_log_exists(path)))
        return file_remove_tree(path, err);
    if (!has_end) {
        trial_end_done(&result);
        result.outcome = OUTCOME_NONE;
    }
    return r->found(r->arg, &id, &result, err);
}

static as_status recover_number(struct recovery *r, const char *name, const char *path,
                                struct as_err *err)
{
    if (as_parse_i64(name, &r->number, NULL) < 0)
        r->number = -1;
    as_status st = each_entry(r, path, recover_attempt, err);
    rmdir(path); /* succeeds when nothing is left */
    return st;
}

static as_status recover_sweep(struct recovery *r, const char *name, const char *path,
                               struct as_err *err)
{
    r->sweep = name;
    as_status st = each_entry(r, path, recover_number, err);
    rmdir(path);
    return st;
}

as_status result_journal_recover(const char *work, result_journal_found_fn found, void *arg,
                                 struct as_err *err)
{
    struct recovery r = {.work = work, .found = found, .arg = arg};
    AS_AUTO(as_freep) char *trials = file_join(work, "trials");
    if (!trials)
        return as_fail_nomem(err);
    return each_entry(&r, trials, recover_sweep, err);
}
