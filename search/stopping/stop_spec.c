/* Reads and writes the section `early_stopping`, and makes the rungs from it.
 *
 * What needs the rest of the document (metrics, the trainer's steps) arrives in a stop_context;
 * what needs the trial's document itself is checked by scheduler/sweep/sweep_stopping.c. */
#include "search/stopping/stop_spec.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"

#define MIN_STEPS_AUTO "auto"
#define DEFAULT_CHANCE 0.05

/* In the order of stop_method, without STOP_NONE. */
static const char *const method_words[] = {"asha",  "hyperband", "pasha", "median",
                                           "curve", "pbt",       NULL};
static const char *const mode_words[] = {"auto", "pause", "stop", NULL};
enum { MODE_AUTO, MODE_PAUSE, MODE_STOP };

static const bool is_offered[] = {
    [STOP_ASHA] = true,   [STOP_HYPERBAND] = true, [STOP_PASHA] = true,
    [STOP_MEDIAN] = true, [STOP_CURVE] = true,     [STOP_PBT] = true};

const char *stop_method_name(stop_method m)
{
    return m == STOP_NONE ? "none" : method_words[m - STOP_ASHA];
}

/* ---- the rungs ---- */

static as_status make_rungs(struct stop_spec *s, const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, "max_steps", at);
    if (s->max_steps <= s->min_steps)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %" PRId64 ", expected more than min_steps (%" PRId64
                          "): there must be two rungs at least",
                          at, s->max_steps, s->min_steps);
    s->n_rungs = 0;
    for (int64_t step = s->min_steps; step < s->max_steps; step *= s->eta) {
        if (s->n_rungs == STOP_RUNGS_MAX - 1)
            return as_fail_at(err, AS_E_TOO_LARGE, at,
                              "%s: from min_steps %" PRId64 " by eta %" PRId64
                              " there are more than %d rungs",
                              at, s->min_steps, s->eta, STOP_RUNGS_MAX);
        s->steps[s->n_rungs++] = step;
    }
    s->steps[s->n_rungs++] = s->max_steps;
    return AS_OK;
}

/* The multiples of the period below max_steps, and max_steps. */
static as_status make_periods(struct stop_spec *s, const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    int64_t period = s->pbt.period, n = s->max_steps / period + (s->max_steps % period > 0);
    json_pointer_child(pointer, "period", at);
    if (n < 2)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %" PRId64 ", expected less than max_steps (%" PRId64
                          "): at the last step nobody is replaced",
                          at, period, s->max_steps);
    if (n > STOP_RUNGS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, at,
                          "%s: found %" PRId64 ", which makes %" PRId64
                          " periods of max_steps %" PRId64
                          ", expected at most %d: a period of %" PRId64 " or more",
                          at, period, n, s->max_steps, STOP_RUNGS_MAX,
                          (s->max_steps + STOP_RUNGS_MAX - 1) / STOP_RUNGS_MAX);
    for (s->n_rungs = 0; s->n_rungs < (size_t)n - 1; s->n_rungs++)
        s->steps[s->n_rungs] = period * (int64_t)(s->n_rungs + 1);
    s->steps[s->n_rungs++] = s->max_steps;
    s->min_steps = s->steps[0];
    return AS_OK;
}

bool stop_spec_rung(const struct stop_spec *s, int64_t before, int64_t step, uint32_t *ret_rung)
{
    for (size_t k = s->n_rungs; k-- > 0;) {
        if (s->steps[k] > step)
            continue;
        if (s->steps[k] == step || (s->late && s->steps[k] > before)) {
            *ret_rung = (uint32_t)k;
            return true;
        }
        return false;
    }
    return false;
}

/* ---- from JSON ---- */

static as_status read_min_steps(struct json_fields *f, const struct stop_context *c,
                                struct stop_spec *s, struct as_err *err)
{
    json_t *j = NULL;
    as_status st = json_fields_any(f, "min_steps", JSON_OPTIONAL, &j, err);
    if (st != AS_OK)
        return st;
    s->is_min_auto = !j || as_streq(json_string_value(j), MIN_STEPS_AUTO);
    s->min_steps = c->first_step;
    if (s->is_min_auto)
        return AS_OK;
    if (!json_is_integer(j)) {
        char at[AS_ERR_POINTER_MAX];
        AS_AUTO(as_freep) char *found = json_format(j);
        json_pointer_child(f->pointer, "min_steps", at);
        st = as_fail_at(err, AS_E_INVAL, at, "%s: found %.40s, expected auto or a whole number", at,
                        found ? found : json_type_name(j));
        return json_fields_note(f, st, err);
    }
    return json_fields_i64(f, "min_steps", JSON_OPTIONAL, 1, STOP_MAX_STEPS, &s->min_steps, err);
}

