/* Something happens to most of these gangs while they train: a death, a newcomer, a stop. On a busy
 * machine the training may be over before this process gets to it. Such a run is no test: its
 * folder is moved away, and another one begins. */
#include "tests/trial-runner/distributed/gang_runs.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tests/support/check_main.h"
#include "trial-runner/protocol/ranks.h"

void gang_show(const struct rig *rig, const struct gang *g)
{
    for (size_t i = 0; i < g->n; i++) {
        char folder[8];
        size_t len;
        (void)snprintf(folder, sizeof folder, "r%zu", i);
        AS_AUTO(as_freep) char *err = rig_read(rig, g->tag, folder, "err", &len);
        AS_AUTO(as_freep) char *out = rig_read(rig, g->tag, folder, "out", &len);
        (void)fprintf(stderr, "%s/%s ended with %d:\n%s%s", g->tag, folder, g->ended[i],
                      out ? out : "", err ? err : "");
    }
}

static void expect_ends(const struct rig *rig, const struct gang *g, int one, int other)
{
    for (size_t i = 0; i < g->n; i++) {
        if (g->ended[i] != one && g->ended[i] != other)
            gang_show(rig, g);
        ck_assert_msg(g->ended[i] == one || g->ended[i] == other, "%s/r%zu ended with %d", g->tag,
                      i, g->ended[i]);
    }
}

/* No rank is taken for lost because the machine is slow: silence is no subject of these tests. */
static void begin(struct gang *g, struct rig *rig, const char *tag, const struct trial *t, size_t n,
                  const struct gang_opts *opts)
{
    struct gang_opts patient = *opts;
    patient.silence = opts->silence ? opts->silence : "10m";
    patient.join = opts->join ? opts->join : "10m";
    gang_start_with(g, rig, tag, t, n, &patient);
}

void gang_train(struct rig *rig, const char *tag, const char *train, size_t n)
{
    gang_train_with(rig, tag, train, n, &(struct gang_opts){0});
}

void gang_train_with(struct rig *rig, const char *tag, const char *train, size_t n,
                     const struct gang_opts *opts)
{
    const struct trial t = {"a", train, "3"};
    struct gang g;
    begin(&g, rig, tag, &t, n, opts);
    gang_run(&g);
    expect_ends(rig, &g, 0, 0);
    gang_done(&g);
}

#define ATTEMPTS 20

/* The run was over too early. */
static void discard(const struct rig *rig, const char *tag, int attempt)
{
    char from[200], to[200];
    (void)snprintf(from, sizeof from, "%s/%s", rig->dir, tag);
    (void)snprintf(to, sizeof to, "%s/%s-early%d", rig->dir, tag, attempt);
    ck_assert_int_eq(rename(from, to), 0);
    ck_assert_msg(attempt + 1 < ATTEMPTS,
                  "%s: each of %d trainings was over before it was disturbed", tag, ATTEMPTS);
}

size_t gang_train_dying(struct rig *rig, const char *tag, const char *train, size_t n,
                        size_t deaths, uint64_t seed)
{
    return gang_train_dying_with(rig, tag, train, n, deaths, seed, &(struct gang_opts){0});
}

/* Returns how many it has killed. */
static size_t run_and_kill(struct gang *g, size_t deaths, uint64_t seed)
{
    struct rng r;
    int64_t next_ns = 0;
    size_t killed = 0;
    rng_init(&r, seed, 0);
    while (gang_turn(g, 5)) {
        bool training = g->epoch > 0; /* all have met again: one death at a time */
        for (size_t i = 0; i < g->n; i++)
            training = training && (!g->ranks[i].pid || g->ranks[i].joined == g->epoch);
        size_t victim = rng_below(&r, g->n);
        if (!training || killed == deaths || clock_mono_ns() < next_ns || gang_alive(g) < 2 ||
            !g->ranks[victim].pid)
            continue;
        next_ns = clock_mono_ns() + (int64_t)(20 + rng_below(&r, 80)) * NS_PER_MS;
        gang_kill(g, victim, SIGKILL);
        killed++;
        if (g->n < GANG_MAX)
            gang_add(g);
    }
    return killed;
}

size_t gang_train_dying_with(struct rig *rig, const char *tag, const char *train, size_t n,
                             size_t deaths, uint64_t seed, const struct gang_opts *opts)
{
    const struct trial t = {"a", train, "3"};
    struct gang g;
    for (int attempt = 0;; attempt++) {
        begin(&g, rig, tag, &t, n, opts);
        size_t killed = run_and_kill(&g, deaths, seed);
        expect_ends(rig, &g, 0, -SIGKILL);
        if (killed > 0)
            break;
        gang_done(&g);
        discard(rig, tag, attempt);
    }
    size_t well = 0;
    while (well + 1 < g.n && g.ended[well] != 0)
        well++;
    ck_assert_int_eq(g.ended[well], 0);
    gang_done(&g);
    return well;
}

static void run_and_add(struct gang *g, size_t most)
{
    int64_t next_ns = INT64_MAX;
    while (gang_turn(g, 5)) {
        if (next_ns == INT64_MAX && g->ranks[0].joined > 0)
            next_ns = clock_mono_ns();
        if (g->n == most || clock_mono_ns() < next_ns || gang_alive(g) < g->n)
            continue;
        (void)gang_add_in_time(g);
        next_ns = clock_mono_ns() + 10 * NS_PER_MS;
    }
}

