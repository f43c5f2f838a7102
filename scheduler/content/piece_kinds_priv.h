/* The kinds of blob stores (piece_store.h). */
#ifndef ASSAY_SCHEDULER_CONTENT_PIECE_KINDS_PRIV_H
#define ASSAY_SCHEDULER_CONTENT_PIECE_KINDS_PRIV_H

#include "scheduler/content/piece_ops.h"

extern const struct piece_ops folder_ops, s3_ops;

/* *ret is the `self` of the operations. Errors: piece_store_open(). */
AS_MUST_CHECK as_status folder_open(const struct piece_place *place, void **ret,
                                    struct as_err *err);
AS_MUST_CHECK as_status s3_open(const struct piece_place *place, void **ret, struct as_err *err);

#endif
