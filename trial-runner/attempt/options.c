/* Reads the command line of assay-runner and fills in what was not given: name, GPUs, trainer,
 * folders.
 *
 * One table gives each option its name, environment variable, type and help text, so the help
 * cannot differ from what is parsed. The table writes into struct words; check_words() turns the
 * words into struct options, so nobody sees an option that was not checked. */
#include "trial-runner/attempt/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/opt.h"
#include "base/str.h"
#include "trial-runner/process/batch_job.h"
#include "trial-runner/process/rank_address.h"
#include "trial-runner/process/time_limit.h"

#define TOKEN_FILE_MAX 4096
#define MEMINFO_MAX (64 << 10)
#define DEFAULT_SERVER "http://127.0.0.1:7117"
#define DEFAULT_CACHE_MIB 20480
#define DEFAULT_LOG_MIB 16
#define LOG_MIB_MAX 1024
/* Some 10 ms pass between two trials that are claimed one after the other: of a trial that runs for
 * longer than this, that is less than a twentieth. And so long a trial may wait here that another
 * runner could have begun. */
#define AHEAD_MS 250

/* The values of the command line before they are checked. */
struct words {
    const char *server, *token, *token_file, *name, *gpus, *work, *cache, *trainer, *level,
        *rank_address, *memory, *until, *job, *fleet, *trial_memory, *trial_file_size, *ca_file;
    struct confinement_limits limits;
    int64_t slots, cpus, group, group_mib, cache_mib, log_mib, ahead_ms, idle_exit_ms;
    bool no_affinity, die_with_parent, help, version;
};

