/* Members that are models of trees. They need no back end and have no lockstep: they train one
 * after another, because each round of XGBoost uses every thread of the process. All else is as for
 * networks: the runner's requests are read between turns, members wait in order, each one sends its
 * beginning and its end. */
#include <stdio.h>

#include "model/trees/tree_inputs.h"
#include "model/trees/xgboost.h"
#include "trial-runner/train/channel.h"
#include "trial-runner/train/evaluate.h"
#include "trial-runner/train/group_priv.h"
#include "trial-runner/train/tree_trial.h"

#define WAIT_MS 100 /* how often to look for a signal while no member trains */

/* Load the data, as the first member's document asks. */
static as_status open_trees(struct group *g, const struct member *m, struct as_err *err)
{
    struct xgboost_opening opening = {0};
    if (m->spec.model.kind != TRAIN_EXTRA_TREES && m->spec.model.kind != TRAIN_KNN)
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
    g->signature = as_strdup(m->signature);
    if (!g->signature)
        return as_fail_nomem(err);
    size_t inputs = model_inputs_count(&m->spec, &g->roles.info);
    g->slots = 1;
    g->bytes = (g->data.n_train + g->data.n_val) * inputs * 2 *
               sizeof(float); /* the copy that trees are grown from */
    struct control_event e = {.kind = CONTROL_READY,
                              .members = 1,
                              .bytes_per_member = (int64_t)g->bytes,
                              .bytes_shared =
                                  (int64_t)(g->data.set.n_rows * inputs * sizeof(float)),
                              .threads = (int64_t)g->opts->threads};
    channel_send(g->channel, &e);
    (void)printf("%s: %zu rows to train on, %zu held out, %zu inputs, %s, %zu threads\n",
                 m->spec.dataset, g->data.n_train, g->data.n_val, inputs,
                 train_model_name(&m->spec.model), g->opts->threads);
    return AS_OK;
}

/* Let the first waiting member begin. One that cannot is dismissed. */
static void begin_next(struct group *g, struct tree_trial **ret)
{
    struct member *m = g->waiting[0];
    struct as_err why = {0};
    group_forget_waiting(g, 1);
    as_status st = evaluate_check(&g->setup, m, &why);
    if (st == AS_E_INVAL && !as_streq(g->job->metric, "val_auc")) { /* as for networks: a warning */
        channel_log(g->channel, m->id, true, why.msg);
        st = AS_OK;
    }
    if (st == AS_OK)
        st = tree_trial_create(&g->setup, m, g->opts->threads, ret, &why);
    if (st == AS_OK)
        g->growing = m;
    else
        group_dismiss(g, m, st == AS_E_IO ? EXIT_TRY_AGAIN : EXIT_FAILED, &why);
}

static void run_turn(struct group *g, struct tree_trial **trial)
{
    g->throughput.most = 1;
    tree_trial_slice(*trial, &g->watch);
    if (!g->growing->ended)
        return;
    struct member *m = g->growing;
    g->growing = NULL;
    tree_trial_free(*trial);
    *trial = NULL;
    group_finish(g, m);
}

as_status group_run_trees(struct group *g, struct as_err *err)
{
    AS_AUTO(tree_trial_freep) struct tree_trial *trial = NULL;
    as_status st = open_trees(g, g->waiting[0], err);
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
