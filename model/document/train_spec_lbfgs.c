/* What does not go with `optimizer: {kind: lbfgs}`. Its search along a direction compares values of
 * one function: whatever makes the objective another one from pass to pass is refused, and so is
 * what changes gradients or weights behind its back. */
#include "model/document/train_spec_priv.h"

bool train_spec_is_lbfgs(const struct train_spec *spec)
{
    return spec->optimizer.kind == TRAIN_LBFGS && train_model_is_network(&spec->model);
}

as_status train_spec_check_lbfgs(const struct json_fields *doc, const struct train_spec *s,
                                 struct as_err *err)
{
    const struct distributed_spec *d = &s->distributed;
    const struct train_clash list[] = {
        {s->model.dropout > 0, "model.dropout", "its passes must be of one function"},
        {s->augment.pad > 0 || s->augment.cutout > 0 || s->augment.flip > 0, "augment",
         "its passes must be of one function"},
        {s->optimizer.clip_norm > 0, "optimizer.clip_norm", "it chooses the length of its steps"},
        {s->optimizer.ema > 0, "optimizer.ema", "its steps are few and long"},
        {s->privacy.given, "privacy", "it reads the loss of the rows at every length"},
        {d->strategy != DISTRIBUTED_ALLREDUCE || d->shard_state || d->codec != DISTRIBUTED_PLAIN,
         "distributed", "its ranks work together in a way of their own"},
    };
    char at[AS_ERR_POINTER_MAX];
    if (!train_spec_is_lbfgs(s))
        return AS_OK;
    json_pointer_child(doc->pointer, "optimizer", at);
    json_pointer_child(at, "kind", at);
    return train_spec_refuse_clash(list, AS_ARRAY_LEN(list), at, "lbfgs", err);
}
