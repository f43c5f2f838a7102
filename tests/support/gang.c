#include "tests/support/gang.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"
#include "trial-runner/protocol/ranks.h"

#define RUNS (-1000)

static void write_job(const struct gang *g)
{
    AS_AUTO(str_done) struct str b = {0};
    char path[200];
    (void)snprintf(path, sizeof path, "%s/%s/job.json", g->rig->dir, g->tag);
    str_printf(&b, "{\"listen\":\"127.0.0.1\",\"dataset\":%s,\"train\":{\"dataset\":\"%s\",%s}}",
               g->rig->dataset, g->rig->name, g->trial->train);
    ck_ok(file_replace(path, b.s, b.len, 0644, &g->rig->err), g->rig->err);
}

static void exec_rank(const struct gang *g, const struct gang_rank *r, int fd)
{
    char program[512], job[200], path[256];
    (void)snprintf(program, sizeof program, "%s/trial-runner/train/assay-train", build_root());
    (void)snprintf(job, sizeof job, "%s/%s/job.json", g->rig->dir, g->tag);
    (void)snprintf(path, sizeof path, "%s/report", r->dir);
    (void)setenv("ASSAY_REPORT", path, 1);
    (void)snprintf(path, sizeof path, "%s/%s/checkpoints", g->rig->dir, g->tag);
    (void)setenv("ASSAY_CHECKPOINTS", path, 1);
    (void)snprintf(path, sizeof path, "%s/%s/artifacts", g->rig->dir, g->tag);
    (void)setenv("ASSAY_ARTIFACTS", path, 1);
    (void)setenv("ASSAY_SEED", g->trial->seed, 1);
    (void)setenv("ASSAY_BACKEND", "cpu", 1);
    (void)setenv("ASSAY_THREADS", "1", 1);
    if (dup2(fd, 0) != 0 || chdir(r->dir) != 0 || !freopen("out", "w", stdout) ||
        !freopen("err", "w", stderr))
        _exit(126);
    (void)execl(program, "assay-train", "--checkpoint-every=1ms", job, (char *)NULL);
    _exit(127);
}

size_t gang_add(struct gang *g)
{
    int pair[2];
    size_t place = g->n++;
    ck_assert_uint_lt(place, GANG_MAX);
    struct gang_rank *r = &g->ranks[place];
    *r = (struct gang_rank){.joined = 0, .step = -1};
    (void)snprintf(r->dir, sizeof r->dir, "%s/%s/r%zu", g->rig->dir, g->tag, place);
    ck_assert_int_eq(mkdir(r->dir, 0755), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    g->ended[place] = RUNS;
    r->pid = fork();
    ck_assert_int_ge(r->pid, 0);
    if (r->pid == 0)
        exec_rank(g, r, pair[1]);
    (void)close(pair[1]);
    r->fd = pair[0];
    return place;
}

void gang_start(struct gang *g, struct rig *rig, const char *tag, const struct trial *t, size_t n)
{
    static const char *const folders[] = {"", "/checkpoints", "/artifacts"};
    *g = (struct gang){.rig = rig, .tag = tag, .trial = t};
    random_bytes(g->secret, sizeof g->secret);
    for (size_t i = 0; i < AS_ARRAY_LEN(folders); i++) {
        char path[200];
        (void)snprintf(path, sizeof path, "%s/%s%s", rig->dir, tag, folders[i]);
        ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
    }
    write_job(g);
    for (size_t i = 0; i < n; i++)
        gang_add(g);
}

size_t gang_alive(const struct gang *g)
{
    size_t alive = 0;
    for (size_t i = 0; i < g->n; i++)
        alive += g->ranks[i].pid != 0;
    return alive;
}

/* --- worlds --- */

static void send_request(const struct gang_rank *r, const struct rank_request *request)
{
    AS_AUTO(str_done) struct str line = {0};
    ck_assert_int_eq(rank_request_format(request, &line, NULL), AS_OK);
    ssize_t n = send(r->fd, line.s, line.len, MSG_NOSIGNAL);
    (void)n; /* a rank that has just died is noticed by the end of its socket */
}

/* Every rank that runs and listens is in the next world, in the order of places. */
static void change_world(struct gang *g)
{
    struct rank_request w = {.op = RANK_WORLD, .attempt = 7, .epoch = ++g->epoch};
    json_t *peers = json_array();
    memcpy(w.secret, g->secret, sizeof w.secret);
    for (size_t i = 0; i < g->n; i++) {
        struct gang_rank *r = &g->ranks[i];
        r->member = r->pid && r->endpoint[0];
        if (r->member)
            ck_assert_int_eq(json_array_append_new(peers, json_string(r->endpoint)), 0);
    }
    w.peers = peers;
    w.n = json_array_size(peers);
    for (size_t i = 0; i < g->n; i++)
        if (g->ranks[i].member) {
            send_request(&g->ranks[i], &w);
            w.rank++;
        }
    json_decref(peers);
}

static size_t place_of(const struct gang *g, int64_t rank)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->ranks[i].member && rank-- == 0)
            return i;
    return GANG_MAX;
}

