#include "model/network/schedule.h"

#include <math.h>

#define ONE_CYCLE_DIVISOR 25.0 /* torch's div_factor */

/* From `from` at t = 0 to `to` at t = 1 along half a cosine. */
static double cosine_between(double from, double to, double t)
{
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return to + (from - to) * (1 + cos(M_PI * t)) / 2;
}

static double one_cycle_lr(const struct train_spec *spec, double step, double total)
{
    double lr = spec->optimizer.lr, top = spec->schedule.pct_start * total - 1;
    if (top < 0)
        top = 0;
    if (step < top)
        return cosine_between(lr / ONE_CYCLE_DIVISOR, lr, step / top);
    double fall = total - 1 - top;
    return cosine_between(lr, spec->schedule.min_lr, fall > 0 ? (step - top) / fall : 0);
}

/* The fall of the cycle that a step is in. The warm-up shortens the cycles that it reaches. */
static double cosine_cycles(const struct train_spec *spec, double step, double rise,
                            int64_t steps_per_epoch)
{
    const struct train_schedule_spec *s = &spec->schedule;
    double per_epoch = (double)steps_per_epoch, first = 0, end = 0;
    for (int64_t c = 0; c < s->cycles && end <= step; c++) {
        first = end;
        end = (double)train_spec_cycle_end(spec, c) * per_epoch;
    }
    first = first < rise ? rise : first;
    return cosine_between(spec->optimizer.lr, s->min_lr, (step - first) / (end - first));
}

double schedule_lr(const struct train_spec *spec, int64_t step, int64_t steps_per_epoch)
{
    const struct train_schedule_spec *s = &spec->schedule;
    double total = (double)spec->epochs * (double)steps_per_epoch, at = (double)step;
    if (s->kind == TRAIN_ONE_CYCLE)
        return one_cycle_lr(spec, at, total);
    double rise = round(s->warmup_epochs * (double)steps_per_epoch);
    if (at < rise)
        return spec->optimizer.lr * (at + 1) / rise;
    if (s->kind == TRAIN_CONSTANT)
        return spec->optimizer.lr;
    if (s->kind == TRAIN_STEP) /* spans count from step 0, the warm-up included */
        return spec->optimizer.lr *
               pow(s->gamma, floor(at / (s->step_epochs * (double)steps_per_epoch) + 1e-9));
    return cosine_cycles(spec, at, rise, steps_per_epoch);
}
