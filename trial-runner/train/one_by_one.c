/* Members without a network need no back end and have no lockstep: they train one after another,
 * because each uses every thread of the process, or is a rank. All else is as for networks: the
 * runner's requests are read between turns, members wait in order, each one sends its beginning and
 * its end. */
#include <stdio.h>

#include "trial-runner/train/channel.h"
#include "trial-runner/train/group_priv.h"

#define WAIT_MS 100 /* how often to look for a signal while no member trains */

as_status group_open_one_by_one(struct group *g, const struct member *m, size_t inputs,
                                size_t bytes, struct as_err *err)
{
    g->signature = as_strdup(m->signature);
    if (!g->signature)
        return as_fail_nomem(err);
    g->slots = 1;
    g->bytes = bytes;
    const struct control_event e = {.kind = CONTROL_READY,
                                    .members = 1,
                                    .bytes_per_member = (int64_t)bytes,
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
static void begin_next(struct group *g, const struct lone_ops *ops, void **ret)
{
    struct member *m = g->waiting[0];
    struct as_err why = {0};
    group_forget_waiting(g, 1);
    as_status st = ops->create(g, m, ret, &why);
    if (st == AS_OK)
        g->growing = m;
    else
        group_dismiss(g, m, st == AS_E_IO ? EXIT_TRY_AGAIN : EXIT_FAILED, &why);
}

static void run_turn(struct group *g, const struct lone_ops *ops, void **trial)
{
    g->throughput.most = 1;
    ops->slice(*trial, &g->watch);
    if (!g->growing->ended)
        return;
    struct member *m = g->growing;
    g->growing = NULL;
    ops->free(*trial);
    *trial = NULL;
    group_finish(g, m);
}

as_status group_run_one_by_one(struct group *g, const struct lone_ops *ops, struct as_err *err)
{
    void *trial = NULL;
    as_status st = ops->open(g, g->waiting[0], err);
    while (st == AS_OK) {
        group_listen(g, trial || g->n_waiting > 0 ? 0 : WAIT_MS);
        group_dismiss_other_shapes(g);
        bool stops = atomic_load(g->opts->stop);
        if (!trial && g->n_waiting > 0 && !stops)
            begin_next(g, ops, &trial);
        if (trial)
            run_turn(g, ops, &trial);
        group_send_throughput(g, false);
        if (!trial && (stops || (g->n_waiting == 0 && (g->closed || g->channel->fd < 0))))
            break;
    }
    ops->free(trial);
    return st;
}
