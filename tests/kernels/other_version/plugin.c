/* A plugin of another interface version: test_backend checks that it is refused, not called. */
#include <stdlib.h>

#include "kernels/backend_priv.h"

static as_status must_not_open(const struct backend_opts *opts, struct backend **ret,
                               struct as_err *err)
{
    (void)opts;
    (void)ret;
    (void)err;
    abort();
}

extern const struct backend_plugin assay_backend_plugin;
const struct backend_plugin assay_backend_plugin = {BACKEND_ABI + 1, must_not_open, NULL};
