#include "tests/simulation/invariants.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/simulation/rows.h"

static char text[600];

void violation(const char *fmt, ...)
{
    va_list args;
    if (text[0])
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
}

const char *violation_text(void)
{
    return text;
}

void violation_clear(void)
{
    text[0] = '\0';
}

/* ---- invariants ---- */

/* The latest point of a metric; NULL: none. */
static const struct sim_point *latest_point(const struct sim_attempt *x, int metric)
{
    const struct sim_point *best = NULL;
    for (int i = 0; i < x->n_points; i++)
        if (x->points[i].metric == metric && (!best || x->points[i].step > best->step))
            best = &x->points[i];
    return best;
}

/* The values of a trial are those of its latest attempt. */
static void check_values(const struct sim_sweep *s, const struct sim_trial *x, int number)
{
    for (int m = 0; m < SIM_METRICS; m++) {
        const struct sim_point *p = latest_point(&x->attempts[x->attempt], m);
        if (x->has[m] != (p != NULL) ||
            (p && memcmp(&p->value, &x->latest[m], sizeof p->value) != 0))
            violation("%s/%d: its %s is not that of attempt %lld", s->id, number, sim_metrics[m],
                      (long long)x->attempt);
    }
}

static void check_attempts(const struct sim_sweep *s, const struct sim_trial *x, int number)
{
    int n_completed = 0;
    for (int64_t k = 1; k <= x->attempt; k++) {
        const struct sim_attempt *a = &x->attempts[k];
        bool is_open = k == x->attempt && x->state == TRIAL_RUNNING;
        n_completed += strcmp(a->outcome, "completed") == 0;
        if (a->has_ended == is_open)
            violation("%s/%d is %s, and attempt %lld of %lld %s", s->id, number,
                      trial_state_format(x->state), (long long)k, (long long)x->attempt,
                      a->has_ended ? "has ended" : "is open");
    }
    int wanted = x->state == TRIAL_COMPLETED && !x->timed_out;
    if (n_completed != wanted)
        violation("%s/%d is %s with %d completed attempts", s->id, number,
                  trial_state_format(x->state), n_completed);
}

static void check_trial(const struct sim_sweep *s, const struct sim_trial *x, int number)
{
    bool is_final = trial_state_is_final(x->state);
    check_values(s, x, number);
    check_attempts(s, x, number);
    if (x->restarts > s->max_restarts)
        violation("%s/%d had %lld restarts of %lld", s->id, number, (long long)x->restarts,
                  (long long)s->max_restarts);
    if (is_final != (x->finish_seq > 0))
        violation("%s/%d is %s with the place %lld in the order of ends", s->id, number,
                  trial_state_format(x->state), (long long)x->finish_seq);
    if (x->state == TRIAL_COMPLETED && (!x->has[0] || !x->has_feasible))
        violation("%s/%d is completed without a value", s->id, number);
}

/* The places in the order of ends are 1, 2, 3, … */
static void check_order(const struct sim_sweep *s, const struct sim_trial *trials)
{
    int64_t n = 0, sum = 0;
    for (int i = 0; i < SIM_TRIALS; i++) {
        n += trials[i].finish_seq > 0;
        sum += trials[i].finish_seq;
        for (int k = 0; k < i; k++)
            if (trials[i].finish_seq > 0 && trials[i].finish_seq == trials[k].finish_seq)
                violation("%s/%d and %s/%d ended at the same place", s->id, i, s->id, k);
    }
    if (n != s->finish_seq || sum != n * (n + 1) / 2)
        violation("%s has %lld ends, the last one at %lld", s->id, (long long)n,
                  (long long)s->finish_seq);
}

