/* The gradient with `privacy`, against one that is put together here from passes of single rows: no
 * clipped gradient is longer than `clip`, rows are drawn with their probability, and what is left
 * is noise of the promised variance. Groups have the bits of single trials. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/dataset_read.h"
#include "data/random_purpose.h"
#include "model/prepare/prepare_rule.h"
#include "tests/support/check_main.h"
#include "tests/support/rig.h"
#include "trial-runner/train/lockstep.h"

static struct rig rig;

#define CLIP 0.5
#define NOISE 2.0
#define MODEL                                                                                      \
    "\"epochs\":2,\"model\":{\"layers\":[20]},\"standardize\":true,\"validation\":{\"fraction\":"  \
    "0.25},"

/* A lockstep of one member, at the beginning of its training. */
struct bench {
    struct job job;
    struct dataset set;
    struct train_data data;
    struct lockstep_setup setup;
    struct member *m;
    struct lockstep *ls;
};

static void bench_open(struct bench *b, const char *train)
{
    const struct trial t = {"m", train, "11"};
    char path[96];
    *b = (struct bench){0};
    rig_job(&rig, "t", (const struct trial *[]){&t}, 1, 1);
    (void)snprintf(path, sizeof path, "%s/job.json", rig.dir);
    ck_ok(job_read(path, &b->job, &rig.err), rig.err);
    struct dataset_paths paths = job_paths(&b->job);
    b->setup = (struct lockstep_setup){
        .job = &b->job, .info = &b->job.info, .data = &b->data, .loss = TRAIN_CROSS_ENTROPY};
    ck_ok(member_create(&b->job, &b->job.members[0], &b->m, &rig.err), rig.err);
    ck_ok(dataset_load(&paths, &b->job.info, &b->set, &rig.err), rig.err);
    struct preprocess_opts opts = prepare_rule_opts(&b->m->spec, b->job.info.task, b->set.n_rows);
    ck_ok(train_data_prepare(&b->set, &b->job.info, &opts, &b->data, &rig.err), rig.err);
    ck_ok(backend_open("reference", NULL, &b->setup.be, &rig.err), rig.err);
    ck_ok(device_data_create(b->setup.be, &b->data, true, &b->setup.device, &rig.err), rig.err);
    ck_ok(lockstep_create(&b->setup, b->m, 1, &b->ls, &rig.err), rig.err);
    ck_ok(lockstep_join(b->ls, b->m, &rig.err), rig.err);
    ck_ok(lockstep_begin_epoch(b->ls, 0, &rig.err), rig.err);
}

static void bench_close(struct bench *b)
{
    lockstep_free(b->ls);
    member_free(b->m);
    device_data_free(b->setup.device);
    backend_free(b->setup.be);
    train_data_done(&b->data);
    job_done(&b->job);
}

static void gradient_at(struct bench *b, size_t at, float *to)
{
    ck_ok(lockstep_gradients(b->ls, b->setup.be, 0, at, NULL, &rig.err), rig.err);
    ck_ok(network_read(b->ls->network, network_gradients(b->ls->network), 0, b->m->plan, to,
                       &rig.err),
          rig.err);
}

/* What a micro-step of an epoch's rows is expected to be, and what it is like. */
struct expected {
    double *clipped, *plain; /* [n]: sums over the rows, clipped and not */
    double longest;          /* of the gradients before they are clipped */
    size_t rows;
};

/* `rows` computes the gradient of the row at each place: batches of one row. */
static void expect(struct bench *rows, uint64_t number, size_t first, size_t end, double q,
                   struct expected *e)
{
    struct rng draws = draw_stream(11, DRAW_PRIVATE_ROWS, number);
    size_t n = rows->m->plan->n_params;
    AS_AUTO(as_freep) float *g = as_calloc(n, sizeof *g);
    e->clipped = as_calloc(n, sizeof *e->clipped);
    e->plain = as_calloc(n, sizeof *e->plain);
    for (size_t place = first; place < end; place++) {
        if (rng_uniform(&draws) >= q)
            continue;
        double square = 0;
        gradient_at(rows, place, g);
        for (size_t i = 0; i < n; i++)
            square += (double)g[i] * (double)g[i];
        double norm = sqrt(square), scale = norm > CLIP ? CLIP / norm : 1;
        e->longest = norm > e->longest ? norm : e->longest;
        e->rows++;
        for (size_t i = 0; i < n; i++) {
            e->clipped[i] += scale * (double)g[i];
            e->plain[i] += (double)g[i];
        }
    }
}

