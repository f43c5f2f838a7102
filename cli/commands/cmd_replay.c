/* assay replay SWEEP | --file EXPORT: computes every suggestion again and compares it bit for bit,
 * makes every decision of early stopping again, and every bound of what was left to gain.
 *
 * The replays (search/replay.h, search/stop_replay.h) get the sweep and its trials from the server
 * or from an export, and return one step per suggestion or decision. This file only counts and
 * prints the steps. A difference is
 * exit code 1, but no error: the command did what it was asked to do. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/view/format.h"
#include "cli/commands/sweep_record.h"
#include "cli/session/interrupt.h"
#include "cli/session/session.h"
#include "cli/view/say.h"
#include "search/regret_replay.h"
#include "search/replay.h"
#include "search/stop_replay.h"
#include "search/suggest.h"

#define MAX_SHOWN 5 /* differences that are printed */
#define TICK_NS (NS_PER_MS * 250)

struct replay_run {
    struct session session;
    const char *file;
    json_t *sweep, *items; /* owned */
    json_t *differences;   /* owned */
    size_t done, same;
    bool has_decisions; /* the sweep has early stopping */
    size_t decided, decided_same;
    size_t bounds, bounds_same; /* of what was left to gain */
};

/* Print one difference: the trial, its stored parameters, and the parameters of the replay. */
static void say_difference(const struct replay_step *step)
{
    struct str stored = {0}, again = {0};
    if (!step->again) {
        say("trial %" PRIu64 ": no suggestion this time: %s", step->number, step->why);
        return;
    }
    if (step->why) {
        say("trial %" PRIu64 ": %s", step->number, step->why);
        return;
    }
    format_params(&stored, step->stored, FORMAT_EXACT);
    format_params(&again, step->again, FORMAT_EXACT);
    say("trial %" PRIu64 "\n  stored  %.400s\n  again   %.400s", step->number, str_cstr(&stored),
        str_cstr(&again));
    str_done(&stored);
    str_done(&again);
}

static as_status keep_difference(struct replay_run *run, const struct replay_step *step,
                                 struct as_err *err)
{
    json_t *j = json_pack("{s:I, s:O, s:O?, s:s?}", "number", (json_int_t)step->number, "stored",
                          step->stored, "again", step->again, "reason", step->why);
    if (!j || json_array_append_new(run->differences, j) != 0)
        return as_fail_nomem(err);
    if (json_array_size(run->differences) <= MAX_SHOWN && !run->session.json)
        say_difference(step);
    return AS_OK;
}

/* On a terminal: show the progress of a long replay. */
static void show_progress(const struct replay_run *run, size_t total, int64_t *shown_ns)
{
    if (!isatty(STDERR_FILENO) || clock_mono_ns() - *shown_ns < TICK_NS)
        return;
    *shown_ns = clock_mono_ns();
    (void)fprintf(stderr, "\r%zu of %zu\x1b[K\r", run->done, total);
}

static as_status replay_all(struct replay_run *run, struct replay *r, struct as_err *err)
{
    int64_t shown_ns = clock_mono_ns();
    while (!interrupt_seen()) {
        struct replay_step step;
        as_status st = replay_next(r, &step, err);
        if (st == AS_E_EXHAUSTED)
            break;
        if (st < 0)
            return st;
        run->done++;
        run->same += step.is_same;
        if (!step.is_same && (st = keep_difference(run, &step, err)) < 0)
            return st;
        show_progress(run, replay_suggested(r), &shown_ns);
    }
    if (isatty(STDERR_FILENO))
        (void)fputs("\x1b[K", stderr);
    return AS_OK;
}

/* ---- decisions of early stopping ---- */

static const char *event_name(const struct stored_event *e)
{
    return e->kind == STORED_PROMOTION ? "promotion" : "decision";
}

static as_status keep_decision(struct replay_run *run, const struct decision_step *step,
                               struct as_err *err)
{
    const struct stored_event *e = step->stored;
    json_t *j = json_pack("{s:I, s:I, s:I, s:s, s:s}", "number", (json_int_t)e->result.number,
                          "rung", (json_int_t)e->result.rung, "seq", (json_int_t)e->result.seq,
                          "event", event_name(e), "reason", step->why);
    if (!j || json_array_append_new(run->differences, j) != 0)
        return as_fail_nomem(err);
    if (json_array_size(run->differences) <= MAX_SHOWN && !run->session.json)
        say("trial %" PRIu64 ", %s at rung %u: %s", e->result.number, event_name(e), e->result.rung,
            step->why);
    return AS_OK;
}

static as_status replay_decisions(struct replay_run *run, struct stop_replay *r, struct as_err *err)
{
    struct decision_replay *decisions = stop_replay_decisions(r);
    run->has_decisions = true;
    while (!interrupt_seen()) {
        struct decision_step step;
        as_status st = decision_replay_next(decisions, &step, err);
        if (st == AS_E_EXHAUSTED)
            break;
        if (st < 0)
            return st;
        run->decided++;
        run->decided_same += step.is_same;
        if (!step.is_same && (st = keep_decision(run, &step, err)) < 0)
            return st;
    }
    if (run->decided < decision_replay_total(decisions) && !interrupt_seen())
        say("After %d differences the other %zu decisions were not compared.",
            DECISION_REPLAY_DIFFERENCES, decision_replay_total(decisions) - run->decided);
    return AS_OK;
}

/* ---- bounds of what was left to gain ---- */

