/* Nodes of a transformer. */
#ifndef ASSAY_MODEL_PLAN_PLAN_TRANSFORMER_H
#define ASSAY_MODEL_PLAN_PLAN_TRANSFORMER_H

struct net_builder;

/* Add those that the document's model describes; a failure is in the builder (builder_priv.h). */
void net_build_transformer(struct net_builder *b);

#endif
