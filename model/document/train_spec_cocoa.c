/* What goes with `model: {kind: linear, solver: cocoa}`. Its dual is that of a mean over rows with
 * a square penalty, so whatever makes the objective another one is refused. */
#include "model/document/train_spec_priv.h"

bool train_spec_is_cocoa(const struct train_spec *spec)
{
    return spec->model.kind == TRAIN_LINEAR && spec->model.cocoa;
}

static bool has_dual(train_loss loss)
{
    return loss == TRAIN_LOSS_AUTO || loss == TRAIN_CROSS_ENTROPY || loss == TRAIN_MSE;
}

as_status train_spec_check_cocoa(const struct json_fields *doc, const struct train_spec *s,
                                 struct as_err *err)
{
    const struct distributed_spec *d = &s->distributed;
    const struct train_clash list[] = {
        {!has_dual(s->loss), "another loss", "it has the duals of cross_entropy and mse"},
        {s->label_smoothing > 0, "label_smoothing", "its dual is that of rows with one class"},
        {s->balanced || s->n_class_weights > 0, "class_weights", "its rows count alike"},
        {s->weights != NULL, "weights", "its rows count alike"},
        {s->augment.pad > 0 || s->augment.cutout > 0 || s->augment.flip > 0, "augment",
         "rows have dual variables, so they are the same in each round"},
        {s->model.embedding > 0, "model.embedding", "it is for one layer"},
        {s->optimizer.weight_decay <= 0, "optimizer.weight_decay 0",
         "its dual needs a penalty; expected more than 0"},
        {s->optimizer.kind == TRAIN_LBFGS, "the optimizer lbfgs", "expected one of them"},
        {s->optimizer.clip_norm > 0, "optimizer.clip_norm", "it has no gradients"},
        {s->optimizer.ema > 0, "optimizer.ema", "its weights are those of the duals"},
        {s->privacy.given, "privacy", "it has no gradients"},
        {d->strategy != DISTRIBUTED_ALLREDUCE || d->shard_state || d->codec != DISTRIBUTED_PLAIN ||
             d->factors != DISTRIBUTED_FACTORS_NEVER,
         "distributed", "its ranks work together in a way of their own"},
    };
    char at[AS_ERR_POINTER_MAX];
    if (!train_spec_is_cocoa(s))
        return AS_OK;
    json_pointer_child(doc->pointer, "model", at);
    json_pointer_child(at, "solver", at);
    return train_spec_refuse_clash(list, AS_ARRAY_LEN(list), at, "cocoa", err);
}
