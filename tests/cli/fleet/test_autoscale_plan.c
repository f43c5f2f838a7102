/* How many jobs are asked for, which are ended, and how often it is tried. */
#include "cli/fleet/autoscale_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/fleet/fleet_look.h"
#include "tests/support/check_main.h"

#define MAX_UNITS 16

static struct as_err err;
static struct fleet_spec spec;
static struct autoscale_bounds bounds;
static struct autoscale_memory memory;
static struct autoscale_action action;
static struct fleet_unit jobs[MAX_UNITS];
static struct autoscale_unit units[MAX_UNITS];
static size_t n_units;
static struct autoscale_kind kind;
static int64_t now_ms;

static void setup(void)
{
    spec = (struct fleet_spec){.engine = FLEET_SLURM, .name = "lab", .slots = 1, .ranks = 1};
    bounds = (struct autoscale_bounds){.max = 10, .cool_down_ms = 1000, .idle_ms = 5000};
    kind = (struct autoscale_kind){.ranks = 1};
    n_units = 0;
    now_ms = 100000;
}

static void teardown(void)
{
    autoscale_memory_done(&memory);
    autoscale_action_done(&action);
}

/* A job: 'q' waits in the queue, 's' runs without a runner, 'i' is idle, 'b' is busy, 'e' ends. */
static void add_job(const char *id, char what)
{
    struct fleet_unit *j = &jobs[n_units];
    *j = (struct fleet_unit){.state = what == 'q'   ? UNIT_PENDING
                                      : what == 'e' ? UNIT_ENDING
                                                    : UNIT_RUNNING};
    (void)snprintf(j->id, sizeof j->id, "%s", id);
    units[n_units++] = (struct autoscale_unit){
        .unit = j, .runners = what == 'i' || what == 'b', .is_idle = what == 'i'};
}

/* One look after `later_ms`, with the jobs as letters; their ids are 0, 1, …. */
static const struct autoscale_action *look(int64_t later_ms, const char *letters, int64_t slots)
{
    autoscale_action_done(&action);
    n_units = 0;
    for (size_t i = 0; letters[i]; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "%zu", i);
        if (letters[i] != '-')
            add_job(id, letters[i]);
    }
    kind.slots = slots;
    now_ms += later_ms;
    const struct autoscale_look l = {
        .now_ms = now_ms, .kinds = &kind, .n_kinds = slots > 0, .units = units, .n_units = n_units};
    ck_ok(autoscale_plan(&spec, &bounds, &l, &memory, &action, &err), err);
    if (action.start > 0)
        autoscale_asked(&memory, &bounds, now_ms, true, action.start);
    return &action;
}

START_TEST(what_waits_is_asked_for_once)
{
    ck_assert_int_eq(look(0, "", 3)->start, 3);
    ck_assert_int_eq(look(1500, "qqs", 3)->start, 0); /* they are on their way */
    ck_assert_int_eq(look(1500, "bbs", 1)->start, 0);
    ck_assert_int_eq(look(1500, "bbb", 2)->start, 2);
    ck_assert(strstr(str_cstr(&action.why), "2 slots wait"));
}
END_TEST

START_TEST(bounds_hold)
{
    bounds.min = 2;
    bounds.max = 3;
    ck_assert_int_eq(look(0, "", 0)->start, 2);
    ck_assert_int_eq(look(2000, "bb", 9)->start, 1);
    ck_assert_int_eq(look(2000, "bbb", 9)->start, 0);
    ck_assert(strstr(str_cstr(&action.why), "--max 3"));
    ck_assert_uint_eq(look(2000, "iii", 0)->n_stop, 0);
    ck_assert_uint_eq(look(6000, "iii", 0)->n_stop, 1);
}
END_TEST

START_TEST(slots_cores_and_gpus_of_a_job)
{
    spec.slots = 4;
    spec.gpus = 4;
    spec.cpus = 8;
    kind.gpus = 2;
    ck_assert_int_eq(look(0, "", 3)->start, 2);
    autoscale_memory_done(&memory);
    kind.gpus = 8; /* no runner of this fleet will ever have so many */
    ck_assert_int_eq(look(2000, "", 3)->start, 0);
    kind.gpus = 0;
    kind.cpus = 3;
    ck_assert_int_eq(look(2000, "", 4)->start, 2);
    kind.cpus = 0;
    autoscale_memory_done(&memory);
    ck_assert_int_eq(look(2000, "", 4)->start, 1);
}
END_TEST

