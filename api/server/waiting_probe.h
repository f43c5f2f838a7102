/* Which of the requests that wait may find something now. */
#ifndef ASSAY_API_SERVER_WAITING_PROBE_H
#define ASSAY_API_SERVER_WAITING_PROBE_H

#include <stddef.h>
#include <stdint.h>

/* A hook of struct waiting_hooks; ctx is a struct dispatch. */
void waiting_probe(void *ctx, const int64_t *keys, size_t n, size_t *ret);

#endif
