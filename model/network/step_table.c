/* Two tables, of floats and of integers, with a row for each micro-step of an epoch, filled on the
 * host when an epoch begins. The device keeps the row's number (`at`) and advances it, so a
 * recorded step reads the next row each time that it runs (decision 3002). Both are gathered in one
 * step: marks first, because backend_tick() advances `at`. */
#include "model/network/step_table.h"

#include "model/network/schedule.h"

enum { RATE_LR, RATE_SCALE, RATE_MAX_NORM, RATE_DECAY, N_RATES };
enum { MARK_AT, MARK_FIRST, MARK_KIND, MARK_COUNT, N_MARKS };

void step_table_free(struct step_table *t)
{
    if (!t)
        return;
    buf_free(t->rates);
    buf_free(t->marks);
    buf_free(t->at);
    buf_free(t->steps);
    buf_free(t->rate);
    buf_free(t->mark);
    free(t->rate_rows);
    free(t->mark_rows);
    free(t);
}

static as_status create_buffers(struct backend *be, struct step_table *t, struct as_err *err)
{
    size_t n = t->slots * t->n_steps;
    as_status st = buf_create(be, BUF_F32, n * N_RATES, &t->rates, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_I32, n * N_MARKS, &t->marks, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_I32, t->slots, &t->at, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_F32, t->slots * N_RATES, &t->rate, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_I32, t->slots * N_MARKS, &t->mark, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_I32, t->n_steps, &t->steps, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < t->n_steps; i++)
        t->mark_rows[i] = (int32_t)i;
    return buf_upload(t->steps, 0, t->mark_rows, t->n_steps, err);
}

as_status step_table_create(struct backend *be, size_t slots, size_t n_steps,
                            struct step_table **ret, struct as_err *err)
{
    AS_AUTO(step_table_freep) struct step_table *t = as_calloc(1, sizeof *t);
    if (!t)
        return as_fail_nomem(err);
    *t = (struct step_table){.slots = slots, .n_steps = n_steps};
    t->rate_rows = as_calloc(n_steps, N_RATES * sizeof *t->rate_rows);
    t->mark_rows = as_calloc(n_steps, N_MARKS * sizeof *t->mark_rows);
    if (!t->rate_rows || !t->mark_rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu steps", n_steps);
    as_status st = create_buffers(be, t, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(t);
    return AS_OK;
}

size_t step_table_bytes(size_t n_steps)
{
    return ((n_steps + 1) * (N_RATES + N_MARKS) + n_steps + 1) * 4;
}

/* The rows of one micro-step of the tables, `step` in [0, n_steps). */
static void fill_rows_of_step(struct step_table *t, const struct train_spec *spec,
                              const struct epoch_layout *layout, int64_t epoch, size_t step)
{
    const struct train_optimizer_spec *o = &spec->optimizer;
    int64_t before = epoch * (int64_t)t->n_steps, updates = epoch * layout->steps_per_epoch;
    int64_t update = updates + (int64_t)(step / layout->per_batch);
    float *rate = t->rate_rows + step * N_RATES;
    int32_t *mark = t->mark_rows + step * N_MARKS;
    bool due = epoch_layout_due(layout, step);
    rate[RATE_LR] = (float)schedule_lr(spec, update, layout->steps_per_epoch);
    rate[RATE_SCALE] = (float)epoch_layout_share(layout, step);
    rate[RATE_MAX_NORM] = due ? (float)o->clip_norm : 0;
    rate[RATE_DECAY] = due ? (float)o->ema : 1;
    mark[MARK_AT] = (int32_t)step;
    mark[MARK_FIRST] = epoch_layout_between_batches(layout, step);
    mark[MARK_KIND] = due ? (int32_t)o->kind : -1;
    mark[MARK_COUNT] = (int32_t)(uint32_t)((uint64_t)before + step);
}

as_status step_table_fill(struct step_table *t, size_t slot, const struct train_spec *spec,
                          const struct epoch_layout *layout, int64_t epoch, size_t at,
                          struct as_err *err)
{
    size_t n = t->n_steps;
    for (size_t step = 0; step < n; step++)
        fill_rows_of_step(t, spec, layout, epoch, step);
    as_status st = buf_upload(t->rates, slot * n * N_RATES, t->rate_rows, n * N_RATES, err);
    if (st != AS_OK)
        return st;
    st = buf_upload(t->marks, slot * n * N_MARKS, t->mark_rows, n * N_MARKS, err);
    if (st != AS_OK)
        return st;
    return step_table_seek(t, slot, at, err);
}

as_status step_table_seek(struct step_table *t, size_t slot, size_t at, struct as_err *err)
{
    return buf_fill_i32(t->at, slot, 1, (int32_t)at, err);
}

as_status step_table_take(struct step_table *t, struct backend *lane, size_t first, size_t n,
                          struct as_err *err)
{
    size_t steps = t->n_steps;
    struct gather_args marks = {.members = n,
                                .rows = steps,
                                .batch = 1,
                                .width = N_MARKS,
                                .src =
                                    tensor_at(t->marks, first * steps * N_MARKS, steps * N_MARKS),
                                .index = tensor_at(t->steps, 0, 0),
                                .at = tensor_at(t->at, first, 1),
                                .at_rows = 1,
                                .index_len = steps,
                                .dst = tensor_at(t->mark, first * N_MARKS, N_MARKS)};
    struct tick_args rates = {.members = n,
                              .n_steps = steps,
                              .columns = N_RATES,
                              .table =
                                  tensor_at(t->rates, first * steps * N_RATES, steps * N_RATES),
                              .at = marks.at,
                              .out = tensor_at(t->rate, first * N_RATES, N_RATES)};
    /* the marks first: backend_tick() advances `at` */
    as_status st = backend_gather(lane, &marks, err);
    if (st != AS_OK)
        return st;
    return backend_tick(lane, &rates, err);
}

struct micro_step step_table_now(const struct step_table *t)
{
    return (struct micro_step){.lr = tensor_at(t->rate, RATE_LR, N_RATES),
                               .scale = tensor_at(t->rate, RATE_SCALE, N_RATES),
                               .max_norm = tensor_at(t->rate, RATE_MAX_NORM, N_RATES),
                               .decay = tensor_at(t->rate, RATE_DECAY, N_RATES),
                               .at = tensor_at(t->mark, MARK_AT, N_MARKS),
                               .first = tensor_at(t->mark, MARK_FIRST, N_MARKS),
                               .kind = tensor_at(t->mark, MARK_KIND, N_MARKS),
                               .count = tensor_at(t->mark, MARK_COUNT, N_MARKS)};
}
