/* assay launch slurm | kubernetes | ssh: starts the runners of a fleet as jobs of a cluster; shows,
 * changes and ends them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/commands/fleet_token.h"
#include "cli/fleet/fleet_look.h"
#include "cli/fleet/saved_fleet.h"
#include "cli/session/exit_code.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/up/programs.h"
#include "cli/view/say.h"

struct launch {
    struct session session;
    struct fleet_spec spec;
    int64_t runners, scale;
    const char *memory;
    bool print, status, stop;
    bool is_engines; /* what failed was the engine's: no hint about the server */
    json_t *tree;    /* owned: of a spec that was read */
    char *token_file, *token, *logs, *program; /* owned: texts of the spec */
};

static void launch_done(struct launch *l)
{
    json_decref(l->tree);
    free(l->token_file);
    free(l->token);
    free(l->logs);
    free(l->program);
    session_done(&l->session);
}

/* Jobs of `ranks` runners each. */
static int64_t jobs_of(const struct fleet_spec *s, int64_t runners)
{
    return (runners + s->ranks - 1) / s->ranks;
}

static as_status read_engine(struct launch *l, char **args, int n, struct as_err *err)
{
    for (int i = 0; fleet_engine_words[i]; i++)
        if (as_streq(fleet_engine_words[i], args[0])) {
            l->spec.engine = i;
            if (i != FLEET_SSH && n > 1)
                return as_fail(err, AS_E_USAGE, "'%.80s': only ssh takes hosts", args[1]);
            if (n - 1 > FLEET_HOSTS_MAX)
                return as_fail(err, AS_E_USAGE, "%d hosts, at most %d", n - 1, FLEET_HOSTS_MAX);
            for (int k = 1; k < n; k++)
                l->spec.hosts[l->spec.n_hosts++] = args[k];
            return AS_OK;
        }
    return as_fail(err, AS_E_USAGE, "'%.80s' is no engine: expected slurm, kubernetes or ssh",
                   args[0]);
}

/* What was not given: the server as this program reaches it, and the runner beside this program
 * where nodes share its folder. */
static as_status fill_in(struct launch *l, struct as_err *err)
{
    struct fleet_spec *s = &l->spec;
    as_status st = AS_OK;
    if (l->memory && (st = as_parse_size(l->memory, &s->memory_bytes, err)) < 0)
        return as_fail(err, AS_E_USAGE, "--memory is '%.40s', expected a size such as 16GiB",
                       l->memory);
    if (!s->server)
        s->server = l->session.url;
    if (!s->program && s->engine == FLEET_SLURM &&
        program_find("assay-runner", &l->program, NULL) == AS_OK)
        s->program = l->program;
    if (s->server && (strstr(s->server, "://127.0.0.1") || strstr(s->server, "://localhost")))
        say("Runners on other machines do not reach %s: say how they do with --runner-server.",
            s->server);
    if (s->engine == FLEET_SLURM && !s->logs && s->name) {
        st = saved_fleet_folder(s->name, &l->logs, err);
        s->logs = l->logs;
    }
    return st;
}

static as_status find_token(struct launch *l, struct as_err *err)
{
    struct fleet_spec *s = &l->spec;
    as_status st =
        fleet_token_ensure(&l->session, s->name, s->token_file, &l->token_file, &l->token, err);
    if (st == AS_OK)
        s->token_file = l->token_file;
    return st;
}

static as_status print_jobs(struct launch *l, struct as_err *err)
{
    AS_AUTO(str_done) struct str text = {0};
    struct fleet_spec *s = &l->spec;
    if (s->engine == FLEET_SLURM && !s->token_file)
        s->token_file = "/path/of/runner.token"; /* --runner-token FILE */
    as_status st = fleet_spec_check(s, err);
    if (st == AS_OK)
        st = engine_of(s)->print(s, jobs_of(s, l->runners > 0 ? l->runners : 1), &text, err);
    return st < 0 ? st : session_print_text(&text, err);
}

static as_status submit(struct launch *l, int64_t jobs, struct as_err *err)
{
    const struct fleet_spec *s = &l->spec;
    as_status st = jobs > 0 ? engine_of(s)->submit(s, jobs, l->token, err) : AS_OK;
    l->is_engines = st < 0;
    if (st == AS_OK && jobs > 0)
        say("%lld job%s of the fleet %s: assay launch %s --name %s --status", (long long)jobs,
            jobs == 1 ? "" : "s", s->name, fleet_engine_words[s->engine], s->name);
    return st;
}

