/* Members that are models of trees, or neighbours. */
#include "model/trees/tree_inputs.h"
#include "model/trees/xgboost.h"
#include "trial-runner/train/channel.h"
#include "trial-runner/train/evaluate.h"
#include "trial-runner/train/group_priv.h"
#include "trial-runner/train/tree_trial.h"

/* Load the data, as the first member's document asks. */
static as_status open_trees(struct group *g, const struct member *m, struct as_err *err)
{
    struct xgboost_opening opening = {0};
    if (train_model_is_trees(&m->spec.model) && m->spec.model.kind != TRAIN_EXTRA_TREES)
        xgboost_opening_begin(&opening);
    as_status st = group_load_data(g, &m->spec, err);
    xgboost_opening_wait(&opening);
    if (st != AS_OK)
        return st;
    g->setup = (struct lockstep_setup){.job = g->job,
                                       .info = &g->roles.info,
                                       .data = &g->data,
                                       .loss = train_spec_loss(&m->spec, g->job->info.task),
                                       .threads = g->opts->threads};
    size_t inputs = model_inputs_count(&m->spec, &g->roles.info);
    size_t copied = (g->data.n_train + g->data.n_val) * inputs * 2; /* trees grow from a copy */
    return group_open_one_by_one(g, m, inputs, copied * sizeof(float), err);
}

static as_status create_tree(struct group *g, struct member *m, void **ret, struct as_err *err)
{
    struct tree_trial *made = NULL;
    as_status st = evaluate_check(&g->setup, m, err);
    if (st == AS_E_INVAL && !as_streq(g->job->metric, "val_auc")) { /* as for networks: a warning */
        channel_log(g->channel, m->id, true, err->msg);
        st = AS_OK;
    }
    if (st == AS_OK)
        st = tree_trial_create(&g->setup, m, g->opts->threads, &made, err);
    *ret = made;
    return st;
}

static void slice_tree(void *trial, struct watch *w)
{
    tree_trial_slice(trial, w);
}

static void free_tree(void *trial)
{
    tree_trial_free(trial);
}

as_status group_run_trees(struct group *g, struct as_err *err)
{
    static const struct lone_ops ops = {open_trees, create_tree, slice_tree, free_tree};
    return group_run_one_by_one(g, &ops, err);
}
