#include "cli/session/fetch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "cli/view/meter.h"

#define IDLE_MS 60000 /* without a byte */
#define RETRY_MS 30000

static void on_received(void *arg, int64_t done)
{
    meter_show(arg, done);
}

as_status fetch_content(const struct session *s, const struct fetch *f, struct as_err *err)
{
    struct meter meter;
    struct stat sb;
    const struct client_opts opts = {.timeout_ms = IDLE_MS,
                                     .retry_ms = RETRY_MS,
                                     .on_progress = on_received,
                                     .progress_arg = &meter};
    bool is_draft = !as_streq(f->dest, "-") &&
                    !(stat(f->dest, &sb) == 0 && (S_ISCHR(sb.st_mode) || S_ISFIFO(sb.st_mode)));
    as_status st = AS_OK;
    meter_start(&meter, f->name, "fetching", f->size);
    if (is_draft) {
        st = client_download_blob(s->client, f->sha256, f->dest, 0, &opts, err);
    } else {
        AS_AUTO(file_output_done) struct file_output o = {0};
        st = file_output_open(&o, f->dest, 0644, err);
        if (st == AS_OK)
            st = client_download_fd(s->client, f->sha256, o.fd, &opts, err);
    }
    meter_end(&meter);
    return st < 0 ? as_err_prefix(err, st, "%.200s", f->name) : AS_OK;
}

/* Read f->size bytes from the beginning of fd. */
static as_status read_back(int fd, const struct fetch *f, char **ret, struct as_err *err)
{
    size_t size = (size_t)f->size, have = 0;
    AS_AUTO(as_freep) char *bytes = as_calloc(size, 1);
    if (!bytes)
        return as_fail(err, AS_E_NOMEM, "%.200s: out of memory for %zu bytes", f->name, size);
    while (have < size) {
        ssize_t n = pread(fd, bytes + have, size - have, (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return as_fail(err, AS_E_IO, "%.200s: cannot read what was fetched: %s", f->name,
                           n < 0 ? strerror(errno) : "it is cut short");
        have += (size_t)n;
    }
    *ret = as_steal(bytes);
    return AS_OK;
}

as_status fetch_bytes(const struct session *s, const struct fetch *f, char **ret,
                      struct as_err *err)
{
    struct meter meter;
    AS_AUTO(file_closep) int fd = memfd_create("assay-fetch", MFD_CLOEXEC);
    const struct client_opts opts = {.timeout_ms = IDLE_MS,
                                     .retry_ms = RETRY_MS,
                                     .on_progress = on_received,
                                     .progress_arg = &meter};
    if (fd < 0)
        return as_fail(err, AS_E_IO, "cannot make a file in memory: %s", strerror(errno));
    meter_start(&meter, f->name, "fetching", f->size);
    as_status st = client_download_fd(s->client, f->sha256, fd, &opts, err);
    meter_end(&meter);
    if (st < 0)
        return as_err_prefix(err, st, "%.200s", f->name);
    return read_back(fd, f, ret, err);
}