static as_status keep_bound(struct replay_run *run, const struct regret_step *step,
                            struct as_err *err)
{
    json_t *j = json_pack("{s:I, s:s, s:s}", "completed", (json_int_t)step->completed, "event",
                          "bound", "reason", step->why);
    if (!j || json_array_append_new(run->differences, j) != 0)
        return as_fail_nomem(err);
    if (json_array_size(run->differences) <= MAX_SHOWN && !run->session.json)
        say("bound after %" PRId64 " completed trials: %s", step->completed, step->why);
    return AS_OK;
}

static as_status replay_bounds(struct replay_run *run, struct replay *r, struct as_err *err)
{
    const json_t *checks = json_object_get(run->sweep, "regret_checks");
    for (size_t i = 0; i < json_array_size(checks) && !interrupt_seen(); i++) {
        struct regret_step step;
        as_status st = regret_replay_step(r, checks, i, &step, err);
        if (st < 0)
            return st;
        run->bounds++;
        run->bounds_same += step.is_same;
        if (!step.is_same && (st = keep_bound(run, &step, err)) < 0)
            return st;
    }
    return AS_OK;
}

/* ---- the summary ---- */

/* After differences: explain for which methods equal bits are promised only on one machine. */
static void say_what_is_promised(const struct replay_run *run)
{
    const char *name = json_string_value(json_object_get(run->sweep, "method"));
    const struct search_method *method;
    if (run->same == run->done || !name ||
        search_method_parse(name, "/method", &method, NULL) < 0 || !method->is_model_based)
        return;
    say("Suggestions of %s are exact for one build of assay on one machine: another "
        "compiler, other flags or another version may change the last digits.",
        name);
}

static as_status print_summary(const struct replay_run *run, const struct replay *r,
                               struct as_err *err)
{
    size_t added = replay_added(r), forked = replay_forked(r);
    if (run->session.json) {
        JSON_AUTO j =
            json_pack("{s:O?, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "sweep",
                      json_object_get(run->sweep, "id"), "suggested", (json_int_t)run->done, "same",
                      (json_int_t)run->same, "added", (json_int_t)added, "forked",
                      (json_int_t)forked, "decisions", (json_int_t)run->decided, "decisions_same",
                      (json_int_t)run->decided_same, "bounds", (json_int_t)run->bounds,
                      "bounds_same", (json_int_t)run->bounds_same, "differences", run->differences);
        return session_print_json(j, err);
    }
    if (json_array_size(run->differences) > MAX_SHOWN)
        say("… and %zu more", json_array_size(run->differences) - MAX_SHOWN);
    say_what_is_promised(run);
    if (printf("%zu of %zu suggestions are the same", run->same, run->done) < 0 ||
        (added > 0 &&
         printf("; %zu trial%s added by people", added, added == 1 ? " was" : "s were") < 0) ||
        (forked > 0 &&
         printf("; %zu trial%s forked", forked, forked == 1 ? " was" : "s were") < 0) ||
        putchar('\n') == EOF ||
        (run->has_decisions && printf("%zu of %zu decisions of early stopping are the same\n",
                                      run->decided_same, run->decided) < 0) ||
        (run->bounds > 0 && printf("%zu of %zu bounds of what was left to gain are the same\n",
                                   run->bounds_same, run->bounds) < 0))
        return as_fail(err, AS_E_IO, "cannot write the output");
    return AS_OK;
}

static as_status load_record(struct replay_run *run, const char *name, struct as_err *err)
{
    return run->file ? sweep_record_read_file(run->file, &run->sweep, &run->items, err)
                     : sweep_record_fetch(run->session.client, name, &run->sweep, &run->items, err);
}

static as_status replay_and_print(struct replay_run *run, const char *name, struct as_err *err)
{
    AS_AUTO(replay_freep) struct replay *r = NULL;
    AS_AUTO(stop_replay_freep) struct stop_replay *stops = NULL;
    run->differences = json_array();
    if (!run->differences)
        return as_fail_nomem(err);
    as_status st = load_record(run, name, err);
    if (st < 0)
        return st;
    st = replay_create(run->sweep, run->items, &r, err);
    if (st < 0)
        return st;
    st = stop_replay_create(run->sweep, run->items, &stops, err);
    if (st < 0)
        return st;
    st = replay_all(run, r, err);
    if (st == AS_OK && stops)
        st = replay_decisions(run, stops, err);
    if (st == AS_OK)
        st = replay_bounds(run, r, err);
    if (st < 0)
        return st;
    return interrupt_seen() ? AS_OK : print_summary(run, r, err);
}

static int run_replay(struct replay_run *run, const char *name)
{
    struct as_err err = {0};
    int code = session_end(&run->session, replay_and_print(run, name, &err), &err);
    bool differs =
        run->same < run->done || run->decided_same < run->decided || run->bounds_same < run->bounds;
    return code == EXIT_OK && differs ? EXIT_FAIL : code;
}

int cmd_replay(const struct verb *v, int argc, char **argv)
{
    struct replay_run run = {0};
    int n, code;
    const struct opt table[] = {
        {"file", 'f', OPT_STRING, &run.file, "FILE", NULL,
         "an export (assay export --json); no server is needed"},
        SESSION_OPTS(&run.session),
    };
    run.session.instead = &run.file;
    if (session_begin(&run.session, v, table, argc, argv, 0, 1, &n, &code)) {
        if (run.file ? n > 0 : n < 1)
            code = exit_with_usage(v->name, "expected SWEEP, or --file EXPORT");
        else
            code = run_replay(&run, argv[1]);
    }
    json_decref(run.sweep);
    json_decref(run.items);
    json_decref(run.differences);
    session_done(&run.session);
    return code;
}
