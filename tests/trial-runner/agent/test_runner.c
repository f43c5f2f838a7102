/* The program assay-runner with real trials. */
#include "tests/trial-runner/agent/runner_fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

static const struct {
    const char *script, *outcome, *reason, *log;
} outcomes[] = {
    {"echo hi; exit 0", "completed", "", "hi\n"},
    {"echo first; echo last >&2; exit 3", "failed", "exit 3: last", "first\nlast\n"},
    {"exit 75", "retry", "exit 75", NULL},
    {"kill -9 $$", "retry", "killed by signal 9", NULL},
    {"kill -SEGV $$", "failed", "killed by signal 11", NULL},
    {"yes line | head -c 3000000; exit 1", "failed", "exit 1: line", "line\nline\n"},
    {"head -c 100000 /dev/urandom; exit 1", "failed", "exit 1", ""},
    {"env; echo \"cwd=$(pwd)\"; cat $ASSAY_PARAMS", "completed", "", "ASSAY_TRIAL=s/7\n"},
};

START_TEST(ends_of_trials)
{
    char cwd[400], line[420];
    struct trial *t = NULL;
    for (size_t i = 0; i < AS_ARRAY_LEN(outcomes); i++)
        offer_sh((int)i, outcomes[i].script);
    offer(20, "{\"command\":[\"no-such-program\"]}", 200, 0, 0);
    offer(21, "{\"command\":[\"sleep\",\"600\"]}", 200, 300, 0);
    offer(22, "{\"command\":[\"sh\",\"-c\",\"trap '' TERM; sleep 600; sleep 600\"]}", 200, 300, 0);
    offer(23,
          "{\"command\":[\"printf\",\"%s|\",\"${lr}\",\"x=${kind}\",3,0.5,\"$${lr}\"],"
          "\"env\":{\"MINE\":\"${lr}\",\"ASSAY_TRIAL\":\"forged\"}}",
          200, 0, 0);
    offer(19, "{\"command\":[]}", 200, 0, 0);
    start_runner(NULL, NULL);
    for (size_t i = 0; i < AS_ARRAY_LEN(outcomes); i++) {
        t = &fx.trials[i];
        AWAIT(t->completion);
        ck_assert_str_eq(outcome_of(t), outcomes[i].outcome);
        ck_assert_msg(strstr(reason_of(t), outcomes[i].reason) != NULL, "%s", reason_of(t));
        if (outcomes[i].log)
            ck_assert_msg(log_has(t, outcomes[i].log), "%zu: %s", i, t->log);
        ck_assert(!t->log || strlen(t->log) <= 65536);
    }
    ck_assert(!log_has(t, "SLURM_JOB_ID") && !log_has(t, "runner-token"));
    ck_assert(log_has(t, "ASSAY_SEED=9\n") && log_has(t, "PYTHONUNBUFFERED=1\n"));
    ck_assert(log_has(t, "CUDA_VISIBLE_DEVICES=\n") && log_has(t, "{\"kind\":\"a b\",\"lr\":0.1}"));
    snprintf(line, sizeof line, "cwd=%s\n", getcwd(cwd, sizeof cwd));
    ck_assert(log_has(t, line));
    for (int i = 19; i < 24; i++)
        AWAIT(fx.trials[i].completion);
    ck_assert_str_eq(outcome_of(&fx.trials[19]), "failed");
    ck_assert_str_eq(reason_of(&fx.trials[19]), "trial.command names no program");
    ck_assert_str_eq(outcome_of(&fx.trials[20]), "failed");
    ck_assert_ptr_nonnull(strstr(reason_of(&fx.trials[20]),
                                 "cannot run 'no-such-program': No such file or directory"));
    ck_assert_str_eq(outcome_of(&fx.trials[21]), "timeout");
    ck_assert_str_eq(outcome_of(&fx.trials[22]), "timeout");
    ck_assert(log_has(&fx.trials[23], "0.1|x=a b|3|0.5|${lr}|"));
    int status = end_runner(SIGTERM);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    AWAIT(fx.leaves == 1);
    AS_AUTO(as_freep) char *trials = file_join(fx.work, "trials");
    ck_assert_int_eq(rmdir(trials), 0); /* every folder was removed */
}
END_TEST

