/* Rows of the tables as the functions of the store give and change them: what both halves of the
 * fake store share. The meaning is that of the statements in scheduler/store/ and of the triggers
 * in migrations/. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/fibers.h"
#include "tests/simulation/tables.h"
#include "tests/support/check_main.h"

#define COPY(to, from) ((void)snprintf((to), sizeof(to), "%s", (from) ? (from) : ""))

static const char *text_of(struct arena *a, const char *s)
{
    return *s ? arena_strdup(a, s) : NULL;
}

/* ---- sweeps ---- */

static bool has_reached_target(struct tx *t, const struct sim_sweep *s, int64_t key)
{
    for (int i = 0; i < SIM_TRIALS && s->has_target; i++) {
        const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[key - 1][i]);
        if (x->is_there && x->state == TRIAL_COMPLETED && x->feasible && x->latest[0] <= s->target)
            return true;
    }
    return false;
}

void sim_fill_sweep(struct tx *t, struct arena *a, struct sim_sweep *sweep,
                    struct sweep_locked *ret)
{
    const struct sim_sweep *s = SIM_SEE(t, sweep);
    int64_t key = sweep - sim_tables_of(t)->sweeps + 1;
    *ret = (struct sweep_locked){.head = {.key = key,
                                          .id = arena_strdup(a, s->id),
                                          .state = s->state,
                                          .metric = sim_metrics[0],
                                          .seed = s->seed,
                                          .planned = s->planned,
                                          .max_concurrent = s->max_concurrent,
                                          .max_failed = s->max_failed,
                                          .max_restarts = s->max_restarts,
                                          .trial_timeout_ms = s->trial_timeout_ms,
                                          .counts = s->counts,
                                          .target_reached = has_reached_target(t, s, key),
                                          .keeps_timed_out = s->keeps_timed_out,
                                          .has_started = s->has_started,
                                          .outcomes = s->outcomes,
                                          .suggested = s->suggested,
                                          .finish_seq = s->finish_seq,
                                          .ranks = 1,
                                          .priority = s->priority},
                                 .has_target = s->has_target,
                                 .target = s->target};
}

static int64_t max_turns(struct tx *t)
{
    int64_t most = 0;
    for (int i = 0; i < SIM_SWEEPS; i++) {
        const struct sim_sweep *s = SIM_SEE(t, &sim_tables_of(t)->sweeps[i]);
        if (s->is_there && s->state == SWEEP_RUNNING && s->turns > most)
            most = s->turns;
    }
    return most;
}

void sim_count_turns(struct tx *t, int64_t key, int64_t n)
{
    int64_t floor = max_turns(t) - 8;
    struct sim_sweep *s = SIM_EDIT(t, &sim_tables_of(t)->sweeps[key - 1]);
    s->turns = (s->turns > floor ? s->turns : floor) + n;
    s->served = ++sim_tx_of(t)->store->db->last_served;
}

/* ---- trials ---- */

struct trial_head sim_head_of(struct tx *t, struct arena *a, int64_t key, int64_t number)
{
    const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[key - 1][number]);
    return (struct trial_head){.sweep_key = key,
                               .number = number,
                               .state = x->state,
                               .attempt = x->attempt,
                               .restarts = x->restarts,
                               .has_value = x->has[0],
                               .value = x->latest[0],
                               .runner = text_of(a, x->runner),
                               .epoch = x->epoch};
}

const char *sim_metrics_of(struct arena *a, const struct sim_trial *x)
{
    const char *text = "";
    for (int m = 0; m < SIM_METRICS; m++) {
        if (!x->has[m])
            continue;
        text = isfinite(x->latest[m])
                   ? arena_printf(a, "%s%s\"%s\":%.17g", text, *text ? "," : "", sim_metrics[m],
                                  x->latest[m])
                   : arena_printf(a, "%s%s\"%s\":\"NaN\"", text, *text ? "," : "", sim_metrics[m]);
    }
    return arena_printf(a, "{%s}", text);
}

void sim_fill_trial(struct tx *t, struct arena *a, int64_t key, int64_t number,
                    struct trial_row *ret)
{
    const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[key - 1][number]);
    *ret = (struct trial_row){.sweep = arena_strdup(a, sim_tables_of(t)->sweeps[key - 1].id),
                              .number = number,
                              .state = x->state,
                              .attempt = x->attempt,
                              .restarts = x->restarts,
                              .params = arena_strdup(a, x->params),
                              .seed = x->seed,
                              .has_value = x->has[0],
                              .value = x->latest[0],
                              .has_step = x->has_step,
                              .step = x->step,
                              .metrics = sim_metrics_of(a, x),
                              .suggestion = arena_strdup(a, x->suggestion),
                              .has_index = true,
                              .index = x->index,
                              .finish_seq = x->finish_seq,
                              .has_feasible = x->has_feasible,
                              .feasible = x->feasible,
                              .timed_out = x->timed_out,
                              .runner = text_of(a, x->runner),
                              .reason = text_of(a, x->reason)};
}

