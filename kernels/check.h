/* Checks of an operation's arguments. Each ops_X.c lists an operation's tensors as rows and its
 * sizes as dimensions and checks them before it calls the table, so that no back end has to.
 *
 * AS_E_INVAL     a tensor is missing, of another back end or kind, too small for its shape, or
 *                shared where it is written
 * AS_E_TOO_LARGE a dimension is past 2^31 - 1, or a product overflows */
#ifndef ASSAY_KERNELS_CHECK_H
#define ASSAY_KERNELS_CHECK_H

#include "kernels/backend_priv.h"

enum {
    REQUIRED = 0,
    OPTIONAL = 1, /* the tensor may be absent */
    SHARED = 2,   /* stride 0 is allowed: an input */
};

struct row {
    const char *name;
    struct tensor t;
    buf_kind kind;
    size_t n; /* elements of one member */
    unsigned flags;
};

struct dim {
    const char *name;
    size_t n;
};

AS_MUST_CHECK as_status check_dims(const char *op, const struct dim *dims, size_t n_dims,
                                   struct as_err *err);
AS_MUST_CHECK as_status check_rows(const char *op, const struct backend *be, const struct row *rows,
                                   size_t n_rows, size_t members, struct as_err *err);

/* check_dims, then check_rows. The first dimension is the number of members. */
AS_MUST_CHECK as_status check_all(const char *op, const struct backend *be, const struct dim *dims,
                                  size_t n_dims, const struct row *rows, size_t n_rows,
                                  struct as_err *err);

AS_MUST_CHECK as_status check_act(const char *op, act_kind act, struct as_err *err);

#endif
