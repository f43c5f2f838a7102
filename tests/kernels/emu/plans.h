/* Plans of the real cuDNN without a device: since 9.8 it makes plans for a described device. */
#ifndef ASSAY_TESTS_KERNELS_EMU_PLANS_H
#define ASSAY_TESTS_KERNELS_EMU_PLANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h" /* inside extern "C": it has C linkage too */

enum { PLANS_FORWARD, PLANS_DX, PLANS_DW, PLANS_OPS };

struct plans_shape {
    int64_t batch, side, channels, out, kernel, stride, pad;
};

struct plans_answer {
    int64_t engine;
    size_t workspace, most; /* bytes; what the back end has */
};

/* Open the library that the plugin would open, for the device of this description (cuDNN's own, in
 * JSON; borrowed). Closed with plans_close().
 * AS_E_UNAVAILABLE  no library, not version 9, or it refuses the description */
as_status plans_open(const char *device, struct as_err *err);
void plans_close(void);

/* The engine that the back end would choose for one operation. AS_E_UNSUPPORTED: none. */
as_status plans_ask(int op, const struct plans_shape *s, bool tensor_cores,
                    struct plans_answer *ret, struct as_err *err);

#ifdef __cplusplus
}
#endif

#endif
