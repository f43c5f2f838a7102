/* Nodes of a transformer. */
#ifndef ASSAY_MODEL_PLAN_PLAN_TRANSFORMER_H
#define ASSAY_MODEL_PLAN_PLAN_TRANSFORMER_H

struct net_builder;

/* Add the nodes that the document's model describes. The builder keeps a failure
 * (builder_priv.h). */
void net_build_transformer(struct net_builder *b);

#endif
