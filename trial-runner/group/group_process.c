/* Starts the process of a group and exchanges lines with it.
 *
 * Only the main thread is here. The socket is non-blocking in both directions: requests that do not
 * fit are kept in `out` and written when poll() says so, because a trainer in a long step must not
 * stop the main loop.
 *
 * The process inherits the environment of its first member without what is that member's own. Its
 * ASSAY_REPORT lies in the group's folder, so strays of the group are found like strays of a trial;
 * so does its ASSAY_DEVICE_FAULT.
 *
 * The runner kills a process that it cannot talk to: it could no longer stop the members. */
#include "trial-runner/group/group_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "trial-runner/attempt/attempt.h"

#define READ_BYTES 8192
#define JOB_NAME "job.json"

as_status group_process_create(const struct options *o, const struct claimed_group *named,
                               const char *gpus, struct group_process **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str dir = {0};
    AS_AUTO(group_process_freep) struct group_process *g = as_calloc(1, sizeof *g);
    if (!g)
        return as_fail_nomem(err);
    g->out_fd = g->control_fd = -1;
    g->max_members = named->max_members;
    str_printf(&dir, "%s/trials/" GROUPS_FOLDER "/%s", o->work, named->id);
    g->dir = str_take(&dir);
    g->id = as_strdup(named->id);
    g->shape = as_strdup(named->shape);
    g->gpus = as_strdup(gpus);
    if (!g->dir || !g->id || !g->shape || !g->gpus)
        return as_fail_nomem(err);
    *ret = as_steal(g);
    return AS_OK;
}

void group_process_free(struct group_process *g)
{
    if (!g)
        return;
    if (g->out_fd >= 0)
        close(g->out_fd);
    if (g->control_fd >= 0)
        close(g->control_fd);
    if (g->dir && file_remove_tree(g->dir, NULL) != AS_OK)
        log_write(LOG_WARN, "a group's folder stays", "dir=%s", g->dir);
    control_lines_done(&g->in);
    str_done(&g->out);
    free(g->id);
    free(g->shape);
    free(g->dir);
    free(g->gpus);
    free(g->cgroup);
    core_hold_done(&g->cores);
    free(g);
}

void group_process_member_id(const struct attempt *t, char ret[GROUP_MEMBER_ID_SIZE])
{
    snprintf(ret, GROUP_MEMBER_ID_SIZE, "%.80s/%lld.%lld", t->sweep, (long long)t->id.number,
             (long long)t->id.attempt);
}

/* Give a file of the first member's folder a name in the group's, which `paths` has then. */
static as_status keep_file(const char *dir, const char *role, json_t *paths, struct as_err *err)
{
    const char *path = json_string_value(json_object_get(paths, role));
    AS_AUTO(as_freep) char *kept = file_join(dir, role);
    if (!path || !kept)
        return as_fail_nomem(err);
    as_status st = file_link_or_copy(path, kept, err);
    if (st == AS_OK && json_object_set_new(paths, role, json_string(kept)) < 0)
        return as_fail_nomem(err);
    return st;
}

/* The files of the data set stay as long as the group: members that come after the first one has
 * ended, and its folder is removed, read columns of them. The decoded copy is in the cache. */
static as_status keep_files(const struct group_process *g, json_t *dataset, struct as_err *err)
{
    AS_AUTO(as_freep) char *dir = file_join(g->dir, "data");
    json_t *paths = json_object_get(dataset, "paths");
    const char *role;
    json_t *path;
    void *next;
    as_status st = dir ? file_mkdirs(dir, 0700, err) : as_fail_nomem(err);
    json_object_foreach_safe(paths, next, role,
                             path) if (st == AS_OK && strcmp(role, "decoded") != 0) st =
        keep_file(dir, role, paths, err);
    return st;
}

/* Write the group's job.json: the data set and the metric of its first member. Its list of members
 * is empty, because members are added over the socket. */
static as_status write_job(const struct group_process *g, const struct attempt *t,
                           struct as_err *err)
{
    JSON_AUTO dataset = json_deep_copy(json_object_get(t->launch.job, "dataset"));
    JSON_AUTO job = json_pack("{s:O,s:O,s:I,s:[]}", "dataset", dataset, "metric",
                              json_object_get(t->launch.job, "metric"), "slots",
                              (json_int_t)g->max_members, "members");
    if (!job)
        return as_fail_nomem(err);
    as_status st = keep_files(g, dataset, err);
    return st < 0 ? st : result_journal_write_json(g->dir, JOB_NAME, job, err);
}

/* Take out of the first member's environment what belongs to that member alone. ASSAY_REPORT stays,
 * with a path in the group's folder, because strays are found by it. */
static as_status set_env(struct child_spec *s, const struct group_process *g, struct as_err *err)
{
    static const char *const members_own[] = {"ASSAY_TRIAL",       "ASSAY_ATTEMPT",
                                              "ASSAY_SEED",        "ASSAY_PARAMS",
                                              "ASSAY_CHECKPOINTS", "ASSAY_ARTIFACTS"};
    AS_AUTO(as_freep) char *report = file_join(g->dir, "report.jsonl");
    AS_AUTO(as_freep) char *fault = file_join(g->dir, DEVICE_FAULT_NAME);
    for (size_t i = 0; i < AS_ARRAY_LEN(members_own); i++)
        child_env_unset(&s->env, members_own[i]);
    if (!report || !fault)
        return as_fail_nomem(err);
    as_status st = child_env_get(&s->env, "ASSAY_DEVICE_FAULT")
                       ? child_env_set(&s->env, "ASSAY_DEVICE_FAULT", fault, err)
                       : AS_OK;
    return st < 0 ? st : child_env_set(&s->env, "ASSAY_REPORT", report, err);
}

