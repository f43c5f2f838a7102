/* Prints the summary of an ended sweep for `watch` and `run --watch`.
 *
 * All parts are fetched before the first line is printed, so that an error does not leave half a
 * summary. The ensemble is made after the sweep has ended, when the event stream is closed already;
 * so its state is polled. Every request is retried: the server may restart at this moment. */
#include "cli/commands/sweep_summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/view/ensemble_view.h"
#include "cli/view/format.h"
#include "cli/session/interrupt.h"
#include "cli/view/objectives.h"
#include "cli/view/rung_view.h"
#include "cli/view/test_view.h"
#include "cli/view/text.h"
#include "cli/view/trial_table.h"

#define ORDINARY_END "every trial has ended" /* says nothing of a completed sweep */
#define ENSEMBLE_WAIT_MS 60000
#define ENSEMBLE_POLL_MS 300
#define RETRY_MS 30000 /* the server may be restarting */

static as_status get_part(const struct session *s, const struct trial_ref *ref, const char *rest,
                          const char *query, json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    const struct client_opts opts = {.retry_ms = RETRY_MS};
    request_path(&path, ref, rest);
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    return client_call(s->client, "GET", path.s, query, NULL, &opts, ret, NULL, err);
}

/* Get the ensemble when it is no longer pending. *ret stays NULL when the sweep has none. */
static as_status get_ensemble(const struct session *s, const struct trial_ref *ref, json_t **ret,
                              struct as_err *err)
{
    int64_t start = clock_mono_ns();
    for (;;) {
        JSON_AUTO e = NULL;
        as_status st = get_part(s, ref, "ensemble", NULL, &e, err);
        if (st == AS_E_NOT_FOUND)
            return AS_OK;
        if (st < 0)
            return st;
        bool pending = as_streq(json_string_value(json_object_get(e, "state")), "pending");
        if (!pending || (clock_mono_ns() - start) / NS_PER_MS > ENSEMBLE_WAIT_MS ||
            !interrupt_sleep_ms(ENSEMBLE_POLL_MS)) {
            *ret = as_steal(e);
            return AS_OK;
        }
    }
}

static void add_sweep(const json_t *sweep, const struct terminal *terminal, struct str *b)
{
    const char *state = json_string_value(json_object_get(sweep, "state"));
    const char *reason = json_string_value(json_object_get(sweep, "reason"));
    const json_t *counts = json_object_get(sweep, "counts");
    char buf[32];
    int64_t ms = format_elapsed_ms(json_object_get(sweep, "started_at"),
                                   json_object_get(sweep, "finished_at"), clock_wall_ms());
    str_printf(b, "%s ", json_string_value(json_object_get(sweep, "id")));
    terminal_style_on(terminal, terminal_state_style(state), b);
    str_puts(b, state);
    terminal_style_off(terminal, terminal_state_style(state), b);
    str_printf(b, ": %" JSON_INTEGER_FORMAT " trials completed, %" JSON_INTEGER_FORMAT " failed",
               json_integer_value(json_object_get(counts, "completed")),
               json_integer_value(json_object_get(counts, "failed")));
    if (ms >= 0)
        str_printf(b, ", %s", clock_format_duration(ms, buf));
    if (reason && *reason && !(as_streq(state, "completed") && as_streq(reason, ORDINARY_END)))
        str_printf(b, " (%s)", reason);
    str_putc(b, '\n');
}

/* Of noisy values: why the best trial need not be the one of the best value. */
static void add_expected(const json_t *best, struct str *b)
{
    const json_t *told = json_object_get(best, "told");
    const json_t *mean = json_object_get(json_object_get(best, "expected"), "mean");
    if (!mean)
        return;
    str_puts(b, "Noisy values       a model expects ");
    format_value(b, mean, FORMAT_SHORT);
    str_puts(b, " of it; the best value, ");
    format_value(b, json_object_get(told, "value"), FORMAT_SHORT);
    str_printf(b, ", was trial %" JSON_INTEGER_FORMAT "'s\n",
               json_integer_value(json_object_get(told, "number")));
}

/* Add the best value of the sweep's metric, as reported by trials. Nothing is derived from the
 * metric's name, because a program may report any quantity under any name. The ensemble has a
 * metric of its own. */
static void add_best(const json_t *sweep, struct str *b)
{
    const json_t *best = json_object_get(sweep, "best");
    const char *metric =
        json_string_value(json_object_get(json_object_get(sweep, "metric"), "name"));
    if (!json_is_object(best) || !metric)
        return;
    str_printf(b, "Best trial         %s ", metric);
    format_value(b, json_object_get(best, "value"), FORMAT_SHORT);
    str_printf(b, ", trial %" JSON_INTEGER_FORMAT "\n",
               json_integer_value(json_object_get(best, "number")));
    add_expected(best, b);
    if (objectives_count(sweep) > 1)
        str_printf(b, "Front              assay best %s --pareto\n",
                   json_string_value(json_object_get(sweep, "id")));
}

/* Get the best trial with its figures on the test rows, if the ensemble has none. *ret stays NULL
 * if no trial has completed. */
