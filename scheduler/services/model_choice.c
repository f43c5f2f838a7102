/* What a version of a model is made of: the trials, and how they are combined.
 *
 * An ensemble says so itself: its `members`, their weights, and `combine` (ensemble_result.h). The
 * order of its members is kept, so that the model adds what the ensemble added, in its order. An
 * ensemble by a column names trials for values; they become inputs, which are members here. A
 * sweep has the ensemble of its end, and those that were asked for afterwards, which may be of
 * several sweeps. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "scheduler/lifecycle/ensemble_requests.h"
#include "scheduler/services/models_priv.h"
#include "scheduler/store/ensemble_store.h"
#include "scheduler/store/sweep_store.h"

void model_choice_done(struct model_choice *c)
{
    json_decref(c->ensemble);
    json_decref(c->combine);
    *c = (struct model_choice){0};
}

static as_status make_members(struct arena *a, size_t n, struct model_choice *ret,
                              struct as_err *err)
{
    ret->members = arena_alloc(a, n, sizeof *ret->members);
    if (!ret->members)
        return as_fail_nomem(err);
    ret->n = n;
    return AS_OK;
}

static as_status choose_trial(struct tx *t, struct arena *a, const struct model_request *q,
                              int64_t number, struct model_choice *ret, struct as_err *err)
{
    as_status st = make_members(a, 1, ret, err);
    if (st != AS_OK)
        return st;
    ret->kind = "trial";
    ret->members[0] =
        (struct model_choice_member){.sweep = q->sweep, .number = number, .weight = 1};
    return store_sweep_key(t, q->sweep, &ret->members[0].sweep_key, err);
}

/* The sweeps of an ensemble. */
struct sources {
    const struct ensemble_asked_sweep *sweeps;
    size_t n;
};

/* The trial that an object names, {"number", "sweep"?}, without a weight. It is of the first sweep
 * if it names none. */
static as_status read_trial(const struct sources *s, const json_t *trial,
                            struct model_choice_member *ret, struct as_err *err)
{
    const char *id = json_string_value(json_object_get(trial, "sweep"));
    for (size_t i = 0; i < s->n; i++) {
        if (id && !as_streq(s->sweeps[i].id, id))
            continue;
        *ret = (struct model_choice_member){
            .sweep = s->sweeps[i].id,
            .sweep_key = s->sweeps[i].key,
            .number = json_integer_value(json_object_get(trial, "number"))};
        return AS_OK;
    }
    return as_fail(err, AS_E_INTERNAL, "the ensemble has a member of '%.80s', none of its sweeps",
                   id ? id : "");
}

/* The input of the trial that an object names: its place among the members; their number if it is
 * not among them. *ret_member is the trial. */
static as_status input_of(const struct sources *s, const json_t *trial,
                          const struct model_choice *c, struct model_choice_member *ret_member,
                          size_t *ret, struct as_err *err)
{
    size_t i = 0;
    as_status st = read_trial(s, trial, ret_member, err);
    while (st == AS_OK && i < c->n &&
           (c->members[i].sweep_key != ret_member->sweep_key ||
            c->members[i].number != ret_member->number))
        i++;
    *ret = i;
    return st;
}

/* The input of rows with other values. Its trial becomes the last member if each value has another
 * one; there is room for it. */
static as_status add_other(const struct sources *s, const json_t *trial, struct model_choice *c,
                           size_t *ret, struct as_err *err)
{
    struct model_choice_member m;
    as_status st = input_of(s, trial, c, &m, ret, err);
    if (st == AS_OK && *ret == c->n)
        c->members[c->n++] = m;
    return st;
}

