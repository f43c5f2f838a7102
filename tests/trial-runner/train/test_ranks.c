/* Large trials in real processes: the same bits for any number of ranks, whoever dies. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "data/formats/npy.h"
#include "tests/support/check_main.h"
#include "tests/support/gang.h"

/* Eight shards in a batch; the last batch of an epoch has fewer, and its last shard fewer rows. */
#define SHARDS "\"batch_size\":256,\"micro_batch\":32,"
#define MLP "\"model\":{\"layers\":[24,12],\"dropout\":0.1},\"epochs\":5," SHARDS
static const struct trial mlp = {"a", MLP "\"optimizer\":{\"lr\":0.01,\"clip_norm\":1,\"ema\":0.9}",
                                 "3"};
/* Batch normalisation: running statistics travel with the gradients. */
static const struct trial cnn = {
    "b",
    "\"model\":{\"kind\":\"cnn\",\"layers\":[{\"conv\":4,\"norm\":\"batch\"},"
    "{\"pool\":\"max\",\"size\":2}]},\"epochs\":2," SHARDS
    "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05,\"momentum\":0.9,\"nesterov\":true}",
    "4"};
/* Long enough for many deaths. */
static const struct trial lasting = {
    "c", "\"model\":{\"layers\":[64,64]},\"epochs\":200," SHARDS "\"optimizer\":{\"lr\":0.003}",
    "5"};

static struct rig rig;

static void setup(void)
{
    rig_open(&rig);
}

static void teardown(void)
{
    rig_close(&rig);
}

/* 600 pictures of 8 x 8 with two channels; the class is where the bright half is. */
static void make_pictures(void)
{
    enum { N = 600, SIDE = 8, CHANNELS = 2, PIXELS = SIDE * SIDE * CHANNELS };
    static float x[N * PIXELS];
    static int64_t y[N];
    AS_AUTO(as_freep) char *xp = file_join(rig.dir, "x.npy");
    AS_AUTO(as_freep) char *yp = file_join(rig.dir, "y.npy");
    struct rng r;
    rng_init(&r, 11, 0);
    for (size_t i = 0; i < N; i++) {
        y[i] = (int64_t)rng_below(&r, 2);
        for (size_t k = 0; k < PIXELS; k++) {
            bool left = k / CHANNELS % SIDE < SIDE / 2;
            x[i * PIXELS + k] = (float)(rng_normal(&r) + (left == (y[i] == 0) ? 1 : 0));
        }
    }
    size_t shape[] = {N, SIDE, SIDE, CHANNELS};
    ck_ok(npy_write(xp, NPY_F4, shape, 4, x, &rig.err), rig.err);
    ck_ok(npy_write(yp, NPY_I8, shape, 1, y, &rig.err), rig.err);
    struct dataset_paths paths = {.features = xp, .targets = yp};
    rig_data(&rig, "pictures", &paths, DATASET_NPY, DATASET_TASK_AUTO);
}

static char *read_file(const char *tag, const char *folder, const char *name, size_t *ret_len)
{
    char *bytes = rig_read(&rig, tag, folder, name, ret_len);
    ck_assert_msg(bytes != NULL, "%s/%s/%s is missing", tag, folder, name);
    return bytes;
}

static void same_file(const char *a, const char *b, const char *folder, const char *name)
{
    size_t n, m;
    AS_AUTO(as_freep) char *x = read_file(a, folder, name, &n);
    AS_AUTO(as_freep) char *y = read_file(b, folder, name, &m);
    ck_assert_uint_eq(n, m);
    ck_assert_msg(memcmp(x, y, n) == 0, "%s/%s differs from %s's", b, name, a);
}

static void same_results(const char *a, const char *b)
{
    same_file(a, b, "artifacts", "model.safetensors");
    same_file(a, b, "artifacts", "predictions.npy");
}

/* Every line that any rank has reported is a line of the undisturbed report. */
static void same_reports(const char *calm, const struct gang *g)
{
    size_t len;
    AS_AUTO(as_freep) char *all = read_file(calm, "r0", "report", &len);
    for (size_t i = 0; i < g->n; i++) {
        char folder[8], *rest = NULL;
        (void)snprintf(folder, sizeof folder, "r%zu", i);
        AS_AUTO(as_freep) char *own = rig_read(&rig, g->tag, folder, "report", &len);
        for (char *line = own ? strtok_r(own, "\n", &rest) : NULL; line;
             line = strtok_r(NULL, "\n", &rest))
            ck_assert_msg(strstr(all, line) != NULL, "%s/%s reports %s", g->tag, folder, line);
    }
}

