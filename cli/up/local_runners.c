/* Starts the runners of `assay up` and waits for them.
 *
 * A runner counts as started when the server lists it as live, not when its process runs: only then
 * has it used its token and can it receive trials. The supervisor restarts a runner that dies
 * meanwhile; more than three deaths per runner mean that another restart will not help. */
#include "cli/up/local_runners.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/client/client.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#define READY_TIMEOUT_MS 60000

/* The name of a runner: "local-1" with the private database. With a shared database, a name that no
 * other machine or data folder uses: "HOST-1a2b-1". */
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

/* The token, for runners of another user: they cannot read the file. Owned by the caller. */
static as_status read_token(const struct up *u, char **ret, struct as_err *err)
{
    size_t len;
    as_status st = file_read(u->folder.runner_token, 4096, ret, &len, err);
    if (st == AS_OK)
        (*ret)[strcspn(*ret, "\r\n")] = 0;
    return st;
}

/* Add a runner with its command line, and the user of the trials. */
static as_status add_child(struct up *u, const char *log_name, const char *const *argv, int *ret,
                           struct as_err *err)
{
    const struct trial_user *trials = &u->trials;
    AS_AUTO(as_freep) char *log = data_folder_new_log(&u->folder, log_name);
    AS_AUTO(as_freep) char *token = NULL;
    struct spawn_spec spec = {
        .argv = argv, .log_path = log, .death_signal = SIGTERM, .user = trials->user};
    as_status st = log ? AS_OK : as_fail_nomem(err);
    if (st == AS_OK && trials->user.name[0]) {
        st = read_token(u, &token, err);
        const char *const env[][2] = {{"ASSAY_TOKEN", token},
                                      {"HOME", trials->home},
                                      {"USER", trials->user.name},
                                      {"LOGNAME", trials->user.name}};
        memcpy(spec.set_env, env, sizeof env);
    }
    if (st < 0)
        return st;
    return supervisor_add(u->supervisor, log_name, &spec, stop_runner, ret, err);
}

static as_status add_runner(struct up *u, int64_t i, int *ret, struct as_err *err)
{
    char name[64], slots[24], gpus[40], log_name[80];
    AS_AUTO(str_done) struct str work = {0}, cache = {0};
    AS_AUTO(as_freep) char *folder = NULL;
    as_status st = runner_name(u, i + 1, name, sizeof name, err);
    if (st < 0 || (st = trial_user_folder(&u->trials, u->folder.path, &folder, err)) < 0)
        return st;
    (void)snprintf(slots, sizeof slots, "%" PRId64, u->slots);
    (void)snprintf(log_name, sizeof log_name, "runner-%" PRId64, i + 1);
    /* The GPUs are dealt in turn, so that none belongs to two runners. */
    (void)snprintf(gpus, sizeof gpus, "auto:%" PRId64 "/%" PRId64, i + 1, u->runners);
    str_printf(&work, "%s/runners/%s", folder, name);
    str_printf(&cache, "%s/cache", folder);
    if (work.failed || cache.failed)
        return as_fail_nomem(err);
    const char *const argv[] = {u->runner,
                                "--server",
                                u->url,
                                "--name",
                                name,
                                "--slots",
                                slots,
                                "--gpus",
                                gpus,
                                "--work",
                                str_cstr(&work),
                                "--cache",
                                str_cstr(&cache),
                                "--die-with-parent",
                                u->trials.user.name[0] ? NULL : "--token-file",
                                u->folder.runner_token,
                                NULL};
    st = add_child(u, log_name, argv, ret, err);
    if (st < 0)
        return st;
    return supervisor_start(u->supervisor, *ret, err);
}

/* How many of our runners the server reports as live. */
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

as_status up_runners_start(struct up *u, struct as_err *err)
{
    AS_AUTO(client_freep) struct client *c = NULL;
    int64_t end_ns = clock_mono_ns() + READY_TIMEOUT_MS * NS_PER_MS;
    as_status st = admin_client(u, &c, err);
    if (st < 0)
        return st;
    for (int64_t i = 0; i < u->runners; i++) {
        st = add_runner(u, i, &u->last_runner, err);
        if (i == 0)
            u->first_runner = u->last_runner; /* also on failure, because it may have been added */
        if (st < 0)
            return st;
    }
    while (count_live(u, c) < u->runners) {
        if (!supervisor_wait(u->supervisor, 50))
            return as_fail(err, AS_E_UNAVAILABLE, "interrupted");
        unsigned deaths = 0;
        for (int i = u->first_runner; i <= u->last_runner; i++)
            deaths += supervisor_deaths(u->supervisor, i);
        if (deaths > 3 * (unsigned)u->runners || clock_mono_ns() > end_ns)
            return as_fail(err, AS_E_IO, "the runners do not start; their logs are in %s",
                           u->folder.logs);
    }
    return AS_OK;
}