#define TABLE(w)                                                                                   \
    {                                                                                              \
        {"server",                                                                                 \
         's',                                                                                      \
         OPT_STRING,                                                                               \
         &(w)->server,                                                                             \
         "URL",                                                                                    \
         "ASSAY_SERVER",                                                                           \
         "the server (" DEFAULT_SERVER ")"},                                                       \
            {"token-file",                                                                         \
             't',                                                                                  \
             OPT_STRING,                                                                           \
             &(w)->token_file,                                                                     \
             "FILE",                                                                               \
             "ASSAY_TOKEN_FILE",                                                                   \
             "file with a runner's token; or the token itself in ASSAY_TOKEN"},                    \
            {"name",                                                                               \
             'n',                                                                                  \
             OPT_STRING,                                                                           \
             &(w)->name,                                                                           \
             "NAME",                                                                               \
             "ASSAY_RUNNER_NAME",                                                                  \
             "how the server knows this runner (HOST-PID)"},                                       \
            {"slots", 0, OPT_I64, &(w)->slots, "N", "ASSAY_RUNNER_SLOTS", "trials at once (1)"},   \
            {"cpus",                                                                               \
             0,                                                                                    \
             OPT_I64,                                                                              \
             &(w)->cpus,                                                                           \
             "N",                                                                                  \
             "ASSAY_RUNNER_CPUS",                                                                  \
             "cores for trials with resources.cpus, this runner's alone (all of the machine, "     \
             "with its other runners)"},                                                           \
            {"memory",                                                                             \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->memory,                                                                         \
             "SIZE",                                                                               \
             "ASSAY_RUNNER_MEMORY",                                                                \
             "the same of memory, such as 16GiB"},                                                 \
            {"no-affinity",                                                                        \
             0,                                                                                    \
             OPT_FLAG,                                                                             \
             &(w)->no_affinity,                                                                    \
             NULL,                                                                                 \
             NULL,                                                                                 \
             "do not bind trials with resources.cpus to cores of their own"},                      \
            {"ca-file",                                                                            \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->ca_file,                                                                        \
             "PATH",                                                                               \
             "ASSAY_CA_FILE",                                                                      \
             "trust these authorities for https, and no others"},                                  \
            {"trial-files",                                                                        \
             0,                                                                                    \
             OPT_I64,                                                                              \
             &(w)->limits.files,                                                                   \
             "N",                                                                                  \
             "ASSAY_RUNNER_TRIAL_FILES",                                                           \
             "files that a process of a trial may have open (as the runner)"},                     \
            {"trial-file-size",                                                                    \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->trial_file_size,                                                                \
             "SIZE",                                                                               \
             "ASSAY_RUNNER_TRIAL_FILE_SIZE",                                                       \
             "the largest file that a trial may write (as the runner)"},                           \
            {"trial-memory",                                                                       \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->trial_memory,                                                                   \
             "SIZE",                                                                               \
             "ASSAY_RUNNER_TRIAL_MEMORY",                                                          \
             "memory of a trial (no limit)"},                                                      \
            {"trial-processes",                                                                    \
             0,                                                                                    \
             OPT_I64,                                                                              \
             &(w)->limits.processes,                                                               \
             "N",                                                                                  \
             "ASSAY_RUNNER_TRIAL_PROCESSES",                                                       \
             "processes and threads of a trial; without control groups those of its user "         \
             "(16384)"},                                                                           \
            {"keep-privileges",                                                                    \
             0,                                                                                    \
             OPT_FLAG,                                                                             \
             &(w)->limits.keeps_privileges,                                                        \
             NULL,                                                                                 \
             NULL,                                                                                 \
             "programs of trials may gain privileges: sudo, podman"},                              \
            {"group",                                                                              \
             0,                                                                                    \
             OPT_I64,                                                                              \
             &(w)->group,                                                                          \
             "N",                                                                                  \
             "ASSAY_RUNNER_GROUP",                                                                 \
             "most trials of one shape that train together in a slot; 1: none do (64)"},           \
            {"group-memory",                                                                       \
             0,                                                                                    \
             OPT_I64,                                                                              \
             &(w)->group_mib,                                                                      \
             "MIB",                                                                                \
             NULL,                                                                                 \
             "what such a group may use (half of what is free, over the slots)"},                  \
            {"gpus",                                                                               \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->gpus,                                                                           \
             "LIST",                                                                               \
             "ASSAY_RUNNER_GPUS",                                                                  \
             "GPUs to hand out: 0,1 or UUIDs; auto; auto:I/N; none (auto)"},                       \
            {"work",                                                                               \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->work,                                                                           \
             "DIR",                                                                                \
             "ASSAY_RUNNER_WORK",                                                                  \
             "work folder, this runner's alone (/var/tmp/assay-runner-UID/NAME)"},                 \
            {"cache",                                                                              \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->cache,                                                                          \
             "DIR",                                                                                \
             "ASSAY_RUNNER_CACHE",                                                                 \
             "data sets and checkpoints, of all runners of a host "                                \
             "(/var/tmp/assay-runner-UID/cache)"},                                                 \
            {"cache-size",                                                                         \
             0,                                                                                    \
             OPT_I64,                                                                              \
             &(w)->cache_mib,                                                                      \
             "MIB",                                                                                \
             NULL,                                                                                 \
             "keep at most so much (20480)"},                                                      \
            {"log-size",                                                                           \
             0,                                                                                    \
             OPT_I64,                                                                              \
             &(w)->log_mib,                                                                        \
             "MIB",                                                                                \
             NULL,                                                                                 \
             "keep at most so much of what an attempt prints, its beginning and its end (16; 0: "  \
             "the last 64 KiB)"},                                                                  \
            {"trainer",                                                                            \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->trainer,                                                                        \
             "PATH",                                                                               \
             "ASSAY_TRAINER",                                                                      \
             "assay-train (beside this program, then PATH)"},                                      \
            {"rank-address",                                                                       \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->rank_address,                                                                   \
             "ADDRESS",                                                                            \
             "ASSAY_RUNNER_RANK_ADDRESS",                                                          \
             "numeric address of this machine for ranks of one trial (that used for the server)"}, \
            {"ahead",                                                                              \
             0,                                                                                    \
             OPT_DURATION,                                                                         \
             &(w)->ahead_ms,                                                                       \
             "TIME",                                                                               \
             "ASSAY_RUNNER_AHEAD",                                                                 \
             "claim a next trial while one runs, if they take less than this; 0s: never (250ms)"}, \
            {"idle-exit",                                                                          \
             0,                                                                                    \
             OPT_DURATION,                                                                         \
             &(w)->idle_exit_ms,                                                                   \
             "TIME",                                                                               \
             NULL,                                                                                 \
             "leave after so long without a trial, such as 10m (never)"},                          \
            {"until",                                                                              \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->until,                                                                          \
             "TIME",                                                                               \
             "ASSAY_RUNNER_UNTIL",                                                                 \
             "its time ends then, so hand back all trials before: 230m from now, "                 \
             "2026-11-27T23:00:00Z or @UNIXTIME (the end of its Slurm job; else never)"},          \
            {"fleet",                                                                              \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->fleet,                                                                          \
             "NAME",                                                                               \
             "ASSAY_RUNNER_FLEET",                                                                 \
             "the fleet that it belongs to (none)"},                                               \
            {"job",                                                                                \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->job,                                                                            \
             "TEXT",                                                                               \
             "ASSAY_RUNNER_JOB",                                                                   \
             "the job that it belongs to (that of Slurm, or the pod of Kubernetes)"},              \
            {"die-with-parent",                                                                    \
             0,                                                                                    \
             OPT_FLAG,                                                                             \
             &(w)->die_with_parent,                                                                \
             NULL,                                                                                 \
             NULL,                                                                                 \
             "leave when the process that started this one ends"},                                 \
            {"log-level",                                                                          \
             0,                                                                                    \
             OPT_STRING,                                                                           \
             &(w)->level,                                                                          \
             "LEVEL",                                                                              \
             "ASSAY_LOG_LEVEL",                                                                    \
             "debug, info, warn or error (info)"},                                                 \
            {"help", 'h', OPT_FLAG, &(w)->help, NULL, NULL, "this text"},                          \
            {"version", 0, OPT_FLAG, &(w)->version, NULL, NULL, "the version"}, {0},               \
    }

