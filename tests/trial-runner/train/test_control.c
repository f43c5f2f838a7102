/* A group in the real program, with a socket to it: the whole protocol between runner and trainer,
 * and what happens after kills. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "trial-runner/protocol/control.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"
#include "tests/support/rig.h"

static struct rig rig;

/* The program that runs, and our end of its socket. */
static struct {
    pid_t pid;
    int fd;
    struct control_lines lines;
} program = {.fd = -1};

static void setup(void)
{
    rig_open(&rig);
    (void)setenv("ASSAY_BACKEND", "cpu", 1);
    (void)setenv("ASSAY_THREADS", "2", 1);
    (void)unsetenv("ASSAY_MEMORY_BYTES");
}

static void teardown(void)
{
    rig_close(&rig);
}

static void start(void)
{
    int pair[2];
    char path[512], job[96], out[96], errors[96];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    (void)snprintf(path, sizeof path, "%s/trial-runner/train/assay-train", build_root());
    (void)snprintf(job, sizeof job, "%s/job.json", rig.dir);
    (void)snprintf(out, sizeof out, "%s/out", rig.dir);
    (void)snprintf(errors, sizeof errors, "%s/err", rig.dir);
    program.pid = fork();
    ck_assert_int_ge(program.pid, 0);
    if (program.pid == 0) {
        if (dup2(pair[1], 0) != 0 || !freopen(out, "a", stdout) || !freopen(errors, "a", stderr))
            _exit(126);
        (void)execl(path, "assay-train", "--checkpoint-every=1ms", job, (char *)NULL);
        _exit(127);
    }
    (void)close(pair[1]);
    program.fd = pair[0];
    program.lines = (struct control_lines){0};
}

/* The next event; false at the end of the stream. */
static bool next_event(struct control_event *ret)
{
    for (;;) {
        size_t len = 0;
        const char *line = control_lines_next(&program.lines, &len);
        if (line) {
            ck_ok(control_event_parse(line, len, ret, &rig.err), rig.err);
            return true;
        }
        char bytes[4096];
        struct pollfd p = {.fd = program.fd, .events = POLLIN};
        ck_assert_int_eq(poll(&p, 1, PATIENCE_MS), 1);
        ssize_t n = read(program.fd, bytes, sizeof bytes);
        if (n <= 0)
            return false;
        ck_ok(control_lines_feed(&program.lines, bytes, (size_t)n, &rig.err), rig.err);
    }
}

static void say(const char *line)
{
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b, "%s\n", line);
    ck_assert_int_eq(send(program.fd, b.s, b.len, MSG_NOSIGNAL), (ssize_t)b.len);
}

static void say_of(const char *op, const char *id)
{
    char line[128];
    (void)snprintf(line, sizeof line, "{\"op\":\"%s\",\"id\":\"%s\"}", op, id);
    say(line);
}

static void add(const char *tag, const struct trial *t)
{
    AS_AUTO(as_freep) char *member = rig_member(&rig, tag, t);
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b, "{\"op\":\"add\",\"member\":%s}", member);
    say(b.s);
}

static int wait_for_end(void)
{
    int status = 0;
    ck_assert_int_eq(waitpid(program.pid, &status, 0), program.pid);
    (void)close(program.fd);
    program.fd = -1;
    control_lines_done(&program.lines);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* What became of each of some trials. */
struct fate {
    bool started;
    int exit; /* -1: it has not ended */
    char error[512];
    char logged[512]; /* its last line */
};

static size_t index_of(const struct trial *trials, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(trials[i].id, id) == 0)
            return i;
    ck_abort_msg("an event of '%s'", id);
    return n;
}

static void forget(struct fate *fates, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fates[i] = (struct fate){.exit = -1};
}

