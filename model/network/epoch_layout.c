#include "model/network/epoch_layout.h"

struct epoch_layout epoch_layout_of(const struct train_spec *spec, size_t micro_rows,
                                    size_t n_train)
{
    size_t per_batch = (size_t)(spec->batch_size / spec->micro_batch);
    size_t micro_steps = (n_train + micro_rows - 1) / micro_rows;
    per_batch = per_batch < micro_steps ? per_batch : micro_steps;
    return (struct epoch_layout){.n_train = n_train,
                                 .micro_rows = micro_rows,
                                 .micro_steps = micro_steps,
                                 .per_batch = per_batch,
                                 .steps_per_epoch =
                                     (int64_t)((micro_steps + per_batch - 1) / per_batch)};
}

bool epoch_layout_due(const struct epoch_layout *l, size_t at)
{
    return (at + 1) % l->per_batch == 0 || at + 1 == l->micro_steps;
}

bool epoch_layout_between_batches(const struct epoch_layout *l, size_t at)
{
    return at % l->per_batch == 0;
}

double epoch_layout_share(const struct epoch_layout *l, size_t at)
{
    size_t micro = l->micro_rows, whole = l->per_batch * micro;
    size_t begin = at / l->per_batch * whole, left = l->n_train - begin;
    size_t rows = l->n_train - at * micro;
    return (double)(rows < micro ? rows : micro) / (double)(left < whole ? left : whole);
}
