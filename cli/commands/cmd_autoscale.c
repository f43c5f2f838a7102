/* assay autoscale NAME: keeps a fleet between two bounds by the demand. Every decision is a line
 * with its reason. While the server or the cluster cannot be reached, it waits and changes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/commands/fleet_token.h"
#include "cli/fleet/fleet_look.h"
#include "cli/fleet/saved_fleet.h"
#include "cli/session/exit_code.h"
#include "cli/session/interrupt.h"
#include "cli/session/request.h"
#include "cli/session/session.h"

#define AWAY_FIRST_MS 1000

struct autoscale {
    struct session session;
    struct fleet_spec spec;
    json_t *tree;     /* owned: of the spec */
    char *token_file; /* owned */
    struct autoscale_bounds bounds;
    struct autoscale_memory memory;
    int64_t every_ms;
    bool dry_run, once;
    char said[600]; /* the last reason: it is printed again only when it changes */
};

/* One line of the log: "2026-11-27T22:01:07Z lab: 3 slots wait, …". */
static void log_line(struct autoscale *a, const char *text)
{
    char now[32];
    if (strncmp(a->said, text, sizeof a->said - 1) == 0)
        return;
    (void)snprintf(a->said, sizeof a->said, "%s", text);
    printf("%s %s: %s%s\n", clock_format_utc(clock_wall_ms(), now), a->spec.name,
           a->dry_run ? "(dry run) " : "", text);
    (void)fflush(stdout);
}

/* With a token that the server refuses, jobs would die at their start. It is read each time,
 * because `assay launch` may have made another one; this program makes none, since somebody may
 * have revoked it so that the fleet ends. */
static as_status submit(struct autoscale *a, int64_t jobs, struct as_err *err)
{
    AS_AUTO(as_freep) char *token = NULL;
    as_status st = fleet_token_read(a->token_file, &token, err);
    if (st == AS_OK && fleet_token_is_refused(&a->session, token))
        return as_fail(err, AS_E_CONFLICT,
                       "the server refuses the token of the runners, so no jobs are started "
                       "(assay launch %s --name %s --scale 1 makes another one)",
                       fleet_engine_words[a->spec.engine], a->spec.name);
    return st == AS_OK ? engine_of(&a->spec)->submit(&a->spec, jobs, token, err) : st;
}

static as_status act(struct autoscale *a, const struct autoscale_action *action, int64_t now_ms,
                     struct as_err *err)
{
    as_status st = AS_OK;
    if (action->start > 0) {
        st = a->dry_run ? AS_OK : submit(a, action->start, err);
        autoscale_asked(&a->memory, &a->bounds, now_ms, st == AS_OK,
                        st == AS_OK && !a->dry_run ? action->start : 0);
    }
    if (st == AS_OK && action->n_stop > 0 && !a->dry_run)
        st = engine_of(&a->spec)->stop(&a->spec, action->stop, action->n_stop, err);
    return st;
}

static as_status look_and_act(struct autoscale *a, struct as_err *err)
{
    AS_AUTO(fleet_units_done) struct fleet_units units = {0};
    AS_AUTO(fleet_look_done) struct fleet_look at = {0};
    AS_AUTO(autoscale_action_done) struct autoscale_action action = {0};
    JSON_AUTO runners = NULL;
    JSON_AUTO demand = NULL;
    int64_t now_ms = clock_mono_ns() / NS_PER_MS;
    /* Jobs, runners, demand, in this order: for a runner that registers meanwhile too few jobs are
     * asked for, which the next look makes good; in another order too many. */
    as_status st = engine_of(&a->spec)->list(&a->spec, &units, err);
    if (st == AS_OK)
        st = request_list(a->session.client, "/v1/runners", NULL, 0, &runners, err);
    if (st == AS_OK)
        st = client_call(a->session.client, "GET", "/v1/demand", NULL, NULL, NULL, &demand, NULL,
                         err);
    if (st == AS_OK)
        st = fleet_look_make(&a->spec, &units, runners, demand, &at, err);
    if (st < 0)
        return st;
    const struct autoscale_look look = {.now_ms = now_ms,
                                        .kinds = at.kinds,
                                        .n_kinds = at.n_kinds,
                                        .units = at.units,
                                        .n_units = at.n};
    st = autoscale_plan(&a->spec, &a->bounds, &look, &a->memory, &action, err);
    if (st < 0)
        return st;
    log_line(a, str_cstr(&action.why));
    return act(a, &action, now_ms, err);
}

