#include "api/server/codec.h"

#include "api/server/codec_priv.h"

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
    return out_end(&o);
}

json_t *sweep_encode(const struct sweep_row *r)
{
    struct out o = out_begin();
    out_str(&o, "id", r->id);
    out_str(&o, "name", r->name);
    out_str(&o, "state", sweep_state_format(r->state));
    out_str(&o, "reason", r->reason);
    out_json(&o, "document", r->document);
    out_child(&o, "metric", metric_encode(r->metric, r->maximize));
    out_str(&o, "method", r->method);
    out_decimal(&o, "seed", r->seed);
    out_i64(&o, "planned_trials", r->planned);
    out_child(&o, "counts", counts_encode(&r->counts));
    out_child(&o, "best", best_encode(r));
    out_time(&o, "created_at", r->created_ms);
    out_time(&o, "started_at", r->started_ms);
    out_time(&o, "finished_at", r->finished_ms);
    return out_end(&o);
}

json_t *sweep_page_encode(const struct sweep_page *p)
{
    json_t *items = json_array();
    for (size_t i = 0; i < p->n; i++)
        items = list_add(items, sweep_encode(&p->rows[i]));
    return page_end(items, p->next_cursor);
}