/* A newcomer that comes when the trial is over has no part in it, and is killed. */
void gang_train_growing(struct rig *rig, const char *tag, const char *train, size_t n, size_t most)
{
    const struct trial t = {"a", train, "3"};
    struct gang g;
    for (int attempt = 0;; attempt++) {
        begin(&g, rig, tag, &t, n, &(struct gang_opts){0});
        run_and_add(&g, most);
        const struct gang_rank *last = &g.ranks[most - 1];
        bool has_joined = g.n == most && last->joined > 0;
        bool has_grown = has_joined && last->step < g.ranks[0].reached; /* and did a step */
        expect_ends(rig, &g, 0, has_joined ? 0 : -SIGKILL);
        gang_done(&g);
        if (has_grown)
            return;
        discard(rig, tag, attempt);
    }
}

static size_t lines_of(const struct rig *rig, const char *tag)
{
    size_t len = 0, lines = 0;
    AS_AUTO(as_freep) char *text = rig_read(rig, tag, "r0", "report", &len);
    for (size_t i = 0; text && i < len; i++)
        lines += text[i] == '\n';
    return lines;
}

void gang_move_aside(const struct rig *rig, const char *tag, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char from[200], to[200];
        (void)snprintf(from, sizeof from, "%s/%s/r%zu", rig->dir, tag, i);
        (void)snprintf(to, sizeof to, "%s/%s/before%zu", rig->dir, tag, i);
        ck_assert_int_eq(rename(from, to), 0);
    }
}

static void kill_all(struct gang *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->ranks[i].pid)
            gang_kill(g, i, SIGKILL);
}

/* `end` makes each rank end with `one` or `other`, unless the training is complete before. */
struct ending {
    void (*end)(struct gang *g);
    int one, other;
};

/* Trains until rank 0 has reported `epochs` epochs, ends the gang, and goes on with `then`
 * ranks. */
static void train_ended(struct rig *rig, const char *tag, const char *train, size_t n,
                        size_t epochs, size_t then, const struct ending *how)
{
    const struct trial t = {"a", train, "3"};
    struct gang g;
    for (int attempt = 0;; attempt++) {
        bool has_begun_to_end = false, is_complete = false;
        begin(&g, rig, tag, &t, n, &(struct gang_opts){0});
        while (gang_turn(&g, 2))
            if (!has_begun_to_end && lines_of(rig, tag) >= epochs) {
                how->end(&g);
                has_begun_to_end = true;
            }
        for (size_t i = 0; i < g.n; i++)
            is_complete = is_complete || g.ended[i] == 0;
        if (!is_complete)
            expect_ends(rig, &g, how->one, how->other);
        gang_done(&g);
        if (!is_complete)
            break;
        discard(rig, tag, attempt);
    }
    gang_move_aside(rig, tag, n);
    gang_train(rig, tag, train, then);
}

void gang_train_halted(struct rig *rig, const char *tag, const char *train, size_t n, size_t epochs,
                       size_t then)
{
    train_ended(rig, tag, train, n, epochs, then, &(struct ending){gang_ask_to_stop, 75, 75});
}

void gang_train_killed(struct rig *rig, const char *tag, const char *train, size_t n, size_t epochs,
                       size_t then)
{
    train_ended(rig, tag, train, n, epochs, then, &(struct ending){kill_all, -SIGKILL, -SIGKILL});
}

static void kill_last(struct gang *g)
{
    gang_kill(g, g->n - 1, SIGKILL);
}

void gang_train_orphaned(struct rig *rig, const char *tag, const char *train, size_t n,
                         size_t epochs, size_t then)
{
    train_ended(rig, tag, train, n, epochs, then, &(struct ending){kill_last, -SIGKILL, 75});
}

double gang_last(const struct rig *rig, const char *tag, const char *metric)
{
    return gang_last_of(rig, tag, 0, metric);
}

double gang_last_of(const struct rig *rig, const char *tag, size_t place, const char *metric)
{
    char folder[8];
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    const struct trial t = {folder, "", "3"};
    return rig_last(rig, tag, &t, metric);
}

void gang_traffic(const struct rig *rig, const char *tag, size_t place, uint64_t *ret_bytes,
                  uint64_t *ret_exchanges)
{
    char folder[8];
    size_t len;
    unsigned long long bytes = 0, exchanges = 0;
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    AS_AUTO(as_freep) char *out = rig_read(rig, tag, folder, "out", &len);
    ck_assert_ptr_nonnull(out);
    const char *at = strstr(out, " bytes sent in ");
    ck_assert_msg(at != NULL, "%s/%s says nothing of its traffic:\n%s", tag, folder, out);
    while (at > out && at[-1] != ' ')
        at--;
    ck_assert_int_eq(sscanf(at, "%llu bytes sent in %llu", &bytes, &exchanges), 2);
    *ret_bytes = bytes;
    *ret_exchanges = exchanges;
}

bool gang_is_same(const struct rig *rig, const char *a, const char *b)
{
    const struct trial t = {".", "", "3"};
    return rig_distance(rig, a, b, &t) == 0;
}

void gang_same(const struct rig *rig, const char *a, const char *b)
{
    ck_assert_msg(gang_is_same(rig, a, b), "the model of %s differs from that of %s", b, a);
}