/* What goes by itself: something is away, or the cluster refuses jobs now (a quota that is full).
 */
static bool may_pass(as_status st)
{
    return st == AS_E_UNAVAILABLE || st == AS_E_CONFLICT;
}

static as_status run(struct autoscale *a, struct as_err *err)
{
    int64_t pause_ms = AWAY_FIRST_MS;
    do {
        as_status st = look_and_act(a, err);
        if (st == AS_OK) {
            pause_ms = AWAY_FIRST_MS;
        } else if (a->once || !may_pass(st)) {
            return st;
        } else {
            log_line(a, err->msg);
            pause_ms = pause_ms * 2 < a->every_ms ? pause_ms * 2 : a->every_ms;
        }
        if (a->once || !interrupt_sleep_ms(st == AS_OK ? a->every_ms : pause_ms))
            return st;
    } while (!interrupt_seen());
    return AS_OK;
}

static as_status check_bounds(const struct autoscale *a, struct as_err *err)
{
    const struct opt_range ranges[] = {{"min", a->bounds.min, 0, FLEET_UNITS_MAX},
                                       {"max", a->bounds.max, 1, FLEET_UNITS_MAX},
                                       {"every", a->every_ms, 100, INT32_MAX},
                                       {"cool-down", a->bounds.cool_down_ms, 0, INT32_MAX},
                                       {"idle", a->bounds.idle_ms, 0, INT32_MAX}};
    as_status st = opt_check_ranges(ranges, AS_ARRAY_LEN(ranges), err);
    if (st < 0)
        return as_fail(err, AS_E_USAGE, "%s", err->msg);
    if (a->bounds.min > a->bounds.max)
        return as_fail(err, AS_E_USAGE, "--min %lld is above --max %lld", (long long)a->bounds.min,
                       (long long)a->bounds.max);
    return AS_OK;
}

static as_status autoscale(struct autoscale *a, const char *name, struct as_err *err)
{
    AS_AUTO(as_freep) char *token = NULL;
    AS_AUTO(file_closep) int lock = -1;
    as_status st = check_bounds(a, err);
    if (st == AS_OK)
        st = saved_fleet_read(name, &a->spec, &a->tree, err);
    if (st == AS_OK && !a->dry_run)
        st = saved_fleet_lock(name, &lock, err);
    if (st == AS_OK)
        st = fleet_token_file(&a->session, name, a->spec.token_file, &a->token_file, err);
    if (st == AS_OK) /* before the first jobs: it is there, and has the form of a token */
        st = fleet_token_read(a->token_file, &token, err);
    return st == AS_OK ? run(a, err) : st;
}

int cmd_autoscale(const struct verb *v, int argc, char **argv)
{
    struct autoscale a = {.bounds = {.max = 10, .cool_down_ms = 60000, .idle_ms = 300000},
                          .every_ms = 15000};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {
        {"min", 0, OPT_I64, &a.bounds.min, "N", NULL, "never fewer jobs (0)"},
        {"max", 0, OPT_I64, &a.bounds.max, "N", NULL, "never more jobs (10)"},
        {"cool-down", 0, OPT_DURATION, &a.bounds.cool_down_ms, "TIME", NULL,
         "between two times that jobs are asked for (1m)"},
        {"idle", 0, OPT_DURATION, &a.bounds.idle_ms, "TIME", NULL,
         "end a job that has done nothing for so long (5m)"},
        {"every", 0, OPT_DURATION, &a.every_ms, "TIME", NULL, "look so often (15s)"},
        {"dry-run", 0, OPT_FLAG, &a.dry_run, NULL, NULL, "say what it would do, and do nothing"},
        {"once", 0, OPT_FLAG, &a.once, NULL, NULL, "look once, for cron"},
        SESSION_OPTS(&a.session),
    };
    if (session_begin(&a.session, v, table, argc, argv, 1, 1, &n, &code))
        code = session_end(&a.session, autoscale(&a, argv[1], &err), &err);
    autoscale_memory_done(&a.memory);
    json_decref(a.tree);
    free(a.token_file);
    session_done(&a.session);
    return code;
}