static int metric_of(const char *name)
{
    for (int m = 0; m < SIM_METRICS; m++)
        if (as_streq(sim_metrics[m], name))
            return m;
    ck_abort_msg("the simulation has no metric '%s'", name);
}

/* The latest values that come with an end. */
static void set_latest(struct sim_trial *x, const struct trial_latest *l)
{
    struct as_err err = {0};
    JSON_AUTO metrics = NULL;
    const char *name;
    json_t *value;
    if (!l->metrics)
        return;
    ck_ok(json_parse(l->metrics, strlen(l->metrics), &metrics, &err), err);
    json_object_foreach(metrics, name, value)
    {
        int metric = metric_of(name);
        x->has[metric] = true;
        ck_assert(json_number_get(value, &x->latest[metric]));
    }
    x->has_step = true;
    x->step = l->step;
}

as_status sim_move_trial(struct tx *t, const struct trial_moved *m, bool is_guarded,
                         struct as_err *err)
{
    struct sim_trial *x = SIM_EDIT(t, &sim_tables_of(t)->trials[m->sweep_key - 1][m->number]);
    struct sim_sweep *s = SIM_EDIT(t, &sim_tables_of(t)->sweeps[m->sweep_key - 1]);
    const struct trial_move *v = &m->move;
    bool is_final = trial_state_is_final(v->to);
    if (is_guarded && (x->state != v->from || x->attempt != v->attempt))
        return as_fail(err, AS_E_CONFLICT, "trial %lld is no longer %s at attempt %lld",
                       (long long)m->number, trial_state_format(v->from), (long long)v->attempt);
    s->counts.by_state[x->state]--;
    s->counts.by_state[v->to]++;
    x->state = v->to;
    x->restarts += v->burns_restart;
    COPY(x->reason, v->reason);
    x->missing = 0;
    s->finish_seq += is_final;
    x->finish_seq = is_final ? (v->seq ? v->seq : s->finish_seq) : 0;
    x->has_feasible = v->to == TRIAL_COMPLETED;
    x->feasible = x->has_feasible && v->feasible;
    x->timed_out = v->timed_out;
    set_latest(x, &m->latest);
    return AS_OK;
}

void sim_end_attempt(struct tx *t, const struct attempt_ended *e)
{
    struct sim_trial *trial = SIM_EDIT(t, &sim_tables_of(t)->trials[e->sweep_key - 1][e->number]);
    struct sim_attempt *x = &trial->attempts[e->attempt];
    x->has_ended = true;
    COPY(x->outcome, e->end.outcome);
    COPY(x->reported, e->end.reported);
    COPY(x->reason, e->end.reason);
}

as_status sim_begin_trial(struct tx *t, int64_t key, const struct made_trial *made, bool is_made,
                          const struct owner *o, struct as_err *err)
{
    struct sim_trial *row = &sim_tables_of(t)->trials[key - 1][made->number];
    as_status st = is_made ? sim_lock(t, &row->row, true, err) : AS_OK;
    if (st == AS_OK && !is_made)
        st = sim_lock(t, &row->row, true, err); /* the update waits for who measures it */
    if (st != AS_OK)
        return st;
    struct sim_sweep *s = SIM_EDIT(t, &sim_tables_of(t)->sweeps[key - 1]);
    struct sim_trial *x = SIM_EDIT(t, row);
    if (is_made == x->is_there || (!is_made && x->state != TRIAL_QUEUED))
        return as_fail(err, AS_E_CONFLICT, "trial %lld cannot begin", (long long)made->number);
    ck_assert_int_lt(x->attempt, SIM_ATTEMPTS);
    if (is_made) {
        x->is_there = true;
        x->seed = made->seed;
        x->index = made->index;
        COPY(x->params, made->params);
        COPY(x->suggestion, made->suggestion);
        s->counts.total++;
        s->suggested++;
    } else {
        s->counts.by_state[TRIAL_QUEUED]--;
    }
    s->counts.by_state[TRIAL_RUNNING]++;
    x->state = TRIAL_RUNNING;
    x->attempt++;
    x->epoch = o->epoch;
    x->claimed_ns = sim_now_ns();
    x->missing = 0;
    COPY(x->runner, o->runner);
    COPY(x->reason, NULL);
    if (sim_tx_of(t)->store->db->plant != PLANT_CARRY) {
        x->has_step = false;
        x->step = 0;
        memset(x->has, 0, sizeof x->has);
        memset(x->latest, 0, sizeof x->latest);
    }
    struct sim_attempt *a = &x->attempts[x->attempt];
    *a = (struct sim_attempt){.epoch = o->epoch};
    COPY(a->runner, o->runner);
    COPY(a->claim_id, o->claim_id);
    struct sim_deed *d = sim_add_deed(t, DEED_BEGUN);
    d->sweep_key = key;
    d->is_made = is_made;
    d->made = *made;
    COPY(d->params, made->params);
    COPY(d->suggestion, made->suggestion);
    COPY(d->runner, o->runner);
    COPY(d->claim_id, o->claim_id);
    return AS_OK;
}