/* Note an event; its kind is returned. */
static control_event_kind note(const struct control_event *e, const struct trial *trials, size_t n,
                               struct fate *fates)
{
    if (e->kind == CONTROL_STARTED)
        fates[index_of(trials, n, e->id)].started = true;
    if (e->kind == CONTROL_ENDED) {
        struct fate *f = &fates[index_of(trials, n, e->id)];
        ck_assert_int_eq(f->exit, -1); /* nobody ends twice */
        f->exit = (int)e->exit;
        (void)snprintf(f->error, sizeof f->error, "%s", e->error ? e->error : "");
    }
    if (e->kind == CONTROL_LOG) {
        struct fate *f = &fates[index_of(trials, n, e->id)];
        ck_assert_int_eq(f->exit, -1); /* its lines come before its end */
        (void)snprintf(f->logged, sizeof f->logged, "%s", e->text);
    }
    return e->kind;
}

/* Read on until member i has started (`started`) or ended, or to the end of the stream (i == n). */
static void follow(const struct trial *trials, size_t n, struct fate *fates, size_t i, bool started)
{
    struct control_event e;
    while (i == n || (started ? !fates[i].started : fates[i].exit < 0)) {
        if (!next_event(&e)) {
            ck_assert_msg(i == n, "the stream ended before %s did", trials[i].id);
            return;
        }
        (void)note(&e, trials, n, fates);
        control_event_done(&e);
    }
}

#define SHAPE "\"model\":{\"layers\":[24,16],\"dropout\":0.1},\"micro_batch\":16,"
static const struct trial trials[] = {
    {"a", SHAPE "\"epochs\":12,\"batch_size\":16", "1"},
    {"b", SHAPE "\"epochs\":9,\"batch_size\":48,\"optimizer\":{\"kind\":\"sgd\"}", "2"},
    {"c", SHAPE "\"epochs\":11,\"batch_size\":32,\"optimizer\":{\"kind\":\"lamb\"}", "3"},
    {"d", SHAPE "\"epochs\":10,\"batch_size\":16,\"optimizer\":{\"clip_norm\":0.1}", "4"},
    {"long", SHAPE "\"epochs\":1000000,\"batch_size\":16", "5"},
    {"longer", SHAPE "\"epochs\":1000000,\"batch_size\":32", "6"},
};
enum { A, B, C, D, LONG, LONGER, N_TRIALS };

static bool has_checkpoint(const char *tag, const char *id)
{
    size_t n;
    AS_AUTO(as_freep)
    char *bytes = rig_read(&rig, tag, id, "checkpoints/checkpoint.safetensors", &n);
    return bytes != NULL;
}

START_TEST(add_stop_cancel_close)
{
    const struct trial *first[] = {&trials[A], &trials[LONG], &trials[LONGER]};
    struct fate fates[N_TRIALS];
    struct control_event e;
    forget(fates, N_TRIALS);
    for (size_t i = A; i <= D; i++)
        ck_assert_int_eq(rig_solo(&rig, "solo", &trials[i], "cpu"), 0);
    rig_job(&rig, "g", first, 3, 3);
    start();
    ck_assert(next_event(&e));
    ck_assert_int_eq(e.kind, CONTROL_READY);
    ck_assert_int_gt(e.bytes_per_member, 4 * 2130);
    ck_assert_int_gt(e.bytes_shared, (int64_t)4 * 1797 * 64);
    ck_assert_int_gt(e.flops_per_step, 1000);
    ck_assert_int_eq(e.threads, 2);
    control_event_done(&e);
    add("g", &trials[B]); /* they wait for the first slot that is free */
    add("g", &trials[C]);
    follow(trials, N_TRIALS, fates, A, false);
    ck_assert_int_eq(fates[A].exit, 0);
    ck_assert_ptr_nonnull(strstr(fates[A].logged, "\"val_loss\":"));
    follow(trials, N_TRIALS, fates, B, true);
    follow(trials, N_TRIALS, fates, LONG, true);
    ck_assert(!fates[C].started);
    say_of("stop", "long");
    follow(trials, N_TRIALS, fates, LONG, false);
    ck_assert_int_eq(fates[LONG].exit, 75);
    ck_assert(as_starts_with(fates[LONG].logged, "stopped at epoch "));
    ck_assert(has_checkpoint("g", "long"));
    follow(trials, N_TRIALS, fates, LONGER, true);
    say_of("cancel", "longer");
    follow(trials, N_TRIALS, fates, LONGER, false);
    ck_assert_int_eq(fates[LONGER].exit, 75);
    say("this is no JSON");
    say_of("stop", "never heard of");
    add("g", &trials[D]);
    say("{\"op\":\"close\"}");
    follow(trials, N_TRIALS, fates, N_TRIALS, false);
    ck_assert_int_eq(wait_for_end(), 0);
    for (size_t i = A; i <= D; i++) {
        ck_assert_int_eq(fates[i].exit, 0);
        rig_same(&rig, "solo", "g", &trials[i]);
    }
}
END_TEST

