/* One k-means member from its start to its artifacts.
 *
 * The state between two iterations is the centroids and how many iterations are done. The sums of
 * the rows at these centroids follow from them, so they are in no checkpoint and are not sent to
 * ranks: who goes on computes them again. An iteration moves the centroids to the means of these
 * sums, and computes the sums at the new ones, which have their inertia for the report: so a
 * training of n iterations computes n + 1 sums.
 *
 * If a rank is lost within a sum, the centroids are still those of before; the others meet and do
 * the iteration again. The wish to stop travels with the sums, so all ranks stop after the same
 * iteration. */
#include "trial-runner/train/kmeans_trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "data/formats/safetensors.h"
#include "model/kmeans/kmeans.h"
#include "trial-runner/train/channel.h"
#include "trial-runner/train/checkpoint.h"
#include "trial-runner/train/kmeans_files.h"
#include "trial-runner/train/kmeans_ranks.h"

#define FORMAT "assay-checkpoint-kmeans-1"
#define TURN_NS (5 * NS_PER_MS)
#define SAVE_COST_FACTOR 20 /* saving takes at most one part in 20 of the time */

struct kmeans_trial {
    const struct lockstep_setup *setup;
    struct member *m;
    size_t threads, clusters;
    float *x[2]; /* inputs of training rows and of held-out rows */
    struct kmeans_rows training, held;
    double least; /* what they must move for another iteration */
    struct kmeans_state state;
    float *next;      /* [clusters, dims]: where they move to */
    size_t n;         /* kmeans_numbers(); the wish to stop is one more */
    double *sums;     /* [n + 1] at the centroids of the state, if has_sums */
    double *new_sums; /* [n + 1] at `next` */
    bool has_sums;
    double *room; /* of partials */
    double *partials[KMEANS_MAX_SHARDS];
    int32_t *labels; /* [held.n], as the next */
    double *square;
    struct kmeans_ranks *ranks; /* NULL: it trains alone */
    uint64_t round;             /* sums since this rank met the others */
    bool stop;                  /* all stop after this iteration */
};

void kmeans_trial_free(struct kmeans_trial *t)
{
    if (!t)
        return;
    kmeans_ranks_free(t->ranks);
    free(t->x[0]);
    free(t->x[1]);
    free(t->state.centroids);
    free(t->next);
    free(t->sums);
    free(t->new_sums);
    free(t->room);
    free(t->labels);
    free(t->square);
    free(t);
}

/* ---- beginning ---- */

static as_status take_rows(const struct kmeans_trial *t, const int32_t *rows, size_t n, float **ret,
                           struct kmeans_rows *ret_rows, struct as_err *err)
{
    const struct dataset *set = &t->setup->data->set;
    size_t dims = set->n_features;
    float *x = as_calloc(n * dims, sizeof *x);
    if (!x)
        return as_fail(err, AS_E_NOMEM, "out of memory for the inputs of %zu rows", n);
    for (size_t i = 0; i < n; i++)
        memcpy(x + i * dims, set->x + (size_t)rows[i] * dims, dims * sizeof *x);
    *ret = x;
    *ret_rows = (struct kmeans_rows){x, n, dims};
    return AS_OK;
}

static as_status take_data(struct kmeans_trial *t, struct as_err *err)
{
    const struct train_data *d = t->setup->data;
    as_status st = take_rows(t, d->train_rows, d->n_train, &t->x[0], &t->training, err);
    if (st == AS_OK)
        st = take_rows(t, d->val_rows, d->n_val, &t->x[1], &t->held, err);
    if (st != AS_OK || t->clusters <= t->training.n)
        return st;
    return as_fail_at(err, AS_E_INVAL, "/train/model/clusters",
                      "/train/model/clusters: found %zu, expected at most the %zu training rows",
                      t->clusters, t->training.n);
}

static as_status make_room(struct kmeans_trial *t, struct as_err *err)
{
    size_t shards = kmeans_shards(t->training.n), values = t->clusters * t->training.dims;
    t->n = kmeans_numbers(t->clusters, t->training.dims);
    t->state.n = values;
    t->state.centroids = as_calloc(values, sizeof(float));
    t->next = as_calloc(values, sizeof(float));
    t->sums = as_calloc(t->n + 1, sizeof(double));
    t->new_sums = as_calloc(t->n + 1, sizeof(double));
    t->room = as_calloc(shards, (t->n + 1) * sizeof(double));
    t->labels = as_calloc(t->held.n, sizeof(int32_t));
    t->square = as_calloc(t->held.n, sizeof(double));
    if (!t->state.centroids || !t->next || !t->sums || !t->new_sums || !t->room || !t->labels ||
        !t->square)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu clusters of %zu inputs", t->clusters,
                       t->training.dims);
    for (size_t i = 0; i < shards; i++)
        t->partials[i] = t->room + i * (t->n + 1);
    return AS_OK;
}

