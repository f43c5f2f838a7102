#include "base/private_env.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

static const char *const private_prefixes[] = {"ASSAY_", "AWS_", "S3_", "PG"};
/* The settings of the trainer and its kernels, which people give to a runner for its trials. */
static const char *const passed_on[] = {
    "ASSAY_THREADS", "ASSAY_BACKEND",       "ASSAY_MEMORY_BYTES", "ASSAY_PLUGIN_DIR", "ASSAY_CUDNN",
    "ASSAY_NCCL",    "ASSAY_CUDA_PRODUCTS", "ASSAY_CUDA_CONV",    "ASSAY_XGBOOST"};

bool private_env_has_name(const char *pair, const char *const *names, size_t n_names)
{
    size_t n = strcspn(pair, "=");
    for (size_t i = 0; i < n_names; i++)
        if (strlen(names[i]) == n && memcmp(names[i], pair, n) == 0)
            return true;
    return false;
}

bool private_env_is(const char *pair)
{
    bool found = false;
    for (size_t i = 0; i < AS_ARRAY_LEN(private_prefixes); i++)
        found = found || as_starts_with(pair, private_prefixes[i]);
    return found && !private_env_has_name(pair, passed_on, AS_ARRAY_LEN(passed_on));
}

/* The kernel shows the pages where it put the block at exec(), whatever `environ` says now. */
as_status private_env_hide(struct as_err *err)
{
    for (char **e = environ; e && *e; e++) {
        /* By its ASSAY_REPORT a runner finds the processes that a trial has left. */
        if (!private_env_is(*e) || as_starts_with(*e, "ASSAY_REPORT="))
            continue;
        char *copy = as_strdup(*e);
        if (!copy)
            return as_fail_nomem(err);
        explicit_bzero(*e, strlen(*e));
        *e = copy; /* stays until the end of the process, as what setenv() makes */
    }
    return AS_OK;
}

void private_env_drop(bool (*keeps)(const char *pair))
{
    char **to = environ;
    for (char **e = environ; e && *e; e++)
        if (!private_env_is(*e) || keeps(*e))
            *to++ = *e;
    if (to)
        *to = NULL;
}
