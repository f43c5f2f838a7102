/* Members that are k-means. As models of trees (trees.c) they need no back end and no lockstep, and
 * train one after another, each with all threads; or the process is a rank, which has one. */
#include <stdio.h>

#include "trial-runner/train/channel.h"
#include "trial-runner/train/group_priv.h"
#include "trial-runner/train/kmeans_trial.h"

#define WAIT_MS 100 /* how often to look for a signal while no member trains */

static as_status open_kmeans(struct group *g, const struct member *m, struct as_err *err)
{
    as_status st = group_load_data(g, &m->spec, err);
    if (st != AS_OK)
        return st;
    g->setup = (struct lockstep_setup){
        .job = g->job, .info = &g->roles.info, .data = &g->data, .threads = g->opts->threads};
    g->signature = as_strdup(m->signature);
    if (!g->signature)
        return as_fail_nomem(err);
    g->slots = 1;
    g->bytes = (g->data.n_train + g->data.n_val) * g->data.set.n_features * sizeof(float);
    const struct control_event e = {
        .kind = CONTROL_READY,
        .members = 1,
        .bytes_per_member = (int64_t)g->bytes,
        .bytes_shared = (int64_t)(g->data.set.n_rows * g->data.set.n_features * sizeof(float)),
        .threads = (int64_t)g->opts->threads};
    channel_send(g->channel, &e);
    (void)printf("%s: %zu rows to train on, %zu held out, %zu inputs, %s, %zu threads\n",
                 m->spec.dataset, g->data.n_train, g->data.n_val, g->data.set.n_features,
                 train_model_name(&m->spec.model), g->opts->threads);
    return AS_OK;
}

/* Let the first waiting member begin. One that cannot is dismissed. */
static void begin_next(struct group *g, struct kmeans_trial **ret)
{
    struct member *m = g->waiting[0];
    struct as_err why = {0};
    group_forget_waiting(g, 1);
    as_status st = kmeans_trial_create(&g->setup, m, g->opts->threads, g->team, ret, &why);
    if (st == AS_OK)
        g->growing = m;
    else
        group_dismiss(g, m, st == AS_E_IO ? EXIT_TRY_AGAIN : EXIT_FAILED, &why);
}

static void run_turn(struct group *g, struct kmeans_trial **trial)
{
    g->throughput.most = 1;
    kmeans_trial_slice(*trial, &g->watch);
    if (!g->growing->ended)
        return;
    struct member *m = g->growing;
    g->growing = NULL;
    kmeans_trial_free(*trial);
    *trial = NULL;
    group_finish(g, m);
}

as_status group_run_kmeans(struct group *g, struct as_err *err)
{
    AS_AUTO(kmeans_trial_freep) struct kmeans_trial *trial = NULL;
    as_status st = open_kmeans(g, g->waiting[0], err);
    while (st == AS_OK) {
        group_listen(g, trial || g->n_waiting > 0 ? 0 : WAIT_MS);
        group_dismiss_other_shapes(g);
        bool stops = atomic_load(g->opts->stop);
        if (!trial && g->n_waiting > 0 && !stops)
            begin_next(g, &trial);
        if (trial)
            run_turn(g, &trial);
        group_send_throughput(g, false);
        if (!trial && (stops || (g->n_waiting == 0 && (g->closed || g->channel->fd < 0))))
            break;
    }
    return st;
}