/* The fleet does not say what its jobs have. The first one shows it. */
START_TEST(what_never_fits_is_asked_for_once)
{
    kind.cpus = 64;
    ck_assert_int_eq(look(0, "", 5)->start, 5);
    n_units = 0;
    add_job("0", 'i');
    units[0].cpus = 8;
    const struct autoscale_look l = {
        .now_ms = now_ms += 2000, .kinds = &kind, .n_kinds = 1, .units = units, .n_units = n_units};
    autoscale_action_done(&action);
    ck_ok(autoscale_plan(&spec, &bounds, &l, &memory, &action, &err), err);
    ck_assert_int_eq(action.start, 0);
    ck_assert_int_eq(look(2000, "", 5)->start, 0); /* also when it is gone */
    kind.cpus = 4;
    ck_assert_int_eq(look(2000, "", 5)->start, 5);
}
END_TEST

/* All ranks of a trial, or none of them. */
START_TEST(a_gang_is_asked_for_whole)
{
    bounds.max = 6;
    kind.ranks = 4;
    ck_assert_int_eq(look(0, "", 8)->start, 4); /* one of two gangs */
    ck_assert_int_eq(look(2000, "bbbb", 4)->start, 0);
    ck_assert(strstr(str_cstr(&action.why), "need more jobs than --max"));
    ck_assert_int_eq(look(2000, "bbbb", 2)->start, 2); /* the rest of one that gathers */
    autoscale_memory_done(&memory);
    spec.ranks = 4; /* a job has all its runners */
    ck_assert_int_eq(look(2000, "b", 8)->start, 2);
}
END_TEST

/* A job of four ranks, three of which run: the one that waits is on its way. */
START_TEST(a_job_placed_in_part_brings_the_rest)
{
    spec.ranks = kind.ranks = 4;
    ck_assert_int_eq(look(0, "", 4)->start, 1);
    n_units = 0;
    add_job("0", 'b');
    units[0].runners = 3;
    units[0].coming = 1;
    kind.slots = 1;
    struct autoscale_look l = {
        .now_ms = now_ms += 2000, .kinds = &kind, .n_kinds = 1, .units = units, .n_units = 1};
    autoscale_action_done(&action);
    ck_ok(autoscale_plan(&spec, &bounds, &l, &memory, &action, &err), err);
    ck_assert_int_eq(action.start, 0);
    ck_assert_str_eq(str_cstr(&action.why), "1 slots wait for 0 jobs that have no runner yet and "
                                            "1 ranks of jobs that have some; 1 jobs");
    kind.slots = 5; /* and another whole gang */
    l.now_ms = now_ms += 2000;
    autoscale_action_done(&action);
    ck_ok(autoscale_plan(&spec, &bounds, &l, &memory, &action, &err), err);
    ck_assert_int_eq(action.start, 1);
    bounds.max = 1;
    kind.slots = 1; /* no word of a --max that leaves no room */
    l.now_ms = now_ms += 2000;
    autoscale_action_done(&action);
    ck_ok(autoscale_plan(&spec, &bounds, &l, &memory, &action, &err), err);
    ck_assert(strstr(str_cstr(&action.why), "1 ranks of jobs"));
}
END_TEST

START_TEST(a_cool_down_between_two_times)
{
    ck_assert_int_eq(look(0, "", 1)->start, 1);
    ck_assert_int_eq(look(400, "b", 1)->start, 0);
    ck_assert(strstr(str_cstr(&action.why), "1 more in"));
    ck_assert_int_eq(look(700, "b", 1)->start, 1);
}
END_TEST

START_TEST(idle_jobs_are_ended)
{
    ck_assert_uint_eq(look(0, "ibq", 0)->n_stop, 1); /* what waits in the queue goes at once */
    ck_assert_str_eq(action.stop[0], "2");
    ck_assert_uint_eq(look(4000, "ib", 0)->n_stop, 0);
    ck_assert_uint_eq(look(2000, "ib", 0)->n_stop, 1);
    ck_assert_str_eq(action.stop[0], "0");
    ck_assert_uint_eq(look(0, "eb", 0)->n_stop, 0);    /* not a second time */
    ck_assert_uint_eq(look(9000, "-b", 0)->n_stop, 0); /* a slot is used or kept for a gang */
}
END_TEST

START_TEST(work_makes_a_job_young_again)
{
    look(0, "i", 0);
    look(4000, "b", 0);
    look(500, "i", 0);
    ck_assert_uint_eq(look(4000, "i", 0)->n_stop, 0);
    ck_assert_uint_eq(look(2000, "i", 2)->n_stop, 0); /* something waits */
    ck_assert_uint_eq(look(500, "i", 0)->n_stop, 1);
}
END_TEST

