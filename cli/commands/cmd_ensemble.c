/* assay ensemble: prints the members of an ensemble on stdout, and its figures in words on stderr.
 *
 * Some methods train (follow_up.h): each makes a sweep of the best configuration, and follows it.
 * So does stacking in layers (layer_sweep.h), a sweep for each further layer; the ensemble of all
 * layers is then asked for, so that they are judged together. The others need predictions alone.
 * Without options that is the ensemble that the sweep got at its end. With a method, or with
 * several sweeps, another one is asked for, and waited for; asked again, the server finds it. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/commands/ensemble_ask.h"
#include "cli/commands/follow_up.h"
#include "cli/commands/layer_run.h"
#include "cli/commands/layer_sweep.h"
#include "cli/commands/watch.h"
#include "cli/session/exit_code.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/ensemble_view.h"
#include "cli/view/say.h"

#define MAX_SWEEPS 20

struct wish {
    const char *method; /* NULL: not given */
    const char *by;     /* likewise */
    int64_t size;       /* 0: not given */
    int64_t layers;     /* 0: not given */
    const char *metric;
    const char *max_size; /* NULL: not given */
    bool non_negative, calibrate, list;
};

static as_status print_ensemble(const struct session *s, const json_t *ensemble, struct as_err *err)
{
    AS_AUTO(table_freep) struct table *t = NULL;
    AS_AUTO(str_done) struct str summary = {0};
    const struct terminal talk = terminal_of(stderr);
    as_status st;
    if (json_array_size(json_object_get(ensemble, "members")) > 0) {
        st = ensemble_view_members(ensemble, &s->terminal, &t, err);
        if (st < 0)
            return st;
        st = session_print_table(s, t, err);
        if (st < 0)
            return st;
    }
    ensemble_view_summary(ensemble, &talk, &summary);
    st = str_check(&summary, err);
    if (st < 0)
        return st;
    if (fflush(stdout) == 0)
        (void)fputs(str_cstr(&summary), stderr);
    return AS_OK;
}

/* AS_E_NOT_FOUND: there is none (yet); with --json it is printed all the same. */
static as_status show_ensemble(const struct session *s, const struct trial_ref *ref,
                               struct as_err *err)
{
    JSON_AUTO ensemble = NULL;
    as_status st = request_get(s->client, ref, "ensemble", NULL, &ensemble, err);
    if (st < 0)
        return st;
    const char *state = json_string_value(json_object_get(ensemble, "state"));
    const char *reason = json_string_value(json_object_get(ensemble, "reason"));
    bool is_ready = as_streq(state, "ready");
    if (s->json || is_ready)
        st = s->json ? session_print_json(ensemble, err) : print_ensemble(s, ensemble, err);
    if (st < 0 || is_ready)
        return st;
    if (as_streq(state, "pending"))
        return as_fail(err, AS_E_NOT_FOUND,
                       "%s has no ensemble yet; it is made when the sweep has ended", ref->sweep);
    return as_fail(err, AS_E_NOT_FOUND, "%s has no ensemble%s%.300s", ref->sweep,
                   reason ? ": " : "", reason ? reason : "");
}

static as_status list_ensembles(const struct session *s, const struct trial_ref *ref,
                                struct as_err *err)
{
    JSON_AUTO answer = NULL;
    AS_AUTO(table_freep) struct table *t = NULL;
    as_status st = request_get(s->client, ref, "ensembles", NULL, &answer, err);
    if (st < 0)
        return st;
    const json_t *items = json_object_get(answer, "items");
    if (s->json)
        return session_print_json(items, err);
    st = ensemble_view_list(items, &s->terminal, &t, err);
    return st < 0 ? st : session_print_table(s, t, err);
}

