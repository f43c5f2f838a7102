/* What the tests of codecs share: numbers to encode, and codecs of which creation must succeed. */
#ifndef ASSAY_TESTS_TRIAL_RUNNER_DISTRIBUTED_CODEC_SUPPORT_H
#define ASSAY_TESTS_TRIAL_RUNNER_DISTRIBUTED_CODEC_SUPPORT_H

#include "trial-runner/distributed/gradient_codec.h"

#define WHOLE ((struct codec_slice){.index = 0, .count = 1})

/* n zeroed numbers; ends the test when memory is out. */
float *numbers(size_t n);
/* Normal numbers times `deviation`; a seed gives the same ones each time. */
float *normals(size_t n, uint64_t seed, double deviation);

struct codec *codec_of(const char *name, const struct codec_tensor *tensors, size_t n_tensors);
struct codec *codec_of_vector(const char *name, size_t n);

/* Encode x whole, and return the decoded values; before and after as in codec_encode. */
float *through(struct codec *c, const float *x, const float *before, float *after);

#endif
