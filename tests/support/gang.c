/* The rules are those of the server (GET and POST …/attempts/{a}/world): a member of the current
 * epoch may accuse others of it; they are out, and the next epoch begins without them. What is said
 * of another epoch, or by no member, changes nothing; but a rank that is out and says it shows that
 * it lives, and may take part again. A member that completes before it has joined the current epoch
 * never will, so the next one begins. */
#include "tests/support/gang.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"
#include "trial-runner/protocol/ranks.h"

#define RUNS (-1000)

static const char *job_path(const struct gang *g, size_t host, char path[200])
{
    (void)snprintf(path, 200, "%s/%s/job%zu.json", g->rig->dir, g->tag, host);
    return path;
}

static void write_job(const struct gang *g, size_t host)
{
    AS_AUTO(str_done) struct str b = {0};
    char path[200];
    job_path(g, host, path);
    str_puts(&b, "{");
    if (!g->opts.alone)
        str_printf(&b, "\"listen\":\"%s\",", g->opts.hosts[host].address);
    str_printf(&b, "\"dataset\":%s,\"train\":{\"dataset\":\"%s\",%s}}", g->rig->dataset,
               g->rig->name, g->trial->train);
    ck_ok(file_replace(path, b.s, b.len, 0644, &g->rig->err), g->rig->err);
}

/* Moves this process, which has one thread, to a network namespace of ip-netns(8). */
static bool enter(const char *netns)
{
    char path[100];
    (void)snprintf(path, sizeof path, "/run/netns/%s", netns);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
}

static void set_environment(const struct gang *g, const struct gang_rank *r)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/report", r->dir);
    (void)setenv("ASSAY_REPORT", path, 1);
    (void)snprintf(path, sizeof path, "%s/%s/checkpoints", g->rig->dir, g->tag);
    if (g->opts.no_checkpoints)
        (void)unsetenv("ASSAY_CHECKPOINTS");
    else
        (void)setenv("ASSAY_CHECKPOINTS", path, 1);
    (void)snprintf(path, sizeof path, "%s/%s/artifacts", g->rig->dir, g->tag);
    (void)setenv("ASSAY_ARTIFACTS", path, 1);
    (void)setenv("ASSAY_SEED", g->trial->seed, 1);
    (void)setenv("ASSAY_BACKEND", "cpu", 1);
    (void)setenv("ASSAY_THREADS", "1", 1);
}

static void exec_rank(const struct gang *g, const struct gang_rank *r, int fd)
{
    char program[512], job[200], silence[40], join[40];
    const struct gang_host *host = &g->opts.hosts[r->host];
    (void)snprintf(program, sizeof program, "%s/trial-runner/train/assay-train", build_root());
    (void)snprintf(silence, sizeof silence, "--silence=%s", g->opts.silence);
    (void)snprintf(join, sizeof join, "--join=%s", g->opts.join);
    set_environment(g, r);
    if (g->opts.environment)
        g->opts.environment((size_t)(r - g->ranks));
    if ((host->netns && !enter(host->netns)) || dup2(fd, 0) != 0 || chdir(r->dir) != 0 ||
        !freopen("out", "w", stdout) || !freopen("err", "w", stderr))
        _exit(126);
    (void)execl(program, "assay-train", "--checkpoint-every=1ms", silence, join,
                job_path(g, r->host, job), (char *)NULL);
    _exit(127);
}

static size_t add(struct gang *g, size_t host, void (*play)(int fd, const void *arg),
                  const void *arg)
{
    int pair[2];
    size_t place = g->n++;
    ck_assert_uint_lt(place, GANG_MAX);
    struct gang_rank *r = &g->ranks[place];
    *r = (struct gang_rank){.host = host, .step = -1};
    (void)snprintf(r->dir, sizeof r->dir, "%s/%s/r%zu", g->rig->dir, g->tag, place);
    ck_assert(mkdir(r->dir, 0755) == 0 || errno == EEXIST);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    g->ended[place] = RUNS;
    r->pid = fork();
    ck_assert_int_ge(r->pid, 0);
    if (r->pid == 0 && play) {
        play(pair[1], arg);
        _exit(0);
    }
    if (r->pid == 0)
        exec_rank(g, r, pair[1]);
    (void)close(pair[1]);
    r->fd = pair[0];
    return place;
}

size_t gang_add(struct gang *g)
{
    return gang_add_on(g, g->n % g->opts.n_hosts);
}

size_t gang_add_on(struct gang *g, size_t host)
{
    return add(g, host, NULL, NULL);
}

static void signal_first(struct gang *g, size_t n, int signal)
{
    for (size_t i = 0; i < n; i++)
        if (g->ranks[i].pid)
            gang_kill(g, i, signal);
}

size_t gang_add_in_time(struct gang *g)
{
    size_t place = gang_add(g);
    signal_first(g, place, SIGSTOP);
    while (!g->ranks[place].endpoint[0] && g->ranks[place].pid && gang_turn(g, 5))
        ;
    signal_first(g, place, SIGCONT);
    return place;
}

