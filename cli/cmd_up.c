/* assay up: everything on one machine. Order: lock, leftovers, PostgreSQL, assayd, runners; then
 * watch over them until a signal; then stop them in the reverse order. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/client/client.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/opt.h"
#include "cli/cmd.h"
#include "cli/current.h"
#include "cli/exit_code.h"
#include "cli/session.h"
#include "cli/up_cluster.h"
#include "cli/up_folder.h"
#include "cli/up_leftover.h"
#include "cli/up_programs.h"
#include "cli/up_supervise.h"
#include "cli/verbs.h"

#define DEFAULT_PORT 7117
#define READY_TIMEOUT_MS 60000
#define MAX_RUNNERS 64
#define ASSAYD_NO_DATABASE 69 /* assayd's exit code */

struct up {
    /* options; views of argv */
    const char *data, *listen, *database, *ready_file, *lease, *heartbeat, *public_host;
    int64_t port, runners, slots;
    bool insecure_http, help;
    /* what runs */
    struct up_folder folder;
    struct up_cluster cluster;
    struct supervisor *supervisor;
    char *assayd, *runner; /* programs; owned */
    char *ready_path;      /* owned, absolute */
    char url[300];         /* where we reach it; "" before */
    int database_index, assayd_index, first_runner, last_runner;
};

/* Is the port free on this address? (assayd may still lose it to somebody, and says so.) */
static bool is_port_free(const char *listen_on, int64_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, listen_on, &address.sin_addr) != 1)
        return true; /* a name or IPv6: assayd will see */
    AS_AUTO(file_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd < 0)
        return true;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 || errno != EADDRINUSE;
}

static as_status choose_port(struct up *u, struct as_err *err)
{
    bool given = u->port >= 0;
    if (!given)
        u->port = DEFAULT_PORT;
    if (u->port > 0 && !is_port_free(u->listen, u->port)) {
        if (given)
            return as_fail(err, AS_E_CONFLICT,
                           "port %" PRId64 " is taken; choose another with --port", u->port);
        session_say("Port %d is taken; using a free one", DEFAULT_PORT);
        u->port = 0;
    }
    return AS_OK;
}

/* The command line of assayd, at `where` ("HOST:PORT"). */
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
                                 u->heartbeat};
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
    AS_AUTO(as_freep) char *log = up_folder_new_log(&u->folder, "assayd");
    (void)snprintf(where, sizeof where, is_v6 ? "[%s]:%" PRId64 : "%s:%" PRId64, u->listen,
                   u->port);
    as_status st = assayd_argv(u, where, argv, AS_ARRAY_LEN(argv), err);
    if (st == AS_OK && !log)
        st = as_fail(err, AS_E_NOMEM, "out of memory");
    if (st < 0)
        return st;
    const struct up_child_spec spec = {
        .argv = argv,
        .log_path = log,
        /* Not on the command line, where every user of the machine could read a password. */
        .set_env = {{"ASSAY_DATABASE", u->database ? u->database : u->cluster.url}},
        .death_signal = SIGTERM,
    };
    (void)unlink(u->folder.address);
    return supervisor_add(u->supervisor, "assayd", &spec, stop_server, &u->assayd_index, err);
}

/* The end of its log, and why. */
static as_status fail_assayd(const struct up *u, struct as_err *err)
{
    AS_AUTO(as_freep) char *log = file_join(u->folder.logs, "assayd.log");
    AS_AUTO(as_freep) char *end = log ? supervisor_log_end(log) : NULL;
    int status = supervisor_last_status(u->supervisor, u->assayd_index);
    session_say("%s", end ? end : "");
    if (WIFEXITED(status) && WEXITSTATUS(status) == ASSAYD_NO_DATABASE)
        return as_fail(err, AS_E_UNAVAILABLE, "the database cannot be reached; the log is %s",
                       log ? log : "");
    return as_fail(err, AS_E_IO, "assayd does not start; its log is %s", log ? log : "");
}

/* The URL that assayd wrote, as this machine reaches it. */
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

/* After a death assayd comes back at the same port. */
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

static as_status start_assayd(struct up *u, struct as_err *err)
{
    int64_t end_ns = clock_mono_ns() + READY_TIMEOUT_MS * NS_PER_MS;
    as_status st = add_assayd(u, err);
    if (st == AS_OK)
        st = supervisor_start(u->supervisor, u->assayd_index, err);
    while (st == AS_OK && !read_address(u)) {
        if (!supervisor_wait(u->supervisor, 50))
            return as_fail(err, AS_E_UNAVAILABLE, "interrupted");
        /* One that dies before it served once has a reason that another try does not cure. */
        if (supervisor_deaths(u->supervisor, u->assayd_index) > 0 || clock_mono_ns() > end_ns)
            return fail_assayd(u, err);
    }
    return st < 0 ? st : pin_port(u, err);
}

