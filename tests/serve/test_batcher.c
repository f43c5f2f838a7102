/* Who holds a version while requests are computed. One version gets a request that a thread
 * computes, then one with more rows than a pass, which puts the version into the batcher's list for
 * a second worker. What follows can happen in any order:
 *   SWAP    the cache gives its reference back, as when a new version takes its place
 *   FIRST   the thread ends its request, and computes the other one unless somebody else does
 *   LARGE   who computes the large request ends it
 *   JOIN    the second worker, which was busy, looks into the list
 * Gates hold each thread where it is, so each order happens exactly. Each runs twice: with a
 * reference of the test's own, to count the holders after each step, and without one, so that a
 * sanitizer sees who uses a version that is freed. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "data/formats/safetensors.h"
#include "serve/batcher.h"
#include "serve/stats.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#define MAX_ROWS 4
#define LARGE_ROWS 6
#define TRAIN "{\"dataset\":\"d\",\"epochs\":1,\"model\":{\"kind\":\"linear\"}}"
#define DATASET                                                                                    \
    "{\"format\":\"csv\",\"task\":\"regression\",\"rows\":6,\"features\":1,\"outputs\":1,"         \
    "\"input\":\"table\",\"target\":\"y\","                                                        \
    "\"columns\":[{\"name\":\"x\",\"kind\":\"numeric\",\"missing\":0}]}"
#define RECORD                                                                                     \
    "{\"input\":\"table\",\"standardize\":true,\"training_rows\":4,\"validation_rows\":2,"         \
    "\"columns\":[{\"column\":\"x\",\"kind\":\"numeric\",\"input\":0,\"mean\":0,\"scale\":1}],"    \
    "\"target\":{\"mean\":[0],\"scale\":[1]}}"

static struct as_err err;
static struct stats stats;

/* ---- a model: y = 2 x + 1 ---- */

static char *model_bytes(size_t *ret_len)
{
    static const float weight = 2, bias = 1;
    const struct safetensors_tensor tensors[] = {
        {.name = "layers.0.weight", .n_dims = 2, .shape = {1, 1}, .data = &weight},
        {.name = "layers.0.bias", .n_dims = 1, .shape = {1}, .data = &bias},
    };
    char dir[TEMP_FOLDER_SIZE], *bytes = NULL;
    JSON_AUTO meta = json_pack("{s:s, s:s, s:s, s:s}", "format", "assay-model-1", "train", TRAIN,
                               "dataset", DATASET, "preprocessing", RECORD);
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *path = file_join(dir, "m");
    ck_ok(safetensors_write(path, meta, tensors, AS_ARRAY_LEN(tensors), &err), err);
    ck_ok(file_read(path, 1 << 20, &bytes, ret_len, &err), err);
    temp_folder_remove(dir);
    return bytes;
}

/* The thread that submits computes a request if it is known to be cheap; here it always is. */
static struct served *load(void)
{
    const struct served_options opts = {4, MAX_ROWS};
    struct served *v = NULL;
    struct file_image image = {0};
    image.at = model_bytes(&image.len);
    as_status st = served_load("m", NULL, &image, &opts, &v, &err); /* takes the bytes */
    ck_ok(st, err);
    v->stats = &stats;
    v->queue.pass_ns = 1;
    return v;
}

/* ---- threads that stand still ---- */

/* A request whose answer waits at a gate. It holds a reference, as a connection does. */
struct gated_job {
    struct batch_job job;
    float raw[LARGE_ROWS];
    as_status st;
    float last; /* what was predicted for its last row */
    sem_t reached, gate;
};

static void on_done(struct batch_job *job, as_status st, const float *out, const struct as_err *why)
{
    struct gated_job *g = (struct gated_job *)(void *)job;
    (void)why;
    g->st = st;
    g->last = st == AS_OK ? out[job->rows - 1] : 0;
    (void)sem_post(&g->reached);
    (void)sem_wait(&g->gate);
    served_unref(job->version);
}

static void job_init(struct gated_job *g, struct served *v, size_t rows)
{
    *g = (struct gated_job){.job = {.version = served_ref(v),
                                    .raw = g->raw,
                                    .rows = rows,
                                    .deadline_ns = INT64_MAX,
                                    .done = on_done}};
    g->raw[rows - 1] = 3;
    (void)sem_init(&g->reached, 0, 0);
    (void)sem_init(&g->gate, 0, 0);
}

static void job_check(struct gated_job *g)
{
    ck_assert_int_eq(g->st, AS_OK);
    ck_assert_float_eq(g->last, 7);
    (void)sem_destroy(&g->reached);
    (void)sem_destroy(&g->gate);
}

struct gated_task {
    struct batch_task task;
    sem_t reached, gate;
};

static void hold(struct batch_task *task)
{
    struct gated_task *g = (struct gated_task *)(void *)task;
    (void)sem_post(&g->reached);
    (void)sem_wait(&g->gate);
}

/* Keep a worker busy until its gate opens. */
static void hold_worker(struct batcher *b, struct gated_task *g)
{
    g->task.run = hold;
    (void)sem_init(&g->reached, 0, 0);
    (void)sem_init(&g->gate, 0, 0);
    ck_assert(batcher_run(b, &g->task));
    (void)sem_wait(&g->reached);
}

static sem_t ticks;

static void tick(struct batch_task *task)
{
    (void)task;
    (void)sem_post(&ticks);
}

/* A free worker has looked into the list when it ran two tasks: it prefers tasks and versions by
 * turns. */
static void await_worker(struct batcher *b)
{
    struct batch_task tasks[2] = {{.run = tick}, {.run = tick}};
    for (size_t i = 0; i < AS_ARRAY_LEN(tasks); i++) {
        ck_assert(batcher_run(b, &tasks[i]));
        (void)sem_wait(&ticks);
    }
}

