/* The search and the early stopping of Assay behind the line protocol of a multi-fidelity benchmark
 * (mf.py; bench/stopping.py runs it): asked for a trial, it promotes or suggests; told a value, it
 * answers continue, stop or pause.
 *
 *   stopping [--search METHOD] [--early JSON] [--design N]
 *   stopping --decisions N
 *
 *   --search  a method of the search; the default is gp
 *   --early   the section early_stopping; absent: every trial runs in full
 *   --design  how many trials the search spreads over the space first; absent: as the server does
 *   --decisions  print how long a decision takes once N trials have a result at the first rung
 *
 * It does what the server does, without one: the history holds the trials as the server's rows
 * would (a trial that waits or was stopped is partial, with the value of its highest rung).
 *
 * A report may say what no trial knows, so that bounds can be measured (bench/stopping_bounds.py):
 *   "decision": "continue" or "stop"  replaces the rule's decision
 *   "final": VALUE  the value at the end, which the search learns when the trial does not go on */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "search/space/config.h"
#include "search/stopping/stopping.h"
#include "search/suggest.h"

struct trial {
    struct config *config;
    observation_state state;
    double value; /* of a completed trial */
    struct trial_rung rungs[STOP_RUNGS_MAX];
    size_t n_rungs;
    int64_t reported; /* the last epoch that was told */
};

struct study {
    json_t *early; /* NULL: none */
    const char *method;
    struct space *space;
    struct search_spec spec;
    struct stop_spec stop;
    struct stopping *stopping;
    struct search_cache *cache;
    json_t *state;
    struct trial *trials;
    struct observation *history;
    size_t n, cap, cap_history;
    uint64_t seq;
    int64_t max_epochs;
    int64_t design; /* 0: not given */
};

static void study_done(struct study *s)
{
    for (size_t i = 0; i < s->n; i++)
        config_free(s->trials[i].config);
    free(s->trials);
    free(s->history);
    json_decref(s->state);
    stopping_free(s->stopping);
    search_cache_free(s->cache);
    space_free(s->space);
    json_decref(s->early);
}

/* A parameter of the protocol as one of a sweep document. */
static json_t *parameter_of(const json_t *p)
{
    const char *type = json_string_value(json_object_get(p, "type"));
    if (as_streq(type, "categorical"))
        return json_pack("{s:s, s:O}", "type", type, "values", json_object_get(p, "choices"));
    return json_pack("{s:s, s:O, s:O, s:s}", "type", as_streq(type, "int") ? "int" : "float", "min",
                     json_object_get(p, "min"), "max", json_object_get(p, "max"), "scale",
                     json_is_true(json_object_get(p, "log")) ? "log" : "linear");
}

static as_status read_space(const json_t *list, struct space **ret, struct as_err *err)
{
    JSON_AUTO parameters = json_object();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *p = json_array_get(list, i);
        if (json_object_set_new(parameters, json_string_value(json_object_get(p, "name")),
                                parameter_of(p)) != 0)
            return as_fail(err, AS_E_INVAL, "parameter %zu is none of the protocol", i);
    }
    return space_parse(parameters, "/space", ret, err);
}

static as_status read_stopping(struct study *s, struct as_err *err)
{
    const struct stop_context c = {.n_objectives = 1,
                                   .metrics = {"value"},
                                   .seed = s->spec.seed,
                                   .can_pause = true,
                                   .all_steps = s->max_epochs,
                                   .first_step = 1};
    struct json_fields f;
    s->stop = (struct stop_spec){.method = STOP_NONE, .n_objectives = 1, .has_metric = true};
    as_status st = AS_OK;
    if (s->early) {
        if ((st = json_fields_init(&f, s->early, "/early_stopping", err)) != AS_OK)
            return st;
        if ((st = stop_spec_parse(&f, &c, &s->stop, err)) != AS_OK)
            return st;
        s->spec.max_step = (double)s->stop.max_steps;
        s->spec.initial_trials = STOP_DESIGN;
    }
    if (s->design > 0)
        s->spec.initial_trials = (size_t)s->design;
    return stopping_create(&s->stop, &s->stopping, err);
}

static as_status start(struct study *s, const json_t *m, struct as_err *err)
{
    s->spec = (struct search_spec){
        .n_objectives = 1, .seed = (uint64_t)json_integer_value(json_object_get(m, "seed"))};
    as_status st = search_method_parse(s->method, "/search/method", &s->spec.method, err);
    if (st != AS_OK)
        return st;
    if ((st = read_space(json_object_get(m, "space"), &s->space, err)) != AS_OK)
        return st;
    s->spec.space = s->space;
    s->cache = search_cache_create();
    s->max_epochs = json_integer_value(json_object_get(m, "max_epochs"));
    return read_stopping(s, err);
}