/* The manifest's `combine` of an ensemble by a column: values have inputs instead of trials. */
static as_status combine_by(const struct sources *s, const json_t *combine, struct model_choice *c,
                            struct as_err *err)
{
    JSON_AUTO list = json_array();
    const json_t *bucket;
    struct model_choice_member m;
    size_t i, other = 0, input = 0;
    as_status st =
        list ? add_other(s, json_object_get(combine, "other"), c, &other, err) : as_fail_nomem(err);
    json_array_foreach(json_object_get(combine, "buckets"), i, bucket)
    {
        if (st == AS_OK)
            st = input_of(s, bucket, c, &m, &input, err);
        if (st == AS_OK && input == c->n)
            st =
                as_fail(err, AS_E_INTERNAL, "bucket %zu of the ensemble is none of its members", i);
        if (st != AS_OK)
            return st;
        if (json_array_append_new(list,
                                  json_pack("{s:O, s:I}", "value", json_object_get(bucket, "value"),
                                            "input", (json_int_t)input)) != 0)
            return as_fail_nomem(err);
    }
    if (st != AS_OK)
        return st;
    c->combine =
        json_pack("{s:s, s:O, s:O, s:I}", "kind", "by", "column",
                  json_object_get(combine, "column"), "buckets", list, "other", (json_int_t)other);
    return c->combine ? AS_OK : as_fail_nomem(err);
}

/* What follows the combination, which may be NULL: a plain mean. */
static as_status add_calibration(const json_t *combine, struct model_choice *ret,
                                 struct as_err *err)
{
    static const char *const fields[] = {"calibration", "threshold", "class_weights"};
    for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++) {
        json_t *field = json_object_get(combine, fields[i]);
        if (!field)
            continue;
        if (!ret->combine)
            ret->combine = json_pack("{s:s}", "kind", "mean");
        if (!ret->combine || json_object_set(ret->combine, fields[i], field) != 0)
            return as_fail_nomem(err);
    }
    return AS_OK;
}

/* The manifest's `combine`: without the penalty, which only fitting needs. NULL is a mean. */
static as_status read_combine(const struct sources *s, struct model_choice *ret, struct as_err *err)
{
    const json_t *combine = json_object_get(ret->ensemble, "combine");
    const char *kind = json_string_value(json_object_get(combine, "kind"));
    if (!combine)
        return AS_OK;
    as_status st = as_streq(kind, "by") ? combine_by(s, combine, ret, err) : AS_OK;
    if (st != AS_OK)
        return st;
    if (as_streq(kind, "by") || as_streq(kind, "mean"))
        return add_calibration(combine, ret, err);
    ret->combine = json_clone_flat(combine);
    if (!ret->combine)
        return as_fail_nomem(err);
    (void)json_object_del(ret->combine, "penalty");
    return AS_OK;
}

/* The members of ret->ensemble. */
static as_status choose_members(struct arena *a, const struct sources *sources,
                                struct model_choice *ret, struct as_err *err)
{
    const json_t *members = json_object_get(ret->ensemble, "members"), *member;
    size_t i, n = json_array_size(members);
    if (n == 0)
        return as_fail(err, AS_E_CONFLICT, "the ensemble of '%.80s' has no members",
                       sources->sweeps[0].id);
    as_status st = make_members(a, n + 1, ret, err);
    ret->kind = "ensemble";
    ret->n = n;
    json_array_foreach(members, i, member)
    {
        if (st != AS_OK)
            break;
        st = read_trial(sources, member, &ret->members[i], err);
        ret->members[i].weight = json_number_value(json_object_get(member, "weight"));
    }
    return st == AS_OK ? read_combine(sources, ret, err) : st;
}