/* The body of askEnsemble; argv[2…] are further sweeps. */
static as_status make_body(const struct wish *w, int n, char **argv, json_t **ret,
                           struct as_err *err)
{
    JSON_AUTO body = json_object();
    JSON_AUTO sweeps = json_array();
    int bad = !body || !sweeps;
    if (w->method)
        bad |= json_object_set_new(body, "method", json_string(w->method));
    if (w->size)
        bad |= json_object_set_new(body, "size", json_integer((json_int_t)w->size));
    if (w->non_negative)
        bad |= json_object_set_new(body, "non_negative", json_true());
    if (w->calibrate)
        bad |= json_object_set_new(body, "calibrate", json_true());
    if (w->by)
        bad |= json_object_set_new(body, "by", json_string(w->by));
    if (w->metric)
        bad |= json_object_set_new(body, "metric", json_string(w->metric));
    if (w->max_size) {
        int64_t bytes = 0;
        if (as_parse_size(w->max_size, &bytes, err) < 0 || bytes < 1)
            return as_fail(err, AS_E_USAGE,
                           "--max-size: found '%.40s', expected a size such as 5MB", w->max_size);
        bad |= json_object_set_new(body, "max_bytes", json_integer((json_int_t)bytes));
    }
    for (int i = 2; i <= n; i++) {
        struct trial_ref ref;
        as_status st = request_parse_sweep(argv[i], &ref, err);
        if (st < 0)
            return st;
        bad |= json_array_append_new(sweeps, json_string(ref.sweep));
    }
    if (n > 1)
        bad |= json_object_set(body, "sweeps", sweeps);
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(body);
    return AS_OK;
}

static as_status ask_ensemble(const struct session *s, const struct trial_ref *ref,
                              const struct wish *w, int n, char **argv, struct as_err *err)
{
    JSON_AUTO body = NULL;
    JSON_AUTO asked = NULL;
    as_status st = make_body(w, n, argv, &body, err);
    if (st == AS_OK)
        st = ensemble_ask(s, ref, body, ENSEMBLE_NO_END, &asked, err);
    if (st < 0)
        return st;
    const json_t *e = json_object_get(asked, "ensemble");
    return s->json ? session_print_json(asked, err) : print_ensemble(s, e, err);
}

/* Make the sweep; *ret_id is its id, a view of *ret. */
static as_status make_sweep(const struct session *s, const struct trial_ref *ref,
                            const struct wish *w, json_t **ret, const char **ret_id,
                            struct as_err *err)
{
    const struct follow_up *f = follow_up_find(w->method);
    JSON_AUTO sweep = NULL;
    JSON_AUTO doc = NULL;
    if (w->size < 0 || w->size > (int64_t)f->most)
        return as_fail(err, AS_E_USAGE, "--size: found %lld, expected 1 to %zu %s",
                       (long long)w->size, f->most, f->unit);
    as_status st = request_get(s->client, ref, NULL, NULL, &sweep, err);
    if (st == AS_OK)
        st = follow_up_document(f, sweep, w->size ? (size_t)w->size : f->usual, &doc, err);
    if (st == AS_OK)
        st = client_call(s->client, "POST", "/v1/sweeps", NULL, doc, NULL, ret, NULL, err);
    if (st < 0)
        return st;
    *ret_id = json_string_value(json_object_get(*ret, "id"));
    return *ret_id ? AS_OK : as_fail(err, AS_E_INTERNAL, "the server returned a sweep without id");
}

static int train(struct session *s, const struct trial_ref *ref, const struct wish *w)
{
    struct as_err err = {0};
    JSON_AUTO made = NULL;
    const char *id = NULL;
    const struct watch_opts opts = {.top = 10};
    as_status st = make_sweep(s, ref, w, &made, &id, &err);
    if (st < 0)
        return session_end(s, st, &err);
    if (!s->json)
        say("Sweep %s; with the models of both: assay ensemble %s %s", id, ref->sweep, id);
    return watch_sweep(s, id, &opts);
}

/* ---- layers ---- */

/* Train the layers after the first, one after another. sweeps[layer]: all of them. Returns an exit
 * code. */
static int train_layers(struct session *s, const struct wish *w, struct trial_ref *sweeps)
{
    const struct watch_opts opts = {.top = -1};
    size_t trials = w->size ? (size_t)w->size : LAYER_TRIALS;
    for (size_t layer = 1; layer < (size_t)w->layers; layer++) {
        struct as_err err = {0};
        as_status st = layer_start(s, &sweeps[layer - 1], NULL, trials, 0, &sweeps[layer], &err);
        if (st < 0)
            return session_end(s, st, &err);
        if (!s->json)
            say("Sweep %s: a further layer, which sees what trials of %s predicted",
                sweeps[layer].sweep, sweeps[layer - 1].sweep);
        int code = watch_sweep(s, sweeps[layer].sweep, &opts);
        if (code != EXIT_OK)
            return code;
    }
    return EXIT_OK;
}

