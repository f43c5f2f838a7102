/* Each strategy under the same disturbances: ranks die alone and together, down to one and back to
 * four, while a state travels, and when all is done; a rank stands still until the others go on
 * without it, and comes back.
 *
 * But for two rows there are no checkpoints: only living ranks hold the trial's state, so a world
 * that joined at an earlier step than one before it has lost steps. All ranks have had a place in a
 * world before they die, so whatever a rank can have alone (rows, a slice, blocks) dies with it. No
 * test depends on speed: a training that is over before it was disturbed is compared, and another
 * one begins. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/faults/trials.h"

#define RANKS 4
#define TRAININGS 40 /* more are never needed */

static struct rig rig;
static const struct gang_opts no_files = {.no_checkpoints = true, .silence = "10m", .join = "1h"};
static const struct gang_opts with_files = {.silence = "10m", .join = "1h"};

/* Eight shards in a batch, the last of an epoch has fewer. */
#define SGD                                                                                        \
    "\"model\":{\"layers\":[24,12,20],\"dropout\":0.1},\"batch_size\":256,\"micro_batch\":32,"     \
    "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05,\"momentum\":0.9},"
#define ADAM                                                                                       \
    "\"model\":{\"layers\":[24,12,20]},\"batch_size\":256,\"micro_batch\":32,"                     \
    "\"optimizer\":{\"lr\":0.01},"
#define ALL_ROWS "\"batch_size\":2048,\"micro_batch\":128,\"optimizer\":{"
#define HOW(section) ",\"distributed\":{" section "}"

/* A row of the table "At a glance" of docs/distributed.md, as far as a death is concerned. */
static const struct row {
    const char *name, *train;
    void (*data)(struct rig *); /* NULL: the digits */
    bool saves;                 /* checkpoints are written all the time */
    /* NULL: the bits are those of a calm run. Else this metric is at most `factor` times its. */
    const char *metric;
    double factor;
} rows[] = {
    {.name = "lineage", .train = SGD "\"epochs\":120" HOW("\"partitions\":\"lineage\"")},
    {.name = "lineage_server",
     .train = SGD "\"epochs\":120" HOW("\"partitions\":\"lineage\",\"server\":{}")},
    {.name = "copies",
     .train = SGD "\"epochs\":60" HOW("\"server\":{\"backup_copies\":true,\"shards\":2}")},
    {.name = "sparse",
     .train = "\"model\":{\"layers\":[8],\"embedding\":32},\"optimizer\":{\"lr\":0.01},"
              "\"batch_size\":16,\"micro_batch\":4,\"epochs\":20" HOW(
                  "\"server\":{\"rows\":\"sparse\"}"),
     .data = gang_categories},
    {.name = "factors", .train = ADAM "\"epochs\":120" HOW("\"sufficient_factors\":\"always\"")},
    {.name = "moments", .train = ADAM "\"epochs\":120" HOW("\"shard_state\":true")},
    {.name = "blocks", .train = SGD "\"epochs\":60" HOW("\"model_parallel\":\"auto\"")},
    /* One step an epoch: a checkpoint is due when the held-out rows are next. */
    {.name = "blocks_saved",
     .train = "\"model\":{\"layers\":[24,12,20]}," ALL_ROWS
              "\"lr\":0.01},\"epochs\":100" HOW("\"model_parallel\":\"auto\""),
     .saves = true},
    {.name = "moments_saved",
     .train = "\"model\":{\"layers\":[24,12,20]}," ALL_ROWS
              "\"lr\":0.01},\"epochs\":100" HOW("\"shard_state\":true"),
     .saves = true},
    {.name = "kmeans",
     .train = "\"model\":{\"kind\":\"kmeans\",\"tolerance\":0,\"init\":\"random\",\"clusters\":60}",
     .data = gang_cloud},
    {.name = "significance",
     .train = "\"model\":{\"layers\":[48,32]},\"batch_size\":128,\"micro_batch\":32,"
              "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.02},\"epochs\":60" HOW(
                  "\"server\":{\"mode\":\"ssp\",\"staleness\":1,\"significance\":0.001}"),
     .metric = "val_loss",
     .factor = 1.02},
    {.name = "lbfgs",
     .train = "\"model\":{\"layers\":[32,16],\"activation\":\"tanh\"}," ALL_ROWS
              "\"kind\":\"lbfgs\",\"weight_decay\":0.001},\"epochs\":100",
     .metric = "train_loss",
     .factor = 2},
    {.name = "cocoa",
     .train = "\"model\":{\"kind\":\"logistic\",\"solver\":\"cocoa\"}," ALL_ROWS
              "\"weight_decay\":0.01},\"epochs\":100",
     .metric = "val_loss",
     .factor = 1.1},
};

/* ---- what all trainings must have come to ---- */