START_TEST(reports_files_and_gpus)
{
    struct trial *t = offer(0,
                            "{\"command\":[\"sh\",\"-c\",\"echo gpus=$CUDA_VISIBLE_DEVICES;"
                            "echo nonsense >> $ASSAY_REPORT;"
                            "for i in 1 2 3; do echo '{\\\"loss\\\": '$i'}' >> $ASSAY_REPORT; done;"
                            "printf '{\\\"loss\\\": NaN}' >> $ASSAY_REPORT;"
                            "mkdir $ASSAY_ARTIFACTS/d; echo x > $ASSAY_ARTIFACTS/d/a;"
                            "ln -s /etc/passwd $ASSAY_ARTIFACTS/link\"]}",
                            200, 0, 2);
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "completed");
    ck_assert_uint_eq(json_array_size(t->items), 4);
    json_t *last = json_array_get(t->items, 3);
    ck_assert_int_eq(json_integer_value(json_object_get(last, "step")), 3);
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(last, "metrics"), "loss")),
                     "NaN");
    ck_assert(log_has(t, "gpus=5,7\n") && log_has(t, "line 1 of ASSAY_REPORT"));
    ck_assert(log_has(t, "link is not kept"));
    ck_assert_uint_eq(json_array_size(t->artifacts), 1);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(t->artifacts, 0), "path")),
                     "d/a");
}
END_TEST

START_TEST(a_report_file_that_is_cut_or_replaced)
{
    /* What follows a cut is shorter than what was there: then it shows whenever the runner looks.
     */
    struct trial *t = offer_sh(
        0, "r=$ASSAY_REPORT; d=$ASSAY_ARTIFACTS/..; echo '{\"step\":1,\"a\":1}' > $r;"
           "while [ ! -f $d/go1 ]; do sleep 0.02; done;"
           "echo '{\"step\":2,\"a\":1,\"longer\":1}' > $r.new; mv $r.new $r;"
           "while [ ! -f $d/go2 ]; do sleep 0.02; done; : > $r; echo '{\"step\":3,\"a\":1}' >> $r");
    start_runner(NULL, NULL);
    for (size_t i = 1; i <= 2; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "trials/s/0/1/go%zu", i);
        AS_AUTO(as_freep) char *go = file_join(fx.work, name);
        AWAIT(json_array_size(t->items) == i); /* it has been read */
        ck_assert(file_replace(go, "", 0, 0600, NULL) == AS_OK);
    }
    AWAIT(t->completion);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            json_integer_value(json_object_get(json_array_get(t->items, (size_t)i), "step")),
            i + 1);
}
END_TEST

static int handed_out(void)
{
    int n = 0;
    for (int i = 0; i < MAX_TRIALS; i++)
        n += fx.trials[i].handed_out;
    return n;
}

/* The runner claims the next trials while the results of the last ones are on their way, but only
 * of as many as there are slots. */
START_TEST(a_slot_is_free_before_its_result_has_arrived)
{
    for (int i = 0; i < 9; i++)
        offer_sh(i, i == 8 ? "exit 0" : "echo done; exit 0");
    fx.hold_results = true;
    start_runner(NULL, NULL);
    for (int i = 0; i < 8; i++) /* the log comes last before the result */
        AWAIT(fx.trials[i].log);
    fx_lock();
    ck_assert_int_eq(handed_out(), 8);
    ck_assert_int_gt(fx.ending_claims, 0);
    for (int i = 0; i < 8; i++)
        ck_assert_ptr_null(fx.trials[i].completion);
    fx.hold_results = false;
    fx_unlock();
    for (int i = 0; i < 9; i++)
        AWAIT(fx.trials[i].completion);
}
END_TEST

