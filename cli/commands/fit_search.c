/* The search of `assay fit`: one sweep, or two. A sweep's space is fixed, so ranges become wider in
 * a second sweep, which has the first one as `search.prior` and shares its ensemble with it. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "cli/commands/fit_run.h"
#include "cli/fit/fit_first.h"
#include "cli/fit/fit_sweep.h"
#include "cli/view/say.h"

#define ENOUGH_TRIALS 6 /* the best of fewer says little about ranges */
#define LEAST_WIDER_MS 5000

/* f->first_trials: those of earlier fits first. */
static as_status make_first_trials(struct fit *f, struct as_err *err)
{
    JSON_AUTO trials = fit_first_trials(&f->plan, &f->facts);
    const json_t *spaces = json_object_get(f->tree, "parameters");
    const struct fit_found found = {
        .warm = f->warm_trials, .defaults = f->defaults, .most = FIT_FRONT};
    str_clear(&f->first);
    if (!trials || fit_first_trials_found(&f->plan, spaces, &found, trials, &f->first) != 0)
        return as_fail_nomem(err);
    fit_first_trials_limit(&f->plan, trials);
    json_decref(f->first_trials);
    f->first_trials = as_steal(trials);
    return str_check(&f->first, err);
}

/* The first trials have no place in a document: a comment says where they are from. */
static void write_first(struct fit *f)
{
    if (f->first.len)
        str_puts(&f->document, "# First trials, which were good on public tables:\n");
    for (const char *line = str_cstr(&f->first), *end; (end = strchr(line, '\n')); line = end + 1)
        str_printf(&f->document, "#   %.*s\n", (int)(end - line), line);
}

as_status fit_search_write(struct fit *f, struct as_err *err)
{
    char name[FIT_NAME_MAX + 16];
    (void)snprintf(name, sizeof name, "%s-fit%s", f->model, f->narrow.sweep[0] ? "-wider" : "");
    str_clear(&f->document);
    fit_sweep_write(&f->plan, &f->facts, name, f->dataset, str_cstr(&f->command), &f->document);
    if (f->warm_from.len && !f->narrow.sweep[0])
        str_printf(&f->document, "# Warm start (search.prior): %s\n", str_cstr(&f->warm_from));
    if (f->wishes.layers > 1 && f->print)
        str_printf(&f->document,
                   "# Layers: after it, assay ensemble %s --method stacking --layers %lld\n", name,
                   (long long)f->wishes.layers);
    json_decref(f->tree);
    f->tree = NULL;
    as_status st = str_check(&f->document, err);
    if (st == AS_OK)
        st = yaml_parse(str_cstr(&f->document), f->document.len, &f->tree, err);
    if (st < 0 || f->narrow.sweep[0])
        return st;
    st = make_first_trials(f, err);
    write_first(f);
    return st < 0 ? st : str_check(&f->document, err);
}

static as_status create_paused(struct fit *f, struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    char key[CLIENT_KEY_SIZE];
    client_key_new(key);
    const struct client_opts opts = {.idempotency_key = key, .retry_ms = FIT_RETRY_MS};
    as_status st = client_call(f->session.client, "POST", "/v1/sweeps", "paused=true", f->tree,
                               &opts, &sweep, NULL, err);
    if (st < 0)
        return st;
    const char *id = json_string_value(json_object_get(sweep, "id"));
    return id ? request_parse_sweep(id, &f->sweep, err)
              : as_fail(err, AS_E_INTERNAL, "the server returned a sweep without an id");
}

static as_status add_first_trials(struct fit *f, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO answer = NULL;
    char key[CLIENT_KEY_SIZE];
    client_key_new(key);
    const struct client_opts opts = {.idempotency_key = key, .retry_ms = FIT_RETRY_MS};
    request_path(&path, &f->sweep, "trials");
    as_status st = str_check(&path, err);
    return st < 0 ? st
                  : client_call(f->session.client, "POST", path.s, NULL, f->first_trials, &opts,
                                &answer, NULL, err);
}

/* Of the search of the first layer. */
static int64_t left_ms(const struct fit *f)
{
    return f->first_ms - fit_elapsed_ms(f);
}

/* A further layer takes about as long as the trials that it trains again, with more columns. */
static void divide_time(struct fit *f)
{
    int64_t now = fit_elapsed_ms(f), left;
    f->begun_ms = now;
    left = f->time_ms - fit_kept_back_ms(f) - now;
    f->first_ms = now + (f->wishes.layers > 1 ? left * 3 / 5 : left);
}