static double metric_of(const char *tag, size_t place, const char *metric)
{
    char folder[8];
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    return rig_last(&rig, tag, &(struct trial){folder, "", "3"}, metric);
}

static void compare(const struct row *row, const struct gang *g)
{
    size_t well = 0;
    while (g->ended[well] != 0)
        well++;
    ck_assert_msg(metric_of(g->tag, well, "step") == metric_of("calm", 0, "step"),
                  "%s: r%zu ends at another step", g->tag, well);
    if (row->metric) {
        double now = metric_of(g->tag, well, row->metric);
        double calm = metric_of("calm", 0, row->metric);
        ck_assert_msg(now <= row->factor * calm, "%s: %s %g, %g undisturbed", g->tag, row->metric,
                      now, calm);
        return;
    }
    gang_same_reports("calm", g);
    ck_assert_msg(rig_distance(&rig, "calm", g->tag, &(struct trial){".", "", "3"}) == 0,
                  "%s: the model differs from the undisturbed one", g->tag);
}

static void end_training(const struct row *row, struct gang *g)
{
    gang_run(g);
    gang_ended_well(g, SIGKILL);
    ck_assert_msg(g->steps_back == 0, "%s: a world joined at an earlier step than one before",
                  g->tag);
    compare(row, g);
    gang_done(g);
}

/* ---- disturbances: each returns false if the training was over before it was done ---- */

static bool add(struct gang *g, size_t n)
{
    for (size_t i = 0; i < n && !gang_is_over(g); i++)
        (void)gang_add_in_time(g);
    return gang_gather(g, RANKS);
}

static bool one_dies(struct gang *g, struct rng *r)
{
    gang_pass(g, (int64_t)rng_below(r, 10000));
    if (gang_is_over(g))
        return false;
    gang_kill(g, gang_place(g, (int64_t)rng_below(r, RANKS)), SIGKILL);
    return gang_gather(g, RANKS - 1) && add(g, 1);
}

/* The first and the third: neighbours are no two of them. */
static bool two_die_at_once(struct gang *g, struct rng *r)
{
    gang_pass(g, (int64_t)rng_below(r, 10000));
    if (gang_is_over(g))
        return false;
    size_t first = gang_place(g, 0), third = gang_place(g, 2);
    gang_kill(g, first, SIGKILL);
    gang_kill(g, third, SIGKILL);
    return gang_gather(g, 2) && add(g, 2);
}

static bool one_is_enough(struct gang *g, struct rng *r)
{
    for (size_t left = RANKS - 1; left > 0; left--) {
        gang_kill(g, gang_place(g, (int64_t)rng_below(r, left + 1)), SIGKILL);
        if (!gang_gather(g, left))
            return false;
    }
    return add(g, RANKS - 1);
}

/* It notices that it is out, unless it waits for peers who have gone: then its runner ends it. */
static bool comes_back(struct gang *g, size_t place)
{
    gang_kill(g, place, SIGCONT);
    for (int i = 0; i < 100 && g->ranks[place].out && !gang_is_over(g); i++)
        (void)gang_turn(g, 10);
    if (!g->ranks[place].out)
        return gang_gather(g, RANKS);
    gang_kill(g, place, SIGKILL);
    return add(g, 1);
}

/* Its runner's lease ends meanwhile. */
static bool one_stands_still(struct gang *g, struct rng *r)
{
    size_t place = gang_place(g, (int64_t)rng_below(r, RANKS));
    gang_pass(g, (int64_t)(2000 + rng_below(r, 10000)));
    if (gang_is_over(g))
        return false;
    gang_kill(g, place, SIGSTOP);
    gang_put_out(g, place);
    bool went_on = gang_gather(g, RANKS - 1);
    gang_pass(g, (int64_t)rng_below(r, 5000));
    return comes_back(g, place) && went_on;
}

/* The rank that gives the state, or the one that takes it. */
static bool one_dies_in_a_transfer(struct gang *g, struct rng *r)
{
    gang_kill(g, gang_place(g, RANKS - 1), SIGKILL);
    if (!gang_gather(g, RANKS - 1))
        return false;
    size_t added = gang_add_in_time(g);
    while (!g->ranks[added].member && !gang_is_over(g))
        (void)gang_turn(g, 10);
    gang_pass(g, (int64_t)rng_below(r, 4000)); /* it has been told its first world */
    if (gang_is_over(g))
        return false;
    gang_kill(g, rng_below(r, 2) ? gang_place(g, 0) : added, SIGKILL);
    return gang_gather(g, RANKS - 1) && add(g, 1);
}

static bool (*const disturbances[])(struct gang *, struct rng *) = {
    one_dies, two_die_at_once, one_is_enough, one_stands_still, one_dies_in_a_transfer};

/* ---- tests ---- */