/* ---- one order ---- */

enum step { SWAP, FIRST, LARGE, JOIN, N_STEPS };

struct play {
    struct batcher *b;
    struct served *v;
    bool is_watched; /* the test has a reference of its own */
    bool by_worker;  /* the first request is computed by a worker, not by the thread that submits */
    bool in_cache, first_open, large_open;
    bool first_computes, second_computes; /* who is within a pass of the version */
    bool is_listed;                       /* does the version stand in the batcher's list? */
    struct gated_job first, large;
    struct gated_task hold;
    pthread_t guest;
};

static void *submit(void *arg)
{
    struct play *p = arg;
    ck_assert(batcher_submit(p->b, &p->first.job));
    return NULL;
}

/* Each holder has one reference. They end in other threads, so the count is awaited. */
static void check_holders(const struct play *p, const char *name)
{
    size_t expected = (size_t)1 + p->in_cache + p->first_open + p->large_open + p->first_computes +
                      p->second_computes + p->is_listed;
    int64_t end = clock_mono_ns() + (int64_t)PATIENCE_MS / 10 * 1000000;
    if (!p->is_watched)
        return;
    while (atomic_load(&p->v->n_refs) != expected && clock_mono_ns() < end)
        clock_sleep_ms(1);
    ck_assert_msg(atomic_load(&p->v->n_refs) == expected, "%s: %zu references, expected %zu", name,
                  atomic_load(&p->v->n_refs), expected);
}

static void start(struct play *p)
{
    p->v = load();
    p->in_cache = true;
    if (p->is_watched)
        (void)served_ref(p->v);
    ck_ok(batcher_create(p->by_worker ? 2 : 1, p->by_worker ? 0 : 1, 8, &p->b, &err), err);
    hold_worker(p->b, &p->hold);
    job_init(&p->first, p->v, 1);
    job_init(&p->large, p->v, LARGE_ROWS);
    p->first_open = p->large_open = true;
    ck_assert_int_eq(pthread_create(&p->guest, NULL, submit, p), 0);
    (void)sem_wait(&p->first.reached);
    p->first_computes = true;
    ck_assert(batcher_submit(p->b, &p->large.job)); /* this thread is no guest: there is one */
    p->is_listed = true;
    check_holders(p, "start");
}

static void end_first(struct play *p)
{
    bool is_free = !p->second_computes && p->large_open;
    p->first_open = false;
    (void)sem_post(&p->first.gate);
    if (is_free) {
        (void)sem_wait(&p->large.reached);
        p->is_listed &= !p->by_worker; /* a worker found it there */
    } else {
        p->first_computes = false;
    }
}

static void end_large(struct play *p)
{
    p->large_open = false;
    (void)sem_post(&p->large.gate);
    if (!p->second_computes && !p->first_open)
        p->first_computes = false;
    p->second_computes = false;
}

static void join(struct play *p)
{
    bool is_free = p->first_open && p->large_open;
    (void)sem_post(&p->hold.gate);
    if (is_free)
        (void)sem_wait(&p->large.reached);
    else
        await_worker(p->b);
    p->second_computes = is_free;
    p->is_listed = false;
}

static void take_step(struct play *p, enum step step)
{
    static const char *const names[] = {"swap", "first", "large", "join"};
    switch (step) {
    case SWAP:
        p->in_cache = false;
        served_unref(p->v);
        break;
    case FIRST:
        end_first(p);
        break;
    case LARGE:
        end_large(p);
        break;
    default:
        join(p);
    }
    check_holders(p, names[step]);
}

static void play(const enum step *order, bool by_worker, bool is_watched)
{
    struct play p = {.by_worker = by_worker, .is_watched = is_watched};
    start(&p);
    for (size_t i = 0; i < N_STEPS; i++)
        take_step(&p, order[i]);
    (void)pthread_join(p.guest, NULL);
    batcher_free(p.b);
    job_check(&p.first);
    job_check(&p.large);
    if (is_watched) {
        ck_assert(!p.v->queue.is_ready);
        ck_assert_uint_eq(p.v->queue.n_active, 0);
        ck_assert_uint_eq(atomic_load(&p.v->n_refs), 1);
        served_unref(p.v);
    }
}

/* The large request cannot end before somebody computes it. */
static bool is_possible(const enum step *order)
{
    for (size_t i = 0; order[i] != LARGE; i++)
        if (order[i] == FIRST || order[i] == JOIN)
            return true;
    return false;
}

static void play_orders(bool by_worker)
{
    size_t n = 0;
    (void)sem_init(&ticks, 0, 0);
    for (unsigned code = 0; code < 256; code++) {
        const enum step order[N_STEPS] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
        unsigned seen = 0;
        for (size_t i = 0; i < N_STEPS; i++)
            seen |= 1U << order[i];
        if (seen != 15 || !is_possible(order))
            continue;
        play(order, by_worker, true);
        play(order, by_worker, false);
        n++;
    }
    ck_assert_uint_eq(n, 16);
}

START_TEST(a_version_is_held_while_a_thread_that_submits_computes)
{
    play_orders(false);
}
END_TEST

START_TEST(a_version_is_held_while_workers_compute)
{
    play_orders(true);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("serve/batcher");
    TCase *t = tcase_create("batcher");
    tcase_set_timeout(t, 0);
    tcase_add_test(t, a_version_is_held_while_a_thread_that_submits_computes);
    tcase_add_test(t, a_version_is_held_while_workers_compute);
    suite_add_tcase(s, t);
    return s;
}
