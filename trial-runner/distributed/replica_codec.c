#include "trial-runner/distributed/replica_codec.h"

as_status replica_codec_create(const struct distributed_spec *spec, const struct replica *r,
                               struct codec **ret, struct as_err *err)
{
    AS_AUTO(as_freep) struct codec_tensor *tensors = as_calloc(r->n_tensors, sizeof *tensors);
    size_t next = 0;
    if (!tensors)
        return as_fail_nomem(err);
    for (size_t i = 0; i < r->n_tensors; i++) {
        const struct replica_tensor *t = &r->tensors[i];
        if (t->first != next)
            return as_fail(err, AS_E_INTERNAL, "tensor %zu begins at %zu, expected %zu", i,
                           t->first, next);
        next += t->rows * t->cols;
        tensors[i] = t->cols == 1 ? (struct codec_tensor){1, t->rows}
                                  : (struct codec_tensor){t->rows, t->cols};
    }
    const struct codec_opts opts = {.name = distributed_codec_name(spec->codec),
                                    .fraction = spec->fraction,
                                    .rank = (uint32_t)spec->rank,
                                    .half = spec->half};
    return codec_create(&opts, tensors, r->n_tensors, ret, err);
}