static void begin(const struct row *row)
{
    const struct trial t = {"a", row->train, "3"};
    if (row->data)
        row->data(&rig);
    gang_run_calm(&rig, "calm", &t, 1);
}

START_TEST(disturbances_cost_what_the_table_says)
{
    static struct gang g;
    const struct row *row = &rows[_i];
    const struct trial t = {"a", row->train, "3"};
    size_t done = 0, wanted = AS_ARRAY_LEN(disturbances) * (faults_long() ? 10 : 1);
    struct rng r;
    char tag[24];
    rng_init(&r, 30, (uint64_t)_i);
    begin(row);
    for (int k = 0; done < wanted; k++) {
        ck_assert_msg(k < TRAININGS * (faults_long() ? 10 : 1),
                      "%s: the trainings are over before they are disturbed", row->name);
        (void)snprintf(tag, sizeof tag, "%s%d", row->name, k);
        gang_start_with(&g, &rig, tag, &t, RANKS, row->saves ? &with_files : &no_files);
        while (done < wanted && gang_gather(&g, RANKS) &&
               disturbances[done % AS_ARRAY_LEN(disturbances)](&g, &r))
            done++;
        end_training(row, &g);
    }
}
END_TEST

/* What nobody but one rank has, so that nobody may need it who is left. */
static const struct row alone[] = {
    {.name = "blocks",
     .train = SGD "\"epochs\":3" HOW("\"model_parallel\":\"auto\",\"state_copies\":1")},
    {.name = "moments",
     .train = ADAM "\"epochs\":3" HOW("\"shard_state\":true,\"state_copies\":1")},
    {.name = "lbfgs",
     .train = "\"model\":{\"layers\":[8]}," ALL_ROWS "\"kind\":\"lbfgs\"},\"epochs\":5"},
    {.name = "cocoa",
     .train = "\"model\":{\"kind\":\"logistic\",\"solver\":\"cocoa\"}," ALL_ROWS
              "\"weight_decay\":0.01},\"epochs\":5"},
    {.name = "kmeans",
     .train = "\"model\":{\"kind\":\"kmeans\",\"tolerance\":0,\"init\":\"random\",\"clusters\":9}"},
};

static size_t lines_of_report(const char *tag)
{
    size_t len, n = 0;
    AS_AUTO(as_freep) char *report = rig_read(&rig, tag, "r0", "report", &len);
    for (size_t i = 0; report && i < len; i++)
        n += report[i] == '\n';
    return n;
}

static void signal_others(struct gang *g, size_t end, int signal)
{
    for (size_t place = 1; place < end; place++)
        gang_kill(g, place, signal);
}

/* The first rank stands still before it writes the files; the others come to where they wait for
 * it, and stand still while it writes them. Then they hear at once that they are written and that a
 * world begins. Which of a rank's threads is first decides: so, several times. Who leaves takes
 * along what it alone holds. */
static void begin_a_world_at_the_end(struct gang *g, size_t added)
{
    size_t last = lines_of_report("calm");
    while (lines_of_report(g->tag) < last && gang_turn(g, 0))
        ;
    gang_kill(g, 0, SIGSTOP);
    gang_pass(g, 20000);
    signal_others(g, added, SIGSTOP);
    gang_kill(g, 0, SIGCONT);
    gang_pass(g, 20000);
    if (g->ranks[added].pid)
        gang_admit(g, added);
    gang_pass(g, 2000);
    signal_others(g, added, SIGCONT);
}

START_TEST(who_leaves_is_not_missed)
{
    static struct gang g;
    const struct gang_opts hold = {
        .no_checkpoints = true, .hold = true, .silence = "10m", .join = "1h"};
    const struct row *row = &alone[_i];
    const struct trial t = {"a", row->train, "3"};
    char tag[24];
    begin(row);
    for (int k = 0; k < (faults_long() ? 40 : 4); k++) {
        (void)snprintf(tag, sizeof tag, "%s%d", row->name, k);
        gang_start_with(&g, &rig, tag, &t, RANKS - 1, &hold);
        while (g.epoch == 0)
            ck_assert(gang_turn(&g, PATIENCE_MS));
        begin_a_world_at_the_end(&g, gang_add_in_time(&g));
        end_training(row, &g);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("strategies");
    TCase *t = tcase_create("disturbed");
    rig_fixture(t, &rig);
    tcase_set_timeout(t, 1800);
    tcase_add_loop_test(t, disturbances_cost_what_the_table_says, 0, AS_ARRAY_LEN(rows));
    suite_add_tcase(s, t);
    t = tcase_create("leaving");
    rig_fixture(t, &rig);
    tcase_set_timeout(t, 1800);
    tcase_add_loop_test(t, who_leaves_is_not_missed, 0, AS_ARRAY_LEN(alone));
    suite_add_tcase(s, t);
    return s;
}