/* Trials of the sweep that was made paused begin. */
static as_status let_it_run(const struct fit *f, struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s}", "state", "running");
    JSON_AUTO answer = NULL;
    return request_patch(f->session.client, &f->sweep, body, &answer, err);
}

static void say_first(const struct fit *f)
{
    size_t n = 0;
    for (const char *at = str_cstr(&f->first); (at = strchr(at, '\n')); at++)
        n++;
    if (n > 0)
        say("%zu of the first trials were good on public tables (--no-warm leaves them out)", n);
}

as_status fit_search_start(struct fit *f, struct as_err *err)
{
    divide_time(f);
    int64_t left = left_ms(f);
    if (left < 1000)
        return as_fail(err, AS_E_TIMEOUT,
                       "--time: reading and registering the table took %.0f s, and nothing is left "
                       "for the search",
                       (double)fit_elapsed_ms(f) / 1000);
    f->plan.search_ms = left;
    as_status st = fit_warm_find(f, err);
    if (st == AS_OK)
        st = fit_warm_defaults(f, err);
    if (st == AS_OK)
        st = fit_search_write(f, err);
    if (st == AS_OK)
        st = create_paused(f, err);
    if (st == AS_OK)
        st = add_first_trials(f, err);
    if (st == AS_OK)
        st = let_it_run(f, err);
    if (st == AS_OK)
        say_first(f);
    if (st == AS_OK)
        say("Sweep %s: by %s, %s; dashboard: %s/#/sweeps/%s", f->sweep.sweep, f->plan.metric,
            f->plan.folds ? "in folds" : "on held-out rows", f->session.url, f->sweep.sweep);
    return st;
}

/* ---- wider ranges ---- */

static int64_t count_of(const json_t *sweep, const char *state)
{
    return json_integer_value(json_object_get(json_object_get(sweep, "counts"), state));
}

/* No more trials of the sweep begin; it ends when those that run have ended. */
static as_status begin_no_more(const struct fit *f, const json_t *sweep, struct as_err *err)
{
    static const char *const states[] = {"running", "completed", "failed", "pruned", "cancelled"};
    JSON_AUTO answer = NULL;
    int64_t begun = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(states); i++)
        begun += count_of(sweep, states[i]);
    JSON_AUTO body = json_pack("{s:{s:I}}", "limits", "max_trials", (json_int_t)begun);
    return request_patch(f->session.client, &f->sweep, body, &answer, err);
}

/* The sweep becomes the first of those that the search learns from. */
static void know_first(const char *sweep, struct fit_plan *p)
{
    size_t n = p->n_priors < FIT_PRIORS ? p->n_priors : FIT_PRIORS - 1;
    memmove(p->priors + 1, p->priors, n * sizeof *p->priors);
    p->priors[0] = sweep;
    p->n_priors = n + 1;
}

static as_status start_wider(struct fit *f, const json_t *sweep, struct as_err *err)
{
    size_t done = (size_t)count_of(sweep, "completed");
    as_status st = begin_no_more(f, sweep, err);
    if (st < 0)
        return st;
    f->narrow = f->sweep;
    know_first(f->narrow.sweep, &f->plan);
    f->plan.search_ms = left_ms(f);
    f->plan.max_trials = f->plan.max_trials > done ? f->plan.max_trials - done : 1;
    st = fit_search_write(f, err);
    if (st == AS_OK)
        st = create_paused(f, err);
    if (st == AS_OK)
        st = let_it_run(f, err);
    if (st == AS_OK)
        say("Sweep %s goes on from %s with these ranges", f->sweep.sweep, f->narrow.sweep);
    return st;
}

as_status fit_search_widen(struct fit *f, struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    AS_AUTO(str_done) struct str says = {0};
    as_status st =
        request_get_within(f->session.client, &f->sweep, NULL, FIT_RETRY_MS, &sweep, err);
    if (st < 0)
        return st;
    const json_t *params = json_object_get(json_object_get(sweep, "best"), "params");
    if (count_of(sweep, "completed") < ENOUGH_TRIALS || left_ms(f) < LEAST_WIDER_MS ||
        fit_ranges_widen(f->plan.ranges, params, &says) == 0)
        return AS_OK;
    if ((st = str_check(&says, err)) < 0)
        return st;
    for (const char *line = says.s, *end; (end = strchr(line, '\n')); line = end + 1)
        say("%.*s", (int)(end - line), line);
    return start_wider(f, sweep, err);
}