/* ---- checkpoints ---- */

static as_status read_state(struct kmeans_trial *t, const struct safetensors *s, struct as_err *err)
{
    int64_t position[2];
    if (!as_streq(safetensors_metadata(s, "format"), FORMAT))
        return as_fail(err, AS_E_INVAL,
                       "it is not a checkpoint of k-means, expected the format "
                       "'" FORMAT "'");
    if (!as_streq(safetensors_metadata(s, "fingerprint"), t->m->fingerprint))
        return as_fail(err, AS_E_INVAL,
                       "the checkpoint belongs to another job (another train document, data set or "
                       "seed)");
    as_status st = safetensors_copy(s, "position", SAFETENSORS_I64, 2, position, err);
    if (st == AS_OK)
        st = safetensors_copy(s, "centroids", SAFETENSORS_F32, t->state.n, t->state.centroids, err);
    if (st != AS_OK)
        return st;
    if (position[0] < 0 || position[0] > t->m->spec.epochs)
        return as_fail(err, AS_E_INVAL, "iteration %" PRId64 " is not in this job", position[0]);
    t->m->epoch = position[0];
    t->state.settled = position[1] != 0;
    return AS_OK;
}

static as_status repeat_report(struct kmeans_trial *t, const struct safetensors *s,
                               struct as_err *err)
{
    struct member *m = t->m;
    char text[80];
    const char *line = safetensors_metadata(s, "report");
    str_puts(&m->last_report, line ? line : "");
    as_status st = str_check(&m->last_report, err);
    if (st != AS_OK)
        return st;
    (void)snprintf(text, sizeof text, "resumed after iteration %" PRId64, m->epoch);
    channel_log(m->channel, m->id, false, text);
    return m->last_report.len > 0 ? report_file_append(&m->report, &m->last_report, err) : AS_OK;
}

/* *ret_found: there was a checkpoint, and it is read. */
static as_status resume(struct kmeans_trial *t, bool *ret_found, struct as_err *err)
{
    struct member *m = t->m;
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    *ret_found = false;
    m->saved_ns = clock_mono_ns();
    if (!m->checkpoint)
        return AS_OK;
    as_status st = checkpoint_read_own(m, &s, err);
    if (st != AS_OK || !s)
        return st;
    if ((st = read_state(t, s, err)) != AS_OK)
        return as_err_prefix(err, st, "%.200s", m->checkpoint);
    *ret_found = true;
    return repeat_report(t, s, err);
}

static as_status write_checkpoint(struct kmeans_trial *t, struct as_err *err)
{
    int64_t position[2] = {t->m->epoch, t->state.settled};
    JSON_AUTO meta = json_pack("{s:s, s:s, s:s}", "format", FORMAT, "fingerprint",
                               t->m->fingerprint, "report", str_cstr(&t->m->last_report));
    const struct safetensors_tensor tensors[] = {
        {.name = "centroids",
         .n_dims = 2,
         .shape = {t->clusters, t->training.dims},
         .data = t->state.centroids},
        {.name = "position", .type = SAFETENSORS_I64, .n_dims = 1, .shape = {2}, .data = position},
    };
    return meta ? safetensors_write(t->m->checkpoint, meta, tensors, AS_ARRAY_LEN(tensors), err)
                : as_fail_nomem(err);
}

/* A full disk is a warning: the previous checkpoint is still there. */
static as_status save(void *arg, struct as_err *err)
{
    struct kmeans_trial *t = arg;
    struct member *m = t->m;
    struct as_err why;
    char text[AS_ERR_MSG_MAX + 60];
    (void)err;
    if (!m->checkpoint)
        return AS_OK;
    int64_t start = clock_mono_ns();
    as_status st = write_checkpoint(t, &why);
    m->saved_ns = clock_mono_ns();
    m->save_cost_ns = m->saved_ns - start;
    if (st == AS_OK)
        return AS_OK;
    (void)snprintf(text, sizeof text, "warning: going on without a checkpoint: %s", why.msg);
    channel_log(m->channel, m->id, true, text);
    return AS_OK;
}