/* The next trial is asked for while that is being done. */
START_TEST(what_a_trial_leaves_is_killed_before_the_next_one_starts)
{
    setenv("DIR", fx.dir, 1);
    for (int i = 0; i < 8; i += 2) {
        offer_sh(i, "rm -f $DIR/pid; setsid sh -c 'echo $$ > $DIR/new; mv $DIR/new $DIR/pid; exec "
                    "sleep 600' & until [ -e $DIR/pid ]; do sleep 0.01; done");
        offer_sh(i + 1, "kill -0 $(cat $DIR/pid) && echo lives || echo is dead");
    }
    start_runner("--slots", "1");
    for (int i = 1; i < 8; i += 2) {
        AWAIT(fx.trials[i].completion);
        ck_assert(log_has(&fx.trials[i], "is dead\n"));
    }
}
END_TEST

START_TEST(gpus_are_free_with_their_slot)
{
    struct trial *a = offer(0, "{\"command\":[\"echo\",\"first\"]}", 200, 0, 2);
    struct trial *b =
        offer(1, "{\"command\":[\"sh\",\"-c\",\"echo gpus=$CUDA_VISIBLE_DEVICES\"]}", 200, 0, 2);
    fx.hold_results = true;
    fx.trials[1].handed_out = true; /* not before the first has ended */
    start_runner(NULL, NULL);
    AWAIT(a->log);
    fx_lock();
    b->handed_out = false;
    fx_unlock();
    AWAIT(b->log);
    ck_assert(log_has(b, "gpus=5,7\n"));
    fx_lock();
    fx.hold_results = false;
    fx_unlock();
    AWAIT(a->completion && b->completion);
}
END_TEST

/* A trial may replace its files by anything: its end is delivered and its slot becomes free. */
static const struct {
    const char *script, *outcome, *log;
} oddities[] = {
    {"mkdir $ASSAY_REPORT", "completed", "ASSAY_REPORT is not read: it is not a regular file"},
    {"mkfifo $ASSAY_REPORT", "completed", "ASSAY_REPORT is not read: it is not a regular file"},
    {"ln -s /dev/zero $ASSAY_REPORT", "completed", "ASSAY_REPORT is not read: it is a link"},
    {"ln -s nothing $ASSAY_REPORT", "completed", "ASSAY_REPORT is not read: it is a link"},
    {"rm -r $ASSAY_CHECKPOINTS; : > $ASSAY_CHECKPOINTS; exit 75", "retry", "Not a directory"},
    {"rm -r $ASSAY_ARTIFACTS; : > $ASSAY_ARTIFACTS", "completed", "the artifacts are not kept"},
    {"rm -r $ASSAY_ARTIFACTS; ln -s /etc $ASSAY_ARTIFACTS", "completed", "Not a directory"},
    {"rm -r $(dirname $ASSAY_REPORT)", "completed", NULL},
};

START_TEST(odd_files_of_a_trial_do_not_keep_its_slot)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(oddities); i++)
        offer_sh((int)i, oddities[i].script);
    start_runner(NULL, NULL);
    for (size_t i = 0; i < AS_ARRAY_LEN(oddities); i++) {
        struct trial *t = &fx.trials[i];
        AWAIT(t->completion);
        ck_assert_str_eq(outcome_of(t), oddities[i].outcome);
        ck_assert_msg(!oddities[i].log || log_has(t, oddities[i].log), "%zu: %s", i, t->log);
        ck_assert_uint_eq(json_array_size(t->artifacts), 0);
    }
}
END_TEST

START_TEST(a_directive_stops_a_trial_without_a_word)
{
    struct trial *t = offer_sh(0, "echo $$ > started; echo $$; sleep 600");
    start_runner(NULL, NULL);
    AWAIT(t->log);
    fx_lock();
    pid_t pid = (pid_t)strtol(t->log, NULL, 10);
    t->stop = true;
    fx_unlock();
    AWAIT(kill(pid, 0) < 0);
    struct trial *next = offer_sh(1, "exit 0"); /* the slot is free and the runner goes on */
    AWAIT(next->completion);
    ck_assert_ptr_null(t->completion);
    unlink("started");
}
END_TEST