/* One that was asked for after the end. */
static as_status choose_asked(struct tx *t, struct arena *a, const struct model_request *q,
                              struct model_choice *ret, struct as_err *err)
{
    struct ensemble_asked asked;
    struct ensemble_asked_sweep *sweeps = NULL;
    size_t n = 0;
    as_status st = store_ensemble_asked_get(t, a, q->sweep, q->ensemble, &asked, err);
    if (st != AS_OK)
        return st;
    if (as_streq(asked.state, "pending"))
        return as_fail(err, AS_E_CONFLICT,
                       "ensemble %lld of the sweep '%.80s' is not computed yet: wait until it is",
                       (long long)q->ensemble, q->sweep);
    st = json_parse(asked.result, strlen(asked.result), &ret->ensemble, err);
    if (st != AS_OK)
        return st;
    if (!as_streq(asked.state, "ready")) {
        const char *why = json_string_value(json_object_get(ret->ensemble, "reason"));
        return as_fail(err, AS_E_CONFLICT, "ensemble %lld of the sweep '%.80s' is none: %.120s",
                       (long long)q->ensemble, q->sweep, why ? why : "?");
    }
    st = ensemble_asked_sweeps(t, a, &asked, &sweeps, &n, err);
    const struct sources sources = {sweeps, n};
    return st == AS_OK ? choose_members(a, &sources, ret, err) : st;
}

/* The ensemble of the sweep's end, or its best trial. */
static as_status choose_by_use(struct tx *t, struct arena *a, const struct model_request *q,
                               const struct sweep_row *sweep, struct model_choice *ret,
                               struct as_err *err)
{
    const char *text = NULL;
    sweep_state state;
    struct ensemble_asked_sweep own = {.id = q->sweep};
    as_status st = store_ensemble_get(t, a, q->sweep, &text, &state, err);
    if (st == AS_OK && !sweep_state_is_final(state))
        return as_fail(err, AS_E_CONFLICT,
                       "the sweep '%.80s' is %s: name a trial, or wait until it has ended",
                       q->sweep, sweep_state_format(state));
    if (st == AS_OK && text)
        st = json_parse(text, strlen(text), &ret->ensemble, err);
    if (st == AS_OK)
        st = store_sweep_key(t, q->sweep, &own.key, err);
    if (st != AS_OK)
        return st;
    const json_t *e = ret->ensemble;
    bool is_ready = as_streq(json_string_value(json_object_get(e, "state")), "ready");
    const char *wants = json_string_value(json_object_get(e, "recommended"));
    bool is_ensemble = q->use == MODEL_ENSEMBLE ||
                       (q->use == MODEL_RECOMMENDED && is_ready && as_streq(wants, "ensemble"));
    if (is_ensemble && !is_ready) {
        const char *why = json_string_value(json_object_get(e, "reason"));
        return as_fail(err, AS_E_CONFLICT, "the sweep '%.80s' has no ensemble: %.140s", q->sweep,
                       why ? why : "it did not complete");
    }
    const struct sources sources = {&own, 1};
    if (is_ensemble)
        return choose_members(a, &sources, ret, err);
    const json_t *single = json_object_get(json_object_get(e, "best_single"), "number");
    if (!single && !sweep->has_best)
        return as_fail(err, AS_E_CONFLICT, "no trial of the sweep '%.80s' has completed", q->sweep);
    return choose_trial(t, a, q, single ? json_integer_value(single) : sweep->best_number, ret,
                        err);
}

as_status model_choose(struct tx *t, struct arena *a, const struct model_request *q,
                       const struct sweep_row *sweep, struct model_choice *ret, struct as_err *err)
{
    model_choice_done(ret); /* a transaction may run again */
    if (q->trial >= 0)
        return choose_trial(t, a, q, q->trial, ret, err);
    return q->ensemble > 0 ? choose_asked(t, a, q, ret, err)
                           : choose_by_use(t, a, q, sweep, ret, err);
}

/* ---- what is said of it ---- */

json_t *model_choice_lineage(const struct model_choice *c, const struct model_request *q)
{
    const json_t *e = c->ensemble;
    JSON_AUTO j = json_pack("{s:O*, s:O*, s:O*}", "method", json_object_get(e, "method"), "size",
                            json_object_get(e, "size"), "combine", json_object_get(e, "combine"));
    if (j && q->ensemble > 0 &&
        json_object_set_new(j, "number", json_integer((json_int_t)q->ensemble)) != 0)
        return NULL;
    return as_steal(j);
}