static void check_sweep(const struct sim_sweep *s, const struct sim_trial *trials)
{
    struct trial_counts now = {0};
    bool is_over = s->state != SWEEP_RUNNING && s->state != SWEEP_PAUSED;
    for (int i = 0; i < SIM_TRIALS; i++) {
        if (!trials[i].is_there)
            continue;
        if (i > 0 && !trials[i - 1].is_there)
            violation("%s has a trial %d and none before it", s->id, i);
        now.by_state[trials[i].state]++;
        now.total++;
        check_trial(s, &trials[i], i);
    }
    for (int i = 0; i < TRIAL_STATES; i++)
        if (now.by_state[i] != s->counts.by_state[i])
            violation("%s says that %lld trials are %s, and %lld are", s->id,
                      (long long)s->counts.by_state[i], trial_state_format((trial_state)i),
                      (long long)now.by_state[i]);
    if (now.total != s->counts.total || now.total > s->planned)
        violation("%s has %lld trials, says %lld, planned are %lld", s->id, (long long)now.total,
                  (long long)s->counts.total, (long long)s->planned);
    if (s->max_concurrent > 0 && now.by_state[TRIAL_RUNNING] > s->max_concurrent)
        violation("%s runs %lld trials of at most %lld", s->id,
                  (long long)now.by_state[TRIAL_RUNNING], (long long)s->max_concurrent);
    if (is_over && now.by_state[TRIAL_RUNNING] + now.by_state[TRIAL_QUEUED] > 0)
        violation("%s is over, and has trials that are not", s->id);
    check_order(s, trials);
}

void check_tables(const struct sim_tables *t)
{
    for (int i = 0; i < SIM_SWEEPS; i++)
        if (t->sweeps[i].is_there)
            check_sweep(&t->sweeps[i], t->trials[i]);
}

/* ---- two tables ---- */

static bool same_attempt(const struct sim_attempt *a, const struct sim_attempt *b)
{
    return a->has_ended == b->has_ended && strcmp(a->runner, b->runner) == 0 &&
           strcmp(a->outcome, b->outcome) == 0 && strcmp(a->reported, b->reported) == 0 &&
           strcmp(a->reason, b->reason) == 0 && a->n_points == b->n_points &&
           memcmp(a->points, b->points, sizeof a->points) == 0;
}

static bool same_trial(const struct sim_trial *a, const struct sim_trial *b)
{
    bool same = a->is_there == b->is_there && a->state == b->state && a->attempt == b->attempt &&
                a->restarts == b->restarts && a->seed == b->seed && a->index == b->index &&
                a->step == b->step && (a->finish_seq > 0) == (b->finish_seq > 0) &&
                a->has_step == b->has_step && a->has_feasible == b->has_feasible &&
                a->feasible == b->feasible && a->timed_out == b->timed_out &&
                memcmp(a->has, b->has, sizeof a->has) == 0 &&
                memcmp(a->latest, b->latest, sizeof a->latest) == 0 &&
                strcmp(a->params, b->params) == 0 && strcmp(a->suggestion, b->suggestion) == 0 &&
                strcmp(a->runner, b->runner) == 0 && strcmp(a->reason, b->reason) == 0 &&
                memcmp(a->notes, b->notes, sizeof a->notes) == 0;
    for (int k = 0; k <= SIM_ATTEMPTS && same; k++)
        same = same_attempt(&a->attempts[k], &b->attempts[k]);
    return same;
}

static bool same_sweep(const struct sim_sweep *a, const struct sim_sweep *b)
{
    return a->state == b->state && strcmp(a->reason, b->reason) == 0 &&
           a->has_started == b->has_started && a->finish_seq == b->finish_seq &&
           a->suggested == b->suggested && memcmp(&a->counts, &b->counts, sizeof a->counts) == 0;
}

bool same_tables(const struct sim_tables *a, const struct sim_tables *b)
{
    for (int i = 0; i < SIM_SWEEPS; i++) {
        if (!same_sweep(&a->sweeps[i], &b->sweeps[i]))
            violation("%s differs from that of the run one at a time", a->sweeps[i].id);
        for (int k = 0; k < SIM_TRIALS; k++)
            if (!same_trial(&a->trials[i][k], &b->trials[i][k]))
                violation("%s/%d differs from that of the run one at a time: %s, attempt %lld; "
                          "%s, attempt %lld",
                          a->sweeps[i].id, k, trial_state_format(a->trials[i][k].state),
                          (long long)a->trials[i][k].attempt,
                          trial_state_format(b->trials[i][k].state),
                          (long long)b->trials[i][k].attempt);
    }
    return !text[0];
}