/* Throughput also counts members that end within a second. */
START_TEST(short_members_tell_their_throughput)
{
    const struct trial *all[] = {&trials[A], &trials[B], &trials[C], &trials[D]};
    struct control_event e;
    int64_t members = 0;
    rig_job(&rig, "g", all, 4, 4);
    start();
    say("{\"op\":\"close\"}");
    while (next_event(&e)) {
        if (e.kind == CONTROL_THROUGHPUT && members == 0) {
            members = e.members;
            ck_assert_double_gt(e.rows_per_second, 0);
        }
        control_event_done(&e);
    }
    ck_assert_int_eq(wait_for_end(), 0);
    ck_assert_int_eq(members, 4);
}
END_TEST

START_TEST(a_runner_that_is_gone)
{
    const struct trial *all[] = {&trials[LONG], &trials[LONGER]};
    struct fate fates[N_TRIALS];
    forget(fates, N_TRIALS);
    rig_job(&rig, "g", all, 2, 2);
    start();
    follow(trials, N_TRIALS, fates, LONG, true);
    follow(trials, N_TRIALS, fates, LONGER, true);
    ck_assert_int_eq(shutdown(program.fd, SHUT_WR), 0);
    follow(trials, N_TRIALS, fates, N_TRIALS, false);
    ck_assert_int_eq(wait_for_end(), 75);
    ck_assert_int_eq(fates[LONG].exit, 75);
    ck_assert_int_eq(fates[LONGER].exit, 75);
    ck_assert(has_checkpoint("g", "long") && has_checkpoint("g", "longer"));
}
END_TEST

START_TEST(members_that_come_later)
{
    static const struct trial bad[] = {
        {"a", SHAPE "\"epochs\":3,\"batch_size\":16", "1"},
        {"other", "\"model\":{\"layers\":[99]},\"epochs\":1", "1"},
        {"typo", SHAPE "\"epoch\":1", "1"},
    };
    struct fate fates[3];
    forget(fates, 3);
    rig_job(&rig, "g", NULL, 0, 2);
    start();
    add("g", &bad[2]); /* cannot even give the group its shape */
    follow(bad, 3, fates, 2, false);
    ck_assert_int_eq(fates[2].exit, 1);
    ck_assert_ptr_nonnull(strstr(fates[2].error, "/train/epoch"));
    add("g", &bad[0]);
    add("g", &bad[1]);
    follow(bad, 3, fates, 1, false);
    ck_assert_int_eq(fates[1].exit, 1);
    ck_assert_ptr_nonnull(strstr(fates[1].error, "its shape differs from its group's"));
    follow(bad, 3, fates, 0, false);
    ck_assert_int_eq(fates[0].exit, 0);
    say("{\"op\":\"close\"}");
    ck_assert_int_eq(wait_for_end(), 0);
}
END_TEST

struct interrupts {
    int kills, stops;
};

/* Kill and stop the group at random moments. After each, the members that have not ended form a new
 * group, in another order and of another size. The results are under this tag. */
