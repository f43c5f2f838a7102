/* assay up: starts everything on one machine and supervises it until a signal.
 *
 * The order of the start: lock of the data folder, processes left by a killed `assay up`,
 * PostgreSQL, assayd, runners. The lock must come first, because only its holder may stop
 * leftovers. The notes and files for other programs are written last, when everything works. The
 * stop is in the reverse order: runners can still report to assayd, and assayd can still write to
 * PostgreSQL. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/opt.h"
#include "cli/commands/cmd.h"
#include "cli/files/running_server.h"
#include "cli/session/exit_code.h"
#include "cli/up/leftover.h"
#include "cli/up/programs.h"
#include "cli/up/local_runners.h"
#include "cli/up/local_server.h"
#include "cli/up/up.h"
#include "cli/view/say.h"

static as_status write_ready(const struct up *u, struct as_err *err)
{
    as_status st = running_server_write(u->url, u->folder.admin_token, u->folder.path, err);
    if (st < 0) { /* not fatal: a user without a home folder can use --server */
        say("Other commands will not find this server by themselves: %s", err->msg);
        st = AS_OK;
    }
    data_folder_publish(&u->folder, u->url);
    if (!u->ready_path)
        return st;
    JSON_AUTO j = json_pack("{s:s, s:s, s:I}", "url", u->url, "admin_token_file",
                            u->folder.admin_token, "pid", (json_int_t)getpid());
    AS_AUTO(as_freep) char *text = j ? json_format_pretty(j) : NULL;
    if (!text)
        return as_fail_nomem(err);
    return file_write_output(u->ready_path, text, strlen(text), 0644, err);
}

static void announce_addresses(const struct up *u)
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
    if (u->trials.user.name[0])
        printf("Trials     run as %s\n", u->trials.user.name);
    if (show)
        printf("Ctrl-C stops everything.\n");
    (void)fflush(stdout);
}

static as_status start_database(struct up *u, struct as_err *err)
{
    if (u->database)
        return AS_OK;
    AS_AUTO(as_freep) char *log = data_folder_new_log(&u->folder, "postgres");
    as_status st = log ? cluster_prepare(&u->cluster, u->folder.path, log, u->supervisor, err)
                       : as_fail_nomem(err);
    if (st == AS_OK)
        st = cluster_start(&u->cluster, u->supervisor, err);
    if (u->cluster.index >= 0)
        u->database_index = u->cluster.index;
    return st;
}

static as_status start_all(struct up *u, struct as_err *err)
{
    as_status st = program_find("assayd", &u->assayd, err);
    if (st < 0)
        return st;
    st = program_find("assay-runner", &u->runner, err);
    if (st < 0)
        return st;
    st = data_folder_open(&u->folder, u->data, err);
    if (st < 0)
        return st;
    if (u->ready_path)
        (void)unlink(u->ready_path); /* left by an earlier assay up */
    st = trial_user_choose(u->trial_user, u->folder.path, u->runner, &u->trials, err);
    if (st < 0)
        return st;
    if (!(u->supervisor = supervisor_create(u->folder.notes)))
        return as_fail_nomem(err);
    st = leftover_stop(u->folder.notes, err);
    if (st < 0)
        return st;
    st = up_server_choose_port(u, err);
    if (st < 0)
        return st;
    st = start_database(u, err);
    if (st < 0)
        return st;
    st = up_server_start(u, err);
    if (st < 0)
        return st;
    st = up_runners_start(u, err);
    if (st < 0)
        return st;
    return write_ready(u, err);
}

static void stop_all(struct up *u)
{
    if (!u->supervisor)
        return;
    running_server_remove();
    if (u->ready_path)
        (void)unlink(u->ready_path);
    supervisor_stop(u->supervisor, u->first_runner, u->last_runner);
    supervisor_stop(u->supervisor, u->assayd_index, u->assayd_index);
    supervisor_stop(u->supervisor, u->database_index, u->database_index);
}

