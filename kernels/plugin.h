/* The CUDA plugin: found, opened with dlopen, and checked. */
#ifndef ASSAY_KERNELS_PLUGIN_H
#define ASSAY_KERNELS_PLUGIN_H

#include "kernels/backend_priv.h"

/* As backend_open("cuda", …); opts is not NULL. The plugin stays loaded for the life of the
 * process, because the CUDA runtime in it registers handlers of its own. */
AS_MUST_CHECK as_status plugin_open(const struct backend_opts *opts, struct backend **ret,
                                    struct as_err *err);

/* As backend_gpus(). */
AS_MUST_CHECK as_status plugin_gpus(struct backend_gpu *ret, size_t most, size_t *ret_n,
                                    struct as_err *err);

struct peers_ops; /* peers_priv.h */

/* What the plugin offers for peers.h. AS_E_UNSUPPORTED: it offers nothing, or another version. */
AS_MUST_CHECK as_status plugin_peers(const struct peers_ops **ret, struct as_err *err);

#endif
