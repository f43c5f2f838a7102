#include "bench/scheduler/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/opt.h"
#include "tests/support/roots.h"

#define SECRET "0123456789abcdefghijklmnopqrstuvwxyzABCDEF"

static void read_line(const struct server *s, const char *name, char *ret, size_t size)
{
    char path[200];
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    (void)snprintf(path, sizeof path, "%s/%s", s->dir, name);
    for (int i = 0; i < 6000; i++) {
        if (file_read(path, size - 1, &text, &len, NULL) == AS_OK && strchr(text, '\n')) {
            (void)snprintf(ret, size, "%.*s", (int)strcspn(text, "\n"), text);
            return;
        }
        as_freep(&text);
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid)
            break;
        clock_sleep_ms(10);
    }
    wire_give_up("assayd", "it did not start");
}

static const struct opt_list *more_arguments;

void server_arguments(const struct opt_list *args)
{
    more_arguments = args;
}

static void run_program(const struct server *s)
{
    char program[600], address[100], admin[100], runner[100];
    (void)snprintf(program, sizeof program, "%s/api/server/assayd", build_root());
    (void)snprintf(address, sizeof address, "%s/address", s->dir);
    (void)snprintf(admin, sizeof admin, "%s/admin", s->dir);
    (void)snprintf(runner, sizeof runner, "%s/runner", s->dir);
    /* The lease is long because nothing here is about lost runners, and nobody sends heartbeats. */
    const char *args[OPT_LIST_MAX + 20] = {"assayd",
                                           "--database",
                                           s->url,
                                           "--listen",
                                           "127.0.0.1:0",
                                           "--lease",
                                           "1h",
                                           "--address-file",
                                           address,
                                           "--log-level",
                                           "warn",
                                           "--admin-token-file",
                                           admin,
                                           "--die-with-parent",
                                           "--runner-token-file",
                                           runner};
    size_t n = 0;
    while (args[n])
        n++;
    for (size_t i = 0; more_arguments && i < more_arguments->n; i++)
        args[n++] = more_arguments->values[i];
    (void)execv(program, (char *const *)args);
    _exit(127);
}

static void start(struct server *s)
{
    char line[200];
    temp_folder_make(s->dir);
    s->pid = fork();
    if (s->pid == 0)
        run_program(s);
    read_line(s, "address", line, sizeof line);
    s->port = (int)strtol(strrchr(line, ':') + 1, NULL, 10);
    read_line(s, "admin", line, sizeof line);
    (void)snprintf(s->admin, sizeof s->admin, "Authorization: Bearer %s\r\n", line);
    read_line(s, "runner", line, sizeof line);
    (void)snprintf(s->runners, sizeof s->runners,
                   "Authorization: Bearer %s\r\nAssay-Runner-Secret: " SECRET "\r\n", line);
}

void server_start(struct server *s)
{
    *s = (struct server){0};
    pg_fixture_database(s->url);
    start(s);
}

void server_join(struct server *s, const struct server *first)
{
    *s = (struct server){0};
    (void)snprintf(s->url, sizeof s->url, "%s", first->url);
    start(s);
}

static void end(struct server *s, int signal)
{
    if (s->pid <= 0)
        return;
    (void)kill(s->pid, signal);
    if (signal != SIGKILL) /* with thousands of connections it takes seconds to be gone */
        (void)waitpid(s->pid, NULL, 0);
    temp_folder_remove(s->dir);
    s->pid = 0;
}

void server_stop(struct server *s)
{
    end(s, SIGTERM);
}

void server_kill(struct server *s)
{
    end(s, SIGKILL);
}

static json_t *call(const struct server *s, const char *method, const char *path,
                    const char *fields, const char *body)
{
    AS_AUTO(str_done) struct str text = {0};
    struct as_err err = {0};
    json_t *ret = NULL;
    struct wire w;
    wire_open(&w, s->port);
    if (body)
        str_puts(&text, body);
    struct answer a = wire_call(&w, method, path, fields, body ? &text : NULL);
    if (a.status / 100 != 2)
        wire_give_up(path, a.body);
    if (a.len > 0 && json_parse(a.body, a.len, &ret, &err) != AS_OK)
        wire_give_up(path, err.msg);
    wire_close(&w);
    return ret;
}

json_t *server_call(const struct server *s, const char *method, const char *path, const char *body)
{
    return call(s, method, path, s->admin, body);
}

void server_add_sweep(const struct server *s, const char *name, const char *early)
{
    char body[800];
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"%s\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},"
                   "\"parameters\":{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1}},"
                   "\"search\":{\"method\":\"random\",\"seed\":1},"
                   "\"limits\":{\"max_trials\":1000000},\"ensemble\":false,"
                   "\"trial\":{\"command\":[\"true\"]}%s%s}",
                   name, early ? ",\"early_stopping\":" : "", early ? early : "");
    json_decref(server_call(s, "POST", "/v1/sweeps", body));
}

int64_t server_add_runner(const struct server *s, const char *name, int slots)
{
    char body[100];
    (void)snprintf(body, sizeof body, "{\"name\":\"%s\",\"slots\":%d}", name, slots);
    JSON_AUTO answer = call(s, "POST", "/v1/runners", s->runners, body);
    return json_integer_value(json_object_get(answer, "epoch"));
}