static as_status read_max_steps(struct json_fields *f, const struct stop_context *c,
                                struct stop_spec *s, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    s->max_steps = c->all_steps;
    as_status st =
        json_fields_i64(f, "max_steps", JSON_OPTIONAL, 1, STOP_MAX_STEPS, &s->max_steps, err);
    if (st != AS_OK || c->all_steps || !json_fields_lack(f, "max_steps"))
        return st;
    json_pointer_child(f->pointer, "max_steps", at);
    st = as_fail_at(err, AS_E_INVAL, at,
                    "%s is missing, expected the steps of a full trial: the last step that it "
                    "reports",
                    at);
    return json_fields_note(f, st, err);
}

static as_status read_steps(struct json_fields *f, const struct stop_context *c,
                            struct stop_spec *s, struct as_err *err)
{
    as_status st = read_min_steps(f, c, s, err);
    if (st == AS_OK)
        st = read_max_steps(f, c, s, err);
    if (st != AS_OK)
        return st;
    s->eta = s->method == STOP_MEDIAN || s->method == STOP_CURVE ? 2 : 3;
    return json_fields_i64(f, "eta", JSON_OPTIONAL, STOP_MIN_ETA, STOP_MAX_ETA, &s->eta, err);
}

static as_status find_metric(const char *name, const char *at, const struct stop_context *c,
                             struct stop_spec *s, struct as_err *err)
{
    for (size_t i = 0; i < c->n_objectives; i++) {
        if (!as_streq(name, c->metrics[i]))
            continue;
        s->metric = i;
        s->has_metric = true;
        return AS_OK;
    }
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found '%.64s', expected a metric of the sweep, such as '%.64s'", at,
                      name, c->metrics[0]);
}

static as_status read_metric(struct json_fields *f, const struct stop_context *c,
                             struct stop_spec *s, struct as_err *err)
{
    const char *name = NULL;
    char at[AS_ERR_POINTER_MAX];
    s->has_metric = c->n_objectives == 1;
    as_status st = json_fields_str(f, "metric", JSON_OPTIONAL, &name, err);
    if (st != AS_OK || !name)
        return st;
    json_pointer_child(f->pointer, "metric", at);
    return json_fields_note(f, find_metric(name, at, c, s, err), err);
}

static as_status check_method(const struct json_fields *f, const struct stop_spec *s,
                              struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, "method", at);
    if ((size_t)s->method >= AS_ARRAY_LEN(is_offered) || !is_offered[s->method])
        return as_fail_at(err, AS_E_UNSUPPORTED, at,
                          "%s: %s is not in this version yet; choose another method", at,
                          stop_method_name(s->method));
    return AS_OK;
}

/* What needs more than one field. */
static as_status check_together(const struct json_fields *f, const struct stop_spec *s,
                                struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    if (s->method == STOP_PASHA && s->mode == STOP_MODE_STOP) {
        json_pointer_child(f->pointer, "mode", at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found stop with pasha, whose trials wait at its highest rung until "
                          "it rises; expected pause, which needs checkpoints",
                          at);
    }
    if (!json_fields_lack(f, "chance") && s->method != STOP_CURVE) {
        json_pointer_child(f->pointer, "chance", at);
        return as_fail_at(err, AS_E_INVAL, at, "%s: only curve predicts a chance; found %s", at,
                          stop_method_name(s->method));
    }
    if ((s->method == STOP_PASHA || s->method == STOP_CURVE || s->method == STOP_PBT) &&
        !s->has_metric) {
        json_pointer_child(f->pointer, "metric", at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s is missing: %s compares differences of one metric, and the sweep "
                          "has %zu",
                          at, stop_method_name(s->method), s->n_objectives);
    }
    return AS_OK;
}

static as_status read_method(struct json_fields *f, struct stop_spec *s, struct as_err *err)
{
    int method = 0;
    as_status st = json_fields_word(f, "method", JSON_OPTIONAL, method_words, &method, err);
    if (st != AS_OK)
        return st;
    s->method = (stop_method)(STOP_ASHA + method);
    return json_fields_note(f, check_method(f, s, err), err);
}

static as_status read_rules(struct json_fields *f, const struct stop_context *c,
                            struct stop_spec *s, struct as_err *err)
{
    int mode = MODE_AUTO;
    as_status st;
    if ((st = json_fields_word(f, "mode", JSON_OPTIONAL, mode_words, &mode, err)) != AS_OK)
        return st;
    s->mode = mode == MODE_PAUSE || (mode == MODE_AUTO && c->can_pause) ? STOP_MODE_PAUSE
                                                                        : STOP_MODE_STOP;
    if ((st = json_fields_bool(f, "late", JSON_OPTIONAL, &s->late, err)) != AS_OK)
        return st;
    s->chance = DEFAULT_CHANCE;
    return json_fields_double(f, "chance", JSON_OPTIONAL, 0, 1, &s->chance, err);
}