START_TEST(sigterm_hands_trials_back_with_their_checkpoints)
{
    struct trial *t = offer_sh(0, "trap 'echo state > $ASSAY_CHECKPOINTS/c; exit 0' TERM;"
                                  "echo ready; while :; do sleep 0.05; done");
    start_runner(NULL, NULL);
    AWAIT(log_has(t, "ready"));
    int status = end_runner(SIGTERM);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_str_eq(outcome_of(t), "released");
    ck_assert_uint_eq(json_array_size(t->checkpoints), 1);
    AWAIT(fx.leaves == 1);
    /* the next attempt, on a runner that starts from nothing, finds the file */
    AS_AUTO(as_freep) char *trials = file_join(fx.work, "trials");
    ck_assert(file_remove_tree(trials, NULL) == AS_OK);
    struct trial *again = offer_sh(1, "cat $ASSAY_CHECKPOINTS/c");
    fx_lock();
    json_object_set(again->claim, "files", t->checkpoints);
    fx_unlock();
    start_runner(NULL, NULL);
    AWAIT(again->completion);
    ck_assert_str_eq(again->log, "state\n");
}
END_TEST

/* A checkpoint that is replaced all the time is kept complete: never a mix, never an empty set. */
START_TEST(checkpoints_that_change_while_they_are_read)
{
    struct trial *t = offer_sh(0, "cd $ASSAY_CHECKPOINTS; i=0; while [ ! -f ../go ]; do i=$((i+1));"
                                  " yes $i | head -c 400000 > a.tmp; mv a.tmp a; done");
    AS_AUTO(as_freep) char *go = file_join(fx.work, "trials/s/0/1/go");
    start_runner(NULL, NULL);
    AWAIT(fx.trials[0].checkpoints);
    fx_lock();
    size_t n = json_array_size(t->checkpoints);
    struct blob b = fx.blobs[0];
    bool uniform = b.len == 400000;
    size_t line = (size_t)((char *)memchr(b.bytes, '\n', b.len) - b.bytes) + 1;
    for (size_t i = line; uniform && i < b.len; i++)
        uniform = b.bytes[i] == b.bytes[i - line];
    fx_unlock();
    ck_assert_uint_eq(n, 1);
    ck_assert(uniform);
    ck_assert(file_replace(go, "", 0, 0600, NULL) == AS_OK);
    AWAIT(t->completion);
    ck_assert(!log_has(t, "warning"));
}
END_TEST

START_TEST(sigkill_of_the_runner_leaves_no_process)
{
    struct trial *t = offer_sh(0, "sleep 600 & echo $! $$; wait");
    long grandchild = 0, child = 0;
    start_runner(NULL, NULL);
    AWAIT(t->log && sscanf(t->log, "%ld %ld", &grandchild, &child) == 2);
    end_runner(SIGKILL);
    AWAIT(kill((pid_t)child, 0) < 0);
    start_runner(NULL, NULL); /* on the same folder: sweeps what was left */
    AWAIT(kill((pid_t)grandchild, 0) < 0);
    AWAIT(fx.registrations == 2);
    ck_assert_uint_eq(json_array_size(json_object_get(fx.registration, "resume")), 0);
    ck_assert_ptr_null(t->completion);
}
END_TEST

START_TEST(a_result_survives_the_runner)
{
    AS_AUTO(as_freep) char *journaled = file_join(fx.work, "trials/s/0/1/result.json");
    struct trial *t = offer_sh(0, "echo words; echo '{\"loss\": 1}' >> $ASSAY_REPORT;"
                                  "echo a > $ASSAY_ARTIFACTS/a");
    fx_lock();
    fx.hold_results = true;
    fx_unlock();
    start_runner(NULL, NULL);
    AWAIT(access(journaled, F_OK) == 0 && t->artifacts);
    end_runner(SIGKILL);
    fx_lock();
    fx.hold_results = false;
    json_decref(t->artifacts);
    t->artifacts = NULL;
    fx_unlock();
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "completed");
    ck_assert_str_eq(t->log, "words\n");
    ck_assert_uint_eq(json_array_size(t->artifacts), 1);
    AWAIT(access(journaled, F_OK) < 0);
}
END_TEST

