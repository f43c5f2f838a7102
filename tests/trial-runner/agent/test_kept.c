/* The server keeps a checkpoint only after every measurement that the trial wrote before it: of
 * plain programs, members of groups, and ranks. Each test holds the runner in a request, lets the
 * trial write a line and then a checkpoint, and looks at what the server has when it is told of
 * that checkpoint. */
#include "tests/trial-runner/agent/gang_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/api/client/http_server.h"
#include "tests/support/roots.h"

#define PAST_CHECKPOINTS_MS 2100 /* the runner looks at checkpoints every 2 s */
#define AFTER_SIZE 6             /* bytes of a checkpoint that the trial wrote after its line */

static struct {
    bool (*chained)(const struct server_request *q, struct server_answer *a);
    bool hold_lines;     /* the first measurements wait for the trial */
    size_t lines, notes; /* that the server had when it was told of the checkpoint */
    bool kept;
} seen;

static bool exists(const char *name)
{
    AS_AUTO(as_freep) char *path = file_join(fx.dir, name);
    return access(path, F_OK) == 0;
}

static void make(const char *name)
{
    AS_AUTO(as_freep) char *path = file_join(fx.dir, name);
    ck_assert(file_replace(path, "", 0, 0600, NULL) == AS_OK);
}

/* The trial may go on. Wait until it has written, and at least `ms`. Under fx's lock. */
static void let_the_trial_write(int64_t ms)
{
    int64_t begin_ns = clock_mono_ns();
    make("go");
    while (!exists("done") || clock_mono_ns() - begin_ns < ms * NS_PER_MS) {
        fx_unlock();
        clock_sleep_ms(5);
        fx_lock();
        ck_assert_int_lt(clock_mono_ns() - begin_ns, PATIENCE_MS * NS_PER_MS);
    }
}

static void on_blob(const struct server_request *q)
{
    if (q->body_len == 2 && memcmp(q->body, "a\n", 2) == 0 && !exists("go"))
        let_the_trial_write(0);
}

static void look_at_files(const struct server_request *q)
{
    size_t i;
    json_t *file;
    JSON_AUTO body = json_loadb(q->body, q->body_len, 0, NULL);
    if (!as_streq(json_string_value(json_object_get(body, "kind")), "checkpoint") || seen.kept)
        return;
    json_array_foreach(json_object_get(body, "files"), i, file)
    {
        if (json_integer_value(json_object_get(file, "size")) != AFTER_SIZE)
            continue;
        seen.kept = true;
        seen.lines = json_array_size(fx.trials[0].items);
        seen.notes = json_object_size(fx.trials[0].notes);
    }
}

static bool look(const struct server_request *q, struct server_answer *a)
{
    const char *verb = strrchr(q->path, '/');
    if (strcmp(verb, "/files") == 0)
        look_at_files(q);
    if (strcmp(verb, "/measurements") == 0 && seen.hold_lines && !exists("go"))
        let_the_trial_write(PAST_CHECKPOINTS_MS);
    return seen.chained && seen.chained(q, a);
}

static void setup(void)
{
    fx_setup();
    memset(&seen, 0, sizeof seen);
    (void)setenv("DIR", fx.dir, 1);
}

static void watch(void)
{
    fx_lock();
    seen.chained = fx.more;
    fx.more = look;
    fx.on_blob = on_blob;
    fx_unlock();
}

/* ---- programs ---- */

#define WAIT_FOR(name) "until [ -e $DIR/" name " ]; do sleep 0.02; done; "

/* Where a program writes its measurements, and how it writes one. */
static const struct {
    const char *report, *line;
} ways[] = {
    {NULL, "echo '{\"loss\": 1}' >> $ASSAY_REPORT; "},
    {"[{\"stdout\":[\"loss: (?P<loss>[0-9]+)\"]}]", "echo loss: 1; "},
    {"[{\"csv\":\"m.csv\"}]", "[ -e m.csv ] || echo loss > m.csv; echo 1 >> m.csv; "},
    {"[{\"json\":\"m.jsonl\"}]", "echo '{\"loss\": 1}' >> m.jsonl; "},
};
enum { WAYS = 4 };