static void train_in_parts(const char *tag, struct rng *r, struct interrupts *ret)
{
    struct fate fates[N_TRIALS];
    bool done[4] = {false, false, false, false};
    for (size_t round = 0; !(done[A] && done[B] && done[C] && done[D]); round++) {
        const struct trial *all[4];
        size_t n = 0, from = (size_t)rng_below(r, 4);
        for (size_t i = 0; i < 4; i++)
            if (!done[(from + i) % 4])
                all[n++] = &trials[(from + i) % 4];
        size_t slots = n + (size_t)rng_below(r, 3);
        forget(fates, N_TRIALS);
        rig_job(&rig, tag, all, n, slots);
        start();
        follow(trials, N_TRIALS, fates, index_of(trials, N_TRIALS, all[0]->id), true);
        (void)usleep((useconds_t)rng_below(r, 60000));
        int sig = round < 16 ? (round % 2 ? SIGKILL : SIGTERM) : 0;
        if (sig)
            (void)kill(program.pid, sig);
        else
            say("{\"op\":\"close\"}");
        follow(trials, N_TRIALS, fates, N_TRIALS, false);
        int code = wait_for_end();
        ck_assert_int_eq(code, sig == SIGKILL ? -SIGKILL : sig ? 75 : 0);
        ret->kills += sig == SIGKILL;
        ret->stops += sig == SIGTERM;
        for (size_t i = A; i <= D; i++) {
            ck_assert_msg(fates[i].exit != 1, "%s: %s", trials[i].id, fates[i].error);
            done[i] = done[i] || fates[i].exit == 0;
        }
    }
}

/* Again until it has been interrupted in both ways: all may have ended before the first signal. */
START_TEST(killed_at_random_moments)
{
    struct interrupts seen = {0, 0};
    struct rng r;
    rng_init(&r, 20261121, 0);
    for (size_t i = A; i <= D; i++)
        ck_assert_int_eq(rig_solo(&rig, "solo", &trials[i], "cpu"), 0);
    for (int part = 0; seen.kills == 0 || seen.stops == 0; part++) {
        char tag[24];
        (void)snprintf(tag, sizeof tag, "parts-%d", part);
        train_in_parts(tag, &r, &seen);
        for (size_t i = A; i <= D; i++)
            ck_assert_double_eq(rig_distance(&rig, "solo", tag, &trials[i]), 0);
    }
}
END_TEST

START_TEST(a_bad_checkpoint_is_its_members_own)
{
    const struct trial *all[] = {&trials[A], &trials[B], &trials[C]};
    struct fate fates[N_TRIALS];
    char path[160];
    forget(fates, N_TRIALS);
    ck_assert_int_eq(rig_solo(&rig, "solo", &trials[B], "cpu"), 0);
    ck_assert_int_eq(rig_solo(&rig, "solo-a", &trials[A], "cpu"), 0);
    rig_job(&rig, "g", all, 3, 3);
    start();
    for (size_t i = A; i <= C; i++)
        follow(trials, N_TRIALS, fates, i, true);
    ck_assert_int_eq(kill(program.pid, SIGTERM), 0);
    follow(trials, N_TRIALS, fates, N_TRIALS, false);
    ck_assert_int_eq(wait_for_end(), 75);
    size_t n = 0;
    AS_AUTO(as_freep) char *a = rig_read(&rig, "g", "a", "checkpoints/checkpoint.safetensors", &n);
    ck_assert_ptr_nonnull(a);
    (void)snprintf(path, sizeof path, "%s/g/c/checkpoints/checkpoint.safetensors", rig.dir);
    ck_ok(file_replace(path, a, n, 0644, &rig.err), rig.err); /* of another member */
    (void)snprintf(path, sizeof path, "%s/g/a/checkpoints/checkpoint.safetensors", rig.dir);
    ck_ok(file_replace(path, a, n / 2, 0644, &rig.err), rig.err); /* cut short */
    forget(fates, N_TRIALS);
    start();
    say("{\"op\":\"close\"}");
    follow(trials, N_TRIALS, fates, N_TRIALS, false);
    ck_assert_int_eq(wait_for_end(), 0);
    ck_assert_int_eq(fates[A].exit, 0); /* it began again, and ends as if it had not been stopped */
    ck_assert_double_eq(rig_distance(&rig, "solo-a", "g", &trials[A]), 0);
    AS_AUTO(as_freep) char *report = rig_read(&rig, "g", "a", "report", &n);
    ck_assert_ptr_nonnull(strstr(report, "{\"checkpoint_lost\":\""));
    ck_assert_int_eq(fates[C].exit, 1);
    ck_assert_ptr_nonnull(strstr(fates[C].error, "belongs to another job"));
    ck_assert_int_eq(fates[B].exit, 0);
    ck_assert_double_eq(rig_distance(&rig, "solo", "g", &trials[B]), 0);
}
END_TEST

