/* The blocks of a network whose layers are placed on ranks (`model_parallel` of a document). */
#ifndef ASSAY_MODEL_PLAN_PLAN_BLOCKS_H
#define ASSAY_MODEL_PLAN_PLAN_BLOCKS_H

#include "model/plan/plan_cut.h"

/* The blocks that the document names; without a list each layer is one.
 *   pointer  of the train document
 *   ret      net_parts_done(); of none if the strategy is another
 * AS_E_INVAL with the pointer of the name (or of the list) unless the blocks are all layers, each
 * once and in their order; AS_E_NOMEM. */
AS_MUST_CHECK as_status net_plan_blocks(const struct train_spec *spec, const struct net_plan *plan,
                                        const char *pointer, struct net_parts *ret,
                                        struct as_err *err);

#endif
