#include "cli/session/fetch.h"

#include <sys/stat.h>

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