static void show_errors(const struct gang *g)
{
    for (size_t i = 0; i < g->n; i++) {
        char folder[8];
        size_t len;
        (void)snprintf(folder, sizeof folder, "r%zu", i);
        AS_AUTO(as_freep) char *err = rig_read(&rig, g->tag, folder, "err", &len);
        AS_AUTO(as_freep) char *out = rig_read(&rig, g->tag, folder, "out", &len);
        (void)fprintf(stderr, "%s/%s ended with %d:\n%s%s", g->tag, folder, g->ended[i],
                      out ? out : "", err ? err : "");
    }
}

static void all_ended_well(const struct gang *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->ended[i] != 0)
            show_errors(g);
    for (size_t i = 0; i < g->n; i++)
        ck_assert_int_eq(g->ended[i], 0);
}

static void run_undisturbed(const char *tag, const struct trial *t, size_t n)
{
    struct gang g;
    gang_start(&g, &rig, tag, t, n);
    gang_run(&g);
    all_ended_well(&g);
    gang_done(&g);
}

START_TEST(any_number_of_ranks_gives_the_same_bits)
{
    const struct trial *t = _i == 0 ? &mlp : &cnn;
    static const char *const tags[] = {"p1", "p2", "p3", "p4", "p9"};
    static const size_t sizes[] = {1, 2, 3, 4, 9};
    if (t == &cnn)
        make_pictures();
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        run_undisturbed(tags[i], t, sizes[i]);
        same_results("p1", tags[i]);
        same_file("p1", tags[i], "r0", "report");
    }
    /* Every rank could have reported: each has written the same lines. */
    size_t n, m;
    AS_AUTO(as_freep) char *first = read_file("p4", "r0", "report", &n);
    AS_AUTO(as_freep) char *last = read_file("p4", "r3", "report", &m);
    ck_assert_str_eq(first, last);
}
END_TEST

/* Ranks die at random moments, and others take their places. */
static void run_with_deaths(const char *tag, uint64_t seed, size_t deaths, int signal)
{
    struct gang g;
    struct rng r;
    rng_init(&r, seed, 0);
    gang_start(&g, &rig, tag, &lasting, 4);
    int64_t next_ns = 0;
    size_t killed = 0;
    while (gang_turn(&g, 5)) {
        int64_t now_ns = clock_mono_ns();
        bool training = false;
        for (size_t i = 0; i < g.n; i++)
            training = training || g.ranks[i].joined > 0;
        if (!training || killed == deaths || now_ns < next_ns || gang_alive(&g) < 2)
            continue;
        next_ns = now_ns + (int64_t)rng_below(&r, 60) * NS_PER_MS;
        size_t victim = rng_below(&r, g.n);
        if (!g.ranks[victim].pid)
            continue;
        gang_kill(&g, victim, signal);
        killed++;
        if (g.n < GANG_MAX && (gang_alive(&g) < 3 || rng_below(&r, 2) == 0))
            gang_add(&g);
    }
    ck_assert_uint_ge(killed, 2); /* on a quick machine the training ends before the last */
    size_t well = 0;
    for (size_t i = 0; i < g.n; i++) {
        well += g.ended[i] == 0;
        if (g.ended[i] != 0 && g.ended[i] != -signal)
            show_errors(&g);
        ck_assert_msg(g.ended[i] == 0 || g.ended[i] == -signal, "%s/r%zu ended with %d", tag, i,
                      g.ended[i]);
    }
    ck_assert_uint_ge(well, 1);
    same_reports("calm", &g);
    gang_done(&g);
}

START_TEST(deaths_change_no_bit)
{
    char tag[16];
    run_undisturbed("calm", &lasting, 1);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        (void)snprintf(tag, sizeof tag, "kill%d", (int)seed);
        run_with_deaths(tag, seed, 6, SIGKILL);
        same_results("calm", tag);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("ranks");
    TCase *t = tcase_create("ranks");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 600);
    tcase_add_loop_test(t, any_number_of_ranks_gives_the_same_bits, 0, 2);
    tcase_add_test(t, deaths_change_no_bit);
    suite_add_tcase(s, t);
    return s;
}