static as_status start_process(struct group_process *g, struct attempt *t, struct as_err *err)
{
    AS_AUTO(as_freep) char *job = file_join(g->dir, JOB_NAME);
    const char *args[] = {t->options->trainer, job};
    if (!job)
        return as_fail_nomem(err);
    as_status st = write_job(g, t, err);
    if (st < 0)
        return st;
    st = child_spec_set_argv(&t->launch.spec, args, 2, err);
    if (st < 0)
        return st;
    st = set_env(&t->launch.spec, g, err);
    if (st < 0)
        return st;
    st = child_spawn_on_socket(&t->launch.spec, &g->pid, &g->out_fd, &g->control_fd, err);
    if (st != AS_OK)
        return st;
    g->cgroup = as_steal(t->launch.spec.cgroup);
    log_write(LOG_DEBUG, "group started", "group=%s pid=%d", g->id, (int)g->pid);
    return AS_OK;
}

void group_process_flush(struct group_process *g)
{
    size_t done = 0;
    while (g->control_fd >= 0 && done < g->out.len) {
        ssize_t n = send(g->control_fd, g->out.s + done, g->out.len - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* the buffer is full, or the process has ended: supervise.c reaps it */
        done += (size_t)n;
    }
    if (done > 0) {
        memmove(g->out.s, g->out.s + done, g->out.len - done);
        g->out.len -= done;
    }
}

/* Send a request. If it fails the caller kills the process: a member that cannot be stopped must
 * not run. */
static as_status send_request(struct group_process *g, const struct control_request *r,
                              struct as_err *err)
{
    if (!g->pid)
        return AS_OK;
    as_status st = control_request_format(r, &g->out, err);
    group_process_flush(g);
    return st;
}

as_status group_process_add_member(struct group_process *g, struct attempt *t, struct as_err *err)
{
    struct control_request add = {.op = CONTROL_ADD};
    if (g->over)
        return as_fail(err, AS_E_CONFLICT, "its group has ended");
    as_status st = g->pid ? AS_OK : start_process(g, t, err);
    if (st < 0)
        return st;
    st =
        control_member_parse(json_object_get(t->launch.job, "member"), "/member", &add.member, err);
    if (st < 0)
        return st;
    add.id = add.member.id;
    return send_request(g, &add, err);
}

void group_process_stop_member(struct group_process *g, const struct attempt *t,
                               bool with_checkpoint)
{
    struct as_err err = {0};
    char id[GROUP_MEMBER_ID_SIZE];
    struct control_request r = {.op = with_checkpoint ? CONTROL_STOP : CONTROL_CANCEL, .id = id};
    group_process_member_id(t, id);
    if (send_request(g, &r, &err) != AS_OK)
        child_signal_group(g->pid, SIGKILL);
}

void group_process_close(struct group_process *g)
{
    struct as_err err = {0};
    struct control_request r = {.op = CONTROL_CLOSE};
    if (g->close_sent || !g->pid)
        return;
    g->close_sent = true;
    if (send_request(g, &r, &err) != AS_OK)
        child_signal_group(g->pid, SIGKILL);
}

static void take_lines(struct group_process *g, group_process_event_fn *on_event, void *arg)
{
    struct as_err err = {0};
    const char *line;
    size_t len;
    while ((line = control_lines_next(&g->in, &len))) {
        struct control_event e = {0};
        if (control_event_parse(line, len, &e, &err) == AS_OK) {
            on_event(arg, g, &e);
            control_event_done(&e);
            continue;
        }
        log_write(LOG_ERROR, "the process of a group breaks the protocol", "group=%s error=\"%s\"",
                  g->id, err.msg);
        if (g->pid)
            child_signal_group(g->pid, SIGKILL);
        return;
    }
}

void group_process_read(struct group_process *g, group_process_event_fn *on_event, void *arg)
{
    char bytes[READ_BYTES];
    struct as_err err = {0};
    while (g->control_fd >= 0) {
        ssize_t n = read(g->control_fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0 || control_lines_feed(&g->in, bytes, (size_t)n, &err) != AS_OK) {
            close(g->control_fd);
            g->control_fd = -1;
            break;
        }
        take_lines(g, on_event, arg);
    }
}

void group_process_take_end(struct group_process *g, group_process_event_fn *on_event, void *arg,
                            int *ret_wait_status)
{
    size_t strays = child_take_end(g->pid, g->cgroup, g->dir, ret_wait_status);
    if (strays)
        log_write(LOG_INFO, "processes that a group left were killed", "group=%s count=%zu", g->id,
                  strays);
    g->pid = 0;
    g->over = true;
    /* Events that it sent before it ended are still in the socket: members may have ended well. */
    group_process_read(g, on_event, arg);
    if (g->control_fd >= 0)
        close(g->control_fd);
    g->control_fd = -1;
}