/* An error of the whole group ends all its members with the same error. */
START_TEST(trouble_of_the_group)
{
    const struct trial *all[] = {&trials[A], &trials[B]};
    struct fate fates[N_TRIALS];
    forget(fates, N_TRIALS);
    rig_job(&rig, "g", all, 2, 2);
    (void)setenv("ASSAY_MEMORY_BYTES", "100000", 1);
    start();
    follow(trials, N_TRIALS, fates, N_TRIALS, false);
    ck_assert_int_eq(wait_for_end(), 1);
    ck_assert_int_eq(fates[A].exit, 1);
    ck_assert_ptr_nonnull(strstr(fates[A].error, "bytes are needed"));
    ck_assert_str_eq(fates[A].error, fates[B].error);
    (void)unsetenv("ASSAY_MEMORY_BYTES");
    (void)setenv("ASSAY_BACKEND", "cuda", 1);
    (void)setenv("ASSAY_PLUGIN_DIR", rig.dir, 1); /* where there is none */
    forget(fates, N_TRIALS);
    start();
    follow(trials, N_TRIALS, fates, N_TRIALS, false);
    ck_assert_int_eq(wait_for_end(), 75); /* another machine may have the device */
    ck_assert_int_eq(fates[B].exit, 75);
    ck_assert_ptr_nonnull(strstr(fates[B].error, "cuda"));
}
END_TEST

/* The data set is not what its record says: rows that came or went, a class more than the outputs.
 */
START_TEST(data_that_changed_under_its_name)
{
    static const struct {
        const char *was, *is, *part;
    } changes[] = {
        {"\"rows\":1797", "\"rows\":1790", "1790 rows of the data set"},
        {"\"outputs\":10", "\"outputs\":9", "class"},
    };
    const struct trial *all[] = {&trials[A], &trials[B]};
    for (size_t i = 0; i < AS_ARRAY_LEN(changes); i++) {
        struct fate fates[N_TRIALS];
        AS_AUTO(str_done) struct str record = {0};
        char *at = strstr(rig.dataset, changes[i].was);
        ck_assert_ptr_nonnull(at);
        str_add(&record, rig.dataset, (size_t)(at - rig.dataset));
        str_puts(&record, changes[i].is);
        str_puts(&record, at + strlen(changes[i].was));
        char *drop = i == 1 ? strstr(record.s, ",\"9\"") : NULL;
        if (drop)
            memmove(drop, drop + 4, strlen(drop + 4) + 1);
        char *whole = rig.dataset;
        rig.dataset = record.s;
        forget(fates, N_TRIALS);
        rig_job(&rig, "g", all, 2, 2);
        rig.dataset = whole;
        start();
        follow(trials, N_TRIALS, fates, N_TRIALS, false);
        ck_assert_int_eq(wait_for_end(), 1);
        ck_assert_int_eq(fates[A].exit, 1);
        ck_assert_msg(strstr(fates[A].error, changes[i].part) != NULL, "%s", fates[A].error);
        ck_assert_str_eq(fates[A].error, fates[B].error);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_control");
    TCase *t = tcase_create("train_control");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, add_stop_cancel_close);
    tcase_add_test(t, short_members_tell_their_throughput);
    tcase_add_test(t, a_runner_that_is_gone);
    tcase_add_test(t, members_that_come_later);
    tcase_add_test(t, killed_at_random_moments);
    tcase_add_test(t, a_bad_checkpoint_is_its_members_own);
    tcase_add_test(t, trouble_of_the_group);
    tcase_add_test(t, data_that_changed_under_its_name);
    suite_add_tcase(s, t);
    return s;
}
