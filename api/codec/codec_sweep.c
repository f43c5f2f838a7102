/* Encoders of sweeps, their changes, Pareto fronts and importance; decoder of a request for
 * retries. Objectives and constraints come from columns of the row and not from the document,
 * because lists have no documents (decision 6003). The first objective is repeated as `metric` and
 * `goal`, for clients of sweeps with one objective. */
#include "api/codec/wire.h"

#include "api/codec/wire_priv.h"
#include "base/utf8.h"

static json_t *counts_encode(const struct trial_counts *c)
{
    struct out o = out_begin();
    for (int s = 0; s < TRIAL_STATES; s++)
        out_i64(&o, trial_state_format((trial_state)s), c->by_state[s]);
    out_i64(&o, "total", c->total);
    return out_end(&o);
}

static json_t *metric_encode(const char *name, bool maximize)
{
    struct out o = out_begin();
    out_str(&o, "name", name);
    out_str(&o, "goal", maximize ? "maximize" : "minimize");
    return out_end(&o);
}

/* All objectives, in the order of the sweep document. */
static void out_objectives(struct out *o, const struct sweep_row *r)
{
    if (r->objectives)
        out_json(o, "metrics", r->objectives);
    else
        out_child(o, "metrics", list_add(json_array(), metric_encode(r->metric, r->maximize)));
}

/* 95% of a normal distribution lie within so many deviations. */
#define INTERVAL 1.96

static json_t *expected_encode(const struct regret_check *x)
{
    struct out o = out_begin();
    out_number(&o, "mean", x->best_mean);
    out_number(&o, "low", x->best_mean - INTERVAL * x->best_deviation);
    out_number(&o, "high", x->best_mean + INTERVAL * x->best_deviation);
    out_number(&o, "noise", x->best_noise);
    return out_end(&o);
}

json_t *best_page_encode(const struct trial_page *p)
{
    struct out o = {.obj = trial_page_encode(p)};
    out_child(&o, "expected", p->expected ? expected_encode(p->expected) : json_null());
    return out_end(&o);
}

static json_t *told_encode(const struct sweep_row *r)
{
    struct out o = out_begin();
    out_i64(&o, "number", r->told_number);
    out_number(&o, "value", r->told_value);
    return out_end(&o);
}

static json_t *best_encode(const struct sweep_row *r)
{
    struct out o = out_begin();
    if (!r->has_best) {
        json_decref(o.obj);
        return json_null();
    }
    out_i64(&o, "number", r->best_number);
    out_number(&o, "value", r->best_value);
    out_json(&o, "params", r->best_params);
    out_child(&o, "expected", r->best_is_by_model ? expected_encode(&r->regret) : json_null());
    out_child(&o, "told", told_encode(r));
    return out_end(&o);
}

static json_t *kept_best_encode(const struct regret_check *x)
{
    struct out o = out_begin();
    out_i64(&o, "number", x->best);
    out_number(&o, "mean", x->best_mean);
    out_number(&o, "deviation", x->best_deviation);
    out_number(&o, "noise", x->best_noise);
    return out_end(&o);
}

static json_t *regret_check_encode(const struct regret_check *x)
{
    struct out o = out_begin();
    out_i64(&o, "completed", x->completed);
    out_i64(&o, "finish_seq", x->seq);
    out_real_or_null(&o, "bound", x->bound);
    out_real_or_null(&o, "relative", x->relative);
    out_bool(&o, "enough", x->enough);
    if (x->has_best)
        out_child(&o, "best", kept_best_encode(x));
    out_time(&o, "made_at", x->made_ms);
    return out_end(&o);
}

json_t *sweep_encode(const struct sweep_row *r)
{
    struct out o = out_begin();
    out_str(&o, "id", r->id);
    out_str(&o, "name", r->name);
    out_str(&o, "state", sweep_state_format(r->state));
    out_str(&o, "reason", r->reason);
    if (r->document)
        out_json(&o, "document", r->document);
    out_child(&o, "metric", metric_encode(r->metric, r->maximize));
    out_objectives(&o, r);
    out_json(&o, "constraints", r->outcomes ? r->outcomes : "[]");
    out_str(&o, "method", r->method);
    out_decimal(&o, "seed", r->seed);
    out_i64(&o, "planned_trials", r->planned);
    out_i64(&o, "known_trials", r->known);
    out_bool(&o, "for_runners", r->for_runners);
    out_json(&o, "tags", r->tags);
    if (r->document)
        out_str(&o, "remarks", r->remarks);
    out_i64(&o, "priority", r->priority);
    out_str(&o, "note", r->note);
    out_child(&o, "counts", counts_encode(&r->counts));
    out_child(&o, "best", best_encode(r));
    out_child(&o, "regret", r->has_regret ? regret_check_encode(&r->regret) : json_null());
    out_time(&o, "created_at", r->created_ms);
    out_time(&o, "started_at", r->started_ms);
    out_time(&o, "finished_at", r->finished_ms);
    return out_end(&o);
}

