#include "trial-runner/train/fault.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/str.h"
#include "trial-runner/train/member.h"

/* Write the reason where the runner looks for it. If that fails, the trial is tried again all the
 * same, and may meet the device again. */
static void report_device(const char *scope, const struct as_err *why)
{
    AS_AUTO(str_done) struct str line = {0};
    struct as_err err;
    const char *path = getenv("ASSAY_DEVICE_FAULT");
    if (!path || !*path)
        return;
    str_printf(&line, "%s%s\n", scope, why->msg);
    if (line.failed || file_replace(path, line.s, line.len, 0600, &err) != AS_OK)
        (void)fprintf(stderr, "assay-train: warning: the fault is not reported: %s\n", err.msg);
}

static bool gpu_is_wanted(void)
{
    const char *backend = getenv("ASSAY_BACKEND"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    return backend && as_streq(backend, "cuda") &&
           (!visible || (*visible && !as_streq(visible, "-1")));
}

int fault_of_opening(const struct as_err *why)
{
    struct backend_gpu gpu;
    size_t n = 0;
    if (!gpu_is_wanted() || why->code == AS_E_INVAL)
        return EXIT_FAILED;
    /* Without plugin or driver no GPU of this machine is of use. */
    if (backend_gpus(&gpu, 1, &n, NULL) != AS_OK)
        report_device("all: ", why);
    else if (why->code == AS_E_UNAVAILABLE)
        report_device("", why);
    return EXIT_TRY_AGAIN;
}

bool fault_ends_all(const struct backend *be, as_status st)
{
    return as_streq(backend_name(be), "cuda") &&
           (st == AS_E_UNAVAILABLE || st == AS_E_NOMEM || st == AS_E_INTERNAL);
}

int fault_of_training(const struct backend *be, const struct as_err *why)
{
    if (!fault_ends_all(be, why->code))
        return EXIT_FAILED;
    if (why->code == AS_E_UNAVAILABLE)
        report_device("", why);
    return EXIT_TRY_AGAIN;
}
