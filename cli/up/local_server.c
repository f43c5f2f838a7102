/* Starts assayd as a child of `assay up`.
 *
 * assayd chooses its port itself when the port is 0, and writes its URL to a file when it is ready.
 * That file is the only signal of readiness: it is removed before the start and polled after it.
 * When the URL is known, the port is fixed on the command line for later restarts. */
#include "cli/up/local_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/disk_room.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/view/say.h"

#define DEFAULT_PORT 7117
#define READY_TIMEOUT_MS 60000
#define ASSAYD_NO_DATABASE 69 /* assayd's exit code */

/* Whether the port is free on this address. Another program may still take it before assayd starts;
 * assayd then reports that. */
static bool is_port_free(const char *listen_on, int64_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, listen_on, &address.sin_addr) != 1)
        return true; /* a name or IPv6: assayd reports it if the port is taken */
    AS_AUTO(file_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd < 0)
        return true;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 || errno != EADDRINUSE;
}

as_status up_server_choose_port(struct up *u, struct as_err *err)
{
    bool given = u->port >= 0;
    if (!given)
        u->port = DEFAULT_PORT;
    if (u->port > 0 && !is_port_free(u->listen, u->port)) {
        if (given)
            return as_fail(err, AS_E_CONFLICT,
                           "port %" PRId64 " is taken; choose another with --port", u->port);
        say("Port %d is taken; using a free one", DEFAULT_PORT);
        u->port = 0;
    }
    return AS_OK;
}

/* The command line of assayd that listens at `where` ("HOST:PORT"). */
static as_status assayd_argv(const struct up *u, const char *where, const char **argv, size_t size,
                             struct as_err *err)
{
    const char *const words[] = {u->assayd,
                                 "--listen",
                                 where,
                                 "--admin-token-file",
                                 u->folder.admin_token,
                                 "--runner-token-file",
                                 u->folder.runner_token,
                                 "--address-file",
                                 u->folder.address,
                                 u->insecure_http ? "--insecure-http" : NULL,
                                 u->public_host ? "--public-host" : NULL,
                                 u->public_host,
                                 u->lease ? "--lease" : NULL,
                                 u->lease,
                                 u->heartbeat ? "--heartbeat" : NULL,
                                 u->heartbeat,
                                 u->database ? NULL : "--database-disk",
                                 u->database ? NULL : u->cluster.home};
    size_t n = 0;
    if (AS_ARRAY_LEN(words) >= size)
        return as_fail(err, AS_E_INTERNAL, "too many words");
    for (size_t i = 0; i < AS_ARRAY_LEN(words); i++)
        if (words[i])
            argv[n++] = words[i];
    argv[n] = NULL;
    return AS_OK;
}

static as_status add_assayd(struct up *u, struct as_err *err)
{
    char where[300];
    const char *argv[SUPERVISOR_MAX_ARGS];
    bool is_v6 = strchr(u->listen, ':') && u->listen[0] != '[';
    AS_AUTO(as_freep) char *log = data_folder_new_log(&u->folder, "assayd");
    (void)snprintf(where, sizeof where, is_v6 ? "[%s]:%" PRId64 : "%s:%" PRId64, u->listen,
                   u->port);
    as_status st = assayd_argv(u, where, argv, AS_ARRAY_LEN(argv), err);
    if (st < 0)
        return st;
    if (!log)
        return as_fail_nomem(err);
    const struct spawn_spec spec = {
        .argv = argv,
        .log_path = log,
        /* Not on the command line, where every user of the machine could read a password. */
        .set_env = {{"ASSAY_DATABASE", u->database ? u->database : u->cluster.url}},
        .is_server = true,
        .death_signal = SIGTERM,
    };
    (void)unlink(u->folder.address);
    return supervisor_add(u->supervisor, "assayd", &spec, stop_server, &u->assayd_index, err);
}

/* Print the end of assayd's log and report why it did not start. */
static as_status fail_assayd(const struct up *u, struct as_err *err)
{
    AS_AUTO(as_freep) char *log = file_join(u->folder.logs, "assayd.log");
    AS_AUTO(as_freep) char *end = log ? supervisor_log_end(log) : NULL;
    int status = supervisor_last_status(u->supervisor, u->assayd_index);
    char room[300];
    bool is_full =
        !u->database && disk_room_is_short(u->cluster.home, DISK_ROOM_POSTGRES, room, sizeof room);
    say("%s", end ? end : "");
    if (WIFEXITED(status) && WEXITSTATUS(status) == ASSAYD_NO_DATABASE)
        return as_fail(err, AS_E_UNAVAILABLE, "the database cannot be reached%s%s; the log is %s",
                       is_full ? ": its disk is full: " : "", is_full ? room : "", log ? log : "");
    return as_fail(err, AS_E_IO, "assayd does not start; its log is %s", log ? log : "");
}

/* Read the URL that assayd wrote. If it listens on all addresses, use the loopback address. */
static bool read_address(struct up *u)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len;
    if (file_read(u->folder.address, sizeof u->url - 1, &text, &len, NULL) < 0)
        return false;
    text[strcspn(text, "\r\n")] = 0;
    const char *port = strrchr(text, ':');
    bool any = strstr(text, "//0.0.0.0:") || strstr(text, "//[::]:");
    (void)snprintf(u->url, sizeof u->url, any && port ? "http://127.0.0.1%s" : "%s",
                   any && port ? port : text);
    return u->url[0] != 0;
}

/* Make a restarted assayd listen on the same port: runners and notes have the URL already. */
static as_status pin_port(struct up *u, struct as_err *err)
{
    char where[300];
    const char *argv[SUPERVISOR_MAX_ARGS];
    const char *port = strrchr(u->url, ':');
    bool is_v6 = strchr(u->listen, ':') && u->listen[0] != '[';
    (void)snprintf(where, sizeof where, is_v6 ? "[%s]%s" : "%s%s", u->listen, port ? port : "");
    as_status st = assayd_argv(u, where, argv, AS_ARRAY_LEN(argv), err);
    return st < 0 ? st : supervisor_set_argv(u->supervisor, u->assayd_index, argv, err);
}

as_status up_server_start(struct up *u, struct as_err *err)
{
    int64_t end_ns = clock_mono_ns() + READY_TIMEOUT_MS * NS_PER_MS;
    as_status st = add_assayd(u, err);
    if (st < 0)
        return st;
    st = supervisor_start(u->supervisor, u->assayd_index, err);
    if (st < 0)
        return st;
    while (!read_address(u)) {
        if (!supervisor_wait(u->supervisor, 50))
            return as_fail(err, AS_E_UNAVAILABLE, "interrupted");
        /* An assayd that dies before it was ready has a cause that a restart does not remove. */
        if (supervisor_deaths(u->supervisor, u->assayd_index) > 0 || clock_mono_ns() > end_ns)
            return fail_assayd(u, err);
    }
    return pin_port(u, err);
}
