/* Suggestions by Gaussian processes: the method `gp`. See search/README.md for the whole of it. */
#ifndef ASSAY_SEARCH_GP_GP_H
#define ASSAY_SEARCH_GP_GP_H

#include "base/mem.h"
#include "base/status.h"
#include "search/suggest.h"

/* Factors and scratch kept between suggestions of one sweep. With at most GP_MAX_ROWS rows (and
 * SURROGATE_NEW_ROWS and the pending ones) a model holds one square matrix of them, 42 MB; a sweep
 * with more than three models has bases of GP_MAX_ROWS_MANY rows, 13 MB each. */
struct gp_cache;
struct gp_cache *gp_cache_create(void); /* NULL: out of memory */
void gp_cache_free(struct gp_cache *c);
AS_DEFINE_FREEP(struct gp_cache, gp_cache_free)
size_t gp_cache_bytes(const struct gp_cache *c);

#define GP_MAX_ROWS 2048
#define GP_MAX_ROWS_MANY 1024

/* The contract of suggest() in search/suggest.h, for SEARCH_GP. */
AS_MUST_CHECK as_status gp_suggest(const struct search_spec *spec, const struct history *history,
                                   const json_t *state, uint64_t number, uint64_t index,
                                   struct gp_cache *cache, struct suggestion *ret,
                                   struct as_err *err);

#endif