static json_t *stopping_encode(const struct stopping_report *r)
{
    struct out o = out_begin();
    json_t *rungs = json_array();
    for (size_t i = 0; i < r->n_rungs; i++) {
        struct out rung = out_begin();
        out_i64(&rung, "step", r->steps[i]);
        out_i64(&rung, "reached", r->rungs[i].reached);
        out_i64(&rung, "stopped", r->rungs[i].stopped);
        out_i64(&rung, "paused", r->rungs[i].waiting);
        out_i64(&rung, "obeyed", r->rungs[i].obeyed);
        out_i64(&rung, "disobeyed", r->rungs[i].disobeyed);
        rungs = list_add(rungs, out_end(&rung));
    }
    out_child(&o, "rungs", rungs);
    out_i64(&o, "steps_spent", r->steps_spent);
    out_i64(&o, "steps_saved", r->steps_saved);
    out_str(&o, "warning", r->warning);
    return out_end(&o);
}

json_t *sweep_detail_encode(const struct sweep_row *r, const struct stopping_report *stopping,
                            const char *learned)
{
    struct out o = {.obj = sweep_encode(r)};
    if (stopping->is_there)
        out_child(&o, "early_stopping", stopping_encode(stopping));
    else
        out_null(&o, "early_stopping");
    if (learned)
        out_json(&o, "learned", learned);
    return out_end(&o);
}

json_t *sweep_changed_encode(const struct sweep_changed *r)
{
    struct out o = {.obj = sweep_encode(&r->sweep)};
    json_t *notes = json_array();
    for (size_t i = 0; i < r->n_notes; i++)
        notes = list_add(notes, json_string(r->notes[i]));
    o.failed = !o.obj;
    out_child(&o, "notes", notes);
    return out_end(&o);
}

static json_t *sweep_change_encode(const struct sweep_change_row *r)
{
    struct out o = out_begin();
    out_time(&o, "changed_at", r->changed_ms);
    out_str(&o, "changed_by", r->by);
    out_json(&o, "changes", r->changes);
    return out_end(&o);
}

json_t *sweep_changes_encode(const struct sweep_change_list *l)
{
    struct out o = out_begin();
    json_t *items = json_array();
    for (size_t i = 0; i < l->n; i++)
        items = list_add(items, sweep_change_encode(&l->rows[i]));
    out_child(&o, "items", items);
    return out_end(&o);
}