void options_done(struct options *o)
{
    free(o->rank_address);
    free(o->ca_file);
    free(o->server);
    free(o->token);
    free(o->secret);
    free(o->name);
    free(o->job);
    free(o->fleet);
    free(o->work);
    free(o->cache);
    free(o->trainer);
    *o = (struct options){0};
}

void options_help(void)
{
    struct words w = {0};
    const struct opt table[] = TABLE(&w);
    printf("Usage: assay-runner [options]\n\n"
           "Takes trials from an Assay server and runs them on this machine.\n"
           "Commands of trials run in the folder where assay-runner was started.\n\n");
    opt_help(table, stdout);
    printf("\nExit: 0 left when asked to, 1 failed, 4 the token was refused, 64 wrong use.\n"
           "SIGTERM: no new trials, SIGTERM to the running ones, hand them back, leave; so do\n"
           "SIGINT, SIGHUP, SIGUSR1 and SIGUSR2. A second one kills them.\n");
}

static as_status read_token(const struct words *w, char **ret, struct as_err *err)
{
    const char *token = getenv("ASSAY_TOKEN");
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    if (w->token_file) {
        as_status st = file_read(w->token_file, TOKEN_FILE_MAX, &text, &len, err);
        if (st < 0)
            return as_err_prefix(err, st, "the token's file");
        while (len && strchr(" \t\r\n", text[len - 1]))
            text[--len] = '\0';
        token = text;
    }
    if (token && !(*ret = as_strdup(token)))
        return as_fail_nomem(err);
    return AS_OK;
}

