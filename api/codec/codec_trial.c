/* Encoders of trials, their attempts, measurements, logs and files. The fields of a trial in a list
 * and of a trial alone are written by one function, so the two never differ; a trial alone adds
 * what is too large for lists (attempts, notes, test figures). */
#include "api/codec/wire.h"

#include <string.h>

#include "api/codec/wire_priv.h"
#include "base/json.h"

static void add_trial_fields(struct out *o, const struct trial_row *r)
{
    out_str(o, "sweep", r->sweep);
    out_i64(o, "number", r->number);
    out_str(o, "state", trial_state_format(r->state));
    out_i64(o, "attempt", r->attempt);
    out_i64(o, "restarts", r->restarts);
    out_json(o, "params", r->params);
    out_decimal(o, "seed", r->seed);
    if (r->has_value)
        out_number(o, "value", r->value);
    else
        out_null(o, "value");
    out_i64_or_null(o, "step", r->has_step, r->step);
    out_reals(o, "metrics", r->metrics);
    out_json(o, "suggestion", r->suggestion);
    out_str(o, "origin", trial_origin_words[r->origin]);
    out_i64_or_null(o, "parent", r->is_fork, r->parent);
    out_i64_or_null(o, "fork_step", r->is_fork, r->fork_step);
    out_i64_or_null(o, "index", r->has_index, r->index);
    out_i64_or_null(o, "seen", r->has_seen, r->seen);
    out_i64_or_null(o, "finish_seq", r->finish_seq > 0, r->finish_seq);
    out_json(o, "retries", r->retries);
    out_json(o, "rungs", r->rungs);
    if (r->has_feasible)
        out_bool(o, "feasible", r->feasible);
    else
        out_null(o, "feasible");
    out_bool(o, "timed_out", r->timed_out);
    out_bool(o, "partial",
             r->has_value && (r->timed_out || r->state == TRIAL_CANCELLED ||
                              r->state == TRIAL_PAUSED || r->state == TRIAL_PRUNED));
    out_str(o, "shape", r->shape);
    out_str(o, "group", r->group);
    out_str(o, "runner", r->runner);
    out_str(o, "client", r->client);
    out_str(o, "reason", r->reason);
    out_json(o, "tags", r->tags ? r->tags : "[]");
    out_time(o, "created_at", r->created_ms);
    out_time(o, "started_at", r->started_ms);
    out_time(o, "finished_at", r->finished_ms);
    out_i64_or_null(o, "ran_ms", trial_ran_ms(r) >= 0, trial_ran_ms(r));
    out_time(o, "running_since", r->running_since_ms);
}

json_t *trial_encode(const struct trial_row *r)
{
    struct out o = out_begin();
    add_trial_fields(&o, r);
    return out_end(&o);
}

json_t *with_user_attrs(json_t *object, const char *text)
{
    json_t *attrs = NULL;
    if (object && json_parse(text, strlen(text), &attrs, NULL) == AS_OK &&
        json_object_set_new(object, "user_attrs", attrs) == 0)
        return object;
    json_decref(object);
    return NULL;
}

json_t *tagged_encode(int64_t changed)
{
    struct out o = out_begin();
    out_i64(&o, "changed", changed);
    return out_end(&o);
}

json_t *trials_added_encode(const struct trials_added *r)
{
    struct out o = out_begin();
    json_t *numbers = json_array();
    for (size_t i = 0; i < r->n; i++)
        numbers = list_add(numbers, json_integer(r->numbers[i]));
    out_str(&o, "sweep", r->sweep);
    out_child(&o, "numbers", numbers);
    out_i64(&o, "added", (int64_t)r->n_added);
    return out_end(&o);
}

json_t *trial_page_encode(const struct trial_page *p)
{
    json_t *items = json_array();
    for (size_t i = 0; i < p->n; i++)
        items = list_add(items, p->user_attrs
                                    ? with_user_attrs(trial_encode(&p->rows[i]), p->user_attrs[i])
                                    : trial_encode(&p->rows[i]));
    return page_end(items, p->next_cursor);
}

