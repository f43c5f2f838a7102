/* Members that are k-means. */
#include "trial-runner/train/group_priv.h"
#include "trial-runner/train/kmeans_trial.h"

static as_status open_kmeans(struct group *g, const struct member *m, struct as_err *err)
{
    as_status st = group_load_data(g, &m->spec, err);
    if (st != AS_OK)
        return st;
    g->setup = (struct lockstep_setup){
        .job = g->job, .info = &g->roles.info, .data = &g->data, .threads = g->opts->threads};
    size_t inputs = g->data.set.n_features;
    size_t bytes = (g->data.n_train + g->data.n_val) * inputs * sizeof(float);
    return group_open_one_by_one(g, m, inputs, bytes, err);
}

static as_status create_kmeans(struct group *g, struct member *m, void **ret, struct as_err *err)
{
    struct kmeans_trial *made = NULL;
    as_status st = kmeans_trial_create(&g->setup, m, g->opts->threads, g->team, &made, err);
    *ret = made;
    return st;
}

static void slice_kmeans(void *trial, struct watch *w)
{
    kmeans_trial_slice(trial, w);
}

static void free_kmeans(void *trial)
{
    kmeans_trial_free(trial);
}

as_status group_run_kmeans(struct group *g, struct as_err *err)
{
    static const struct lone_ops ops = {open_kmeans, create_kmeans, slice_kmeans, free_kmeans};
    return group_run_one_by_one(g, &ops, err);
}
