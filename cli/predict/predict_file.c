/* The threads of a prediction, and the blocks that go between them.
 *
 * Blocks stand in a ring. This thread fills the next one and gives it to the threads that compute;
 * when the ring is full it waits for the oldest, writes what became of it, and fills it again. So
 * the output has the order of the input, and memory is that of the ring.
 *
 * A fault in a block counts when its turn to be written comes: the first fault of the file is
 * reported, whatever thread finds one first. */
#include "cli/predict/predict_file.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/predict/worker.h"

#define BLOCKS_PER_THREAD 2
#define MOST_THREADS 64

typedef enum place_state {
    PLACE_FREE,  /* this thread may fill it */
    PLACE_READY, /* a worker may take it */
    PLACE_BUSY,  /* a worker has it */
    PLACE_DONE   /* this thread may write it */
} place_state;

struct place {
    place_state state; /* under `lock` */
    struct predict_block block;
    struct predict_done done;
};

struct run {
    const struct model_file *file;
    const struct predict_opts *opts;
    struct predict_input *input;
    struct predict_output output;
    int64_t bytes;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* a place, or `ended` */
    bool ended;             /* under `lock`: workers end */
    size_t taken;           /* under `lock`: the next place to take, counted from the start */
    size_t n_places;
    struct place *places;

    size_t n_workers, n_threads; /* that are initialised; that run */
    struct predict_worker *workers;
    pthread_t threads[MOST_THREADS];
};

struct thread_arg {
    struct run *run;
    struct predict_worker *worker;
};

void predict_summary_done(struct predict_summary *s)
{
    free(s->ignored);
    free(s->imputed);
    free(s->medians);
    s->ignored = NULL;
}

/* ---- the threads that compute ---- */

/* The next block to compute; NULL: there will be none. */
static struct place *take_place(struct run *r)
{
    (void)pthread_mutex_lock(&r->lock);
    struct place *p = &r->places[r->taken % r->n_places];
    while (!r->ended && p->state != PLACE_READY) {
        (void)pthread_cond_wait(&r->changed, &r->lock);
        p = &r->places[r->taken % r->n_places];
    }
    if (r->ended)
        p = NULL;
    else
        p->state = PLACE_BUSY;
    r->taken += p != NULL;
    (void)pthread_mutex_unlock(&r->lock);
    return p;
}

static void set_state(struct run *r, struct place *p, place_state state)
{
    (void)pthread_mutex_lock(&r->lock);
    p->state = state;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

static void *work(void *arg)
{
    struct thread_arg *a = arg;
    struct place *p;
    while ((p = take_place(a->run)) != NULL) {
        predict_worker_run(a->worker, &p->block, &p->done);
        set_state(a->run, p, PLACE_DONE);
    }
    return NULL;
}

static void end_threads(struct run *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->ended = true;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < r->n_threads; i++)
        (void)pthread_join(r->threads[i], NULL);
    r->n_threads = 0;
}

static as_status start_threads(struct run *r, struct thread_arg *args, struct as_err *err)
{
    for (size_t i = 0; i < r->n_workers; i++) {
        args[i] = (struct thread_arg){r, &r->workers[i]};
        if (pthread_create(&r->threads[i], NULL, work, &args[i]) != 0)
            return i > 0 ? AS_OK : as_fail(err, AS_E_NOMEM, "cannot start a thread");
        r->n_threads++;
    }
    return AS_OK;
}

/* ---- this thread ---- */

/* Wait until the block of a place is done, and write what became of it. */
static as_status write_place(struct run *r, struct place *p, struct predict_summary *ret,
                             struct as_err *err)
{
    (void)pthread_mutex_lock(&r->lock);
    while (p->state != PLACE_DONE)
        (void)pthread_cond_wait(&r->changed, &r->lock);
    p->state = PLACE_FREE;
    (void)pthread_mutex_unlock(&r->lock);
    const struct predict_done *d = &p->done;
    if (d->st != AS_OK) {
        if (err)
            *err = d->err;
        return d->st;
    }
    if (ret->unknown == 0 && d->unknown > 0)
        memcpy(ret->first, d->first, sizeof ret->first);
    ret->unknown += d->unknown;
    for (size_t c = 0; c < ret->n_columns; c++)
        ret->imputed[c] += d->imputed[c];
    ret->rows += d->rows;
    return predict_output_write(&r->output, &d->text, d->rows, err);
}