/* Ranks that say that another is lost may be wrong about a rank that has left this epoch only. One
 * that does not run any more, or is stopped, is killed; the others are told to meet again. */
static bool is_stopped_process(pid_t pid)
{
    char path[40], line[300] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return true;
    char *got = fgets(line, sizeof line, f);
    (void)fclose(f);
    const char *state = got ? strrchr(line, ')') : NULL;
    return !state || state[2] == 'T';
}

static void hear(struct gang *g, struct gang_rank *r, const struct rank_event *e)
{
    if (e->kind == RANK_LISTENING) {
        (void)snprintf(r->endpoint, sizeof r->endpoint, "%s", e->endpoint);
        bool all = true;
        for (size_t i = 0; i < g->n; i++)
            all = all && (!g->ranks[i].pid || g->ranks[i].endpoint[0]);
        if (g->epoch > 0 || all)
            change_world(g);
    } else if (e->kind == RANK_JOINED) {
        r->joined = e->epoch;
        r->step = e->step;
    } else if (e->kind == RANK_LOST && e->epoch == g->epoch && r->member) {
        size_t place = e->rank < 0 ? GANG_MAX : place_of(g, e->rank);
        if (place < GANG_MAX && g->ranks[place].pid && is_stopped_process(g->ranks[place].pid))
            g->ranks[place].endpoint[0] = '\0'; /* out, until it ends */
        change_world(g);
    }
}

static void end_rank(struct gang *g, size_t place)
{
    struct gang_rank *r = &g->ranks[place];
    int status = 0;
    ck_assert_int_eq(waitpid(r->pid, &status, 0), r->pid);
    g->ended[place] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    (void)close(r->fd);
    control_lines_done(&r->lines);
    r->pid = 0;
    g->deaths += g->ended[place] != 0;
    if (r->member && g->ended[place] != 0 && gang_alive(g) > 0)
        change_world(g);
}

static void read_rank(struct gang *g, size_t place)
{
    struct gang_rank *r = &g->ranks[place];
    char bytes[4096];
    size_t len;
    ssize_t n = recv(r->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_rank(g, place);
        return;
    }
    ck_ok(control_lines_feed(&r->lines, bytes, (size_t)n, &g->rig->err), g->rig->err);
    for (const char *line; (line = control_lines_next(&r->lines, &len));) {
        struct rank_event e = {0};
        ck_ok(rank_event_parse(line, len, &e, &g->rig->err), g->rig->err);
        hear(g, r, &e);
        rank_event_done(&e);
    }
}

bool gang_turn(struct gang *g, int timeout_ms)
{
    struct pollfd p[GANG_MAX];
    for (size_t i = 0; i < g->n; i++)
        p[i] = (struct pollfd){.fd = g->ranks[i].pid ? g->ranks[i].fd : -1, .events = POLLIN};
    size_t n = g->n;
    ck_assert_int_ge(poll(p, n, timeout_ms), 0);
    for (size_t i = 0; i < n; i++)
        if (p[i].revents)
            read_rank(g, i);
    return gang_alive(g) > 0;
}

void gang_run(struct gang *g)
{
    while (gang_turn(g, PATIENCE_MS))
        ;
}

void gang_kill(struct gang *g, size_t place, int signal)
{
    if (g->ranks[place].pid)
        ck_assert_int_eq(kill(g->ranks[place].pid, signal), 0);
}

void gang_done(struct gang *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->ranks[i].pid) {
            (void)kill(g->ranks[i].pid, SIGKILL);
            end_rank(g, i);
        }
}