size_t gang_add_guest(struct gang *g, void (*play)(int fd, const void *arg), const void *arg)
{
    return add(g, 0, play, arg);
}
void gang_start(struct gang *g, struct rig *rig, const char *tag, const struct trial *t, size_t n)
{
    gang_start_with(g, rig, tag, t, n, &(struct gang_opts){0});
}

void gang_start_with(struct gang *g, struct rig *rig, const char *tag, const struct trial *t,
                     size_t n, const struct gang_opts *opts)
{
    static const char *const folders[] = {"", "/checkpoints", "/artifacts"};
    *g = (struct gang){.rig = rig, .tag = tag, .trial = t, .opts = *opts, .first_step = -1};
    g->opts.silence = opts->silence ? opts->silence : "5s";
    g->opts.join = opts->join ? opts->join : "10s";
    if (opts->n_hosts == 0) {
        g->opts.hosts[0].address = "127.0.0.1";
        g->opts.n_hosts = 1;
    }
    random_bytes(g->secret, sizeof g->secret);
    for (size_t i = 0; i < AS_ARRAY_LEN(folders); i++) {
        char path[200];
        (void)snprintf(path, sizeof path, "%s/%s%s", rig->dir, tag, folders[i]);
        ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
    }
    for (size_t i = 0; i < g->opts.n_hosts; i++)
        write_job(g, i);
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

bool gang_holds(const struct gang *g, size_t place)
{
    const struct gang_rank *r = &g->ranks[place];
    return r->pid != 0 && !r->dying && r->joined > 0 && r->step >= g->top_step;
}

size_t gang_holders(const struct gang *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += gang_holds(g, i);
    return n;
}

bool gang_is_over(const struct gang *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->ended[i] == 0)
            return true;
    return false;
}

/* --- worlds --- */

/* With GANG_TRACE in the environment: who says what, and when. */
static void trace(const struct gang *g, size_t place, const char *what, int64_t epoch,
                  int64_t number)
{
    if (getenv("GANG_TRACE"))
        (void)fprintf(stderr, "%.4f %s/r%zu %s %lld, epoch %lld (now %lld)\n",
                      (double)clock_mono_ns() / (double)NS_PER_S, g->tag, place, what,
                      (long long)number, (long long)epoch, (long long)g->epoch);
}

static void send_request(const struct gang_rank *r, const struct rank_request *request)
{
    AS_AUTO(str_done) struct str line = {0};
    ck_assert_int_eq(rank_request_format(request, &line, NULL), AS_OK);
    ssize_t n = send(r->fd, line.s, line.len, MSG_NOSIGNAL);
    (void)n; /* a rank that has just died is noticed by the end of its socket */
}

void gang_ask_to_stop(struct gang *g)
{
    const struct rank_request stop = {.op = RANK_STOP};
    for (size_t i = 0; i < g->n; i++)
        if (g->ranks[i].pid)
            send_request(&g->ranks[i], &stop);
}

/* When the trial is over, a rank that never had a part in it gets none. Returns whether it is. */
static bool end_newcomers(const struct gang *g)
{
    bool over = gang_is_over(g);
    for (size_t i = 0; i < g->n && over; i++)
        if (g->ranks[i].pid && g->ranks[i].joined == 0)
            (void)kill(g->ranks[i].pid, SIGKILL);
    return over;
}

/* Every rank that runs, listens and is not out is in the next world, in the order of places. */
static void change_world(struct gang *g)
{
    struct rank_request w = {.op = RANK_WORLD, .attempt = 7, .epoch = ++g->epoch};
    json_t *peers = json_array();
    bool over = end_newcomers(g);
    memcpy(w.secret, g->secret, sizeof w.secret);
    g->changed_ns = clock_mono_ns();
    for (size_t i = 0; i < g->n; i++) {
        struct gang_rank *r = &g->ranks[i];
        r->member = r->pid && r->endpoint[0] && !r->out && (!over || r->joined > 0);
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

size_t gang_place(const struct gang *g, int64_t rank)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->ranks[i].member && rank-- == 0)
            return i;
    return GANG_MAX;
}

static bool all_listen(const struct gang *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->ranks[i].pid && !g->ranks[i].endpoint[0])
            return false;
    return gang_alive(g) > 0;
}

static void hear_joined(struct gang *g, struct gang_rank *r, const struct rank_event *e)
{
    r->joined = e->epoch;
    r->step = e->step;
    if (g->first_step < 0)
        g->first_step = e->step;
    g->steps_back += e->step < g->top_step;
    g->top_step = e->step > g->top_step ? e->step : g->top_step;
}

static void put_out(struct gang *g, size_t place, const struct gang_rank *by)
{
    if (place < GANG_MAX && &g->ranks[place] != by)
        g->ranks[place].out = true;
}