/* Only the server knows which metrics a sweep requires. */
START_TEST(a_trial_without_its_metric_fails)
{
    struct trial *t = offer_sh(0, "echo quiet");
    t->lacks_metric = true;
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "failed");
    ck_assert_str_eq(reason_of(t),
                     "exit 0, but the metric 'm.x' was never reported (docs/trials.md#reporting)");
    ck_assert_int_eq(json_integer_value(json_object_get(t->completion, "exit_code")), 0);
    ck_assert_int_eq(t->refusals, 1);
    ck_assert_str_eq(t->log, "quiet\n");
}
END_TEST

static bool has_said(const struct trial *t, const char *phase)
{
    return as_streq(json_string_value(json_object_get(t->said, "phase")), phase);
}

static json_int_t ran_ms(const json_t *j)
{
    const json_t *v = json_object_get(j, "ran_ms");
    return json_is_integer(v) ? json_integer_value(v) : -1;
}

/* The runner says where a process is and for how long it ran, also after it was killed. */
START_TEST(the_end_of_a_process_is_said_before_its_result)
{
    AS_AUTO(as_freep) char *go = file_join(fx.dir, "go");
    AS_AUTO(as_freep) char *journaled = file_join(fx.work, "trials/s/0/1/result.json");
    char script[300];
    snprintf(script, sizeof script, "while [ ! -e %s ]; do sleep 0.02; done; sleep 0.1", go);
    struct trial *t = offer_sh(0, script);
    fx.hold_results = true;
    start_runner(NULL, NULL);
    AWAIT(has_said(t, "running"));
    ck_assert_int_ge(ran_ms(t->said), 0);
    ck_ok(file_replace(go, "", 0, 0600, NULL), (struct as_err){0});
    AWAIT(has_said(t, "ended") && access(journaled, F_OK) == 0);
    fx_lock();
    json_int_t ran = ran_ms(t->said);
    json_decref(t->said);
    t->said = NULL;
    fx_unlock();
    ck_assert_int_ge(ran, 100);
    AWAIT(has_said(t, "ended")); /* again and again */
    end_runner(SIGKILL);
    fx_lock();
    json_decref(t->said);
    t->said = NULL;
    fx.down = true; /* so that the registration says it, before any heartbeat */
    fx_unlock();
    start_runner(NULL, NULL);
    fx_lock();
    fx.down = false;
    fx_unlock();
    AWAIT(fx.registrations == 2 && t->said);
    const json_t *resumed = json_array_get(json_object_get(fx.registration, "resume"), 0);
    ck_assert_int_eq(ran_ms(resumed), ran);
    fx_lock();
    fx.hold_results = false;
    fx_unlock();
    AWAIT(t->completion);
    ck_assert_int_eq(ran_ms(t->completion), ran);
}
END_TEST

/* The server gave the attempt up, but no other has begun: it decides whether the result counts. */
START_TEST(a_complete_result_is_sent_although_its_attempt_was_dropped)
{
    AS_AUTO(as_freep) char *go = file_join(fx.dir, "go");
    char script[300];
    snprintf(script, sizeof script,
             "echo '{\"loss\": 1}' >> $ASSAY_REPORT; while [ ! -e %s ]; do sleep 0.02; done", go);
    struct trial *t = offer_sh(0, script);
    fx.hold_items = true;
    start_runner(NULL, NULL);
    AWAIT(fx.held_items > 0);
    ck_ok(file_replace(go, "", 0, 0600, NULL), (struct as_err){0});
    AWAIT(has_said(t, "ended"));
    fx_lock();
    t->stop = true;
    int before = fx.heartbeats;
    fx_unlock();
    AWAIT(fx.heartbeats > before + 1);
    fx_lock();
    fx.hold_items = false;
    fx_unlock();
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "completed");
    ck_assert_uint_eq(json_array_size(t->items), 1);
}
END_TEST

