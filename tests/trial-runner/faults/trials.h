/* The trials of the fault tests. */
#ifndef ASSAY_TESTS_TRIAL_RUNNER_FAULTS_TRIALS_H
#define ASSAY_TESTS_TRIAL_RUNNER_FAULTS_TRIALS_H

#include <stdlib.h>

#include "tests/support/gang_check.h"

/* What must survive: running statistics of batch normalisation, dropout's random numbers, clipping
 * of the whole gradient, momentum. On gang_pictures(); 8 shards in a batch, 4 batches in an epoch,
 * the last of which is smaller. */
#define FAULT_CNN(channels, epochs)                                                                \
    "\"model\":{\"kind\":\"cnn\",\"dropout\":0.2,\"layers\":[{\"conv\":" #channels                 \
    ",\"norm\":\"batch\"},"                                                                        \
    "{\"pool\":\"max\",\"size\":2},{\"dense\":32,\"norm\":\"batch\"},{\"dropout\":true}]},"        \
    "\"epochs\":" #epochs ",\"batch_size\":128,\"micro_batch\":16,"                                \
    "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.02,\"momentum\":0.9,\"nesterov\":true,"              \
    "\"clip_norm\":0.5}"

/* The long variants are for a person who waits, or for the night. */
static inline bool faults_long(void)
{
    const char *s = getenv("ASSAY_LONG_FAULTS");
    return s && *s && *s != '0';
}

#endif
