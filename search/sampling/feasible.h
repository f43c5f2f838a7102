/* Configurations of a space whose constraints leave too little for random draws, such as
 * a + b + … <= 1 over ten parameters. Drawing until one is allowed finds none of them.
 *
 * A walk stands at an allowed configuration and moves to others. It begins where a descent on
 * space_excess() arrives. Its moves leave the uniform distribution over the unit cube, restricted
 * to what is allowed, unchanged: of one parameter and along random lines, by slice sampling with
 * shrinkage (R. M. Neal, "Slice sampling", Annals of Statistics 31, 2003, section 4; lines as in
 * hit and run: R. L. Smith, Operations Research 32, 1984), and of a choice by drawing another one.
 *
 * Pure: (space, key, stream) fix every configuration. Not promised: that a walk reaches every
 * allowed configuration; parts that no single move connects are reached only by other starts. */
#ifndef ASSAY_SEARCH_SAMPLING_FEASIBLE_H
#define ASSAY_SEARCH_SAMPLING_FEASIBLE_H

#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/config.h"
#include "search/space/space.h"

#define FEASIBLE_MIX_ROUNDS 24 /* rounds of moves between two configurations */

struct feasible_walk;

/* Stand at an allowed configuration. The start is random, by (key, stream); after that the walk has
 * been mixed for FEASIBLE_MIX_ROUNDS.
 *   space   borrowed, must outlive the walk
 *   ret     owned by the caller, feasible_free()
 * AS_E_NOT_FOUND: no descent arrived at an allowed configuration; which starts it tries then does
 * not depend on key and stream. AS_E_NOMEM. O(starts x parameters x rules) at worst. */
AS_MUST_CHECK as_status feasible_start(const struct space *space, uint64_t key, uint64_t stream,
                                       struct feasible_walk **ret, struct as_err *err);
/* The same, but stand at `unit` ([n], borrowed), which must be allowed, and do not mix. */
AS_MUST_CHECK as_status feasible_stand(const struct space *space, const double *unit, uint64_t key,
                                       uint64_t stream, struct feasible_walk **ret,
                                       struct as_err *err);
void feasible_free(struct feasible_walk *w);
AS_DEFINE_FREEP(struct feasible_walk, feasible_free)

/* Move on for some rounds; each tries every parameter and one line. */
void feasible_move(struct feasible_walk *w, size_t rounds);

/* Move once along a random line, by a distance of about `width` or less; choices stay. */
void feasible_nudge(struct feasible_walk *w, double width);

/* Where the walk stands: views until the next move. unit: [n] places in the unit cube, of inactive
 * parameters too; param_decode of them is the configuration. */
const struct config *feasible_config(const struct feasible_walk *w);
const double *feasible_unit(const struct feasible_walk *w);

#endif