START_TEST(jobs_that_die_are_asked_for_less_often)
{
    ck_assert_int_eq(look(0, "", 1)->start, 1);
    look(500, "q", 1);
    ck_assert_int_eq(look(500, "-", 1)->start, 0);
    ck_assert(strstr(str_cstr(&action.why), "1 ended before their runners had registered"));
    ck_assert(strstr(str_cstr(&action.why), "backing off"));
    ck_assert_int_eq(look(1500, "-", 1)->start, 0);
    ck_assert_int_eq(look(600, "-", 1)->start, 1); /* after 2 s */
    look(100, "-s", 1);
    ck_assert_int_eq(look(100, "--", 1)->start, 0);
    ck_assert_int_eq(look(3900, "--", 1)->start, 0);
    ck_assert_int_eq(look(200, "--", 1)->start, 1); /* after 4 s */
    look(100, "--s", 1);
    look(100, "--i", 0); /* it has a runner: all is forgotten */
    ck_assert_int_eq(memory.deaths, 0);
    ck_assert_int_eq(look(9000, "---", 1)->start,
                     1); /* one that left when it was idle is no death */
}
END_TEST

/* None of the looks sees them. */
START_TEST(jobs_that_die_at_once_are_asked_for_less_often)
{
    ck_assert_int_eq(look(0, "", 2)->start, 2);
    ck_assert_int_eq(look(1100, "--s", 2)->start, 0);
    ck_assert(strstr(str_cstr(&action.why), "1 ended before their runners had registered"));
    ck_assert_int_eq(look(2100, "--s", 2)->start, 1);
    ck_assert_int_eq(look(1100, "--s", 2)->start, 0);
    ck_assert_int_eq(look(2100, "--s", 2)->start, 0); /* 4 s now */
    ck_assert_int_eq(look(2100, "--s", 2)->start, 1);
}
END_TEST

START_TEST(refusals_are_asked_less_often)
{
    for (int i = 0; i < 60; i++)
        autoscale_asked(&memory, &bounds, now_ms, false, 0);
    ck_assert_int_eq(memory.wait_ms, AUTOSCALE_BACK_OFF_MAX_MS);
    ck_assert_int_eq(look(1000, "", 1)->start, 0);
    ck_assert_int_eq(look(AUTOSCALE_BACK_OFF_MAX_MS, "", 1)->start, 1);
}
END_TEST

static const char runners_text[] =
    "[{\"name\":\"a\",\"state\":\"live\",\"fleet\":\"lab\",\"job\":\"slurm/7_0\",\"used_slots\":0,"
    "\"running\":0},"
    "{\"name\":\"b\",\"state\":\"live\",\"fleet\":\"lab\",\"job\":\"slurm/7_1\",\"used_slots\":1,"
    "\"running\":0},"
    "{\"name\":\"c\",\"state\":\"lost\",\"fleet\":\"lab\",\"job\":\"slurm/7_2\",\"used_slots\":0},"
    "{\"name\":\"d\",\"state\":\"live\",\"fleet\":\"other\",\"job\":\"slurm/7_2\"},"
    "{\"name\":\"e\",\"state\":\"live\",\"fleet\":null,\"job\":null}]";

/* b runs nothing, but a slot of it is kept for a gang. */
START_TEST(jobs_and_runners_are_matched)
{
    AS_AUTO(fleet_units_done) struct fleet_units list = {0};
    AS_AUTO(fleet_look_done) struct fleet_look l = {0};
    AS_AUTO(as_freep) const char **ids = NULL;
    JSON_AUTO runners = json_loads(runners_text, 0, NULL);
    JSON_AUTO demand = json_loads("{\"kinds\":[{\"slots\":3,\"ranks\":2,\"gpus\":1,\"cpus\":0,"
                                  "\"memory_bytes\":0,\"exclusive\":true}]}",
                                  0, NULL);
    size_t n = 0;
    ck_ok(fleet_units_add(&list, "7_0", UNIT_RUNNING, "", &err), err);
    ck_ok(fleet_units_add(&list, "7_1", UNIT_RUNNING, "", &err), err);
    ck_ok(fleet_units_add(&list, "7_2", UNIT_RUNNING, "", &err), err);
    ck_ok(fleet_units_add(&list, "8_0", UNIT_PENDING, "Priority", &err), err);
    ck_ok(fleet_look_make(&spec, &list, runners, demand, &l, &err), err);
    ck_assert(l.units[0].is_idle && l.units[0].runners == 1);
    ck_assert(!l.units[1].is_idle && l.used[1] == 1);
    ck_assert_int_eq(l.units[2].runners, 0);
    ck_assert_uint_eq(l.n_kinds, 1);
    ck_assert(l.kinds[0].is_exclusive && l.kinds[0].ranks == 2);
    ck_ok(fleet_look_surplus(&l, 1, &ids, &n, &err), err);
    ck_assert_uint_eq(n, 3); /* what waits, what is idle, the newest of the rest */
    ck_assert_str_eq(ids[0], "8_0");
    ck_assert_str_eq(ids[1], "7_0");
    ck_assert_str_eq(ids[2], "7_2");
}
END_TEST

