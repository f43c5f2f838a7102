/* A flat problem as another person would have written it: parameters renamed and in another order,
 * values of choices in another order, ranges of numbers mirrored and in other units. Every value of
 * the problem is there, at another place; so a search should find it as soon, on average. */
#ifndef ASSAY_BENCH_SEARCH_DISGUISE_H
#define ASSAY_BENCH_SEARCH_DISGUISE_H

#include "base/mem.h"
#include "base/status.h"
#include "search/space/config.h"
#include "search/space/space.h"

struct disguise;

/* Disguise the space whose document is `parameters` (borrowed; no parameter has a `when`), by the
 * hash of `number`. ret_parameters: the other document, a new reference. `inner` must outlive the
 * disguise. AS_E_INVAL: there is a condition. AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status disguise_create(const struct space *inner, const json_t *parameters,
                                        unsigned number, json_t **ret_parameters,
                                        struct disguise **ret, struct as_err *err);
void disguise_free(struct disguise *d);
AS_DEFINE_FREEP(struct disguise, disguise_free)

/* The configuration of the inner space that `c`, of the disguised one, stands for; NULL when memory
 * is out. Owned by the caller. A number may differ by its last bits. */
struct config *disguise_remove(const struct disguise *d, const struct config *c);

#endif
