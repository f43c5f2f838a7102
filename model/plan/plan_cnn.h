/* Nodes of a convolutional network. */
#ifndef ASSAY_MODEL_PLAN_PLAN_CNN_H
#define ASSAY_MODEL_PLAN_PLAN_CNN_H

struct net_builder;

/* Add the nodes that the document's model describes. The builder keeps a failure
 * (builder_priv.h). */
void net_build_cnn(struct net_builder *b);

#endif
