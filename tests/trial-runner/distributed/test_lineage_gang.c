/* `partitions: lineage` in whole trainings: equal bits for any number of ranks, whoever dies, joins
 * or goes on; what a rank holds; and a loss like that of plain training. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

/* The digits: 1,348 rows to train with, in 16 partitions of 84 or 85; 84 are three micro-steps. */
#define NET                                                                                        \
    "\"model\":{\"layers\":[48]},\"batch_size\":512,\"micro_batch\":32,"                           \
    "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.1,\"momentum\":0.9},\"epochs\":"
#define LINEAGE ",\"distributed\":{\"partitions\":\"lineage\"}"
#define SERVER ",\"distributed\":{\"partitions\":\"lineage\",\"server\":{}}"

/* The numbers of the rank's last line `partitions: …` about what it holds. */
struct holding {
    size_t held, of, read, bytes, all, out;
};

static struct holding holding_of(const char *tag, size_t place)
{
    char folder[16];
    struct holding h = {0}, line;
    size_t len;
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    AS_AUTO(as_freep) char *out = rig_read(&rig, tag, folder, "out", &len);
    ck_assert_ptr_nonnull(out);
    for (const char *at = out; (at = strstr(at, "partitions: ")); at++)
        if (sscanf(at,
                   "partitions: %zu of %zu are here, %zu of them read now: %zu of %zu bytes of "
                   "training rows, and %zu of",
                   &line.held, &line.of, &line.read, &line.bytes, &line.all, &line.out) == 6)
            h = line;
    return h;
}

/* Partitions that a rank has read after its first ones. */
static size_t read_again(const char *tag, size_t place)
{
    char folder[16];
    size_t len, n = 0;
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    AS_AUTO(as_freep) char *out = rig_read(&rig, tag, folder, "out", &len);
    const char *end = out ? strstr(out, " were read from the data set after") : NULL;
    ck_assert_ptr_nonnull(end);
    while (end > out && end[-1] != ' ')
        end--;
    ck_assert_int_eq(sscanf(end, "%zu", &n), 1);
    return n;
}

START_TEST(bits_are_those_of_one_rank)
{
    char tag[8];
    gang_train(&rig, "p1", NET "4" LINEAGE, 1);
    for (size_t n = 2; n <= 4; n++) {
        (void)snprintf(tag, sizeof tag, "p%zu", n);
        gang_train(&rig, tag, NET "4" LINEAGE, n);
        gang_same(&rig, "p1", tag);
    }
    gang_train(&rig, "server", NET "4" SERVER, 3);
    gang_same(&rig, "p1", "server");
    gang_train(&rig, "plain", NET "4", 2);
    ck_assert(!gang_is_same(&rig, "p1", "plain"));
}
END_TEST

START_TEST(a_rank_holds_its_part_of_the_rows)
{
    gang_train(&rig, "parts", NET "1" LINEAGE, 4);
    for (size_t i = 0; i < 4; i++) {
        struct holding h = holding_of("parts", i);
        ck_assert_uint_eq(h.held, 4);
        ck_assert_uint_eq(h.of, 16);
        ck_assert_uint_eq(h.all, 1348 * (64 + 1) * 4);
        ck_assert(h.bytes * 4 >= h.all * 98 / 100 && h.bytes * 4 <= h.all * 102 / 100);
        ck_assert_uint_eq(read_again("parts", i), 0);
    }
}
END_TEST

/* A rank that dies has the only copy of its partitions in memory: the others make them anew. */
START_TEST(deaths_joins_and_stops_change_no_bit)
{
    gang_train(&rig, "calm", NET "800" LINEAGE, 1);
    size_t well = gang_train_dying(&rig, "dying", NET "800" LINEAGE, 4, 4, 3);
    gang_same(&rig, "calm", "dying");
    ck_assert_uint_gt(read_again("dying", well), 0);
    (void)gang_train_dying(&rig, "deaths", NET "800" SERVER, 4, 3, 5);
    gang_same(&rig, "calm", "deaths");
    gang_train_growing(&rig, "growing", NET "800" LINEAGE, 1, 4);
    gang_same(&rig, "calm", "growing");
    ck_assert_uint_eq(holding_of("growing", 0).held, 4); /* it has given the others away */
    gang_train_halted(&rig, "halted", NET "800" LINEAGE, 3, 5, 2);
    gang_same(&rig, "calm", "halted");
}
END_TEST

static bool has_reported(const char *tag)
{
    size_t len = 0;
    AS_AUTO(as_freep) char *report = rig_read(&rig, tag, "r0", "report", &len);
    return report && len > 0;
}

/* The last of four ranks dies: the others read the four partitions that it held, and five that
 * move, because the shards of a rank are neighbours. No step is lost. */
