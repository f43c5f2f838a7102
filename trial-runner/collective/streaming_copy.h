/* A copy whose destination is not read soon. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_STREAMING_COPY_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_STREAMING_COPY_H

#include <stddef.h>

/* Copies n bytes with streaming stores, which go past the caches: memory is written without being
 * read first, and what the caches hold stays there. The two do not overlap. Slower than memcpy()
 * where the destination would stay in a cache until it is read. */
void streaming_copy(void *to, const void *from, size_t n);

#endif