as_status retry_request_decode(const json_t *body, struct retry_request *ret, struct as_err *err)
{
    static const char *const words[] = {"failed", "cancelled", NULL};
    static const trial_state states[] = {TRIAL_FAILED, TRIAL_CANCELLED};
    struct json_fields f;
    int word = -1;
    as_status st = json_fields_init(&f, body, "", err);
    if (st < 0 || (st = json_fields_word(&f, "state", JSON_REQUIRED, words, &word, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    *ret = (struct retry_request){.state = states[word]};
    return AS_OK;
}

json_t *retried_encode(const struct retried *r)
{
    struct out o = out_begin();
    json_t *numbers = json_array();
    for (size_t i = 0; i < r->n; i++)
        numbers = list_add(numbers, json_integer(r->numbers[i]));
    out_child(&o, "numbers", numbers);
    out_child(&o, "sweep", sweep_encode(&r->sweep));
    return out_end(&o);
}

json_t *sweep_page_encode(const struct sweep_page *p)
{
    json_t *items = json_array();
    for (size_t i = 0; i < p->n; i++)
        items = list_add(items, sweep_encode(&p->rows[i]));
    return page_end(items, p->next_cursor);
}

json_t *pareto_encode(const struct pareto_row *r)
{
    struct out o = out_begin();
    json_t *metrics = json_array(), *items = json_array();
    json_t *reference = r->has_reference ? json_array() : json_null();
    for (size_t i = 0; i < r->n_metrics; i++)
        metrics = list_add(metrics, metric_encode(r->metrics[i], r->maximize[i]));
    for (size_t i = 0; i < r->n; i++)
        items = list_add(items, trial_encode(&r->rows[i]));
    for (size_t i = 0; r->has_reference && i < r->n_metrics; i++)
        reference = list_add(reference, json_number_new(r->reference[i]));
    out_child(&o, "metrics", metrics);
    out_child(&o, "items", items);
    out_child(&o, "reference", reference);
    if (r->has_reference)
        out_number(&o, "hypervolume", r->hypervolume);
    else
        out_null(&o, "hypervolume");
    out_str(&o, "next_cursor", r->next_cursor);
    return out_end(&o);
}

static json_t *importance_param_encode(const struct importance_param *p)
{
    struct out o = out_begin();
    out_str(&o, "name", p->name);
    out_real_or_null(&o, "first", p->first);
    out_real_or_null(&o, "first_low", p->first_low);
    out_real_or_null(&o, "first_high", p->first_high);
    out_real_or_null(&o, "total", p->total);
    out_real_or_null(&o, "total_low", p->total_low);
    out_real_or_null(&o, "total_high", p->total_high);
    out_real_or_null(&o, "top", p->top);
    out_bool(&o, "conditional", p->is_conditional);
    return out_end(&o);
}

json_t *importance_encode(const struct importance_row *r)
{
    struct out o = out_begin();
    json_t *params = json_array();
    for (size_t i = 0; i < r->n; i++)
        params = list_add(params, importance_param_encode(&r->params[i]));
    out_str(&o, "metric", r->metric);
    out_i64(&o, "trials", r->trials);
    out_i64(&o, "every", r->every);
    out_bool(&o, "stale", r->is_stale);
    out_real_or_null(&o, "r2", r->r2);
    out_str(&o, "method", r->method);
    out_child(&o, "parameters", params);
    out_str(&o, "reason", r->reason);
    return out_end(&o);
}

json_t *surface_encode(const struct surface_row *r)
{
    struct out o = out_begin();
    out_str(&o, "metric", r->metric);
    out_i64(&o, "trials", r->trials);
    out_bool(&o, "stale", r->is_stale);
    out_real_or_null(&o, "r2", r->r2);
    out_str(&o, "reason", r->reason);
    out_json(&o, "surfaces", r->surfaces);
    return out_end(&o);
}

json_t *regret_encode(const struct regret_row *r)
{
    struct out o = out_begin();
    out_str(&o, "metric", r->metric);
    out_i64(&o, "finish_seq", r->finish_seq);
    out_bool(&o, "stale", r->is_stale);
    out_bool(&o, "enough", r->is_enough);
    out_real_or_null(&o, "bound", r->bound);
    out_real_or_null(&o, "relative", r->relative);
    return out_end(&o);
}

json_t *regret_checks_encode(const struct regret_check_list *l)
{
    struct out o = out_begin();
    json_t *items = json_array();
    for (size_t i = 0; i < l->n; i++)
        items = list_add(items, regret_check_encode(&l->rows[i]));
    out_child(&o, "items", items);
    return out_end(&o);
}

static json_t *fault_encode(const struct as_err *fault)
{
    struct out o = out_begin();
    struct as_err e = *fault;
    as_utf8_repair(e.msg); /* it may have been cut inside a character */
    as_utf8_repair(e.pointer);
    out_str(&o, "pointer", e.pointer);
    out_str(&o, "detail", e.msg);
    return out_end(&o);
}

static json_t *preview_suggestion_encode(const struct preview_suggestion *s)
{
    struct out o = out_begin();
    out_json(&o, "params", s->params);
    out_str(&o, "why", s->why);
    return out_end(&o);
}

json_t *preview_encode(const struct preview_row *r, const struct faults *faults)
{
    struct out o = out_begin();
    json_t *errors = json_array(), *suggestions = json_array();
    for (size_t i = 0; i < faults->n; i++)
        errors = list_add(errors, fault_encode(&faults->list[i]));
    for (size_t i = 0; i < r->n; i++)
        suggestions = list_add(suggestions, preview_suggestion_encode(&r->suggestions[i]));
    out_bool(&o, "valid", r->is_valid);
    out_child(&o, "errors", errors);
    out_str(&o, "name", r->name);
    out_str(&o, "method", r->method);
    if (r->is_valid)
        out_decimal(&o, "seed", r->seed);
    else
        out_null(&o, "seed");
    out_i64_or_null(&o, "planned_trials", r->is_valid, r->planned);
    out_i64_or_null(&o, "cells", r->n_cells > 0, r->n_cells);
    out_child(&o, "suggestions", suggestions);
    return out_end(&o);
}