#define RANK(NAME, STATE, JOB, REGISTERED, SEEN)                                                   \
    "{\"name\":\"" NAME "\",\"state\":\"" STATE "\",\"fleet\":\"lab\",\"job\":\"slurm/" JOB        \
    "\",\"registered_at\":\"2026-11-29T06:" REGISTERED "Z\",\"seen_at\":\"2026-11-29T06:" SEEN     \
    "Z\"}"

/* Ranks that have never registered will; those that left, or were lost, will not, unless they are
 * of an earlier run of the job. */
START_TEST(ranks_that_are_yet_to_come)
{
    AS_AUTO(fleet_units_done) struct fleet_units list = {0};
    AS_AUTO(fleet_look_done) struct fleet_look l = {0};
    JSON_AUTO runners = json_loads(
        "[" RANK("a", "live", "1_0", "10:01.000", "20:00.000") "," /* 1 of 3 */
        RANK("b", "left", "1_1", "10:02.000", "15:00.000") ","     /* 1 of 3 left, 1 is there */
        RANK("c", "live", "1_1", "10:01.000", "20:00.000") ","     /* */
        RANK("d", "lost", "1_2", "01:00.000", "02:00.000") ","     /* an earlier run */
        RANK("e", "live", "1_2", "10:01.000", "20:00.000") ","     /* */
        RANK("f", "live", "1_3", "10:01.000", "20:00.000") ","     /* ends */
        RANK("g", "left", "1_4", "10:01.000", "20:00.000") "]",    /* none is left */
        0, NULL);
    const int64_t expected[] = {2, 1, 2, 0, 0, 0};
    spec.ranks = 3;
    ck_ok(fleet_units_add(&list, "1_0", UNIT_RUNNING, "", &err), err);
    ck_ok(fleet_units_add(&list, "1_1", UNIT_RUNNING, "", &err), err);
    ck_ok(fleet_units_add(&list, "1_2", UNIT_RUNNING, "", &err), err);
    ck_ok(fleet_units_add(&list, "1_3", UNIT_ENDING, "", &err), err);
    ck_ok(fleet_units_add(&list, "1_4", UNIT_RUNNING, "", &err), err);
    ck_ok(fleet_units_add(&list, "1_5", UNIT_PENDING, "", &err), err);
    ck_ok(fleet_look_make(&spec, &list, runners, NULL, &l, &err), err);
    for (size_t i = 0; i < l.n; i++)
        ck_assert_int_eq(l.units[i].coming, expected[i]);
}
END_TEST

START_TEST(pods_belong_to_their_job)
{
    struct fleet_spec k = {.engine = FLEET_KUBERNETES, .name = "lab", .namespace = "ml"};
    ck_assert(engine_kubernetes.is_of("kubernetes/ml/assay-lab-0f-0-x7k", &k, "assay-lab-0f"));
    ck_assert(!engine_kubernetes.is_of("kubernetes/ml/assay-lab-0f1-0-x7k", &k, "assay-lab-0f"));
    ck_assert(!engine_kubernetes.is_of("kubernetes/dev/assay-lab-0f-0-x7k", &k, "assay-lab-0f"));
    ck_assert(engine_ssh.is_of("ssh/pc-1", &k, "me@pc-1"));
    ck_assert(!engine_slurm.is_of("slurm/7_1", &k, "7_11"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("autoscale_plan");
    TCase *t = tcase_create("autoscale_plan");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_waits_is_asked_for_once);
    tcase_add_test(t, bounds_hold);
    tcase_add_test(t, slots_cores_and_gpus_of_a_job);
    tcase_add_test(t, what_never_fits_is_asked_for_once);
    tcase_add_test(t, a_gang_is_asked_for_whole);
    tcase_add_test(t, a_job_placed_in_part_brings_the_rest);
    tcase_add_test(t, a_cool_down_between_two_times);
    tcase_add_test(t, idle_jobs_are_ended);
    tcase_add_test(t, work_makes_a_job_young_again);
    tcase_add_test(t, jobs_that_die_are_asked_for_less_often);
    tcase_add_test(t, jobs_that_die_at_once_are_asked_for_less_often);
    tcase_add_test(t, refusals_are_asked_less_often);
    tcase_add_test(t, jobs_and_runners_are_matched);
    tcase_add_test(t, ranks_that_are_yet_to_come);
    tcase_add_test(t, pods_belong_to_their_job);
    suite_add_tcase(s, t);
    return s;
}