int64_t sim_held(struct tx *t, const char *runner, const struct attempt_ref *ending, size_t n,
                 int64_t *ret_ending, int64_t *keys)
{
    int64_t held = 0;
    *ret_ending = 0;
    for (int64_t key = 1; key <= SIM_SWEEPS; key++)
        for (int number = 0; number < SIM_TRIALS; number++) {
            const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[key - 1][number]);
            if (!x->is_there || x->state != TRIAL_RUNNING || !as_streq(x->runner, runner))
                continue;
            held++;
            for (size_t i = 0; i < n; i++)
                if (ending[i].number == number && ending[i].attempt == x->attempt &&
                    as_streq(ending[i].sweep, sim_tables_of(t)->sweeps[key - 1].id)) {
                    if (keys)
                        keys[*ret_ending] = key;
                    ++*ret_ending;
                    break;
                }
        }
    return held;
}

/* ---- measurements ---- */

int64_t sim_latest_step(const struct sim_attempt *x)
{
    int64_t latest = -1;
    for (int i = 0; i < x->n_points; i++)
        latest = x->points[i].step > latest ? x->points[i].step : latest;
    return latest;
}

/* The latest value of a metric: of the latest attempt that has one, at its highest step. */
static const struct sim_point *latest_of(const struct sim_trial *x, int metric)
{
    const struct sim_point *best = NULL;
    for (int64_t k = x->attempt; k > 0 && !best; k--)
        for (int i = 0; i < x->attempts[k].n_points; i++) {
            const struct sim_point *p = &x->attempts[k].points[i];
            if (p->metric == metric && (!best || p->step > best->step))
                best = p;
        }
    return best;
}

static const struct sim_point *find_point(const struct sim_attempt *x, int metric, int64_t step)
{
    for (int i = 0; i < x->n_points; i++)
        if (x->points[i].metric == metric && x->points[i].step == step)
            return &x->points[i];
    return NULL;
}

struct measured sim_add_points(struct tx *t, const struct trial_points *p)
{
    struct sim_trial *x = SIM_EDIT(t, &sim_tables_of(t)->trials[p->sweep_key - 1][p->number]);
    struct sim_attempt *a = &x->attempts[p->attempt];
    struct measured ret = {0};
    for (size_t i = 0; i < p->n; i++) {
        const struct measurement *m = &p->points[i];
        int metric = metric_of(m->metric);
        if (find_point(a, metric, m->step))
            continue;
        ck_assert_int_lt(a->n_points, SIM_POINTS);
        a->points[a->n_points++] = (struct sim_point){m->step, metric, m->value};
        ret.recorded++;
    }
    if (ret.recorded == 0 || p->keeps_row)
        return ret;
    x->step = -1;
    for (size_t i = 0; i < p->n; i++) {
        int metric = metric_of(p->points[i].metric);
        const struct sim_point *l = latest_of(x, metric);
        x->has[metric] = true;
        x->latest[metric] = l->value;
        x->step = l->step > x->step ? l->step : x->step;
    }
    x->has_step = true;
    ret.has_value = x->has[0];
    ret.value = x->latest[0];
    return ret;
}

struct measured_other sim_compare_points(struct tx *t, const struct trial_points *p)
{
    const struct sim_trial *x = SIM_SEE(t, &sim_tables_of(t)->trials[p->sweep_key - 1][p->number]);
    const struct sim_attempt *a = &x->attempts[p->attempt];
    for (size_t i = 0; i < p->n; i++) {
        int metric = metric_of(p->points[i].metric);
        const struct sim_point *m = NULL;
        for (int k = 0; k < a->n_points; k++) {
            const struct sim_point *q = &a->points[k];
            bool fits =
                p->points[i].step < 0 ? !m || q->step > m->step : q->step == p->points[i].step;
            m = q->metric == metric && fits ? q : m;
        }
        if (!m ||
            (m->value != p->points[i].value && !(isnan(m->value) && isnan(p->points[i].value))))
            return (struct measured_other){(int64_t)i, m != NULL, m ? m->value : 0};
    }
    return (struct measured_other){.place = -1};
}

void sim_put_notes(struct tx *t, const struct trial_notes *n)
{
    struct sim_trial *x = SIM_EDIT(t, &sim_tables_of(t)->trials[n->sweep_key - 1][n->number]);
    for (size_t i = 0; i < n->n; i++)
        for (int k = 0; k < SIM_NOTES; k++)
            if (as_streq(n->notes[i].name, sim_notes[k]))
                COPY(x->notes[k], n->notes[i].text);
}