/* The result is on disk although a measurement was under way when the process ended. */
START_TEST(trials_go_on_while_the_server_is_away)
{
    struct trial *t = offer_sh(0, "echo up; while [ ! -f $ASSAY_ARTIFACTS/../go ]; do sleep 0.02;"
                                  " done; echo '{\"loss\": 1}' >> $ASSAY_REPORT; sleep 1");
    AS_AUTO(as_freep) char *go = file_join(fx.work, "trials/s/0/1/go");
    AS_AUTO(as_freep) char *journaled = file_join(fx.work, "trials/s/0/1/result.json");
    start_runner(NULL, NULL);
    AWAIT(t->log);
    fx_lock();
    fx.down = true;
    fx_unlock();
    ck_assert(file_replace(go, "", 0, 0600, NULL) == AS_OK);
    AWAIT(access(journaled, F_OK) == 0);
    fx_lock();
    fx.down = false;
    fx.epoch += 10; /* another server, which does not know the epoch */
    fx_unlock();
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "completed");
    ck_assert_uint_eq(json_array_size(t->items), 1);
    AWAIT(fx.registrations == 2);
}
END_TEST

START_TEST(a_lost_epoch_resumes_what_runs)
{
    struct trial *t = offer_sh(0, "echo up; while [ ! -f $ASSAY_ARTIFACTS/../go ]; do sleep 0.02;"
                                  " done");
    AS_AUTO(as_freep) char *go = file_join(fx.work, "trials/s/0/1/go");
    start_runner(NULL, NULL);
    AWAIT(t->log);
    fx_lock();
    fx.epoch += 10;
    fx_unlock();
    AWAIT(fx.registrations == 2);
    json_t *resume = json_object_get(fx.registration, "resume");
    ck_assert_uint_eq(json_array_size(resume), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(resume, 0), "attempt")), 1);
    ck_assert(file_replace(go, "", 0, 0600, NULL) == AS_OK);
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "completed");
}
END_TEST

/* A trainer that keeps its job and the data that it names. */
static const char trainer[] =
    "#!/bin/sh\n"
    "cp \"$1\" \"$ASSAY_ARTIFACTS/job\"\n"
    "sed -n 's/.*\"table\":\"\\([^\"]*\\)\".*/\\1/p' \"$1\" | xargs cat\n";

START_TEST(the_built_in_trainer_gets_its_job)
{
    AS_AUTO(as_freep) char *program = file_join(fx.dir, "trainer");
    struct blob *b = &fx.blobs[fx.n_blobs++];
    b->bytes = as_strdup("x,y\n1,2\n");
    b->len = strlen(b->bytes);
    ck_assert(sha256_of(b->bytes, b->len, b->sha, NULL) == AS_OK);
    ck_assert(file_replace(program, trainer, strlen(trainer), 0755, NULL) == AS_OK);
    for (int i = 0; i < 2; i++) {
        struct trial *t = offer(i,
                                "{\"train\":{\"dataset\":\"d\",\"optimizer\":{\"lr\":\"${lr}\"},"
                                "\"note\":\"lr ${lr}\"}}",
                                200, 0, 0);
        fx_lock();
        json_object_set_new(t->claim, "dataset",
                            json_pack("{s:s,s:s,s:[{s:s,s:s,s:i}]}", "name", "d", "format", "csv",
                                      "files", "role", "table", "sha256", b->sha, "size",
                                      (int)b->len));
        fx_unlock();
    }
    start_runner("--trainer", program);
    for (int i = 0; i < 2; i++) {
        struct trial *t = &fx.trials[i];
        AWAIT(t->completion);
        ck_assert_str_eq(outcome_of(t), "completed");
        ck_assert_str_eq(t->log, "x,y\n1,2\n");
    }
    const char *job = NULL;
    for (size_t i = 1; i < fx.n_blobs; i++)
        job = fx.blobs[i].bytes;
    ck_assert_ptr_nonnull(strstr(job, "\"lr\":0.1"));
    ck_assert_ptr_nonnull(strstr(job, "\"note\":\"lr 0.1\""));
    ck_assert_ptr_nonnull(strstr(job, "\"metric\":{\"goal\":\"minimize\",\"name\":\"loss\"}"));
}
END_TEST

