/* Every cell of a space's grid, numbered.
 *
 * A parameter contributes its values: those of a categorical, an int's steps (or its `points`), a
 * float's `step` grid or its `points`. A conditional parameter multiplies only the branches where
 * it is active, so that no two cells are the same configuration. A combination that the space does
 * not allow (parameter_constraints, forbidden) is not a cell: only allowed cells have numbers.
 *
 * Order: without conditions, the first parameter of the document changes slowest and the last
 * fastest. Parameters that `when` or a constraint connects form a block, which takes the place of
 * its first parameter. Inside a block the branches follow one another. */
#ifndef ASSAY_SEARCH_SAMPLING_GRID_H
#define ASSAY_SEARCH_SAMPLING_GRID_H

#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/config.h"
#include "search/space/space.h"

#define GRID_MAX_CELLS UINT64_C(1000000)

struct grid;

/* `space` is borrowed and must outlive the grid; `pointer` is its parameters' place in the
 * document. AS_E_INVAL: a float without `step` or `points`. AS_E_TOO_LARGE: more than
 * GRID_MAX_CELLS cells, allowed or not; the message gives the number. AS_E_UNSUPPORTED: no cell is
 * allowed (space_refuse_rule). AS_E_NOMEM. Owned by the caller.
 * The cost is arithmetic only, except for blocks with a constraint: each of their cells is examined
 * once, and each allowed cell takes four bytes. A grid never changes: distinct threads may read
 * one. */
AS_MUST_CHECK as_status grid_create(const struct space *space, const char *pointer,
                                    struct grid **ret, struct as_err *err);
/* The same over every value of the parameters, ignoring `points`: all allowed configurations of a
 * finite space. AS_E_INVAL: a parameter is continuous. */
AS_MUST_CHECK as_status grid_create_full(const struct space *space, const char *pointer,
                                         struct grid **ret, struct as_err *err);
void grid_free(struct grid *g);
AS_DEFINE_FREEP(struct grid, grid_free)

uint64_t grid_cells(const struct grid *g); /* at least 1 */

/* Cell `index` < grid_cells. O(parameters + branches of the blocks). AS_E_EXHAUSTED: no such cell;
 * AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status grid_cell(const struct grid *g, uint64_t index, struct config **ret,
                                  struct as_err *err);

/* The number of the cell with these values. AS_E_NOT_FOUND: a value is not on the grid. */
AS_MUST_CHECK as_status grid_index(const struct grid *g, const struct config *c, uint64_t *ret,
                                   struct as_err *err);

#endif
