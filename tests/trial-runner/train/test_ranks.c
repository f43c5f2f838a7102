/* Large trials in real processes: the same bits for any number of ranks, whoever dies. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/support/gang_check.h"

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

START_TEST(any_number_of_ranks_gives_the_same_bits)
{
    const struct trial *t = _i == 0 ? &mlp : &cnn;
    static const char *const tags[] = {"p1", "p2", "p3", "p4", "p9"};
    static const size_t sizes[] = {1, 2, 3, 4, 9};
    if (t == &cnn)
        gang_pictures(&rig);
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        gang_run_calm(&rig, tags[i], t, sizes[i]);
        gang_same_results(&rig, "p1", tags[i]);
        gang_same_file(&rig, "p1", tags[i], "r0", "report");
    }
    /* Every rank could have reported: each has written the same lines. */
    size_t n, m;
    AS_AUTO(as_freep) char *first = gang_read(&rig, "p4", "r0", "report", &n);
    AS_AUTO(as_freep) char *last = gang_read(&rig, "p4", "r3", "report", &m);
    ck_assert_str_eq(first, last);
}
END_TEST

/* Ranks die at random moments, and others take their places. Returns how many have died. */
static size_t run_with_deaths(const char *tag, uint64_t seed, size_t deaths, int signal)
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
    gang_ended_well(&g, signal);
    gang_same_reports("calm", &g);
    gang_done(&g);
    return killed;
}

START_TEST(deaths_change_no_bit)
{
    char tag[16];
    gang_run_calm(&rig, "calm", &lasting, 1);
    size_t disturbed = 0; /* a training may be over before ranks have died in it */
    for (uint64_t seed = 1; seed <= 4 || (disturbed < 4 && seed <= 40); seed++) {
        (void)snprintf(tag, sizeof tag, "kill%d", (int)seed);
        disturbed += run_with_deaths(tag, seed, 6, SIGKILL) >= 2;
        gang_same_results(&rig, "calm", tag);
    }
    ck_assert_uint_ge(disturbed, 4);
}
END_TEST

/* A rank that listens is in a world, and its ranks wait for it: so it listens when it has its
 * data. */
START_TEST(who_has_no_data_does_not_listen)
{
    struct gang g;
    AS_AUTO(as_freep) char *path = file_join(rig.dir, "x.npy");
    gang_pictures(&rig);
    ck_ok(file_replace(path, "nothing", 7, 0644, &rig.err), rig.err);
    gang_start(&g, &rig, "blind", &cnn, 1);
    gang_run(&g);
    ck_assert_int_eq(g.ended[0], 1);
    ck_assert_str_eq(g.ranks[0].endpoint, "");
    gang_done(&g);
}
END_TEST

/* ---- reports ---- */

#define BEFORE 5 /* epochs before it joins */

static const char *const strategies[] = {
    "{}",
    "{\"local_sgd\":{\"steps\":2}}",
    "{\"server\":{\"mode\":\"sync\"}}",
    "{\"server\":{\"mode\":\"async\"}}",
    "{\"groups\":2}",
    "{\"gossip\":{}}",
};
enum { STRATEGIES = 6 };

/* Where the first `n` lines end; 0: there are fewer. */
static size_t length_of_lines(const char *text, size_t n)
{
    const char *at = text;
    while (n > 0 && (at = strchr(at, '\n'))) {
        at++;
        n--;
    }
    return at ? (size_t)(at - text) : 0;
}

/* A rank that joins may lead one day, when the runner of the one that reported is gone with lines
 * that it had not sent: it has the lines of all epochs since the checkpoint that it began from
 * (here: none), not of those alone in which it trained. */
START_TEST(a_newcomer_has_every_line)
{
    char train[500];
    (void)snprintf(train, sizeof train,
                   "\"model\":{\"layers\":[24,12]},\"epochs\":100000," SHARDS
                   "\"optimizer\":{\"lr\":0.003},\"distributed\":%s",
                   strategies[_i]);
    const struct trial endless = {"e", train, "5"};
    struct gang g;
    size_t n = 0, len = 0;
    AS_AUTO(as_freep) char *path = file_join(rig.dir, "late/r0/report");
    const struct gang_opts opts = {.no_checkpoints = true, .silence = "10m", .join = "10m"};
    gang_start_with(&g, &rig, "late", &endless, 1, &opts);
    while (n == 0 && gang_turn(&g, 5)) {
        AS_AUTO(as_freep) char *text = NULL;
        if (file_read(path, 1 << 20, &text, &len, NULL) == AS_OK)
            n = length_of_lines(text, BEFORE);
    }
    (void)gang_add_in_time(&g);
    ck_assert(gang_gather(&g, 2));
    AS_AUTO(as_freep) char *first = gang_read(&rig, "late", "r0", "report", &len);
    AS_AUTO(as_freep) char *late = gang_read(&rig, "late", "r1", "report", &len);
    ck_assert_uint_gt(n, 0);
    ck_assert_msg(strncmp(first, late, n) == 0, "%.300s\n-- of the newcomer:\n%.300s", first, late);
    for (size_t i = 0; i < 2; i++)
        gang_kill(&g, i, SIGKILL);
    gang_run(&g);
    gang_done(&g);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("ranks");
    TCase *t = tcase_create("ranks");
    rig_fixture(t, &rig);
    tcase_add_loop_test(t, any_number_of_ranks_gives_the_same_bits, 0, 2);
    tcase_add_test(t, deaths_change_no_bit);
    tcase_add_test(t, who_has_no_data_does_not_listen);
    tcase_add_loop_test(t, a_newcomer_has_every_line, 0, STRATEGIES);
    suite_add_tcase(s, t);
    return s;
}