static as_status get_tested(const struct session *s, const struct trial_ref *ref,
                            const json_t *sweep, const json_t *ensemble, json_t **ret,
                            struct as_err *err)
{
    char rest[48];
    const json_t *number = json_object_get(json_object_get(sweep, "best"), "number");
    if (!number || json_object_get(ensemble, "test"))
        return AS_OK;
    (void)snprintf(rest, sizeof rest, "trials/%" JSON_INTEGER_FORMAT, json_integer_value(number));
    return get_part(s, ref, rest, NULL, ret, err);
}

/* Get one failed trial, to show its reason. *ret stays NULL when no trial failed. */
static as_status get_failure(const struct session *s, const struct trial_ref *ref,
                             const json_t *sweep, json_t **ret, struct as_err *err)
{
    JSON_AUTO page = NULL;
    const json_t *counts = json_object_get(sweep, "counts");
    if (json_integer_value(json_object_get(counts, "failed")) == 0)
        return AS_OK;
    as_status st = get_part(s, ref, "trials", "state=failed&page_size=1", &page, err);
    if (st < 0)
        return st;
    *ret = json_incref(json_array_get(json_object_get(page, "items"), 0));
    return AS_OK;
}

static void add_failure(const json_t *sweep, const json_t *failure, struct str *b)
{
    const char *reason = json_string_value(json_object_get(failure, "reason"));
    const char *id = json_string_value(json_object_get(sweep, "id"));
    json_int_t number = json_integer_value(json_object_get(failure, "number"));
    if (!failure)
        return;
    str_printf(b, "A failed trial     %s/%" JSON_INTEGER_FORMAT ": ", id, number);
    text_escape(b, reason ? reason : "", reason ? strlen(reason) : 0, TEXT_ONE_LINE);
    str_printf(b, " (assay logs %s/%" JSON_INTEGER_FORMAT ")\n", id, number);
}

/* The parts of the summary besides the sweep; NULL: absent. */
struct results {
    json_t *best, *ensemble, *failure;
    json_t *tested; /* the best trial, with its test rows */
};

static void results_done(struct results *r)
{
    json_decref(r->best);
    json_decref(r->ensemble);
    json_decref(r->failure);
    json_decref(r->tested);
}

static as_status print_report(const struct session *s, const json_t *sweep, const struct results *r,
                              struct as_err *err)
{
    AS_AUTO(table_freep) struct table *t = NULL;
    AS_AUTO(str_done) struct str b = {0};
    const json_t *items = json_object_get(r->best, "items");
    as_status st;
    str_puts(&b, s->terminal.tty ? "\n" : "");
    add_sweep(sweep, &s->terminal, &b);
    (void)fputs(str_cstr(&b), stdout);
    if (json_array_size(items) > 0) {
        st = trial_table_create(items, TRIAL_TABLE_BEST, sweep, &s->terminal, &t, err);
        if (st < 0)
            return st;
        st = session_print_table(s, t, err);
        if (st < 0)
            return st;
    }
    str_clear(&b);
    str_puts(&b, s->terminal.tty ? "\n" : "");
    add_best(sweep, &b);
    if (json_array_size(json_object_get(r->ensemble, "members")) > 0)
        ensemble_view_summary(r->ensemble, &s->terminal, &b);
    test_view_trial(r->tested,
                    json_string_value(json_object_get(json_object_get(sweep, "metric"), "name")),
                    &b);
    rung_view_report(json_object_get(sweep, "early_stopping"), &b);
    add_failure(sweep, r->failure, &b);
    str_printf(&b, "Dashboard          %s/#/sweeps/%s\n", s->url,
               json_string_value(json_object_get(sweep, "id")));
    return session_print_text(&b, err);
}

as_status sweep_summary_print(const struct session *s, const struct trial_ref *ref,
                              const json_t *sweep, int64_t top, struct as_err *err)
{
    AS_AUTO(results_done) struct results r = {0};
    AS_AUTO(str_done) struct str query = {0};
    client_query_add_i64(&query, "top", top);
    as_status st = str_check(&query, err);
    if (st < 0)
        return st;
    st = get_part(s, ref, "best", query.s, &r.best, err);
    if (st < 0)
        return st;
    st = get_ensemble(s, ref, &r.ensemble, err);
    if (st < 0)
        return st;
    st = get_tested(s, ref, sweep, r.ensemble, &r.tested, err);
    if (st == AS_OK)
        st = get_failure(s, ref, sweep, &r.failure, err);
    if (st < 0)
        return st;
    if (!s->json)
        return print_report(s, sweep, &r, err);
    JSON_AUTO line =
        json_pack("{s:O?, s:O?, s:O?, s:O?, s:O?, s:O?}", "id", json_object_get(sweep, "id"),
                  "state", json_object_get(sweep, "state"), "reason",
                  json_object_get(sweep, "reason"), "best", json_object_get(r.best, "items"),
                  "ensemble", r.ensemble, "test", json_object_get(r.tested, "test"));
    return session_print_json_line(line, err);
}