/* The host's name as a slug, then "-PID". */
static as_status default_name(struct str *b, struct as_err *err)
{
    char host[HOST_NAME_MAX + 1] = "";
    if (gethostname(host, sizeof host) < 0 || !host[0])
        snprintf(host, sizeof host, "host");
    for (size_t i = 0; host[i] && i < 48; i++) {
        char c = host[i] >= 'A' && host[i] <= 'Z' ? (char)(host[i] + 32) : host[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (plain || (b->len && (c == '-' || c == '.' || c == '_')))
            str_putc(b, c);
    }
    str_printf(b, "%s%d", b->len ? "-" : "host-", (int)getpid());
    return str_check(b, err);
}

/* Find the trainer: the one that was given, else assay-train in the folder of this program or
 * beside it in the build tree, else the bare name, which is looked up in PATH. */
static as_status find_trainer(struct options *o, const char *given, struct as_err *err)
{
    static const char *const beside[] = {"assay-train", "../train/assay-train"};
    char self[PATH_MAX];
    if (given) {
        o->trainer = strchr(given, '/') ? realpath(given, NULL) : as_strdup(given);
        if (!o->trainer)
            return as_fail(err, AS_E_NOT_FOUND, "--trainer %s: %s", given, strerror(errno));
        return AS_OK;
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    for (size_t i = 0; n > 0 && i < AS_ARRAY_LEN(beside) && !o->trainer; i++) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (!slash)
            break;
        *slash = '\0';
        AS_AUTO(as_freep) char *path = file_join(self, beside[i]);
        *slash = '/';
        if (path && access(path, X_OK) == 0)
            o->trainer = realpath(path, NULL);
    }
    if (!o->trainer && !(o->trainer = as_strdup("assay-train")))
        return as_fail_nomem(err);
    return AS_OK;
}

/* Make the default folder. Its path can be guessed, and everybody may write to its parent: another
 * user could have made it first, and would then own the runner's files. */
static as_status default_dir(const char *leaf, struct str *path, struct as_err *err)
{
    str_printf(path, "/var/tmp/assay-runner-%u", (unsigned)geteuid());
    as_status st = str_check(path, err);
    if (st < 0 || (st = file_own_folder(path->s, err)) < 0)
        return st;
    str_printf(path, "/%s", leaf);
    st = str_check(path, err);
    return st < 0 ? st : file_own_folder(path->s, err);
}

/* Create a folder if needed. It must be this user's own: the runner's secret lies in it, and
 * programs of trials are started with what lies in it. *ret is its absolute path. */
static as_status absolute_dir(const char *option, const char *given, const char *fallback_leaf,
                              char **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    as_status st = AS_OK;
    if (given) {
        str_puts(&path, given);
        st = str_check(&path, err);
        if (st == AS_OK)
            st = file_own_path(path.s, err);
    } else {
        st = default_dir(fallback_leaf, &path, err);
    }
    if (st < 0)
        return as_err_prefix(err, st, "%s", option);
    *ret = realpath(path.s, NULL);
    return *ret ? AS_OK : as_fail(err, AS_E_IO, "%s: %s", path.s, strerror(errno));
}

/* Returns half of the memory that is free now, divided by the slots; 0 if the system does not
 * say. */
static int64_t share_of_memory(int64_t slots)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    if (file_read("/proc/meminfo", MEMINFO_MAX, &text, &len, NULL) < 0)
        return 0;
    const char *line = strstr(text, "MemAvailable:");
    long long kib = line ? strtoll(line + strlen("MemAvailable:"), NULL, 10) : 0;
    return kib > 0 && kib < INT64_MAX >> 10 ? (int64_t)kib * 1024 / 2 / slots : 0;
}

/* What a job says it has of what there is; 0: it does not say, or there is less. */
static int64_t at_most(int64_t of_job, int64_t there_is)
{
    return there_is > 0 && of_job > there_is ? 0 : of_job;
}

