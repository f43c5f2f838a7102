/* The sentences about early stopping that has no effect, from counts and the index of results.
 *
 * The order is that of causes: without a result nothing else can be said, without a trial at the
 * last rung most rules cannot begin, and only then it matters what a rule waits for. */
#include "search/stopping/stop_warning.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "search/stopping/stopping_priv.h"

static void add_steps(struct str *b, const int64_t *steps, size_t n)
{
    for (size_t i = 0; i < n && i < STOP_STEPS_SHOWN; i++)
        str_printf(b, "%s%" PRId64, i ? ", " : "", steps[i]);
    if (n > STOP_STEPS_SHOWN)
        str_puts(b, ", …");
}

/* The names of the metrics: "loss", "loss and accuracy". */
static void add_metrics(struct str *b, const struct stop_progress *p)
{
    for (size_t i = 0; i < p->n_metrics; i++)
        str_printf(b, "%s%s",
                   i == 0                 ? ""
                   : i + 1 < p->n_metrics ? ", "
                                          : " and ",
                   p->reported[i].metric);
}

/* Would the first report past a rung count for it? Not one at the last rung or past it: nobody is
 * compared there. */
static bool late_helps(const struct stopping *s, const struct stop_progress *p)
{
    if (s->spec.late || s->spec.method == STOP_PBT) /* which refuses it */
        return false;
    for (size_t i = 0; i < p->n_metrics; i++) {
        bool is_between = false;
        for (size_t k = 0; k < p->reported[i].n; k++)
            is_between = is_between || (p->reported[i].steps[k] >= s->spec.steps[0] &&
                                        p->reported[i].steps[k] < s->spec.max_steps);
        if (!is_between)
            return false;
    }
    return true;
}

static void say_no_result(const struct stopping *s, const struct stop_progress *p, bool some_last,
                          struct str *b)
{
    size_t n_rungs = s->spec.n_rungs - some_last;
    str_printf(b, "early stopping has compared nothing: no trial has %s of ",
               p->n_metrics == 1 ? "a value" : "values");
    add_metrics(b, p);
    str_printf(b, " at %s rung%s (steps ", p->n_metrics == 1 ? "a" : "one",
               some_last ? " below the last" : "");
    add_steps(b, s->spec.steps, n_rungs);
    str_puts(b, "); a trial that ended had ");
    for (size_t i = 0; i < p->n_metrics; i++) {
        const struct stop_reported *r = &p->reported[i];
        const char *name = p->n_metrics == 1 ? "it" : r->metric;
        if (r->n == 0) {
            str_printf(b, "%snot reported %s at any step", i ? ", " : "", name);
            continue;
        }
        str_printf(b, "%sreported %s at ", i ? ", " : "", name);
        add_steps(b, r->steps, r->n);
    }
    if (late_helps(s, p))
        str_puts(b, "; with late: true the first report past a rung counts");
}

/* Trials complete below the last rung. What needs trials in full never begins then: curve, and
 * min_steps: auto; elsewhere steps are saved that nobody would have had. */
static void say_no_end(const struct stopping *s, const struct stop_progress *p, struct str *b)
{
    int64_t last = s->spec.steps[s->spec.n_rungs - 1];
    str_printf(b, "no trial has %s of ", p->n_metrics == 1 ? "a value" : "values");
    add_metrics(b, p);
    str_printf(b, " at the last rung, step %" PRId64 ": ", last);
    if (p->furthest < 0)
        str_printf(b, "%" PRIu64 " completed without a report", p->n_completed);
    else
        str_printf(b, "of %" PRIu64 " that completed the furthest reported up to step %" PRId64,
                   p->n_completed, p->furthest);
    if (p->furthest < last)
        str_puts(b, "; max_steps is to be a step that trials reach");
    else if (!s->spec.late && s->spec.method != STOP_PBT)
        str_puts(b, "; with late: true the first report past a rung counts");
}

/* So few results of the first rung that nobody is behind, whatever they are. */
static bool is_first_few(const struct stopping *s, size_t n)
{
    switch (s->spec.method) {
    case STOP_PBT:
        return pbt_share(&s->spec.pbt, n) == 0;
    case STOP_MEDIAN:
        return n <= STOP_MEDIAN_FIRST;
    default:
        return n < (size_t)s->spec.eta * 2;
    }
}

/* Why has nothing been decided at the rungs? */
static void say_why(const struct stopping *s, struct str *b)
{
    size_t n_first = s->rungs[0].n, n_last = s->rungs[s->spec.n_rungs - 1].n;
    if (stopping_is_measured(s) && !agreement_is_known(&s->agreement)) {
        str_printf(b,
                   "fewer than %d trials have run in full, from which min_steps: auto learns where "
                   "early ranks agree with the last ones",
                   AGREEMENT_ENOUGH);
    } else if (stopping_is_measured(s) &&
               agreement_first_rung(&s->agreement) + 1 == s->spec.n_rungs) {
        str_puts(b, "early ranks do not agree with those at the end (Kendall's tau:");
        for (size_t k = 0; k + 1 < s->spec.n_rungs; k++)
            str_printf(b, "%s %.2f at step %" PRId64, k ? "," : "", s->agreement.tau[k],
                       s->spec.steps[k]);
        str_printf(b, "; min_steps: auto asks for %.1f)", AGREEMENT_LEAST_TAU);
    } else if (s->spec.method == STOP_CURVE && n_last < CHANCE_ENOUGH) {
        str_printf(
            b, "curve predicts from %d trials that have run to the last rung, and there are %zu",
            CHANCE_ENOUGH, n_last);
    } else if (is_first_few(s, n_first)) {
        str_printf(b, "only %zu trials have reached the first rung, step %" PRId64, n_first,
                   s->spec.steps[0]);
    } else {
        str_puts(b, s->spec.method == STOP_CURVE
                        ? "the chance of each trial to beat the best one was high enough"
                        : "each trial that was compared was among the best of its rung when it "
                          "arrived");
    }
}

/* Has no rung below the last one a result? */
static bool is_blind_below(const struct stopping *s)
{
    for (size_t k = 0; k + 1 < s->spec.n_rungs; k++)
        if (s->rungs[k].n > 0)
            return false;
    return true;
}

bool stop_warning(const struct stopping *s, const struct stop_progress *p,
                  char ret_text[STOP_WARNING_MAX])
{
    AS_AUTO(str_done) struct str b = {0};
    if (s->spec.method == STOP_NONE || p->n_ended == 0)
        return false;
    bool some_last = s->rungs[s->spec.n_rungs - 1].n > 0;
    if (p->n_with_result == 0 || (some_last && is_blind_below(s))) {
        say_no_result(s, p, some_last, &b);
    } else if (p->n_completed > 0 && !some_last) {
        say_no_end(s, p, &b);
    } else if (s->n_decided == 0 && p->n_ended >= STOP_WARNING_AFTER) {
        str_printf(&b, "early stopping has decided nothing about %" PRIu64 " trials: ", p->n_ended);
        say_why(s, &b);
    } else {
        return false;
    }
    (void)snprintf(ret_text, STOP_WARNING_MAX, "%s", str_cstr(&b));
    return true;
}