/* ---- what the search knows ---- */

static as_status make_history(struct study *s, struct as_err *err)
{
    as_status st = as_grow(&s->history, s->n + 1, sizeof *s->history, err);
    for (size_t i = 0; st == AS_OK && i < s->n; i++) {
        const struct trial *t = &s->trials[i];
        s->history[i] = (struct observation){.number = i,
                                             .config = t->config,
                                             .state = t->state,
                                             .is_suggested = true,
                                             .rungs = t->rungs,
                                             .n_rungs = t->n_rungs,
                                             .values = {t->value}};
    }
    return st;
}

static json_t *answer_of(const struct study *s, uint64_t number, int64_t from)
{
    char id[24];
    (void)snprintf(id, sizeof id, "%" PRIu64, number);
    return json_pack("{s:s, s:o, s:I}", "id", id, "params",
                     config_to_json(s->space, s->trials[number].config), "from_epoch",
                     (json_int_t)from);
}

static as_status suggest_next(struct study *s, json_t **ret, struct as_err *err)
{
    struct suggestion next = {0};
    as_status st = as_reserve_one(&s->trials, s->n, &s->cap, sizeof *s->trials, err);
    if (st != AS_OK)
        return st;
    if ((st = make_history(s, err)) != AS_OK)
        return st;
    const struct history h = {.trials = s->history, .n = s->n};
    st = suggest(&s->spec, &h, s->state, s->n, s->n, s->cache, &next, err);
    if (st != AS_OK)
        return st;
    s->trials[s->n] = (struct trial){.config = as_steal(next.config)};
    json_decref(s->state);
    s->state = as_steal(next.state);
    suggestion_done(&next);
    *ret = answer_of(s, s->n++, 0);
    return AS_OK;
}

static as_status ask(struct study *s, json_t **ret, struct as_err *err)
{
    struct stop_promotion p;
    if (!s->trials || !stopping_promote(s->stopping, STOP_NOT_CLOSING, &p))
        return suggest_next(s, ret, err);
    stopping_promoted(s->stopping, p.number);
    s->trials[p.number].state = OBSERVED_PENDING;
    *ret = answer_of(s, p.number, s->trials[p.number].reported);
    return AS_OK;
}

/* The decision that the report dictates, or that of the rule. */
static stop_verdict told_verdict(const json_t *m, stop_verdict ruled)
{
    const char *told = json_string_value(json_object_get(m, "decision"));
    if (!told)
        return ruled;
    return as_streq(told, "stop") ? STOP_PRUNE : STOP_GO_ON;
}

/* What the search may know of a trial that does not go on. */
static void tell_final(struct trial *t, const json_t *m)
{
    const json_t *value = json_object_get(m, "final");
    if (t->state != OBSERVED_PARTIAL || !value)
        return;
    t->value = json_number_value(value);
    t->state = OBSERVED_COMPLETED;
}

static as_status report(struct study *s, const json_t *m, json_t **ret, struct as_err *err)
{
    static const char *const actions[] = {
        [STOP_GO_ON] = "continue", [STOP_PRUNE] = "stop", [STOP_PAUSE] = "pause"};
    int64_t number = 0, epoch = json_integer_value(json_object_get(m, "epoch"));
    as_status st = as_parse_i64(json_string_value(json_object_get(m, "id")), &number, err);
    if (st != AS_OK)
        return st;
    if (!s->trials || number < 0 || (uint64_t)number >= s->n)
        return as_fail(err, AS_E_INVAL, "id: found %lld, expected that of a trial",
                       (long long)number);
    struct trial *t = &s->trials[number];
    struct rung_result now = {.number = (uint64_t)number,
                              .step = epoch,
                              .values = {json_number_value(json_object_get(m, "value"))},
                              .feasible = true};
    struct stop_decision d = {.verdict = STOP_GO_ON};
    if (s->stop.method == STOP_NONE) {
        t->value = now.values[0];
        t->state = epoch == s->max_epochs ? OBSERVED_COMPLETED : OBSERVED_PENDING;
    } else if (stop_spec_rung(&s->stop, t->reported, epoch, &now.rung)) {
        if ((st = stopping_decide(s->stopping, &now, &d, err)) != AS_OK)
            return st;
        now.decision = d.verdict = told_verdict(m, d.verdict);
        now.seq = ++s->seq;
        if ((st = stopping_add(s->stopping, &now, err)) != AS_OK)
            return st;
        t->value = now.values[0];
        t->rungs[t->n_rungs++] = (struct trial_rung){
            .seq = (int64_t)s->seq, .step = (double)epoch, .values = {t->value}};
        t->state = epoch == s->stop.max_steps ? OBSERVED_COMPLETED
                   : d.verdict == STOP_GO_ON  ? OBSERVED_PENDING
                                              : OBSERVED_PARTIAL;
        tell_final(t, m);
    }
    t->reported = epoch;
    *ret = json_pack("{s:s}", "action", actions[d.verdict]);
    return AS_OK;
}