/* The fixture checks that every request shows the same secret. Here: it is the folder's, nobody
 * else may read it, and a runner that starts again on the folder has it, too. */
START_TEST(the_secret_is_the_folders)
{
    AS_AUTO(as_freep) char *path = file_join(fx.work, "secret");
    AS_AUTO(as_freep) char *text = NULL;
    struct stat sb;
    size_t len = 0;
    struct as_err err;
    fx_lock();
    fx.taken = 2;
    fx_unlock();
    start_runner(NULL, NULL);
    AWAIT(fx.registrations == 1); /* after it has waited for the name */
    end_runner(SIGKILL);
    ck_assert_int_eq(stat(path, &sb), 0);
    ck_assert_uint_eq(sb.st_mode & 0777, 0600);
    ck_ok(file_read(path, 200, &text, &len, &err), err);
    ck_assert_str_eq(text, fx.secret);
    start_runner(NULL, NULL);
    AWAIT(fx.registrations == 2);
    end_runner(SIGTERM);
    ck_assert_int_eq(chmod(path, 0644), 0); /* others may have read it */
    start_runner(NULL, NULL);
    int status = 0;
    ck_assert_int_eq(waitpid(fx.runner, &status, 0), fx.runner);
    fx.runner = 0;
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 4);
}
END_TEST

/* A result whose secret was lost can never be sent: it does not keep its slot for ever. */
START_TEST(a_result_of_another_is_dropped)
{
    AS_AUTO(as_freep) char *dir = file_join(fx.work, "trials/s/0");
    fx_lock();
    fx.not_holder = true;
    fx_unlock();
    (void)offer_sh(0, "true");
    start_runner(NULL, NULL);
    AWAIT(fx.trials[0].handed_out && access(dir, F_OK) < 0);
}
END_TEST

/* The token of the runner is "runner-token" (runner_fixture.c). */
START_TEST(a_trial_sees_no_secret)
{
    (void)setenv("AWS_SECRET_ACCESS_KEY", "secret-of-s3", 1);
    (void)setenv("PGPASSWORD", "secret-of-postgres", 1);
    (void)setenv("ASSAY_DATABASE", "secret-of-assayd", 1);
    (void)setenv("MY_OWN", "for my trials", 1);
    struct trial *t = offer_sh(0, "env; cat /proc/$PPID/environ | tr '\\0' '\\n'");
    start_runner("--keep-privileges", NULL); /* else a trial of root cannot read the runner's */
    AWAIT(t->completion);
    fx_lock();
    const char *own = strstr(t->log, "MY_OWN=for my trials\n");
    ck_assert_msg(own && strstr(own + 1, "MY_OWN=for my trials\n"), "%s", t->log); /* of both */
    ck_assert_msg(!strstr(t->log, "secret-of") && !strstr(t->log, "runner-token"), "%s", t->log);
    fx_unlock();
}
END_TEST

/* Root without capabilities may not look into a process that has them. */
START_TEST(a_trial_of_root_cannot_look_into_its_runner)
{
    if (geteuid() != 0)
        return; /* another user's runner has no more rights than its trials */
    struct trial *t = offer_sh(0, "cat /proc/$PPID/environ /proc/$PPID/mem");
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    fx_lock();
    ck_assert_msg(strstr(t->log, "environ: Permission denied"), "%s", t->log);
    ck_assert_msg(strstr(t->log, "mem: Permission denied"), "%s", t->log);
    fx_unlock();
}
END_TEST

START_TEST(a_refused_token_ends_the_runner)
{
    int status = 0;
    fx_lock();
    fx.denied = true;
    fx_unlock();
    start_runner(NULL, NULL);
    ck_assert_int_eq(waitpid(fx.runner, &status, 0), fx.runner);
    fx.runner = 0;
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 4);
}
END_TEST