/* A field of other methods is no unknown field: say whose it is not. */
static as_status refuse_foreign(struct json_fields *f, const struct stop_spec *s,
                                struct as_err *err)
{
    static const char *const ladder[] = {"min_steps", "eta", "mode", "late", "chance", NULL};
    static const char *const forks[] = {"population", "period",   "quantile", "explore",
                                        "perturb",    "resample", NULL};
    bool is_pbt = s->method == STOP_PBT;
    const char *const *foreign = is_pbt ? ladder : forks;
    for (size_t i = 0; foreign[i]; i++) {
        char at[AS_ERR_POINTER_MAX];
        json_t *j = NULL;
        if (!json_object_get(f->obj, foreign[i]))
            continue;
        json_pointer_child(f->pointer, foreign[i], at);
        as_status st = json_fields_any(f, foreign[i], JSON_OPTIONAL, &j, err);
        if (st == AS_OK && j)
            st = as_fail_at(err, AS_E_INVAL, at,
                            "%s: found beside method %s, expected fields of it: max_steps, "
                            "metric, strict, %s",
                            at, stop_method_name(s->method),
                            is_pbt ? "population, period, quantile, explore, perturb, resample"
                                   : "min_steps, eta, mode, late");
        if ((st = json_fields_note(f, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

/* Of pbt: a trial that is replaced ends, and results are compared at equal steps, so mode and late
 * are no choices there. */
static as_status read_pbt(struct json_fields *f, const struct stop_context *c, struct stop_spec *s,
                          struct as_err *err)
{
    if (!c->space)
        return as_fail_at(err, AS_E_INVAL, f->pointer, "%s: pbt needs the parameters of the sweep",
                          f->pointer);
    s->mode = STOP_MODE_STOP;
    as_status st = pbt_spec_parse(f, c->space, &s->pbt, err);
    return st == AS_OK ? read_max_steps(f, c, s, err) : st;
}

/* Of the other methods. */
static as_status read_ladder(struct json_fields *f, const struct stop_context *c,
                             struct stop_spec *s, struct as_err *err)
{
    as_status st = read_rules(f, c, s, err);
    return st == AS_OK ? read_steps(f, c, s, err) : st;
}

as_status stop_spec_parse(struct json_fields *f, const struct stop_context *c,
                          struct stop_spec *ret, struct as_err *err)
{
    struct stop_spec s = {.n_objectives = c->n_objectives, .seed = c->seed};
    for (size_t i = 0; i < c->n_objectives; i++)
        s.maximize[i] = c->maximize[i];
    as_status st = read_method(f, &s, err);
    if (st != AS_OK)
        return st;
    bool forks = s.method == STOP_PBT;
    if ((st = json_fields_bool(f, "strict", JSON_OPTIONAL, &s.strict, err)) != AS_OK)
        return st;
    if ((st = read_metric(f, c, &s, err)) != AS_OK)
        return st;
    if ((st = (forks ? read_pbt : read_ladder)(f, c, &s, err)) != AS_OK)
        return st;
    if ((st = refuse_foreign(f, &s, err)) != AS_OK)
        return st;
    if ((st = json_fields_end(f, err)) != AS_OK)
        return st;
    if (c->all_steps == 1)
        return as_fail_at(err, AS_E_INVAL, f->pointer,
                          "%s: found with a model that is made in one step, expected one that "
                          "reports while it trains: no trial can end early",
                          f->pointer);
    if ((st = check_together(f, &s, err)) != AS_OK)
        return st;
    if ((st = (forks ? make_periods : make_rungs)(&s, f->pointer, err)) != AS_OK)
        return st;
    *ret = s;
    return AS_OK;
}

/* ---- to JSON ---- */

static int add_ladder(const struct stop_spec *s, json_t *j)
{
    int bad = json_object_set_new(
        j, "min_steps", s->is_min_auto ? json_string(MIN_STEPS_AUTO) : json_integer(s->min_steps));
    bad |= json_object_set_new(j, "max_steps", json_integer(s->max_steps));
    bad |= json_object_set_new(j, "eta", json_integer(s->eta));
    bad |= json_object_set_new(
        j, "mode", json_string(mode_words[s->mode == STOP_MODE_PAUSE ? MODE_PAUSE : MODE_STOP]));
    if (s->method == STOP_CURVE)
        bad |= json_object_set_new(j, "chance", json_real(s->chance));
    bad |= json_object_set_new(j, "late", json_boolean(s->late));
    return bad;
}

json_t *stop_spec_to_json(const struct stop_spec *s, const char *const *metrics,
                          const struct space *space)
{
    JSON_AUTO j = json_object();
    int bad = json_object_set_new(j, "method", json_string(stop_method_name(s->method)));
    if (s->has_metric)
        bad |= json_object_set_new(j, "metric", json_string(metrics[s->metric]));
    if (s->method == STOP_PBT) {
        bad |= json_object_set_new(j, "max_steps", json_integer(s->max_steps));
        bad |= pbt_spec_add_json(&s->pbt, space, j);
    } else {
        bad |= add_ladder(s, j);
    }
    bad |= json_object_set_new(j, "strict", json_boolean(s->strict));
    return bad ? NULL : as_steal(j);
}