static json_t *attempt_encode(const struct attempt_row *r)
{
    struct out o = out_begin();
    out_i64(&o, "attempt", r->attempt);
    out_str(&o, "runner", r->runner);
    out_str(&o, "client", r->client);
    out_str(&o, "group", r->group);
    out_child(&o, "gang", gang_summary_encode(&r->gang));
    out_time(&o, "started_at", r->started_ms);
    out_time(&o, "ended_at", r->ended_ms);
    out_str(&o, "outcome", r->outcome);
    out_str(&o, "reason", r->reason);
    out_i64_or_null(&o, "exit_code", r->has_exit_code, r->exit_code);
    out_i64_or_null(&o, "ran_ms", r->has_ran, r->ran_ms);
    out_json(&o, "walls", r->walls ? r->walls : "null");
    return out_end(&o);
}

static json_t *fork_encode(const struct fork_row *r)
{
    struct out o = out_begin();
    out_i64(&o, "number", r->number);
    out_i64(&o, "step", r->step);
    return out_end(&o);
}

json_t *trial_detail_encode(const struct trial_detail *d)
{
    struct out o = out_begin();
    struct out notes = out_begin();
    json_t *attempts = json_array(), *forks = json_array();
    add_trial_fields(&o, &d->trial);
    for (size_t i = 0; i < d->n_attempts; i++)
        attempts = list_add(attempts, attempt_encode(&d->attempts[i]));
    for (size_t i = 0; i < d->n_notes; i++)
        out_str(&notes, d->notes[i].name, d->notes[i].text);
    out_str(&o, "why", d->why ? d->why : "");
    out_child(&o, "notes", out_end(&notes));
    out_child(&o, "attempts", attempts);
    for (size_t i = 0; i < d->n_forks; i++)
        forks = list_add(forks, fork_encode(&d->forks[i]));
    out_child(&o, "forks", forks);
    out_json(&o, "test", d->test);
    return out_end(&o);
}

static json_t *series_row_encode(const struct series_row *r)
{
    struct out o = out_begin();
    json_t *steps = json_array(), *values = json_array();
    for (size_t i = 0; i < r->n; i++) {
        steps = list_add(steps, json_integer(r->steps[i]));
        values = list_add(values, json_number_new(r->values[i]));
    }
    out_child(&o, "steps", steps);
    out_child(&o, "values", values);
    return out_end(&o);
}

json_t *series_encode(const struct series_list *l)
{
    struct out all = out_begin(), o = out_begin();
    for (size_t i = 0; i < l->n; i++)
        out_child(&all, l->rows[i].metric, series_row_encode(&l->rows[i]));
    out_child(&o, "series", out_end(&all));
    out_str(&o, "next_cursor", l->next_cursor);
    return out_end(&o);
}

json_t *log_encode(const struct log_row *r)
{
    struct out o = out_begin();
    out_i64(&o, "attempt", r->attempt);
    out_str(&o, "text", r->text);
    out_bool(&o, "truncated", r->truncated);
    return out_end(&o);
}

static json_t *usage_one(const struct usage_row *r)
{
    json_t *one = NULL;
    if (json_parse(r->usage, strlen(r->usage), &one, NULL) < 0)
        return NULL;
    json_t *seat = r->seat == USAGE_NO_SEAT ? json_null() : json_integer((json_int_t)r->seat);
    if (json_object_set_new(one, "attempt", json_integer((json_int_t)r->attempt)) < 0 ||
        json_object_set_new(one, "seat", seat) < 0) {
        json_decref(one);
        return NULL;
    }
    return one;
}

json_t *usage_encode(const struct usage_list *l)
{
    struct out o = out_begin();
    json_t *items = json_array();
    for (size_t i = 0; i < l->n; i++)
        items = list_add(items, usage_one(&l->rows[i]));
    out_child(&o, "items", items);
    return out_end(&o);
}

static json_t *file_encode(const struct file_row *r)
{
    struct out o = out_begin();
    out_str(&o, "path", r->path);
    out_i64(&o, "size", r->size);
    out_str(&o, "sha256", r->sha256);
    return out_end(&o);
}

json_t *file_list_encode(const struct file_list *l)
{
    struct out o = out_begin();
    json_t *items = json_array();
    for (size_t i = 0; i < l->n; i++)
        items = list_add(items, file_encode(&l->rows[i]));
    out_child(&o, "items", items);
    return out_end(&o);
}
