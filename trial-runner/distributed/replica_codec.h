/* The codec that a document asks for, over the parameters of a replica. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_REPLICA_CODEC_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_REPLICA_CODEC_H

#include "model/document/distributed_spec.h"
#include "trial-runner/distributed/gradient_codec.h"
#include "trial-runner/distributed/replica.h"

/* spec->codec is not `none`. ret: codec_free(). AS_E_NOMEM, AS_E_TOO_LARGE; AS_E_INTERNAL: the
 * replica's tensors do not follow each other. */
AS_MUST_CHECK as_status replica_codec_create(const struct distributed_spec *spec,
                                             const struct replica *r, struct codec **ret,
                                             struct as_err *err);

#endif