START_TEST(what_a_dead_rank_held_is_read_again)
{
    const char *train = NET "400,\"report_every\":20" LINEAGE;
    const struct trial t = {"a", train, "3"};
    const struct gang_opts opts = {.silence = "10m", .join = "10m", .no_checkpoints = true};
    struct gang g;
    size_t again = 0, held = 0;
    gang_start_with(&g, &rig, "one", &t, 4, &opts);
    while (!has_reported("one") && gang_turn(&g, 2))
        ;
    ck_assert(!gang_is_over(&g));
    gang_kill(&g, gang_place(&g, 3), SIGKILL);
    gang_run(&g);
    ck_assert_uint_eq(g.steps_back, 0);
    for (size_t i = 0; i < 4; i++)
        if (g.ended[i] == 0) {
            held += holding_of("one", i).held;
            again += read_again("one", i);
        }
    gang_done(&g);
    ck_assert_uint_eq(held, 16);
    ck_assert_uint_eq(again, 9);
    gang_train(&rig, "undisturbed", train, 2);
    gang_same(&rig, "undisturbed", "one");
}
END_TEST

/* Other orders of the rows, and the same quality: the mean of three seeds of the split. */
START_TEST(the_loss_is_that_of_plain_training)
{
    double plain = 0, parts = 0;
    char tag[16], train[600];
    for (int seed = 1; seed <= 3; seed++) {
        const char *const ends[] = {"", LINEAGE};
        for (int k = 0; k < 2; k++) {
            (void)snprintf(tag, sizeof tag, "loss%d%d", seed, k);
            (void)snprintf(train, sizeof train, "%s30,\"validation\":{\"seed\":%d}%s", NET, seed,
                           ends[k]);
            gang_train(&rig, tag, train, 2);
            *(k == 0 ? &plain : &parts) += gang_last(&rig, tag, "val_loss") / 3;
        }
    }
    printf("val_loss %g with partitions, %g without\n", parts, plain);
    ck_assert_double_le(fabs(parts / plain - 1), 0.02);
}
END_TEST

#define COPIES                                                                                     \
    ",\"distributed\":{\"partitions\":\"lineage\",\"server\":{\"backup_copies\":true,\"shards\":"  \
    "1}}"

static size_t lines_of_report(const char *tag)
{
    size_t len = 0, n = 0;
    AS_AUTO(as_freep) char *report = rig_read(&rig, tag, "r0", "report", &len);
    for (size_t i = 0; report && i < len; i++)
        n += report[i] == '\n';
    return n;
}

/* A rank stands still, and the others train on: they read its partitions. Rank 0 has the only slice
 * of the sum. */
START_TEST(copies_make_up_for_a_rank_that_stands_still)
{
    const char *train = NET "400,\"report_every\":10" COPIES;
    const struct trial t = {"a", train, "3"};
    const struct gang_opts opts = {.silence = "10m", .join = "10m"};
    struct gang g;
    size_t again = 0, before;
    gang_start_with(&g, &rig, "still", &t, 4, &opts);
    while (!has_reported("still") && gang_turn(&g, 2))
        ;
    ck_assert(!gang_is_over(&g));
    gang_kill(&g, gang_place(&g, 3), SIGSTOP);
    before = lines_of_report("still");
    for (int64_t i = 0; i < PATIENCE_MS && lines_of_report("still") < before + 3; i++)
        (void)gang_turn(&g, 1);
    ck_assert_uint_ge(lines_of_report("still"), before + 3);
    gang_kill(&g, gang_place(&g, 3), SIGCONT);
    gang_run(&g);
    gang_done(&g);
    for (size_t i = 0; i < 3; i++)
        again += read_again("still", i);
    ck_assert_uint_ge(again, 4);
    gang_train(&rig, "moving", NET "400,\"report_every\":10" LINEAGE, 1);
    gang_same(&rig, "moving", "still");
}
END_TEST

START_TEST(copies_change_no_bit)
{
    gang_train(&rig, "alone", NET "40" LINEAGE, 1);
    gang_train(&rig, "copies", NET "40" COPIES, 3);
    gang_same(&rig, "alone", "copies");
    (void)gang_train_dying(&rig, "copydeaths", NET "40" COPIES, 4, 3, 7);
    gang_same(&rig, "alone", "copydeaths");
    gang_train_halted(&rig, "copyhalt", NET "40" COPIES, 3, 5, 2);
    gang_same(&rig, "alone", "copyhalt");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("lineage gang");
    TCase *t = tcase_create("gang");
    rig_fixture(t, &rig);
    tcase_add_test(t, bits_are_those_of_one_rank);
    tcase_add_test(t, a_rank_holds_its_part_of_the_rows);
    tcase_add_test(t, deaths_joins_and_stops_change_no_bit);
    tcase_add_test(t, what_a_dead_rank_held_is_read_again);
    tcase_add_test(t, the_loss_is_that_of_plain_training);
    tcase_add_test(t, copies_make_up_for_a_rank_that_stands_still);
    tcase_add_test(t, copies_change_no_bit);
    suite_add_tcase(s, t);
    return s;
}
