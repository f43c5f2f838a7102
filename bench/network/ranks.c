/* Each rank runs on the host of its number, and talks with this process over a socket pair, as with
 * a runner. Lines of rank 0's report come over a fifo: the times between them are those of its
 * epochs, and the cable's counter is read with each. Only rank 0 has the fifo: it leads from the
 * beginning to the end, because nobody dies. */
#include "bench/network/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
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
#include "base/json.h"
#include "bench/network/hosts.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "trial-runner/protocol/control.h"
#include "trial-runner/protocol/ranks.h"

#define PATIENCE_MS 120000
#define PATH_SIZE 160

struct rank {
    pid_t pid; /* 0: it has ended */
    int fd;
    char endpoint[RANKS_MAX_ENDPOINT + 1];
    struct control_lines lines;
};

struct gang {
    const struct ranks_trial *trial;
    struct rank ranks[HOSTS_MAX];
    int fifo;
    FILE *counters;              /* of rank 0's host */
    size_t epochs, first_epochs; /* reported; at first_ns */
    int64_t first_ns, last_ns;
    uint64_t first_bytes, last_bytes;
    double loss;
};

static const char *path_of(const struct ranks_trial *t, const char *name, char path[PATH_SIZE])
{
    (void)snprintf(path, PATH_SIZE, "%s/%s", t->dir, name);
    return path;
}

/* ---- jobs ---- */

static json_t *dataset_doc(const struct ranks_trial *t, struct as_err *err)
{
    char x[PATH_SIZE], y[PATH_SIZE];
    struct dataset_info info = {0};
    const struct dataset_paths paths = {.features = path_of(t, "x.npy", x),
                                        .targets = path_of(t, "y.npy", y)};
    if (dataset_inspect(&paths, DATASET_NPY, NULL, DATASET_CLASSIFICATION, NULL, &info, err) < 0)
        return NULL;
    json_t *doc = dataset_info_to_json(&info);
    dataset_info_done(&info);
    if (doc)
        (void)json_object_set_new(doc, "paths",
                                  json_pack("{s:s, s:s}", "features", x, "targets", y));
    return doc;
}

static as_status write_job(const struct ranks_trial *t, int i, struct as_err *err)
{
    JSON_AUTO train = NULL;
    JSON_AUTO distributed = NULL;
    JSON_AUTO data = dataset_doc(t, err);
    char name[32], path[PATH_SIZE];
    if (!data || json_parse(t->train, strlen(t->train), &train, err) < 0 ||
        (t->distributed &&
         json_parse(t->distributed, strlen(t->distributed), &distributed, err) < 0))
        return AS_E_INVAL;
    (void)json_object_set_new(train, "dataset", json_string("bench"));
    if (distributed)
        (void)json_object_set(train, "distributed", distributed);
    JSON_AUTO job = json_pack("{s:O, s:O}", "train", train, "dataset", data);
    if (t->n > 1)
        (void)json_object_set_new(job, "listen", json_string(hosts_address(i)));
    AS_AUTO(as_freep) char *text = job ? json_dumps(job, JSON_COMPACT) : NULL;
    if (!text)
        return as_fail_nomem(err);
    (void)snprintf(name, sizeof name, "job%d.json", i);
    return file_replace(path_of(t, name, path), text, strlen(text), 0644, err);
}

/* ---- processes ---- */

static void exec_rank(const struct ranks_trial *t, int i, int fd)
{
    char program[PATH_MAX], name[32], job[PATH_SIZE], path[PATH_SIZE];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 64);
    program[len > 0 ? len : 0] = '\0';
    char *end = strrchr(program, '/');
    (void)snprintf(end ? end : program, 64, "/../trial-runner/train/assay-train");
    (void)snprintf(name, sizeof name, "job%d.json", i);
    (void)path_of(t, name, job);
    (void)unsetenv("ASSAY_CHECKPOINTS");
    (void)unsetenv("ASSAY_ARTIFACTS");
    (void)unsetenv("ASSAY_REPORT");
    if (i == 0)
        (void)setenv("ASSAY_REPORT", path_of(t, "fifo", path), 1);
    (void)setenv("ASSAY_SEED", "3", 1);
    (void)setenv("ASSAY_BACKEND", "cpu", 1);
    (void)setenv("ASSAY_THREADS", "1", 1);
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 1);
    (void)snprintf(name, sizeof name, "err%d", i);
    if (!hosts_enter(i) || dup2(fd, 0) != 0 || !freopen("/dev/null", "w", stdout) ||
        !freopen(path_of(t, name, path), "w", stderr) || chdir(t->dir) != 0)
        _exit(126);
    (void)execl(program, "assay-train", job, (char *)NULL);
    _exit(127);
}