/* The trial is lost by its lease; the runner ends it, and says why it leaves by its exit code. */
START_TEST(a_revoked_token_ends_the_runner_after_its_lease)
{
    int status = 0;
    struct trial *t = offer_sh(0, "echo $$; sleep 600");
    fx.lease_ms = 300;
    start_runner(NULL, NULL);
    AWAIT(t->log);
    fx_lock();
    pid_t pid = (pid_t)strtol(t->log, NULL, 10);
    fx.denied = true;
    fx_unlock();
    ck_assert_int_eq(waitpid(fx.runner, &status, 0), fx.runner);
    fx.runner = 0;
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    ck_assert(kill(pid, 0) < 0);
    ck_assert_ptr_null(t->completion);
    ck_assert_int_eq(fx.leaves, 0);
}
END_TEST

START_TEST(a_token_that_is_valid_again_loses_nothing)
{
    AS_AUTO(as_freep) char *go = file_join(fx.work, "trials/s/0/1/go");
    struct trial *t = offer_sh(0, "echo up; while [ ! -f $ASSAY_ARTIFACTS/../go ]; do sleep 0.02;"
                                  " done");
    start_runner(NULL, NULL);
    AWAIT(t->log);
    fx_lock();
    fx.denied = true;
    fx_unlock();
    AWAIT(fx.answers_denied > 3);
    fx_lock();
    fx.denied = false;
    fx_unlock();
    ck_assert(file_replace(go, "", 0, 0600, NULL) == AS_OK);
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "completed");
    struct trial *next = offer_sh(1, "exit 0"); /* and claims go on */
    AWAIT(next->completion);
}
END_TEST

START_TEST(leaves_when_idle)
{
    int status = 0;
    start_runner("--idle-exit", "100ms");
    ck_assert_int_eq(waitpid(fx.runner, &status, 0), fx.runner);
    fx.runner = 0;
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    AWAIT(fx.leaves == 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("runner");
    TCase *t = tcase_create("runner");
    tcase_add_checked_fixture(t, fx_setup, fx_teardown);
    tcase_add_test(t, ends_of_trials);
    tcase_add_test(t, reports_files_and_gpus);
    tcase_add_test(t, a_slot_is_free_before_its_result_has_arrived);
    tcase_add_test(t, what_a_trial_leaves_is_killed_before_the_next_one_starts);
    tcase_add_test(t, gpus_are_free_with_their_slot);
    tcase_add_test(t, a_report_file_that_is_cut_or_replaced);
    tcase_add_test(t, odd_files_of_a_trial_do_not_keep_its_slot);
    tcase_add_test(t, a_directive_stops_a_trial_without_a_word);
    tcase_add_test(t, sigterm_hands_trials_back_with_their_checkpoints);
    tcase_add_test(t, checkpoints_that_change_while_they_are_read);
    tcase_add_test(t, sigkill_of_the_runner_leaves_no_process);
    tcase_add_test(t, a_result_survives_the_runner);
    tcase_add_test(t, a_trial_without_its_metric_fails);
    tcase_add_test(t, the_end_of_a_process_is_said_before_its_result);
    tcase_add_test(t, a_complete_result_is_sent_although_its_attempt_was_dropped);
    tcase_add_test(t, trials_go_on_while_the_server_is_away);
    tcase_add_test(t, a_lost_epoch_resumes_what_runs);
    tcase_add_test(t, the_built_in_trainer_gets_its_job);
    tcase_add_test(t, the_secret_is_the_folders);
    tcase_add_test(t, a_result_of_another_is_dropped);
    tcase_add_test(t, a_trial_sees_no_secret);
    tcase_add_test(t, a_trial_of_root_cannot_look_into_its_runner);
    tcase_add_test(t, a_refused_token_ends_the_runner);
    tcase_add_test(t, a_revoked_token_ends_the_runner_after_its_lease);
    tcase_add_test(t, a_token_that_is_valid_again_loses_nothing);
    tcase_add_test(t, leaves_when_idle);
    suite_add_tcase(s, t);
    return s;
}
