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

struct epoch_layout epoch_layout_of_parts(size_t parts, size_t micro_rows, size_t n_train)
{
    size_t batches = (n_train / parts + micro_rows - 1) / micro_rows;
    return (struct epoch_layout){.n_train = n_train,
                                 .micro_rows = micro_rows,
                                 .micro_steps = batches * parts,
                                 .per_batch = parts,
                                 .steps_per_epoch = (int64_t)batches,
                                 .parts = parts};
}

size_t epoch_layout_before(const struct epoch_layout *l, size_t at)
{
    size_t parts = l->parts > 0 ? l->parts : 1, each = l->n_train / parts;
    size_t first = at / parts * l->micro_rows, left = each - (first < each ? first : each);
    size_t rows = left < l->micro_rows ? left : l->micro_rows; /* of a micro-step of the batch */
    return (each - left) * parts + at % parts * rows;
}

size_t epoch_layout_rows(const struct epoch_layout *l, size_t at)
{
    return epoch_layout_before(l, at + 1) - epoch_layout_before(l, at);
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
    if (l->parts > 0)
        return 1 / (double)l->parts;
    size_t micro = l->micro_rows, whole = l->per_batch * micro;
    size_t begin = at / l->per_batch * whole, left = l->n_train - begin;
    size_t rows = l->n_train - at * micro;
    return (double)(rows < micro ? rows : micro) / (double)(left < whole ? left : whole);
}