static as_status start_rank(struct gang *g, int i, struct as_err *err)
{
    int pair[2];
    as_status st = write_job(g->trial, i, err);
    if (st < 0)
        return st;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return as_fail(err, AS_E_IO, "socketpair: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        exec_rank(g->trial, i, pair[1]);
    (void)close(pair[1]);
    g->ranks[i] = (struct rank){.pid = pid > 0 ? pid : 0, .fd = pair[0]};
    return pid > 0 ? AS_OK : as_fail(err, AS_E_IO, "fork: %s", strerror(errno));
}

static as_status end_rank(struct gang *g, int i, struct as_err *err)
{
    struct rank *r = &g->ranks[i];
    char name[32], path[PATH_SIZE];
    AS_AUTO(as_freep) char *text = NULL;
    int status = 0;
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    (void)close(r->fd);
    control_lines_done(&r->lines);
    r->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return AS_OK;
    (void)snprintf(name, sizeof name, "err%d", i);
    if (file_read(path_of(g->trial, name, path), 1 << 16, &text, NULL, NULL) < 0)
        text = NULL;
    return as_fail(err, AS_E_IO, "rank %d ended with status %d: %.170s", i, status,
                   text ? text : "");
}

/* ---- the world ---- */

/* When all listen, all hear of each other. */
static as_status announce(struct gang *g, struct as_err *err)
{
    struct rank_request w = {.op = RANK_WORLD, .attempt = 1, .epoch = 1, .n = (size_t)g->trial->n};
    JSON_AUTO peers = json_array();
    for (int i = 0; i < g->trial->n; i++) {
        if (!g->ranks[i].endpoint[0])
            return AS_OK;
        (void)json_array_append_new(peers, json_string(g->ranks[i].endpoint));
    }
    random_bytes(w.secret, sizeof w.secret);
    w.peers = peers;
    for (int i = 0; i < g->trial->n; i++, w.rank++) {
        AS_AUTO(str_done) struct str line = {0};
        as_status st = rank_request_format(&w, &line, err);
        if (st < 0)
            return st;
        if (send(g->ranks[i].fd, line.s, line.len, MSG_NOSIGNAL) != (ssize_t)line.len)
            return as_fail(err, AS_E_IO, "rank %d hears nothing", i);
    }
    return AS_OK;
}

static as_status hear(struct gang *g, int i, const struct rank_event *e, struct as_err *err)
{
    if (e->kind == RANK_LOST)
        return as_fail(err, AS_E_IO, "rank %d has lost rank %lld", i, (long long)e->rank);
    if (e->kind != RANK_LISTENING)
        return AS_OK;
    (void)snprintf(g->ranks[i].endpoint, sizeof g->ranks[i].endpoint, "%s", e->endpoint);
    return announce(g, err);
}

static as_status read_rank(struct gang *g, int i, struct as_err *err)
{
    struct rank *r = &g->ranks[i];
    char bytes[4096];
    size_t len;
    ssize_t n = recv(r->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return AS_OK;
    if (n <= 0)
        return end_rank(g, i, err);
    as_status st = control_lines_feed(&r->lines, bytes, (size_t)n, err);
    for (const char *line; st == AS_OK && (line = control_lines_next(&r->lines, &len));) {
        struct rank_event e = {0};
        st = rank_event_parse(line, len, &e, err);
        if (st == AS_OK)
            st = hear(g, i, &e, err);
        rank_event_done(&e);
    }
    return st;
}

static as_status hear_epoch(struct gang *g, const char *text, size_t len, struct as_err *err)
{
    JSON_AUTO line = NULL;
    as_status st = json_parse(text, len, &line, err);
    if (st < 0 || !json_number_get(json_object_get(line, "val_loss"), &g->loss))
        return as_fail(err, AS_E_IO, "a line of the report has no val_loss: %.100s", text);
    g->epochs++;
    return AS_OK;
}

/* Lines of the report: so many epochs are done. */
static as_status read_report(struct gang *g, struct as_err *err)
{
    char text[8192];
    int64_t now_ns = clock_mono_ns();
    if (!g->counters) /* rank 0 is on its host now */
        g->counters = hosts_counters(g->ranks[0].pid);
    uint64_t sent = hosts_bytes_sent(g->counters);
    ssize_t n = read(g->fifo, text, sizeof text - 1);
    bool first = g->epochs == 0;
    as_status st = AS_OK;
    text[n > 0 ? n : 0] = '\0';
    for (char *at = text, *end; st == AS_OK && (end = strchr(at, '\n')); at = end + 1)
        st = hear_epoch(g, at, (size_t)(end - at), err);
    if (first) {
        g->first_epochs = g->epochs;
        g->first_ns = now_ns;
        g->first_bytes = sent;
    }
    g->last_ns = now_ns;
    g->last_bytes = sent;
    return st;
}

/* Waits for what comes next. `ret_alive`: how many ranks run. */
static as_status turn(struct gang *g, int *ret_alive, struct as_err *err)
{
    struct pollfd p[HOSTS_MAX + 1];
    int n = g->trial->n;
    for (int i = 0; i < n; i++)
        p[i] = (struct pollfd){.fd = g->ranks[i].pid ? g->ranks[i].fd : -1, .events = POLLIN};
    p[n] = (struct pollfd){.fd = g->fifo, .events = POLLIN};
    if (poll(p, (nfds_t)n + 1, PATIENCE_MS) <= 0)
        return as_fail(err, AS_E_IO, "nothing has come for %d s", PATIENCE_MS / 1000);
    as_status st = p[n].revents & POLLIN ? read_report(g, err) : AS_OK;
    *ret_alive = 0;
    for (int i = 0; i < n && st == AS_OK; i++) {
        if (p[i].revents)
            st = read_rank(g, i, err);
        *ret_alive += g->ranks[i].pid != 0;
    }
    return st;
}

static as_status run(struct gang *g, struct as_err *err)
{
    int alive = 1;
    as_status st = AS_OK;
    for (int i = 0; i < g->trial->n && st == AS_OK; i++)
        st = start_rank(g, i, err);
    while (st == AS_OK && alive > 0)
        st = turn(g, &alive, err);
    for (int i = 0; i < g->trial->n; i++)
        if (g->ranks[i].pid) {
            (void)kill(g->ranks[i].pid, SIGKILL);
            (void)end_rank(g, i, NULL);
        }
    if (st == AS_OK && g->epochs == g->first_epochs)
        return as_fail(err, AS_E_IO, "%zu epochs were reported at once, expected 2 or more",
                       g->epochs);
    return st;
}

as_status ranks_train(const struct ranks_trial *t, struct ranks_figures *ret, struct as_err *err)
{
    char path[PATH_SIZE];
    (void)unlink(path_of(t, "fifo", path));
    struct gang g = {.trial = t, .fifo = -1};
    if (mkfifo(path, 0600) == 0)
        g.fifo = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (g.fifo < 0)
        return as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    as_status st = run(&g, err);
    (void)close(g.fifo);
    if (g.counters)
        (void)fclose(g.counters);
    if (st < 0)
        return st;
    double steps = (double)((g.epochs - g.first_epochs) * t->steps);
    *ret = (struct ranks_figures){
        .seconds = (double)(g.last_ns - g.first_ns) / (double)NS_PER_S / steps,
        .bytes = (double)(g.last_bytes - g.first_bytes) / steps,
        .loss = g.loss,
    };
    return AS_OK;
}
