/* Text: the last tokens are held out; windows on either side, and the order of an epoch. */
#include <string.h>

#include "base/mem.h"
#include "data/preprocess/preprocess_priv.h"
#include "data/draw.h"

/* Windows of an epoch: one fewer than fit, so that any phase below `context` leaves room for them
 * and for the token that follows the last; at least one. */
static size_t windows(size_t n_tokens, size_t context)
{
    size_t n = n_tokens / context;
    return n > 1 ? n - 1 : 1;
}

as_status data_text_split(struct train_data *d, const struct train_spec *spec, struct as_err *err)
{
    size_t n = d->set.n_rows, context = (size_t)spec->model.context;
    size_t held = train_spec_validation_rows(spec, n);
    if (held < context + 1 || n - held < context + 1)
        return as_fail(err, AS_E_INVAL,
                       "%zu tokens to train on and %zu held out, expected at least %zu each: "
                       "model.context and the token that follows",
                       n - held, held, context + 1);
    d->context = context;
    d->n_tokens = n - held;
    d->n_train = windows(d->n_tokens, context);
    d->n_val = (held - 1) / context;
    d->rows = as_calloc(d->n_val, sizeof *d->rows);
    if (!d->rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu windows", d->n_val);
    for (size_t i = 0; i < d->n_val; i++)
        d->rows[i] = (int32_t)(d->n_tokens + i * context);
    d->val_rows = d->rows;
    return AS_OK;
}

void train_data_order(const struct train_data *d, uint64_t seed, int64_t epoch, int32_t *ret)
{
    struct rng r = draw_stream(seed, DRAW_SHUFFLE, (uint64_t)epoch);
    if (d->context == 0) {
        memcpy(ret, d->train_rows, d->n_train * sizeof *ret);
    } else {
        size_t room = d->n_tokens - d->n_train * d->context; /* at least 1 */
        size_t phases = room < d->context ? room : d->context;
        size_t phase = (size_t)rng_below(&r, phases);
        for (size_t i = 0; i < d->n_train; i++)
            ret[i] = (int32_t)(phase + i * d->context);
    }
    draw_shuffle(&r, ret, d->n_train);
}