static bool save_is_due(const struct kmeans_trial *t, const struct watch *w)
{
    const struct member *m = t->m;
    int64_t wait = SAVE_COST_FACTOR * m->save_cost_ns;
    wait = wait > w->checkpoint_ns ? wait : w->checkpoint_ns;
    return (!t->ranks || kmeans_ranks_leads(t->ranks)) && clock_mono_ns() - m->saved_ns >= wait;
}

/* ---- an iteration ---- */

static bool is_over(const struct kmeans_trial *t)
{
    return t->state.settled || t->m->epoch >= t->m->spec.epochs;
}

/* ret [n + 1] = the sums of all rows at these centroids, and how many ranks wish to stop. */
static as_status sum(struct kmeans_trial *t, const float *centroids, double *ret,
                     struct as_err *err)
{
    uint32_t total = kmeans_shards(t->training.n);
    struct shard_run run = {0, total};
    if (t->ranks)
        run = kmeans_ranks_own(t->ranks, total);
    as_status st = AS_OK;
    if (run.count > 0)
        st = kmeans_shard_sums(&t->training, centroids, t->clusters, run.first, run.count,
                               t->threads, t->partials, err);
    if (st != AS_OK)
        return st;
    for (uint32_t i = 0; i < run.count; i++)
        t->partials[i][t->n] = t->ranks && i == 0 && kmeans_ranks_stop_asked(t->ranks);
    if (t->ranks)
        return kmeans_ranks_sum(t->ranks, t->round++, total, t->partials, t->n + 1, ret, err);
    kmeans_tree_sum(t->partials, total, t->n + 1);
    memcpy(ret, t->partials[0], (t->n + 1) * sizeof *ret);
    return AS_OK;
}

/* The state changes at the end alone. */
static as_status iterate(struct kmeans_trial *t, struct as_err *err)
{
    double shift = 0;
    as_status st = t->has_sums ? AS_OK : sum(t, t->state.centroids, t->sums, err);
    if (st != AS_OK)
        return st;
    t->has_sums = true;
    memcpy(t->next, t->state.centroids, t->state.n * sizeof *t->next);
    memcpy(t->new_sums, t->sums, (t->n + 1) * sizeof *t->sums);
    st = kmeans_move(&t->training, t->new_sums, t->clusters, t->threads, t->next, &shift, err);
    if (st == AS_OK)
        st = sum(t, t->next, t->new_sums, err);
    if (st != AS_OK)
        return st;
    memcpy(t->state.centroids, t->next, t->state.n * sizeof *t->next);
    memcpy(t->sums, t->new_sums, (t->n + 1) * sizeof *t->sums);
    t->state.settled = shift <= t->least;
    t->stop = t->new_sums[t->n] > 0;
    t->m->epoch++;
    return AS_OK;
}

/* *ret_done: an iteration is done. False: this rank has met others, whose state it may have now. */
static as_status iterate_together(struct kmeans_trial *t, bool *ret_done, struct as_err *err)
{
    bool met = false;
    *ret_done = false;
    as_status st = kmeans_ranks_meet(t->ranks, &met, err);
    if (st != AS_OK)
        return st;
    if (met) {
        t->has_sums = false;
        t->round = 0;
        t->stop = kmeans_ranks_stopping(t->ranks);
        return AS_OK;
    }
    int64_t begin_ns = clock_mono_ns();
    st = iterate(t, err);
    *ret_done = st == AS_OK;
    if (st == AS_OK)
        kmeans_ranks_progress(t->ranks, clock_mono_ns() - begin_ns);
    if (st != AS_E_UNAVAILABLE)
        return st;
    kmeans_ranks_part(t->ranks);
    return AS_OK;
}

/* ---- reports ---- */

static as_status report(struct kmeans_trial *t, struct as_err *err)
{
    struct member *m = t->m;
    double inertia = 0, davies_bouldin = 0;
    as_status st = kmeans_assign(&t->held, t->state.centroids, t->clusters, t->threads, t->labels,
                                 t->square, err);
    for (size_t i = 0; i < t->held.n; i++)
        inertia += t->square[i];
    if (st == AS_OK)
        st = kmeans_davies_bouldin(&t->held, t->labels, t->clusters, &davies_bouldin, err);
    const struct report_value values[] = {
        {"inertia", t->sums[t->n - 1] / (double)t->training.n},
        {"val_inertia", inertia / (double)t->held.n},
        {"val_davies_bouldin", davies_bouldin},
    };
    str_clear(&m->last_report);
    if (st == AS_OK)
        st = report_format(m->epoch, values, AS_ARRAY_LEN(values), &m->last_report, err);
    return st == AS_OK ? report_file_append(&m->report, &m->last_report, err) : st;
}

