#include "trial-runner/train/turns.h"

#include "trial-runner/train/schedule.h"

enum { RATE_LR, RATE_SCALE, RATE_MAX_NORM, RATE_DECAY, N_RATES };
enum { MARK_FIRST, MARK_KIND, MARK_COUNT, N_MARKS };

void turns_free(struct turns *t)
{
    if (!t)
        return;
    buf_free(t->rates);
    buf_free(t->marks);
    free(t->rate_rows);
    free(t->mark_rows);
    free(t);
}

as_status turns_create(struct backend *be, size_t slots, size_t n_steps, struct turns **ret,
                       struct as_err *err)
{
    AS_AUTO(turns_freep) struct turns *t = as_calloc(1, sizeof *t);
    if (!t)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *t = (struct turns){.slots = slots, .n_steps = n_steps};
    t->rate_rows = as_calloc(n_steps, N_RATES * sizeof *t->rate_rows);
    t->mark_rows = as_calloc(n_steps, N_MARKS * sizeof *t->mark_rows);
    if (!t->rate_rows || !t->mark_rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu steps", n_steps);
    as_status st = buf_create(be, BUF_F32, slots * n_steps * N_RATES, &t->rates, err);
    if (st == AS_OK)
        st = buf_create(be, BUF_I32, slots * n_steps * N_MARKS, &t->marks, err);
    if (st == AS_OK)
        *ret = as_steal(t);
    return st;
}

size_t turns_bytes(size_t n_steps)
{
    return n_steps * (N_RATES + N_MARKS) * 4;
}

/* Rows of the batch that micro-step `at` belongs to, and of the micro-batch itself. */
static double share(const struct member *m, size_t at, size_t n_train)
{
    size_t micro = m->plan->max_rows, whole = m->per_batch * micro;
    size_t begin = at / m->per_batch * whole, left = n_train - begin;
    size_t rows = n_train - at * micro;
    return (double)(rows < micro ? rows : micro) / (double)(left < whole ? left : whole);
}

as_status turns_fill(struct turns *t, size_t slot, const struct member *m, size_t n_train,
                     struct as_err *err)
{
    const struct train_optimizer_spec *o = &m->spec.optimizer;
    int64_t before = m->epoch * (int64_t)t->n_steps, steps = m->epoch * m->steps_per_epoch;
    for (size_t at = 0; at < t->n_steps; at++) {
        float *rate = t->rate_rows + at * N_RATES;
        int32_t *mark = t->mark_rows + at * N_MARKS;
        bool due = member_due(m, at);
        rate[RATE_LR] =
            (float)schedule_lr(&m->spec, steps + (int64_t)(at / m->per_batch), m->steps_per_epoch);
        rate[RATE_SCALE] = (float)share(m, at, n_train);
        rate[RATE_MAX_NORM] = due ? (float)o->clip_norm : 0;
        rate[RATE_DECAY] = due ? (float)o->ema : 1;
        mark[MARK_FIRST] = at % m->per_batch == 0;
        mark[MARK_KIND] = due ? (int32_t)o->kind : -1;
        mark[MARK_COUNT] = (int32_t)(uint32_t)((uint64_t)before + at);
    }
    size_t n = t->n_steps;
    as_status st = buf_upload(t->rates, slot * n * N_RATES, t->rate_rows, n * N_RATES, err);
    if (st == AS_OK)
        st = buf_upload(t->marks, slot * n * N_MARKS, t->mark_rows, n * N_MARKS, err);
    return st;
}

struct turn turns_at(const struct turns *t, size_t at)
{
    struct tensor rates = tensor_at(t->rates, at * N_RATES, t->n_steps * N_RATES);
    struct tensor marks = tensor_at(t->marks, at * N_MARKS, t->n_steps * N_MARKS);
    struct turn r = {rates, rates, rates, rates, marks, marks, marks};
    r.lr.offset += RATE_LR;
    r.scale.offset += RATE_SCALE;
    r.max_norm.offset += RATE_MAX_NORM;
    r.decay.offset += RATE_DECAY;
    r.first.offset += MARK_FIRST;
    r.kind.offset += MARK_KIND;
    r.count.offset += MARK_COUNT;
    return r;
}