/* Set ready_path to the absolute path of --ready-file. */
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
        return as_fail_nomem(err);
    return AS_OK;
}

static int run_up(struct up *u)
{
    struct as_err err = {0};
    as_status st = find_ready_file(u, &err);
    if (st == AS_OK)
        st = start_all(u, &err);
    bool asked = u->supervisor && supervisor_stopping(u->supervisor);
    if (st == AS_OK) {
        announce_addresses(u);
        while (supervisor_wait(u->supervisor, 60000))
            ;
        say("Stopping");
    }
    stop_all(u);
    int code = st == AS_OK ? EXIT_OK : asked ? EXIT_CANCELLED : exit_with_error("up", st, &err);
    supervisor_free(u->supervisor);
    cluster_done(&u->cluster);
    data_folder_close(&u->folder);
    free(u->assayd);
    free(u->runner);
    free(u->ready_path);
    return code;
}

/* assayd gets the texts as they are; a wrong one would only end it. */
static int check_time(const char *name, const char *text)
{
    struct as_err err = {0};
    int64_t ms;
    if (!text || as_parse_duration_ms(text, &ms, &err) == AS_OK)
        return EXIT_OK;
    return exit_with_usage("up", "--%s: %s", name, err.msg);
}

static int check_options(const struct up *u, int n_args, char **argv)
{
    if (n_args > 0)
        return exit_with_usage("up", "unexpected argument '%.60s'", argv[1]);
    if (u->port < -1 || u->port > 65535)
        return exit_with_usage("up", "--port takes 0 to 65535");
    if (u->runners < 0 || u->runners > UP_MAX_RUNNERS)
        return exit_with_usage("up", "--runners takes 0 to %d", UP_MAX_RUNNERS);
    if (u->slots < 1 || u->slots > 1024)
        return exit_with_usage("up", "--slots takes 1 to 1024");
    int64_t mb = u->cluster.buffers_mb;
    if (mb != 0 && (mb < CLUSTER_BUFFERS_MIN_MB || mb > CLUSTER_BUFFERS_MAX_MB))
        return exit_with_usage("up", "--database-memory takes %d to %d (megabytes)",
                               CLUSTER_BUFFERS_MIN_MB, CLUSTER_BUFFERS_MAX_MB);
    if (mb != 0 && u->database)
        return exit_with_usage("up", "--database-memory is for a private PostgreSQL, and "
                                     "--database (or ASSAY_DATABASE) names another");
    int code = check_time("lease", u->lease);
    return code == EXIT_OK ? check_time("heartbeat", u->heartbeat) : code;
}

int cmd_up(const struct verb *v, int argc, char **argv)
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
        {"database-memory", 0, OPT_I64, &u.cluster.buffers_mb, "MB", NULL,
         "shared_buffers of the private one (a sixteenth of the memory, 32 to 512)"},
        {"trial-user", 0, OPT_STRING, &u.trial_user, "NAME", NULL,
         "as root: run runners and trials as this user (who called sudo, else root)"},
        {"lease", 0, OPT_STRING, &u.lease, "TIME", NULL, "as for assayd"},
        {"heartbeat", 0, OPT_STRING, &u.heartbeat, "TIME", NULL, "as for assayd"},
        {"ready-file", 0, OPT_STRING, &u.ready_file, "PATH", NULL,
         "write {url, admin_token_file, pid} here when all is up"},
        {"help", 'h', OPT_FLAG, &u.help, NULL, NULL, "show this help"},
        {.name = NULL},
    };
    if (opt_parse(table, argc, argv, &n, &err) < 0)
        return exit_with_usage(v->name, "%s", err.msg);
    if (u.help) {
        verb_print_help(v, table, stdout);
        return exit_after_output("up", EXIT_OK);
    }
    int code = check_options(&u, n, argv);
    return code == EXIT_OK ? run_up(&u) : code;
}