static as_status launch(struct launch *l, struct as_err *err)
{
    as_status st = fleet_spec_check(&l->spec, err);
    if (st == AS_OK)
        st = find_token(l, err);
    if (st == AS_OK) /* the path of the token is new */
        st = fleet_spec_check(&l->spec, err);
    if (st == AS_OK && l->spec.logs)
        st = file_mkdirs(l->spec.logs, 0700, err);
    if (st == AS_OK)
        st = saved_fleet_write(&l->spec, err);
    return st == AS_OK ? submit(l, jobs_of(&l->spec, l->runners), err) : st;
}

/* ---- a fleet that was launched before ---- */

/* The options of the command line are replaced by what was saved. */
static as_status read_saved(struct launch *l, struct as_err *err)
{
    int64_t engine = l->spec.engine;
    if (!l->spec.name)
        return as_fail(err, AS_E_USAGE, "expected --name");
    as_status st = saved_fleet_read(l->spec.name, &l->spec, &l->tree, err);
    if (st == AS_OK && l->spec.engine != engine)
        return as_fail(err, AS_E_USAGE, "the fleet %s was launched with %s", l->spec.name,
                       fleet_engine_words[l->spec.engine]);
    return st;
}

static as_status look(struct launch *l, struct fleet_units *units, struct fleet_look *ret,
                      struct as_err *err)
{
    JSON_AUTO runners = NULL;
    as_status st = engine_of(&l->spec)->list(&l->spec, units, err);
    l->is_engines = st < 0;
    if (st == AS_OK)
        st = request_list(l->session.client, "/v1/runners", NULL, 0, &runners, err);
    return st == AS_OK ? fleet_look_make(&l->spec, units, runners, NULL, ret, err) : st;
}

static as_status print_status(struct launch *l, struct as_err *err)
{
    AS_AUTO(fleet_units_done) struct fleet_units units = {0};
    AS_AUTO(fleet_look_done) struct fleet_look at = {0};
    AS_AUTO(table_freep) struct table *t = table_create();
    as_status st = look(l, &units, &at, err);
    if (st < 0)
        return st;
    if (!t)
        return as_fail_nomem(err);
    table_column(t, "job", TABLE_LEFT, 12);
    table_column(t, "state", TABLE_LEFT, 0);
    table_column(t, "runners", TABLE_RIGHT, 0);
    table_column(t, "used", TABLE_RIGHT, 0);
    table_column(t, "reason", TABLE_LEFT, 8);
    for (size_t i = 0; i < at.n; i++) {
        table_cell(t, units.v[i].id);
        table_cell(t, unit_state_words[units.v[i].state]);
        table_cellf(t, "%lld", (long long)at.units[i].runners);
        table_cellf(t, "%lld", (long long)at.used[i]);
        table_cell(t, units.v[i].reason);
    }
    return session_print_table(&l->session, t, err);
}

/* keep: jobs. */
static as_status scale(struct launch *l, int64_t keep, struct as_err *err)
{
    AS_AUTO(fleet_units_done) struct fleet_units units = {0};
    AS_AUTO(fleet_look_done) struct fleet_look at = {0};
    AS_AUTO(as_freep) const char **ids = NULL;
    size_t n = 0;
    as_status st = look(l, &units, &at, err);
    if (st == AS_OK)
        st = fleet_look_surplus(&at, keep, &ids, &n, err);
    if (st == AS_OK && n > 0) {
        st = engine_of(&l->spec)->stop(&l->spec, ids, n, err);
        l->is_engines = st < 0;
        if (st == AS_OK)
            say("%zu job%s: their runners hand back what they run, and leave", n,
                n == 1 ? "" : "s");
        return st;
    }
    int64_t more = keep;
    for (size_t i = 0; i < units.n; i++)
        more -= units.v[i].state != UNIT_ENDING;
    if (st == AS_OK && more > 0)
        st = find_token(l, err);
    return st == AS_OK ? submit(l, more, err) : st;
}