static as_status read_size(const char *option, const char *text, int64_t *ret, struct as_err *err)
{
    if (text && (as_parse_size(text, ret, err) < 0 || *ret < 1))
        return as_fail(err, AS_E_INVAL, "--%s is '%.40s', expected a size such as 16GiB", option,
                       text);
    return AS_OK;
}

/* What trials may use: what was given, else the part of its job, else what the machine has. */
static as_status read_machine(struct options *o, const struct words *w, const struct batch_job *job,
                              struct as_err *err)
{
    int64_t bytes = 0;
    if (w->cpus < 0 || w->cpus > CORES_MAX)
        return as_fail(err, AS_E_INVAL, "--cpus is %lld, expected 1 to %d", (long long)w->cpus,
                       CORES_MAX);
    as_status st = read_size("memory", w->memory, &bytes, err);
    if (st < 0)
        return st;
    machine_read("", &o->machine);
    int64_t cpus = w->cpus > 0 ? w->cpus : at_most(job->cpus, o->machine.cpus);
    if (bytes == 0)
        bytes = at_most(job->memory_bytes, o->machine.memory_bytes);
    o->shares_machine = cpus == 0 && bytes == 0;
    if (cpus > 0)
        o->machine.cpus = cpus;
    if (bytes > 0)
        o->machine.memory_bytes = bytes;
    o->no_affinity = w->no_affinity;
    return AS_OK;
}

/* What limits each trial. */
static as_status read_trial_limits(struct options *o, const struct words *w, struct as_err *err)
{
    const struct opt_range ranges[] = {
        {"trial-files", w->limits.files, 0, INT64_MAX},
        {"trial-processes", w->limits.processes, 1, INT64_MAX},
    };
    o->trial_limits = w->limits;
    as_status st = opt_check_ranges(ranges, AS_ARRAY_LEN(ranges), err);
    if (st == AS_OK)
        st = read_size("trial-memory", w->trial_memory, &o->trial_limits.memory_bytes, err);
    if (st == AS_OK)
        st = read_size("trial-file-size", w->trial_file_size, &o->trial_limits.file_bytes, err);
    return st;
}

/* The time of the runner ends with that of its job. */
static as_status read_until(struct options *o, const struct words *w, const struct batch_job *job,
                            struct as_err *err)
{
    char end[32];
    const char *text = w->until;
    int64_t left_ms = 0;
    o->began_ns = clock_mono_ns();
    if (!text && job->ends_s > 0) {
        (void)snprintf(end, sizeof end, "@%lld", (long long)job->ends_s);
        text = end;
    }
    if (!text)
        return AS_OK;
    as_status st = time_limit_parse(text, clock_wall_ms(), &left_ms, err);
    if (st < 0)
        return as_err_prefix(err, st, "--until");
    o->until_ns = o->began_ns + left_ms * NS_PER_MS + 1; /* never 0, which is no end */
    return AS_OK;
}

static as_status read_job(struct options *o, const struct words *w, const struct batch_job *job,
                          struct as_err *err)
{
    const char *name = w->job ? w->job : job->name;
    if (strlen(name) >= BATCH_JOB_NAME_SIZE || !as_utf8_valid(name, strlen(name)))
        return as_fail(err, AS_E_INVAL, "--job is not a text of at most %d bytes",
                       BATCH_JOB_NAME_SIZE - 1);
    if (w->fleet && !as_slug_valid(w->fleet))
        return as_fail(err, AS_E_INVAL, "--fleet is '%.80s', expected [a-z0-9][a-z0-9._-]{0,62}",
                       w->fleet);
    if ((*name && !(o->job = as_strdup(name))) || (w->fleet && !(o->fleet = as_strdup(w->fleet))))
        return as_fail_nomem(err);
    return read_until(o, w, job, err);
}

