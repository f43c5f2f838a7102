/* The lock is flock() on up.lock: the kernel frees it however the process ends. The file's text
 * only names the holder for the message. As root the folder is 0711, because the user of the
 * database has to pass through it. Logs of the last three starts are kept. */
#include "cli/up/data_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/files/user_folder.h"

#define KEPT_LOGS 3

/* The given path or the default. For root that is a folder of the system, unless XDG_DATA_HOME says
 * where data belongs. *ret is owned by the caller, also on failure. */
static as_status choose_path(const char *given, char **ret, struct as_err *err)
{
    const char *base = getenv("XDG_DATA_HOME");
    bool is_said = base && base[0] == '/'; /* as user_folder_find() reads it */
    if (!given && (is_said || geteuid() != 0))
        return user_folder_find("XDG_DATA_HOME", ".local/share", ret, err);
    *ret = as_strdup(given ? given : "/var/lib/assay");
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status make_chosen(const char *given, char **ret, struct as_err *err)
{
    as_status st = choose_path(given, ret, err);
    if (st < 0)
        return st;
    /* As root: others may enter the folder (the user of the database must), but not list it. */
    return file_mkdirs(*ret, geteuid() == 0 ? 0711 : 0700, err);
}

static as_status choose_folder(const char *path, char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *chosen = NULL;
    as_status st = make_chosen(path, &chosen, err);
    if (st < 0)
        return as_err_prefix(err, st, "data folder");
    *ret = realpath(chosen, NULL);
    return *ret ? AS_OK : as_fail(err, AS_E_IO, "data folder %s: %s", chosen, strerror(errno));
}

/* Report the holder of the lock. The lock file contains "PID URL". */
static as_status fail_locked(const struct data_folder *f, struct as_err *err)
{
    char text[300] = "", *url;
    ssize_t n = pread(f->lock_fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    long pid = strtol(text, &url, 10);
    url += strspn(url, " ");
    url[strcspn(url, "\r\n")] = 0;
    if (pid <= 0)
        return as_fail(err, AS_E_CONFLICT, "another assay up is starting on %s", f->path);
    return as_fail(err, AS_E_CONFLICT, "assay up (pid %ld) is running on %s already%s%.250s", pid,
                   f->path, *url ? ", at " : "", url);
}

static as_status lock(struct data_folder *f, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(f->path, "up.lock");
    if (!path)
        return as_fail_nomem(err);
    f->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (f->lock_fd < 0)
        return as_fail(err, AS_E_IO, "cannot open %s: %s", path, strerror(errno));
    if (flock(f->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? fail_locked(f, err)
                   : as_fail(err, AS_E_IO, "cannot lock %s: %s", path, strerror(errno));
    data_folder_publish(f, "");
    return AS_OK;
}

void data_folder_publish(const struct data_folder *f, const char *url)
{
    char text[300];
    int n = snprintf(text, sizeof text, "%d %s\n", (int)getpid(), url);
    /* If this fails, only the message of AS_E_CONFLICT is less precise. */
    if (ftruncate(f->lock_fd, 0) == 0)
        (void)!pwrite(f->lock_fd, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1, 0);
}

as_status data_folder_open(struct data_folder *f, const char *path, struct as_err *err)
{
    *f = (struct data_folder){.lock_fd = -1};
    as_status st = choose_folder(path, &f->path, err);
    if (st < 0)
        return st;
    st = lock(f, err);
    if (st < 0)
        return st;
    f->admin_token = file_join(f->path, "admin.token");
    f->runner_token = file_join(f->path, "runner.token");
    f->address = file_join(f->path, "address");
    f->notes = file_join(f->path, "children");
    f->logs = file_join(f->path, "logs");
    if (!f->admin_token || !f->runner_token || !f->address || !f->notes || !f->logs)
        return as_fail_nomem(err);
    return file_mkdirs(f->logs, 0700, err);
}

void data_folder_close(struct data_folder *f)
{
    free(f->path);
    free(f->admin_token);
    free(f->runner_token);
    free(f->address);
    free(f->notes);
    free(f->logs);
    file_closep(&f->lock_fd);
    *f = (struct data_folder){.lock_fd = -1};
}

char *data_folder_new_log(const struct data_folder *f, const char *name)
{
    struct str from = {0}, to = {0};
    for (int i = KEPT_LOGS; i > 0; i--) {
        str_clear(&from);
        str_clear(&to);
        str_printf(&from, i > 1 ? "%s/%s.log.%d" : "%s/%s.log", f->logs, name, i - 1);
        str_printf(&to, "%s/%s.log.%d", f->logs, name, i);
        if (!from.failed && !to.failed)
            (void)rename(from.s, to.s); /* fails for files that do not exist */
    }
    str_done(&to);
    return str_take(&from);
}