static void say_started(const struct kmeans_trial *t)
{
    struct member *m = t->m;
    const struct control_event e = {
        .kind = CONTROL_STARTED, .id = m->id, .step = (int64_t)m->epoch - 1};
    if (m->started)
        return;
    m->started = true;
    channel_send(m->channel, &e);
}

static as_status step(struct kmeans_trial *t, struct watch *w, struct as_err *err)
{
    bool done = true;
    as_status st = t->ranks ? iterate_together(t, &done, err) : iterate(t, err);
    if (st != AS_OK || !done)
        return st;
    atomic_fetch_add(&w->rows, t->training.n);
    say_started(t);
    return t->m->epoch % t->m->spec.report_every == 0 || is_over(t) ? report(t, err) : AS_OK;
}

/* ---- ends ---- */

static as_status write_files(void *arg, struct as_err *err)
{
    const struct kmeans_trial *t = arg;
    const struct kmeans_result r = {.setup = t->setup,
                                    .m = t->m,
                                    .centroids = t->state.centroids,
                                    .clusters = t->clusters,
                                    .held = &t->held,
                                    .threads = t->threads};
    return kmeans_files_write(&r, err);
}

static as_status finish(struct kmeans_trial *t, as_status (*write)(void *arg, struct as_err *err),
                        struct as_err *err)
{
    return t->ranks ? kmeans_ranks_finish(t->ranks, write, t, err) : write(t, err);
}

/* A failed write (a full disk) is the machine's fault: another attempt may succeed; so may one of a
 * rank that was to stop without the others. */
static void end_with(struct kmeans_trial *t, as_status st, int exit, const struct as_err *why)
{
    bool again = st == AS_E_IO || (t->ranks && st == AS_E_UNAVAILABLE);
    member_end(t->m,
               st == AS_OK ? exit
               : again     ? EXIT_TRY_AGAIN
                           : EXIT_FAILED,
               st == AS_OK ? NULL : why);
}

static bool is_stopped(const struct kmeans_trial *t, const struct watch *w)
{
    return t->stop || t->m->ask == ASK_STOP || atomic_load(w->stop);
}

/* True: the member has ended. */
static bool end_if_due(struct kmeans_trial *t, struct watch *w)
{
    struct as_err why;
    if (t->m->ask == ASK_CANCEL)
        member_end(t->m, EXIT_TRY_AGAIN, NULL);
    else if (is_over(t))
        end_with(t, finish(t, write_files, &why), EXIT_DONE, &why);
    else if (is_stopped(t, w))
        end_with(t, finish(t, save, &why), EXIT_TRY_AGAIN, &why);
    return t->m->ended;
}

void kmeans_trial_slice(struct kmeans_trial *t, struct watch *w)
{
    struct as_err why;
    int64_t until = clock_mono_ns() + TURN_NS;
    do {
        if (end_if_due(t, w))
            return;
        as_status st = step(t, w, &why);
        if (st != AS_OK) {
            end_with(t, st, EXIT_DONE, &why);
            return;
        }
        if (!is_over(t) && save_is_due(t, w))
            (void)save(t, &why);
    } while (clock_mono_ns() < until);
}

as_status kmeans_trial_create(const struct lockstep_setup *setup, struct member *m, size_t threads,
                              struct team *team, struct kmeans_trial **ret, struct as_err *err)
{
    const struct train_kmeans_spec *spec = &m->spec.model.kmeans;
    AS_AUTO(kmeans_trial_freep) struct kmeans_trial *t = as_calloc(1, sizeof *t);
    bool found = false;
    if (!t)
        return as_fail_nomem(err);
    t->setup = setup;
    t->m = m;
    t->threads = threads;
    t->clusters = (size_t)spec->clusters;
    as_status st = take_data(t, err);
    if (st == AS_OK)
        st = make_room(t, err);
    if (st == AS_OK)
        st = resume(t, &found, err);
    if (st == AS_OK && !found)
        st = kmeans_start(&t->training, t->clusters, spec->random ? KMEANS_RANDOM : KMEANS_PLUSPLUS,
                          m->seed, threads, t->state.centroids, err);
    if (st == AS_OK && team)
        st = kmeans_ranks_create(team, m, &t->state, &t->ranks, err);
    if (st != AS_OK)
        return st;
    t->least = spec->tolerance * kmeans_variance(&t->training);
    *ret = as_steal(t);
    return AS_OK;
}