static as_status check_words(struct options *o, const struct words *w, struct as_err *err)
{
    const struct opt_range ranges[] = {
        {"slots", w->slots, 1, OPTIONS_MAX_SLOTS},
        {"group", w->group, 1, OPTIONS_MAX_GROUP},
        {"group-memory", w->group_mib, 0, INT64_MAX >> 20},
        {"cache-size", w->cache_mib, 0, INT64_MAX >> 20},
        {"log-size", w->log_mib, 0, LOG_MIB_MAX},
    };
    AS_AUTO(str_done) struct str name = {0};
    struct batch_job job;
    batch_job_of_this_process(&job);
    as_status st = opt_check_ranges(ranges, AS_ARRAY_LEN(ranges), err);
    if (st < 0)
        return st;
    if (w->name)
        str_puts(&name, w->name);
    else
        st = default_name(&name, err);
    if (st < 0)
        return st;
    st = str_check(&name, err);
    if (st < 0)
        return st;
    if (!as_slug_valid(str_cstr(&name)))
        return as_fail(err, AS_E_INVAL, "--name is '%.80s', expected [a-z0-9][a-z0-9._-]{0,62}",
                       str_cstr(&name));
    if (w->rank_address && !rank_address_valid(w->rank_address))
        return as_fail(err, AS_E_INVAL,
                       "--rank-address is '%.80s', expected a numeric address of this machine",
                       w->rank_address);
    if (w->rank_address && !(o->rank_address = as_strdup(w->rank_address)))
        return as_fail_nomem(err);
    o->slots = w->slots;
    o->group = w->group;
    o->group_memory = w->group_mib ? w->group_mib << 20 : share_of_memory(w->slots);
    o->cache_max_bytes = w->cache_mib << 20;
    o->log_max_bytes = w->log_mib << 20;
    o->ahead_ms = w->ahead_ms;
    o->idle_exit_ms = w->idle_exit_ms;
    o->die_with_parent = w->die_with_parent;
    o->server = as_strdup(w->server ? w->server : DEFAULT_SERVER);
    o->name = str_take(&name);
    if (!o->server || !o->name)
        return as_fail_nomem(err);
    if (w->ca_file && !(o->ca_file = realpath(w->ca_file, NULL)))
        return as_fail(err, AS_E_NOT_FOUND, "--ca-file %.200s: %s", w->ca_file, strerror(errno));
    if ((w->level && (st = log_level_parse(w->level, &o->level, err)) < 0) ||
        (st = read_token(w, &o->token, err)) < 0 || (st = read_job(o, w, &job, err)) < 0 ||
        (st = read_machine(o, w, &job, err)) < 0 || (st = read_trial_limits(o, w, err)) < 0 ||
        (st = find_trainer(o, w->trainer, err)) < 0 ||
        (st = gpus_find(w->gpus, o->trainer, &o->gpus, err)) < 0 ||
        (st = absolute_dir("--work", w->work, o->name, &o->work, err)) < 0)
        return st;
    return absolute_dir("--cache", w->cache, "cache", &o->cache, err);
}

as_status options_parse(struct options *o, int argc, char **argv, struct as_err *err)
{
    struct words w = {.slots = 1,
                      .ahead_ms = AHEAD_MS,
                      .group = OPTIONS_MAX_GROUP,
                      .cache_mib = DEFAULT_CACHE_MIB,
                      .limits = {.processes = CONFINEMENT_PROCESSES},
                      .log_mib = DEFAULT_LOG_MIB};
    const struct opt table[] = TABLE(&w);
    int n_args = 0;
    o->level = LOG_INFO;
    as_status st = opt_parse(table, argc, argv, &n_args, err);
    if (st < 0)
        return st;
    o->help = w.help;
    o->version = w.version;
    if (o->help || o->version)
        return AS_OK;
    if (n_args > 0)
        return as_fail(err, AS_E_INVAL,
                       "'%.100s' is not an option; assay-runner takes no arguments", argv[1]);
    return check_words(o, &w, err);
}
