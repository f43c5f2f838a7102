/* Layers on different ranks in real processes: the weights and reports of all-reduce, whoever dies
 * or joins; less memory; bytes by a formula; checkpoints that any number of
 * ranks go on from. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

#define REST "\"batch_size\":256,\"micro_batch\":32,\"epochs\":%d,\"optimizer\":%s%s%s%s%s"

static const char *const models[] = {
    "\"model\":{\"layers\":[24,12,20],\"dropout\":0.1},",
    "\"model\":{\"layers\":[24,12,20],\"norm\":\"batch\"},",
    "\"model\":{\"layers\":[40,16,8],\"activation\":\"tanh\",\"dropout\":0.2},",
    "\"model\":{\"layers\":[24,20,12],\"activation\":\"gelu\",\"dropout\":0.2},",
};
enum { MODELS = 4 };

static const char *const optimizers[] = {
    "{\"lr\":0.01}",
    "{\"kind\":\"sgd\",\"lr\":0.05,\"momentum\":0.9,\"nesterov\":true,\"weight_decay\":0.001}",
    "{\"kind\":\"rmsprop\",\"lr\":0.003,\"momentum\":0.5}",
    "{\"kind\":\"lion\",\"lr\":0.001}",
};

#define AUTO "\"model_parallel\":\"auto\""
#define LISTS "\"model_parallel\":[[\"layers.0\"],[\"layers.1\",\"layers.2\"],[\"layers.3\"]]"
#define ONE_COPY ",\"state_copies\":1"

/* `blocks`: NULL: plain training. */
static void compose(char ret[700], int model, int epochs, int optimizer, const char *blocks,
                    const char *copies)
{
    size_t n = (size_t)snprintf(ret, 700, "%s", models[model]);
    (void)snprintf(ret + n, 700 - n, REST, epochs, optimizers[optimizer],
                   blocks ? ",\"distributed\":{" : "", blocks ? blocks : "", blocks ? copies : "",
                   blocks ? "}" : "");
}

START_TEST(blocks_give_the_bits_of_all_reduce)
{
    char train[700], tag[8];
    compose(train, _i, 4, _i, NULL, "");
    gang_train(&rig, "plain", train, 1);
    for (size_t n = 1; n <= 4; n++) {
        (void)snprintf(tag, sizeof tag, "p%zu", n);
        compose(train, _i, 4, _i, n == 3 ? LISTS : AUTO, n == 2 ? ONE_COPY : "");
        gang_train(&rig, tag, train, n);
        gang_same(&rig, "plain", tag);
        ck_assert_double_eq(gang_last(&rig, "plain", "val_loss"), gang_last(&rig, tag, "val_loss"));
        ck_assert_double_eq(gang_last(&rig, "plain", "train_loss"),
                            gang_last_of(&rig, tag, n - 1, "train_loss"));
    }
}
END_TEST

#define CLIPPED                                                                                    \
    "\"model\":{\"layers\":[24,12,20]},\"batch_size\":256,\"micro_batch\":32,\"epochs\":3,"        \
    "\"optimizer\":{\"lr\":0.01,\"clip_norm\":0.2}%s"

/* Norms are sums over blocks: they are equal for any number of ranks, and to rounding those of one
 * vector. */
START_TEST(clipped_gradients_are_equal_to_rounding)
{
    const struct trial t = {".", "", "3"};
    char train[700];
    (void)snprintf(train, sizeof train, CLIPPED, "");
    gang_train(&rig, "plain", train, 1);
    (void)snprintf(train, sizeof train, CLIPPED, ",\"distributed\":{" AUTO "}");
    gang_train(&rig, "p1", train, 1);
    gang_train(&rig, "p3", train, 3);
    gang_same(&rig, "p1", "p3");
    ck_assert_double_le(rig_distance(&rig, "plain", "p3", &t), 1e-5);
    (void)snprintf(train, sizeof train,
                   "\"model\":{\"layers\":[24,12,20]},\"batch_size\":256,\"micro_batch\":32,"
                   "\"epochs\":3,\"optimizer\":{\"lr\":0.01}");
    gang_train(&rig, "unclipped", train, 1);
    ck_assert_double_gt(rig_distance(&rig, "unclipped", "p3", &t), 1e-3);
}
END_TEST

START_TEST(deaths_and_newcomers_change_no_bit)
{
    char train[700];
    compose(train, _i, 120, _i, NULL, "");
    gang_train(&rig, "plain", train, 1);
    compose(train, _i, 120, _i, AUTO, "");
    (void)gang_train_dying_with(&rig, "dying", train, 3, 4, 9 + (uint64_t)_i,
                                &(struct gang_opts){.no_checkpoints = true});
    gang_same(&rig, "plain", "dying");
    gang_train_growing(&rig, "growing", train, 1, 4);
    gang_same(&rig, "plain", "growing");
}
END_TEST