/* The GPUs of this machine, dealt to the runners in turn: "0,2", or "none". */
static void deal_gpus(int64_t runner, int64_t runners, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    for (int i = 0; i < 64; i++) {
        char path[40];
        (void)snprintf(path, sizeof path, "/dev/nvidia%d", i);
        if (i % runners == runner && access(path, F_OK) == 0 && n + 8 < size)
            n += (size_t)snprintf(buf + n, size - n, "%s%d", n ? "," : "", i);
    }
    if (n == 0)
        (void)snprintf(buf, size, "none");
}

/* "local-1" with a database of our own; with a shared one a name that no other machine or data
 * folder uses: "HOST-1a2b-1". */
static as_status runner_name(const struct up *u, int64_t number, char *buf, size_t size,
                             struct as_err *err)
{
    char host[HOST_NAME_MAX + 1] = "", hash[SHA256_HEX_SIZE], slug[40];
    size_t n = 0;
    if (!u->database) {
        (void)snprintf(buf, size, "local-%" PRId64, number);
        return AS_OK;
    }
    (void)gethostname(host, sizeof host - 1);
    for (const char *c = host; *c && n + 1 < sizeof slug; c++) {
        char lower = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
        if ((lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || (n && lower == '-'))
            slug[n++] = lower;
    }
    slug[n] = 0;
    as_status st = sha256_of(u->folder.path, strlen(u->folder.path), hash, err);
    (void)snprintf(buf, size, "%s-%.4s-%" PRId64, n ? slug : "host", hash, number);
    return st;
}

static as_status add_runner(struct up *u, int64_t i, int *ret, struct as_err *err)
{
    char name[64], slots[24], gpus[300], log_name[80];
    struct str work = {0}, cache = {0};
    as_status st = runner_name(u, i + 1, name, sizeof name, err);
    if (st < 0)
        return st;
    (void)snprintf(slots, sizeof slots, "%" PRId64, u->slots);
    (void)snprintf(log_name, sizeof log_name, "runner-%" PRId64, i + 1);
    deal_gpus(i, u->runners, gpus, sizeof gpus);
    str_printf(&work, "%s/runners/%s", u->folder.path, name);
    str_printf(&cache, "%s/cache", u->folder.path);
    AS_AUTO(as_freep) char *log = up_folder_new_log(&u->folder, log_name);
    const char *const argv[] = {
        u->runner, "--server", u->url,          "--token-file", u->folder.runner_token,
        "--name",  name,       "--slots",       slots,          "--gpus",
        gpus,      "--work",   str_cstr(&work), "--cache",      str_cstr(&cache),
        NULL};
    const struct up_child_spec spec = {.argv = argv, .log_path = log, .death_signal = SIGTERM};
    st = log && !work.failed && !cache.failed ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
    if (st == AS_OK)
        st = supervisor_add(u->supervisor, log_name, &spec, stop_runner, ret, err);
    if (st == AS_OK)
        st = supervisor_start(u->supervisor, *ret, err);
    str_done(&work);
    str_done(&cache);
    return st;
}

/* How many of our runners the server knows as live. */
static int64_t count_live(const struct up *u, struct client *c)
{
    char name[64];
    JSON_AUTO answer = NULL;
    int64_t live = 0;
    size_t k;
    json_t *runner;
    const struct client_opts opts = {.timeout_ms = 3000};
    if (client_call(c, "GET", "/v1/runners", "page_size=1000", NULL, &opts, &answer, NULL, NULL) <
        0)
        return 0;
    json_array_foreach(json_object_get(answer, "items"), k, runner)
    {
        const char *found = json_string_value(json_object_get(runner, "name"));
        bool is_live = as_streq(json_string_value(json_object_get(runner, "state")), "live");
        for (int64_t i = 0; i < u->runners && is_live; i++)
            live +=
                runner_name(u, i + 1, name, sizeof name, NULL) == AS_OK && as_streq(found, name);
    }
    return live;
}

static as_status admin_client(const struct up *u, struct client **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *token = NULL;
    size_t len;
    as_status st = file_read(u->folder.admin_token, 4096, &token, &len, err);
    if (st < 0)
        return st;
    token[strcspn(token, "\r\n")] = 0;
    return client_create(u->url, token, "assay", ret, err);
}

static as_status start_runners(struct up *u, struct as_err *err)
{
    AS_AUTO(client_freep) struct client *c = NULL;
    int64_t end_ns = clock_mono_ns() + READY_TIMEOUT_MS * NS_PER_MS;
    as_status st = admin_client(u, &c, err);
    for (int64_t i = 0; i < u->runners && st == AS_OK; i++) {
        st = add_runner(u, i, &u->last_runner, err);
        if (i == 0)
            u->first_runner = u->last_runner;
    }
    while (st == AS_OK && count_live(u, c) < u->runners) {
        if (!supervisor_wait(u->supervisor, 50))
            return as_fail(err, AS_E_UNAVAILABLE, "interrupted");
        unsigned deaths = 0;
        for (int i = u->first_runner; i <= u->last_runner; i++)
            deaths += supervisor_deaths(u->supervisor, i);
        if (deaths > 3 * (unsigned)u->runners || clock_mono_ns() > end_ns)
            return as_fail(err, AS_E_IO, "the runners do not start; their logs are in %s",
                           u->folder.logs);
    }
    return st;
}

static as_status write_ready(const struct up *u, struct as_err *err)
{
    as_status st = current_write(u->url, u->folder.admin_token, err);
    if (st < 0) { /* a convenience: nobody need have a home */
        session_say("Other commands will not find this server by themselves: %s", err->msg);
        st = AS_OK;
    }
    up_folder_publish(&u->folder, u->url);
    if (!u->ready_path)
        return st;
    JSON_AUTO j = json_pack("{s:s, s:s, s:I}", "url", u->url, "admin_token_file",
                            u->folder.admin_token, "pid", (json_int_t)getpid());
    AS_AUTO(as_freep) char *text = j ? json_format_pretty(j) : NULL;
    if (!text)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    return file_replace(u->ready_path, text, strlen(text), 0644, err);
}

static void announce(const struct up *u)
{
    AS_AUTO(as_freep) char *token = NULL;
    size_t len;
    bool show = isatty(STDOUT_FILENO) &&
                file_read(u->folder.admin_token, 4096, &token, &len, NULL) == AS_OK;
    if (show) {
        token[strcspn(token, "\r\n")] = 0;
        printf("Dashboard  %s/#token=%s\n", u->url, token);
    } else {
        printf("Dashboard  %s/\n", u->url);
    }
    printf("Token      %s\nData       %s\nRunners    %" PRId64 " with %" PRId64 " slot%s each\n",
           u->folder.admin_token, u->folder.path, u->runners, u->slots, u->slots == 1 ? "" : "s");
    if (show)
        printf("Ctrl-C stops everything.\n");
    (void)fflush(stdout);
}

static as_status start_database(struct up *u, struct as_err *err)
{
    if (u->database)
        return AS_OK;
    AS_AUTO(as_freep) char *log = up_folder_new_log(&u->folder, "postgres");
    as_status st = log ? up_cluster_prepare(&u->cluster, u->folder.path, log, u->supervisor, err)
                       : as_fail(err, AS_E_NOMEM, "out of memory");
    if (st == AS_OK)
        st = up_cluster_start(&u->cluster, u->supervisor, err);
    if (u->cluster.index >= 0)
        u->database_index = u->cluster.index;
    return st;
}

static as_status start_all(struct up *u, struct as_err *err)
{
    as_status st = up_program_find("assayd", &u->assayd, err);
    if (st == AS_OK)
        st = up_program_find("assay-runner", &u->runner, err);
    if (st == AS_OK)
        st = up_folder_open(&u->folder, u->data, err);
    if (st == AS_OK && u->ready_path)
        (void)unlink(u->ready_path); /* a predecessor's */
    if (st == AS_OK && !(u->supervisor = supervisor_create(u->folder.notes)))
        st = as_fail(err, AS_E_NOMEM, "out of memory");
    if (st == AS_OK)
        st = up_leftover_stop(u->folder.notes, err);
    if (st == AS_OK)
        st = choose_port(u, err);
    if (st == AS_OK)
        st = start_database(u, err);
    if (st == AS_OK)
        st = start_assayd(u, err);
    if (st == AS_OK)
        st = start_runners(u, err);
    return st < 0 ? st : write_ready(u, err);
}

static void stop_all(struct up *u)
{
    if (!u->supervisor)
        return;
    current_remove();
    if (u->ready_path)
        (void)unlink(u->ready_path);
    supervisor_stop(u->supervisor, u->first_runner, u->last_runner);
    supervisor_stop(u->supervisor, u->assayd_index, u->assayd_index);
    supervisor_stop(u->supervisor, u->database_index, u->database_index);
}

/* Where to write the ready file, made absolute. */
static as_status find_ready_file(struct up *u, struct as_err *err)
{
    struct str b = {0};
    char here[PATH_MAX];
    if (!u->ready_file)
        return AS_OK;
    if (u->ready_file[0] != '/' && getcwd(here, sizeof here))
        str_printf(&b, "%s/", here);
    str_puts(&b, u->ready_file);
    u->ready_path = str_take(&b);
    if (!u->ready_path)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    return AS_OK;
}

static int run(struct up *u)
{
    struct as_err err = {0};
    as_status st = find_ready_file(u, &err);
    if (st == AS_OK)
        st = start_all(u, &err);
    bool asked = u->supervisor && supervisor_stopping(u->supervisor);
    if (st == AS_OK) {
        announce(u);
        while (supervisor_wait(u->supervisor, 60000))
            ;
        session_say("Stopping");
    }
    stop_all(u);
    int code = st == AS_OK ? EXIT_OK : asked ? EXIT_CANCELLED : exit_with_error("up", st, &err);
    supervisor_free(u->supervisor);
    up_cluster_done(&u->cluster);
    up_folder_close(&u->folder);
    free(u->assayd);
    free(u->runner);
    free(u->ready_path);
    return code;
}

static int check(const struct up *u, int n_args, char **argv)
{
    if (n_args > 0)
        return exit_with_usage("up", "unexpected argument '%.60s'", argv[1]);
    if (u->port < -1 || u->port > 65535)
        return exit_with_usage("up", "--port takes 0 to 65535");
    if (u->runners < 0 || u->runners > MAX_RUNNERS)
        return exit_with_usage("up", "--runners takes 0 to %d", MAX_RUNNERS);
    if (u->slots < 1 || u->slots > 1024)
        return exit_with_usage("up", "--slots takes 1 to 1024");
    return EXIT_OK;
}

int cmd_up(int argc, char **argv)
{
    struct up u = {.listen = "127.0.0.1",
                   .port = -1,
                   .runners = 2,
                   .slots = 1,
                   .cluster = {.index = -1},
                   .folder = {.lock_fd = -1},
                   .database_index = -1,
                   .assayd_index = -1,
                   .first_runner = -1,
                   .last_runner = -1};
    struct as_err err = {0};
    int n = 0;
    const struct opt table[] = {
        {"data", 0, OPT_STRING, &u.data, "DIR", "ASSAY_DATA",
         "where everything is kept (~/.local/share/assay; for root /var/lib/assay)"},
        {"runners", 0, OPT_I64, &u.runners, "N", NULL, "how many runners (2); 0 for none"},
        {"slots", 0, OPT_I64, &u.slots, "N", NULL, "trials that each runs at once (1)"},
        {"port", 0, OPT_I64, &u.port, "PORT", NULL, "7117, or a free one when it is taken; 0: any"},
        {"listen", 0, OPT_STRING, &u.listen, "ADDRESS", NULL, "127.0.0.1"},
        {"insecure-http", 0, OPT_FLAG, &u.insecure_http, NULL, NULL,
         "allow an address that is not loopback, without TLS"},
        {"public-host", 0, OPT_STRING, &u.public_host, "NAMES", NULL,
         "further host names that assayd answers to"},
        {"database", 0, OPT_STRING, &u.database, "URL", "ASSAY_DATABASE",
         "an existing PostgreSQL instead of a private one"},
        {"lease", 0, OPT_STRING, &u.lease, "TIME", NULL, "as for assayd"},
        {"heartbeat", 0, OPT_STRING, &u.heartbeat, "TIME", NULL, "as for assayd"},
        {"ready-file", 0, OPT_STRING, &u.ready_file, "PATH", NULL,
         "write {url, admin_token_file, pid} here when all is up"},
        {"help", 'h', OPT_FLAG, &u.help, NULL, NULL, "show this help"},
        {.name = NULL},
    };
    if (opt_parse(table, argc, argv, &n, &err) < 0)
        return exit_with_usage("up", "%s", err.msg);
    if (u.help) {
        verbs_print_help("up", table, stdout);
        return exit_after_output("up", EXIT_OK);
    }
    int code = check(&u, n, argv);
    return code == EXIT_OK ? run(&u) : code;
}
