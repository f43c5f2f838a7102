#include "trial-runner/train/best.h"

#include <math.h>
#include <string.h>

/* The arena that reports and artifacts are made with. */
static struct buf *weights_of(struct lockstep *ls, const struct member *m)
{
    return m->spec.optimizer.ema > 0 ? ls->optimizer->average : network_params(ls->network);
}

static as_status copy_weights(struct lockstep *ls, size_t slot, struct best *b, struct as_err *err)
{
    struct member *m = ls->member[slot];
    as_status st = best_alloc(b, m->plan->n_params, m->plan->n_state, err);
    if (st != AS_OK)
        return st;
    st = network_read(ls->network, weights_of(ls, m), slot, m->plan, b->weights, err);
    if (st != AS_OK || !b->statistics)
        return st;
    return network_read_state(ls->network, slot, b->statistics, err);
}

as_status best_consider(struct lockstep *ls, size_t slot, double value, struct as_err *err)
{
    struct member *m = ls->member[slot];
    struct best *b = &m->best;
    if (m->spec.patience == 0)
        return AS_OK;
    bool better = m->maximizes ? value > b->value : value < b->value;
    if (isnan(value) || (b->epoch > 0 && !better)) {
        b->since++;
        return AS_OK;
    }
    as_status st = copy_weights(ls, slot, b, err);
    if (st != AS_OK)
        return st;
    b->epoch = m->epoch + 1;
    b->since = 0;
    b->value = value;
    str_clear(&b->line);
    str_puts(&b->line, str_cstr(&m->last_report));
    return str_check(&b->line, err);
}

bool best_is_past(const struct member *m)
{
    return m->spec.patience > 0 && m->best.since >= m->spec.patience;
}

/* {"step": 12, …} becomes {"step": 20, …, "best_step": 12}. */
static as_status final_line(const struct best *b, int64_t step, struct str *ret, struct as_err *err)
{
    const char *rest = strchr(str_cstr(&b->line), ',');
    const char *end = rest ? strrchr(rest, '}') : NULL;
    str_clear(ret);
    if (end)
        str_printf(ret, "{\"step\": %lld%.*s, \"best_step\": %lld}\n", (long long)step,
                   (int)(end - rest), rest, (long long)b->epoch);
    return str_check(ret, err);
}

as_status best_restore(struct lockstep *ls, size_t slot, struct as_err *err)
{
    struct member *m = ls->member[slot];
    const struct best *b = &m->best;
    if (b->epoch == 0)
        return AS_OK;
    as_status st = network_write(ls->network, weights_of(ls, m), slot, m->plan, b->weights, err);
    if (st == AS_OK && b->statistics)
        st = network_write_state(ls->network, slot, b->statistics, err);
    return st == AS_OK ? final_line(b, m->epoch + 1, &m->last_report, err) : st;
}
