/* What goes with `distributed: {partitions: lineage}`, where a rank has the rows of its shards
 * alone: not what needs rows of other shards, or reads columns of all rows. */
#include "model/document/train_spec_priv.h"

as_status train_spec_check_partitions(const struct json_fields *doc, const struct train_spec *s,
                                      struct as_err *err)
{
    const struct distributed_spec *d = &s->distributed;
    bool server = d->strategy == DISTRIBUTED_SERVER;
    const struct train_clash list[] = {
        {train_model_is_trees(&s->model), "a model of trees", "they train in one process"},
        {s->optimizer.kind == TRAIN_LBFGS, "the optimizer lbfgs", "its passes are of all rows"},
        {train_spec_is_cocoa(s), "the solver cocoa", "its workers hold their rows by themselves"},
        {d->strategy == DISTRIBUTED_LOCAL_SGD, "local_sgd", "expected allreduce or server"},
        {d->strategy == DISTRIBUTED_GOSSIP, "gossip", "expected allreduce or server"},
        {d->strategy == DISTRIBUTED_MODEL_PARALLEL, "model_parallel",
         "the ranks of the first and the last block read all rows"},
        {server && d->groups > 0, "groups",
         "any group may get any batch; expected allreduce or server with mode sync"},
        {server && d->mode != DISTRIBUTED_SYNC, "another mode of the server than sync",
         "expected sync"},
        {server && d->backup > 0, "server.backup",
         "partitions of late ranks would never count; expected backup_copies"},
        {s->privacy.given, "privacy", "its rows are drawn from all"},
        {s->resample > 0, "resample", "its rows are drawn from all"},
        {s->folds > 0, "validation.folds", "expected none"},
        {s->holdout_column != NULL, "a column that holds rows out",
         "expected a split at random or stratified"},
        {s->weights != NULL, "weights", "expected none"},
        {s->piecewise, "numbers in bins", "their bins are learned from all rows in memory"},
        {s->boost.given, "boost", "expected none"},
    };
    char at[AS_ERR_POINTER_MAX];
    if (!d->lineage)
        return AS_OK;
    json_pointer_child(doc->pointer, "distributed", at);
    json_pointer_child(at, "partitions", at);
    return train_spec_refuse_clash(list, AS_ARRAY_LEN(list), at, "lineage", err);
}