static as_status serve_line(struct study *s, const json_t *m, json_t **ret, struct as_err *err)
{
    const char *op = json_string_value(json_object_get(m, "op"));
    if (as_streq(op, "ask"))
        return ask(s, ret, err);
    if (as_streq(op, "report"))
        return report(s, m, ret, err);
    if (!as_streq(op, "init"))
        return as_fail(err, AS_E_INVAL, "unknown op");
    as_status st = start(s, m, err);
    *ret = st == AS_OK ? json_pack("{s:b}", "ok", 1) : NULL;
    return st;
}

static int serve(struct study *s)
{
    AS_AUTO(as_freep) char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    while ((len = getline(&line, &cap, stdin)) > 0) {
        JSON_AUTO m = NULL;
        JSON_AUTO reply = NULL;
        struct as_err err = {0};
        as_status st = json_parse(line, (size_t)len, &m, &err);
        if (st == AS_OK && as_streq(json_string_value(json_object_get(m, "op")), "end"))
            return 0;
        if (st == AS_OK)
            st = serve_line(s, m, &reply, &err);
        if (st != AS_OK)
            reply = json_pack("{s:s}", "error", err.msg);
        AS_AUTO(as_freep) char *text = json_format(reply);
        (void)printf("%s\n", text);
        (void)fflush(stdout);
    }
    return 0;
}

/* ---- the time of a decision ---- */

#define TIMED 2000

static int time_decisions(int64_t n)
{
    const struct stop_spec spec = {.method = STOP_ASHA,
                                   .mode = STOP_MODE_PAUSE,
                                   .n_objectives = 1,
                                   .has_metric = true,
                                   .min_steps = 1,
                                   .max_steps = 81,
                                   .eta = 3,
                                   .n_rungs = 5,
                                   .steps = {1, 3, 9, 27, 81}};
    AS_AUTO(stopping_freep) struct stopping *s = NULL;
    struct as_err err = {0};
    struct stop_decision d;
    struct stop_promotion p;
    struct rng r;
    int64_t began = 0;
    rng_init(&r, 1, 1);
    as_status st = stopping_create(&spec, &s, &err);
    for (int64_t i = 0; st == AS_OK && i < n + TIMED; i++) {
        struct rung_result now = {.number = (uint64_t)i,
                                  .values = {rng_uniform(&r)},
                                  .feasible = true,
                                  .seq = (uint64_t)i + 1};
        began = i == n ? clock_mono_ns() : began;
        if (stopping_promote(s, STOP_NOT_CLOSING, &p))
            stopping_promoted(s, p.number);
        if ((st = stopping_decide(s, &now, &d, &err)) != AS_OK)
            break;
        now.decision = d.verdict;
        st = stopping_add(s, &now, &err);
    }
    if (st != AS_OK) {
        (void)fprintf(stderr, "stopping: %s\n", err.msg);
        return 1;
    }
    (void)printf("%" PRId64 " trials: %.2f us for a promotion, a decision and its result\n", n,
                 (double)(clock_mono_ns() - began) / 1e3 / TIMED);
    return 0;
}

int main(int argc, char **argv)
{
    struct study s = {.method = "gp"};
    int64_t n = 0;
    struct as_err err = {0};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (as_streq(argv[i], "--decisions"))
            return as_parse_i64(argv[i + 1], &n, &err) == AS_OK ? time_decisions(n) : 2;
        if (as_streq(argv[i], "--search"))
            s.method = argv[i + 1];
        else if (as_streq(argv[i], "--design") &&
                 as_parse_i64(argv[i + 1], &s.design, &err) != AS_OK)
            break;
        else if (as_streq(argv[i], "--early") &&
                 json_parse(argv[i + 1], strlen(argv[i + 1]), &s.early, &err) != AS_OK)
            break;
    }
    int rc = 2;
    if (err.code == AS_OK)
        rc = serve(&s);
    else
        (void)fprintf(stderr, "stopping: %s\n", err.msg);
    study_done(&s);
    return rc;
}