static void hear_lost(struct gang *g, struct gang_rank *r, const struct rank_event *e)
{
    if (g->missed_ns == 0 && e->rank >= 0)
        g->missed_ns = clock_mono_ns();
    if (e->epoch != g->epoch || !r->member) {
        g->stale++;
        if (r->out && !g->opts.hold) {
            r->out = false;
            change_world(g);
        }
        return;
    }
    if (e->rank < 0) /* who is meant says more, or ends */
        return;
    size_t places[GANG_MAX], n = 0;
    places[n++] = gang_place(g, e->rank);
    for (size_t i = 0; i < json_array_size(e->others) && n < GANG_MAX; i++)
        places[n++] = gang_place(g, json_integer_value(json_array_get(e->others, i)));
    for (size_t i = 0; i < n; i++)
        put_out(g, places[i], r);
    g->accused_ns = clock_mono_ns();
    change_world(g);
}

static void put_on_own_host(struct gang_rank *r, size_t place)
{
    char digits[17];
    char *host = strstr(r->endpoint, " host=");
    ck_assert_ptr_nonnull(host);
    (void)snprintf(digits, sizeof digits, "%016zx", place);
    memcpy(host + strlen(" host="), digits, sizeof digits - 1);
}

static void hear(struct gang *g, struct gang_rank *r, const struct rank_event *e)
{
    static const char *const words[] = {"listens", "joined at step", "misses rank"};
    if (e->kind == RANK_PROGRESS) {
        r->reached = e->step;
        r->step_ns = e->step_ns;
        return;
    }
    trace(g, (size_t)(r - g->ranks), words[e->kind], e->epoch,
          e->kind == RANK_LOST ? e->rank : e->step);
    if (e->kind == RANK_LISTENING) {
        (void)snprintf(r->endpoint, sizeof r->endpoint, "%s", e->endpoint);
        if (g->opts.apart)
            put_on_own_host(r, (size_t)(r - g->ranks));
        r->out = g->opts.hold && g->epoch > 0;
        if ((g->epoch > 0 && !r->out) || all_listen(g))
            change_world(g);
    } else if (e->kind == RANK_JOINED) {
        hear_joined(g, r, e);
    } else if (e->kind == RANK_LOST) {
        hear_lost(g, r, e);
    }
}

void gang_admit(struct gang *g, size_t place)
{
    g->ranks[place].out = false;
    change_world(g);
}

void gang_put_out(struct gang *g, size_t place)
{
    g->ranks[place].out = true;
    change_world(g);
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
    trace(g, place, "ended with", g->epoch, g->ended[place]);
    bool is_missed = g->ended[place] != 0 && !g->opts.unwatched;
    bool is_awaited = g->ended[place] == 0 && r->joined < g->epoch;
    if (r->member && (is_missed || is_awaited)) {
        if (is_missed)
            g->accused_ns = clock_mono_ns();
        if (gang_alive(g) > 0)
            change_world(g);
    } else if (g->epoch == 0 && all_listen(g)) {
        change_world(g);
    } else {
        end_newcomers(g);
    }
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
    if (gang_alive(g) == 0)
        return false;
    ck_assert_int_ge(poll(p, n, timeout_ms), 0);
    for (size_t i = 0; i < n; i++)
        if (p[i].revents)
            read_rank(g, i);
    return gang_alive(g) > 0;
}

void gang_pass(struct gang *g, int64_t us)
{
    int64_t until_ns = clock_mono_ns() + us * 1000, left_ns = us * 1000;
    /* The last millisecond is spent looking: a delay is to be exact. */
    while (left_ns > 0 && gang_turn(g, (int)(left_ns / NS_PER_MS)))
        left_ns = until_ns - clock_mono_ns();
}

bool gang_gather(struct gang *g, size_t n)
{
    int64_t until_ns = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    for (;;) {
        size_t members = 0, joined = 0;
        for (size_t i = 0; i < g->n; i++) {
            members += g->ranks[i].pid && g->ranks[i].member;
            joined += g->ranks[i].pid && g->ranks[i].member && g->ranks[i].joined == g->epoch;
        }
        if (members == n && joined == n && g->epoch > 0)
            return true;
        if (!gang_turn(g, 1000) || gang_is_over(g))
            return false;
        ck_assert_msg(clock_mono_ns() < until_ns, "%s: %zu of %zu members have joined epoch %d",
                      g->tag, joined, members, (int)g->epoch);
    }
}

void gang_run(struct gang *g)
{
    while (gang_turn(g, PATIENCE_MS))
        ;
}

void gang_kill(struct gang *g, size_t place, int signal)
{
    if (!g->ranks[place].pid)
        return;
    ck_assert_int_eq(kill(g->ranks[place].pid, signal), 0);
    g->ranks[place].dying |= signal == SIGKILL;
}

void gang_done(struct gang *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->ranks[i].pid) {
            (void)kill(g->ranks[i].pid, SIGKILL);
            end_rank(g, i);
        }
}
