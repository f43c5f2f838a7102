/* Exact sums of bytes and of their squares. */
#ifndef ASSAY_DATA_PREPROCESS_BYTE_SUMS_H
#define ASSAY_DATA_PREPROCESS_BYTE_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The sums of one channel. */
struct byte_sums {
    uint64_t sum, squares;
};

/* Add n bytes, the i-th to sums[i % channels]; channels >= 1. AS_E_NOMEM. */
AS_MUST_CHECK as_status byte_sums_add(const unsigned char *bytes, size_t n, size_t channels,
                                      struct byte_sums *sums, struct as_err *err);

#endif