/* The mean and the variance of what `g`, which is divided by `rows`, has beyond `sum`. */
static void rest_of(const float *g, double rows, const double *sum, size_t n, double *ret_mean,
                    double *ret_variance)
{
    double mean = 0, variance = 0;
    for (size_t i = 0; i < n; i++)
        mean += (rows * (double)g[i] - sum[i]) / (double)n;
    for (size_t i = 0; i < n; i++) {
        double d = rows * (double)g[i] - sum[i] - mean;
        variance += d * d / (double)n;
    }
    *ret_mean = mean;
    *ret_variance = variance;
}

/* Batches of 300 rows in three micro-steps: each draws from a third of the epoch's order. */
START_TEST(a_gradient_is_clipped_rows_and_noise)
{
    struct bench b, rows;
    rig_open(&rig);
    bench_open(&rows, MODEL "\"batch_size\":1");
    bench_open(&b, MODEL "\"batch_size\":300,\"micro_batch\":100,"
                         "\"privacy\":{\"clip\":0.5,\"noise\":2}");
    size_t n = b.m->plan->n_params, n_train = b.data.n_train, drawn = 0;
    AS_AUTO(as_freep) float *g = as_calloc(n, sizeof *g);
    double q = 300.0 / (double)n_train, promised = NOISE * NOISE * CLIP * CLIP / 3;
    for (size_t at = 0; at < 3; at++) {
        struct expected e = {0};
        double mean, variance, unclipped;
        expect(&rows, at, n_train * at / 3, n_train * (at + 1) / 3, q, &e);
        ck_assert_double_gt(e.longest, 2 * CLIP); /* clipping changes something */
        drawn += e.rows;
        gradient_at(&b, at, g);
        rest_of(g, 100, e.clipped, n, &mean, &variance);
        /* six deviations of the mean and of the variance of n normal numbers */
        ck_assert_double_le(fabs(mean), 6 * sqrt(promised / (double)n));
        ck_assert_double_le(fabs(variance / promised - 1), 6 * sqrt(2 / (double)n));
        rest_of(g, 100, e.plain, n, &mean, &unclipped); /* without clipping it is not met */
        ck_assert_double_gt(unclipped / promised - 1, 6 * sqrt(2 / (double)n));
        free(e.clipped);
        free(e.plain);
    }
    ck_assert_double_le(fabs((double)drawn - 300), 6 * sqrt(300 * (1 - q)));
    bench_close(&b);
    bench_close(&rows);
    rig_close(&rig);
}
END_TEST

/* Next to members of another width, and by itself; on `reference`, where a group is one
 * lockstep. */
START_TEST(a_group_changes_no_bit)
{
#define PRIVATE(width, noise)                                                                      \
    "\"epochs\":2,\"model\":{\"layers\":[" width "],\"dropout\":0.1},\"batch_size\":256,"          \
    "\"micro_batch\":128,\"privacy\":{\"clip\":1,\"noise\":" noise "}"
    const struct trial a = {"a", PRIVATE("20", "1.1"), "3"}, b = {"b", PRIVATE("17", "0.7"), "4"};
    rig_open(&rig);
    rig_job(&rig, "together", (const struct trial *[]){&a, &b}, 2, 2);
    ck_assert_int_eq(rig_run(&rig, "reference", 1), 0);
    ck_assert_int_eq(rig_solo(&rig, "alone", &a, "reference"), 0);
    ck_assert_int_eq(rig_solo(&rig, "alone", &b, "reference"), 0);
    rig_same(&rig, "together", "alone", &a);
    rig_same(&rig, "together", "alone", &b);
    ck_assert_double_gt(rig_last(&rig, "alone", &b, "epsilon"),
                        rig_last(&rig, "alone", &a, "epsilon"));
    rig_close(&rig);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("private_rows");
    TCase *t = tcase_create("private_rows");
    tcase_add_test(t, a_gradient_is_clipped_rows_and_noise);
    tcase_add_test(t, a_group_changes_no_bit);
    suite_add_tcase(s, t);
    return s;
}
