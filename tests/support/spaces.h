/* Spaces for the tests of search/: from YAML text, and at random. */
#ifndef ASSAY_TESTS_SUPPORT_SPACES_H
#define ASSAY_TESTS_SUPPORT_SPACES_H

#include <stdint.h>

#include "search/space/space.h"

/* Parse `parameters` written as YAML; the pointer is "/parameters". */
as_status space_from_yaml(const char *yaml, struct space **ret, struct as_err *err);
/* As above, but the test fails if it is not a space. */
struct space *space_of_yaml(const char *yaml);

/* A valid space of 1 to 8 parameters of every kind, with chains of conditions; the same for the
 * same seed. Every float has a step or points; a grid over it has at most a few ten thousand
 * cells. */
struct space *space_at_random(uint64_t seed);

/* Add up to two forbidden combinations, and one expression between two numbers if the space has
 * two. They may leave no configuration. */
void space_constrain_at_random(struct space *s, uint64_t seed);

#endif