static as_status run(struct launch *l, struct as_err *err)
{
    bool saved = l->status || l->stop || l->scale >= 0;
    if (l->status + l->stop + (l->scale >= 0) + l->print > 1)
        return as_fail(err, AS_E_USAGE, "--print, --status, --scale and --stop are one at a time");
    if (l->runners < 0 || l->runners > FLEET_UNITS_MAX || l->scale > FLEET_UNITS_MAX)
        return as_fail(err, AS_E_USAGE, "expected 0 to %d runners", FLEET_UNITS_MAX);
    as_status st = saved ? read_saved(l, err) : fill_in(l, err);
    if (st < 0)
        return st;
    if (l->print)
        return print_jobs(l, err);
    if (l->status)
        return print_status(l, err);
    return saved ? scale(l, l->stop ? 0 : jobs_of(&l->spec, l->scale), err) : launch(l, err);
}

int cmd_launch(const struct verb *v, int argc, char **argv)
{
    struct launch l = {.spec = {.slots = 1, .ranks = 1}, .runners = 1, .scale = -1};
    struct fleet_spec *s = &l.spec;
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {
        {"name", 0, OPT_STRING, &s->name, "NAME", NULL, "the fleet's name"},
        {"runners", 'n', OPT_I64, &l.runners, "N", NULL, "how many runners (1)"},
        {"print", 0, OPT_FLAG, &l.print, NULL, NULL,
         "print what would be submitted, without credentials"},
        {"status", 0, OPT_FLAG, &l.status, NULL, NULL, "show the jobs of the fleet"},
        {"scale", 0, OPT_I64, &l.scale, "N", NULL, "start or end jobs until there are N runners"},
        {"stop", 0, OPT_FLAG, &l.stop, NULL, NULL, "end all its jobs"},
        {"slots", 0, OPT_I64, &s->slots, "N", NULL, "trials at once in each runner (1)"},
        {"cpus", 0, OPT_I64, &s->cpus, "N", NULL, "cores of each runner"},
        {"memory", 0, OPT_STRING, &l.memory, "SIZE", NULL, "memory of each runner, such as 16GiB"},
        {"gpus", 0, OPT_I64, &s->gpus, "N", NULL, "GPUs of each runner (0)"},
        {"ranks", 0, OPT_I64, &s->ranks, "N", NULL,
         "runners of one job, which start together, for large trials (1)"},
        {"time", 0, OPT_DURATION, &s->time_ms, "TIME", NULL,
         "how long a job may take; trials go on elsewhere then"},
        {"idle-exit", 0, OPT_DURATION, &s->idle_exit_ms, "TIME", NULL,
         "a runner leaves after so long without a trial (never)"},
        {"runner-server", 0, OPT_STRING, &s->server, "URL", NULL,
         "the server, as runners reach it (as this program does)"},
        {"runner-token", 0, OPT_STRING, &s->token_file, "FILE", NULL,
         "a runner's token, mode 0600 (a new one is made)"},
        {"program", 0, OPT_STRING, &s->program, "PATH", NULL,
         "assay-runner on the nodes, or in the image"},
        {"work", 0, OPT_STRING, &s->work, "DIR", NULL, "folder for work folders, on a local disk"},
        {"partition", 0, OPT_STRING, &s->partition, "NAME", NULL, "slurm"},
        {"account", 0, OPT_STRING, &s->account, "NAME", NULL, "slurm"},
        {"qos", 0, OPT_STRING, &s->qos, "NAME", NULL, "slurm"},
        {"constraint", 0, OPT_STRING, &s->constraint, "TEXT", NULL, "slurm: features of nodes"},
        {"logs", 0, OPT_STRING, &s->logs, "DIR", NULL,
         "slurm: logs of the jobs (the fleet's folder)"},
        {"image", 0, OPT_STRING, &s->image, "IMAGE", NULL, "kubernetes: with assay-runner"},
        {"namespace", 0, OPT_STRING, &s->namespace, "NAME", NULL, "kubernetes (default)"},
        {"context", 0, OPT_STRING, &s->context, "NAME", NULL, "kubernetes: of kubectl"},
        {"pull-secret", 0, OPT_STRING, &s->pull_secret, "NAME", NULL,
         "kubernetes: a secret for the image"},
        {"queue", 0, OPT_STRING, &s->queue, "NAME", NULL,
         "kubernetes: a queue of Kueue, which starts the ranks of a job together"},
        SESSION_OPTS(&l.session),
    };
    if (session_begin(&l.session, v, table, argc, argv, 1, 1 + FLEET_HOSTS_MAX, &n, &code)) {
        as_status st = read_engine(&l, argv + 1, n, &err);
        if (st == AS_OK)
            st = run(&l, &err);
        code =
            l.is_engines ? exit_with_error(v->name, st, &err) : session_end(&l.session, st, &err);
    }
    launch_done(&l);
    return code;
}