static void offer_program(size_t way, const char *script)
{
    JSON_AUTO doc =
        json_pack("{s:[s,s,s],s:s}", "command", "sh", "-c", script, "directory", fx.dir);
    if (ways[way].report)
        json_object_set_new(doc, "report", json_loads(ways[way].report, 0, NULL));
    AS_AUTO(as_freep) char *text = json_format(doc);
    (void)offer(0, text, PATIENCE_MS, 0, 0);
}

/* The runner has listed files a and b, and uploads a. Meanwhile a line is written, and b after
 * it. */
START_TEST(a_line_that_is_written_during_an_upload)
{
    AS_AUTO(str_done) struct str script = {0};
    str_printf(
        &script,
        "c=$ASSAY_CHECKPOINTS; mkdir $c/c.tmp; echo a > $c/c.tmp/a; echo b > $c/c.tmp/b; "
        "mv $c/c.tmp $c/c; " WAIT_FOR(
            "go") "%s"
                  "echo after > $c/c/b.tmp; mv $c/c/b.tmp $c/c/b; : > $DIR/done; " WAIT_FOR("end"),
        ways[_i].line);
    offer_program((size_t)_i, str_cstr(&script));
    watch();
    start_runner(NULL, NULL);
    AWAIT(seen.kept);
    LOCKED(ck_assert_uint_eq(seen.lines, 1));
    make("end");
}
END_TEST

/* The runner has read one line, and sends it. Meanwhile another one is written, and a checkpoint
 * after it, and the next look at the checkpoints is due. */
START_TEST(a_line_that_is_written_while_others_are_sent)
{
    AS_AUTO(str_done) struct str script = {0};
    str_printf(&script,
               "c=$ASSAY_CHECKPOINTS; %s" WAIT_FOR(
                   "go") "%s"
                         "echo after > $c/a.tmp; mv $c/a.tmp $c/a; : > $DIR/done; " WAIT_FOR("end"),
               ways[_i].line, ways[_i].line);
    seen.hold_lines = true;
    offer_program((size_t)_i, str_cstr(&script));
    watch();
    start_runner(NULL, NULL);
    AWAIT(seen.kept);
    LOCKED(ck_assert_uint_eq(seen.lines, 2));
    make("end");
}
END_TEST

/* Texts are sent once in a second only, but not after a checkpoint that was written after them. */
START_TEST(a_note_comes_before_its_checkpoint)
{
    watch();
    offer_program(0, "c=$ASSAY_CHECKPOINTS; mkdir $c/c.tmp; echo a > $c/c.tmp/a; "
                     "echo b > $c/c.tmp/b; mv $c/c.tmp $c/c; " WAIT_FOR(
                         "go") "echo '{\"first\": \"text\"}' >> $ASSAY_REPORT; echo after > "
                               "$c/c/b.tmp; "
                               "mv $c/c/b.tmp $c/c/b; : > $DIR/done; " WAIT_FOR("end"));
    start_runner(NULL, NULL);
    AWAIT(seen.kept);
    LOCKED(ck_assert_uint_eq(seen.notes, 1));
    make("end");
}
END_TEST

/* A program that prints faster than patterns are tried never empties its pipe. Its checkpoints are
 * kept all the same. */
START_TEST(a_program_that_prints_on_and_on)
{
    offer_program(1, "echo after > $ASSAY_CHECKPOINTS/a; while [ ! -e $DIR/end ]; do "
                     "echo a long line that no pattern matches, again and again; done");
    watch();
    start_runner(NULL, NULL);
    AWAIT(seen.kept);
    make("end");
}
END_TEST

/* The process has ended and the server takes no measurements, so their lines are on the runner's
 * disk alone, and the runner is killed: the next one sends them first. The line has no newline, so
 * that it counts at the end alone: the runner may not take it while the process runs. */
