#include "trial-runner/distributed/strategy.h"

/* By distributed_strategy. NULL: not in this version. */
static const struct strategy_ops *const all[] = {
    [DISTRIBUTED_ALLREDUCE] = &strategy_allreduce,
    [DISTRIBUTED_LOCAL_SGD] = &strategy_local_sgd,
    [DISTRIBUTED_SERVER] = &strategy_server,
    [DISTRIBUTED_GOSSIP] = &strategy_gossip,
    [DISTRIBUTED_MODEL_PARALLEL] = &strategy_model_parallel,
};

void strategy_wishes_put(unsigned wishes, float *to)
{
    for (unsigned w = 0; w < STRATEGY_WISHES; w++)
        to[w] = wishes >> w & 1;
}

unsigned strategy_wishes_read(const float *sum)
{
    unsigned agreed = 0;
    for (unsigned w = 0; w < STRATEGY_WISHES; w++)
        agreed |= sum[w] > 0 ? 1U << w : 0;
    return agreed;
}

as_status strategy_init(struct strategy *ret, const struct strategy_setup *setup,
                        struct as_err *err)
{
    distributed_strategy which = setup->spec->distributed.strategy;
    const struct distributed_spec *d = &setup->spec->distributed;
    const struct strategy_ops *ops = all[which];
    if (which == DISTRIBUTED_SERVER && (d->mode == DISTRIBUTED_ASYNC || d->groups > 0))
        ops = &strategy_server_async;
    if (d->backup_copies)
        ops = &strategy_server_copies;
    if (setup->spec->optimizer.kind == TRAIN_LBFGS)
        ops = &strategy_lbfgs;
    if (train_spec_is_cocoa(setup->spec))
        ops = &strategy_cocoa;
    void *self = NULL;
    if (!ops)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "/train/distributed/strategy: %s is not in this version",
                       distributed_strategy_name(which));
    as_status st = ops->create(setup, &self, err);
    if (st == AS_OK)
        *ret = (struct strategy){.ops = ops, .self = self};
    return st;
}

void strategy_done(struct strategy *s)
{
    if (s->ops)
        s->ops->free(s->self);
    *s = (struct strategy){0};
}

size_t strategy_parts(const struct strategy *s, struct strategy_part ret[STRATEGY_MAX_PARTS])
{
    return s->ops && s->ops->parts ? s->ops->parts(s->self, ret) : 0;
}