static as_status fill_place(struct run *r, struct place *p, struct as_err *err)
{
    int64_t bytes = 0;
    if (r->opts->stop && r->opts->stop())
        return as_fail(err, AS_E_CONFLICT, "interrupted");
    as_status st = predict_input_next(r->input, &p->block, &bytes, err);
    if (st != AS_OK)
        return st;
    r->bytes += bytes;
    if (r->opts->on_progress)
        r->opts->on_progress(r->opts->arg, r->bytes);
    set_state(r, p, PLACE_READY);
    return AS_OK;
}

static as_status run_blocks(struct run *r, struct predict_summary *ret, struct as_err *err)
{
    size_t filled = 0, written = 0;
    struct as_err read_err = {0};
    as_status read = AS_OK; /* how reading ended; it counts behind the blocks before it */
    const size_t n_places = r->n_places;
    assert(n_places > 0);
    while (read == AS_OK || written < filled) {
        if (read == AS_OK && filled - written < n_places) {
            read = fill_place(r, &r->places[filled % n_places], &read_err);
            filled += read == AS_OK;
            continue;
        }
        as_status st = write_place(r, &r->places[written++ % n_places], ret, err);
        if (st != AS_OK)
            return st;
    }
    if (read != AS_E_EXHAUSTED) {
        if (err)
            *err = read_err;
        return read;
    }
    return predict_output_commit(&r->output, err);
}

static as_status prepare(struct run *r, struct as_err *err)
{
    size_t n = r->opts->threads < MOST_THREADS ? r->opts->threads : MOST_THREADS;
    n = n > 0 ? n : 1;
    r->n_places = n * BLOCKS_PER_THREAD + 1;
    r->places = as_calloc(r->n_places, sizeof *r->places);
    r->workers = as_calloc(n, sizeof *r->workers);
    if (!r->places || !r->workers)
        return as_fail_nomem(err);
    while (r->n_workers < n) {
        as_status st = predict_worker_init(&r->workers[r->n_workers++], r->file, r->input,
                                           &r->output, r->opts->strict, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static void run_done(struct run *r)
{
    for (size_t i = 0; i < r->n_workers; i++)
        predict_worker_done(&r->workers[i]);
    for (size_t i = 0; r->places && i < r->n_places; i++) {
        predict_block_done(&r->places[i].block);
        str_done(&r->places[i].done.text);
        free(r->places[i].done.imputed);
    }
    free(r->workers);
    free(r->places);
    predict_output_done(&r->output);
    predict_input_free(r->input);
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->changed);
}

/* Room to count the numbers that are missing where training lacked none. */
static as_status prepare_counts(struct run *r, struct predict_summary *ret, struct as_err *err)
{
    const struct dataset_info *info = model_file_data(r->file);
    if (!info->columns)
        return AS_OK;
    ret->imputed = as_calloc(info->n_features, sizeof *ret->imputed);
    ret->medians = as_calloc(info->n_features, sizeof *ret->medians);
    if (!ret->imputed || !ret->medians)
        return as_fail_nomem(err);
    ret->n_columns = info->n_features;
    for (size_t c = 0; c < info->n_features; c++)
        ret->medians[c] = predictor_median(r->workers[0].predictor, c);
    for (size_t i = 0; i < r->n_places; i++)
        if (!(r->places[i].done.imputed = as_calloc(info->n_features, sizeof *ret->imputed)))
            return as_fail_nomem(err);
    return AS_OK;
}

static as_status predict_all(struct run *r, struct predict_summary *ret, struct as_err *err)
{
    struct thread_arg args[MOST_THREADS];
    as_status st = prepare(r, err);
    if (st == AS_OK)
        st = prepare_counts(r, ret, err);
    if (st == AS_OK)
        st = predict_output_open(&r->output, r->file, r->opts->output ? r->opts->output : "-",
                                 r->opts->proba, predict_input_has_images(r->input), err);
    if (st == AS_OK)
        st = start_threads(r, args, err);
    if (st == AS_OK)
        st = run_blocks(r, ret, err);
    end_threads(r);
    return st;
}

as_status predict_file(const struct model_file *f, const struct predict_opts *opts,
                       void (*on_ignored)(const char *columns), struct predict_summary *ret,
                       struct as_err *err)
{
    AS_AUTO(run_done)
    struct run r = {.file = f,
                    .opts = opts,
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .changed = PTHREAD_COND_INITIALIZER};
    *ret = (struct predict_summary){0};
    as_status st = predict_input_open(f, opts->data, &opts->written, &r.input, err);
    if (st != AS_OK)
        return st;
    const char *ignored = predict_input_columns(r.input)->ignored;
    if (ignored && !(ret->ignored = as_strdup(ignored)))
        return as_fail_nomem(err);
    if (ignored && on_ignored)
        on_ignored(ignored);
    return predict_all(&r, ret, err);
}