START_TEST(lines_on_disk_come_before_the_checkpoint)
{
    fx.hold_items = true;
    offer_program((size_t)_i, _i == 0
                                  ? "printf '{\"loss\": 1}' > $ASSAY_REPORT; "
                                    "echo after > $ASSAY_CHECKPOINTS/a; exit 75"
                                  : "printf 'loss: 1'; echo after > $ASSAY_CHECKPOINTS/a; exit 75");
    watch();
    start_runner(NULL, NULL);
    AS_AUTO(as_freep) char *result = file_join(fx.work, "trials/s/0/1/result.json");
    AWAIT(fx.held_items > 0 && access(result, F_OK) == 0);
    end_runner(SIGKILL);
    LOCKED(ck_assert(!seen.kept));
    fx_lock();
    fx.hold_items = false;
    fx_unlock();
    start_runner(NULL, NULL);
    AWAIT(fx.trials[0].completion);
    ck_assert_str_eq(outcome_of(&fx.trials[0]), "retry");
    LOCKED(ck_assert(seen.kept));
    LOCKED(ck_assert_uint_eq(seen.lines, 1));
}
END_TEST

/* ---- the trainer ---- */

#define DO(what) "{\"dataset\":\"d\",\"do\":\"" what "\"}"

static void start_trainer(const char *name)
{
    static char trainer[400];
    (void)snprintf(trainer, sizeof trainer, "%s/tests/trial-runner/agent/%s", source_root(), name);
    start_runner("--trainer", trainer);
}

START_TEST(a_member_of_a_group)
{
    (void)offer_member(0, DO("checkpoint"), "g1");
    watch();
    start_trainer("group_trainer.py");
    AWAIT(seen.kept);
    LOCKED(ck_assert_uint_eq(seen.lines, 2)); /* the first is from its begin */
    make("end");
}
END_TEST

START_TEST(the_leader_of_an_elastic_gang)
{
    offer_gang(2, 1, true, "all", DO("checkpoint"));
    watch();
    start_trainer("rank_trainer.py");
    AWAIT(seen.kept);
    LOCKED(ck_assert_uint_eq(seen.lines, 3)); /* two are from its begin */
    make("end");
    AWAIT(fx.trials[0].completion);
}
END_TEST

START_TEST(the_first_rank_of_a_command)
{
    offer_gang(2, 2, false, "all",
               "{\"command\":[\"sh\",\"-c\",\"c=$ASSAY_CHECKPOINTS; "
               "if [ $RANK != 0 ]; then " WAIT_FOR(
                   "end") "exit 0; fi; "
                          "mkdir $c/c.tmp; echo a > $c/c.tmp/a; echo b > $c/c.tmp/b; mv $c/c.tmp "
                          "$c/c; " WAIT_FOR("go") "echo '{\\\"loss\\\": 1}' >> $ASSAY_REPORT; "
                                                  "echo after > $c/c/b.tmp; mv $c/c/b.tmp $c/c/b; "
                                                  ": > $DIR/done; " WAIT_FOR("end") "\"]}");
    watch();
    start_runner(NULL, NULL);
    AWAIT(seen.kept);
    LOCKED(ck_assert_uint_eq(seen.lines, 1));
    make("end");
    AWAIT(fx.trials[0].completion);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("kept");
    TCase *t = tcase_create("kept");
    tcase_add_checked_fixture(t, setup, fx_teardown);
    tcase_add_loop_test(t, a_line_that_is_written_during_an_upload, 0, WAYS);
    tcase_add_loop_test(t, a_line_that_is_written_while_others_are_sent, 0, WAYS);
    tcase_add_test(t, a_note_comes_before_its_checkpoint);
    tcase_add_test(t, a_program_that_prints_on_and_on);
    tcase_add_loop_test(t, lines_on_disk_come_before_the_checkpoint, 0, 2);
    tcase_add_test(t, a_member_of_a_group);
    suite_add_tcase(s, t);
    t = tcase_create("ranks");
    tcase_add_checked_fixture(t, setup, fx_teardown);
    tcase_add_checked_fixture(t, NULL, gang_teardown);
    tcase_add_test(t, the_leader_of_an_elastic_gang);
    tcase_add_test(t, the_first_rank_of_a_command);
    suite_add_tcase(s, t);
    return s;
}