/* From a stop and from the checkpoints on the way, with other numbers of ranks. */
START_TEST(checkpoints_go_on_with_any_number_of_ranks)
{
    char train[700];
    compose(train, 1, 60, 0, NULL, "");
    gang_train(&rig, "plain", train, 1);
    compose(train, 1, 60, 0, AUTO, "");
    gang_train_halted(&rig, "halted", train, 3, 2, 1);
    gang_same(&rig, "plain", "halted");
    gang_train_killed(&rig, "killed", train, 2, 10, 4);
    gang_same(&rig, "plain", "killed");
}
END_TEST

START_TEST(one_copy_restarts_from_the_checkpoint)
{
    char train[700];
    compose(train, 0, 60, 0, AUTO, ONE_COPY);
    gang_train(&rig, "calm", train, 2);
    gang_train_orphaned(&rig, "dying", train, 3, 1, 2);
    gang_same(&rig, "calm", "dying");
}
END_TEST

/* What the last rank of `tag`'s places prints about its blocks. */
static double held(const char *tag, size_t place)
{
    size_t len;
    char folder[8];
    double bytes = 0;
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    AS_AUTO(as_freep) char *out = rig_read(&rig, tag, folder, "out", &len);
    const char *at = out ? strstr(out, ": blocks ") : NULL;
    ck_assert_msg(at && sscanf(at, ": blocks %*u to %*u of %*u, %lf", &bytes) == 1,
                  "%s says nothing of blocks:\n%s", tag, out ? out : "");
    return bytes;
}

/* 64 inputs, 4 layers of 64 units and 10 outputs: weights and two moments. */
#define EVEN                                                                                       \
    "\"model\":{\"layers\":[64,64,64,64]},\"batch_size\":256,\"micro_batch\":32,\"epochs\":2,"     \
    "\"optimizer\":{\"lr\":0.01},\"distributed\":{\"model_parallel\":"                             \
    "[[\"layers.0\"],[\"layers.1\"],[\"layers.2\"],[\"layers.3\",\"layers.4\"]]%s}"

START_TEST(each_rank_holds_its_blocks_alone)
{
    char train[700];
    const double layer = 64 * 64 + 64, last = layer + 64 * 10 + 10;
    (void)snprintf(train, sizeof train, EVEN, ONE_COPY);
    gang_train(&rig, "once", train, 4);
    (void)snprintf(train, sizeof train, EVEN, "");
    gang_train(&rig, "twice", train, 4);
    for (size_t r = 0; r < 4; r++) {
        double own = r < 3 ? layer : last, before = r == 0 ? last : layer;
        size_t place = r; /* ranks are numbered as they were started */
        ck_assert_double_eq(held("once", place), own * 3 * 4);
        ck_assert_double_eq(held("twice", place), (own + before) * 3 * 4);
    }
}
END_TEST

/* The digits: 1,797 rows, of which 1,348 are trained on. */
START_TEST(bytes_are_those_of_the_formula)
{
    char train[700];
    uint64_t bytes = 0, steps = 0, rows = 1348, layer = 64 * 64 + 64;
    for (int copies = 1; copies <= 2; copies++) {
        const char *tag = copies == 1 ? "once" : "twice";
        (void)snprintf(train, sizeof train, EVEN, copies == 1 ? ONE_COPY : "");
        gang_train(&rig, tag, train, 4);
        for (size_t r = 0; r < 4; r++) {
            uint64_t own = r < 3 ? layer : layer + 64 * 10 + 10, agree = 3 * 2 * 8;
            uint64_t values = 2 * rows * 64 * 4 * ((r > 0) + (r < 3));
            gang_traffic(&rig, tag, r, &bytes, &steps);
            ck_assert_uint_eq(steps, 12);
            ck_assert_uint_eq(bytes, values + steps * (agree + (copies == 2 ? own * 4 : 0)));
        }
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("model_parallel");
    TCase *t = tcase_create("model_parallel");
    rig_fixture(t, &rig);
    tcase_add_loop_test(t, blocks_give_the_bits_of_all_reduce, 0, MODELS);
    tcase_add_test(t, clipped_gradients_are_equal_to_rounding);
    tcase_add_test(t, each_rank_holds_its_blocks_alone);
    tcase_add_test(t, bytes_are_those_of_the_formula);
    suite_add_tcase(s, t);
    t = tcase_create("disturbed");
    rig_fixture(t, &rig);
    tcase_add_loop_test(t, deaths_and_newcomers_change_no_bit, 0, 2);
    tcase_add_test(t, checkpoints_go_on_with_any_number_of_ranks);
    tcase_add_test(t, one_copy_restarts_from_the_checkpoint);
    suite_add_tcase(s, t);
    return s;
}