/* One ensemble of the trials of all layers. */
static int run_layers(struct session *s, const struct trial_ref *ref, const struct wish *w)
{
    struct as_err err = {0};
    struct trial_ref sweeps[LAYER_MOST] = {*ref};
    char *names[LAYER_MOST + 2] = {0};
    struct wish whole = *w;
    if (w->layers < 2 || w->layers > LAYER_MOST)
        return exit_with_usage("ensemble", "--layers: found %lld, expected 2 to %d",
                               (long long)w->layers, LAYER_MOST);
    if (w->size < 0 || w->size > LAYER_MOST_TRIALS)
        return exit_with_usage("ensemble", "--size: found %lld, expected 1 to %d trials of a layer",
                               (long long)w->size, LAYER_MOST_TRIALS);
    int code = train_layers(s, w, sweeps);
    if (code != EXIT_OK)
        return code;
    for (size_t i = 0; i < (size_t)w->layers; i++)
        names[i + 1] = sweeps[i].sweep;
    whole.method = NULL; /* the greedy one: it takes from each layer what makes it better */
    whole.size = 0;
    as_status st = ask_ensemble(s, ref, &whole, (int)w->layers, names, &err);
    return session_end(s, st, &err);
}

static int run(struct session *s, const struct wish *w, int n, char **argv)
{
    struct as_err err = {0};
    struct trial_ref ref;
    bool asks = n > 1 || w->method || w->by || w->size || w->non_negative || w->calibrate ||
                w->metric || w->max_size;
    if (w->list && (asks || w->layers))
        return exit_with_usage("ensemble", "--list takes one SWEEP and no other option");
    as_status st = request_parse_sweep(argv[1], &ref, &err);
    if (w->layers) {
        if (n > 1 || w->by || w->non_negative || w->max_size || !as_streq(w->method, "stacking"))
            return exit_with_usage("ensemble", "--layers is of --method stacking, with one SWEEP, "
                                               "--size, --metric and --calibrate");
        return st == AS_OK ? run_layers(s, &ref, w) : session_end(s, st, &err);
    }
    if (follow_up_find(w->method)) {
        if (n > 1 || w->non_negative || w->calibrate || w->by || w->metric || w->max_size)
            return exit_with_usage("ensemble", "a --method that trains takes one SWEEP and --size");
        return st == AS_OK ? train(s, &ref, w) : session_end(s, st, &err);
    }
    if (st == AS_OK)
        st = w->list ? list_ensembles(s, &ref, &err)
             : asks  ? ask_ensemble(s, &ref, w, n, argv, &err)
                     : show_ensemble(s, &ref, &err);
    return session_end(s, st, &err);
}

int cmd_ensemble(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct wish w = {0};
    int n, code;
    const struct opt table[] = {
        {"method", 0, OPT_STRING, &w.method, "METHOD", NULL, "how models are combined",
         "greedy|stacking|average|bucketing|bagging|snapshot|boosting"},
        {"size", 0, OPT_I64, &w.size, "N", NULL,
         "members at most; bagging: samples (16); snapshot: cycles (5); boosting: stages (8); "
         "layers: "
         "trials of each (5)"},
        {"layers", 0, OPT_I64, &w.layers, "N", NULL,
         "stacking: train further layers, which see what the one before predicted of the rows that "
         "it held out (2 to 4)"},
        {"non-negative", 0, OPT_FLAG, &w.non_negative, NULL, NULL,
         "stacking: no coefficient below 0"},
        {"calibrate", 0, OPT_FLAG, &w.calibrate, NULL, NULL,
         "classes: probabilities as sure as they are right, and a threshold by the metric"},
        {"by", 0, OPT_STRING, &w.by, "COLUMN", NULL,
         "bucketing: a trial for each value of this column of the data set"},
        {"metric", 0, OPT_STRING, &w.metric, "METRIC", NULL,
         "choose by this metric of predictions (auc, log_loss, rmse, …), not by the sweep's"},
        {"max-size", 0, OPT_STRING, &w.max_size, "SIZE", NULL,
         "of the members' models together; trials that do not fit beside those chosen are passed "
         "over (any)"},
        {"list", 0, OPT_FLAG, &w.list, NULL, NULL, "those that were asked for before"},
        SESSION_OPTS(&s),
    };
    if (session_begin(&s, v, table, argc, argv, 1, MAX_SWEEPS, &n, &code))
        code = run(&s, &w, n, argv);
    session_done(&s);
    return code;
}
