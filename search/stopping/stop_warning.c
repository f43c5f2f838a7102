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

static void say_no_result(const struct stopping *s, const struct stop_progress *p, struct str *b)
{
    str_printf(b,
               "early stopping has compared nothing: no trial has a value of %s at a rung (steps ",
               p->metric);
    add_steps(b, s->spec.steps, s->spec.n_rungs);
    str_puts(b, "); ");
    if (p->n_reported == 0) {
        str_puts(b, "a trial that ended had not reported it at any step");
        return;
    }
    str_puts(b, "a trial that ended had reported it at ");
    add_steps(b, p->reported, p->n_reported);
    if (!s->spec.late && s->spec.method != STOP_PBT) /* which refuses it */
        str_puts(b, "; with late: true the first report past a rung counts");
}

/* Why has nothing been decided at the rungs? */
static void say_why(const struct stopping *s, struct str *b)
{
    size_t n_first = s->rungs[0].n;
    if (s->spec.is_min_auto && !agreement_is_known(&s->agreement)) {
        str_printf(b,
                   "fewer than %d trials have run in full, from which min_steps: auto learns where "
                   "early ranks agree with the last ones",
                   AGREEMENT_ENOUGH);
    } else if (s->spec.is_min_auto && agreement_first_rung(&s->agreement) + 1 == s->spec.n_rungs) {
        str_puts(b, "early ranks do not agree with those at the end (Kendall's tau:");
        for (size_t k = 0; k + 1 < s->spec.n_rungs; k++)
            str_printf(b, "%s %.2f at step %" PRId64, k ? "," : "", s->agreement.tau[k],
                       s->spec.steps[k]);
        str_printf(b, "; min_steps: auto asks for %.1f)", AGREEMENT_LEAST_TAU);
    } else if (s->spec.method == STOP_PBT ? pbt_share(&s->spec.pbt, n_first) == 0
                                          : n_first < (size_t)s->spec.eta * 2) {
        str_printf(b, "only %zu trials have reached the first rung, step %" PRId64, n_first,
                   s->spec.steps[0]);
    } else {
        str_puts(b, "each trial was among the best of its rung when it arrived");
    }
}

bool stop_warning(const struct stopping *s, const struct stop_progress *p,
                  char ret_text[STOP_WARNING_MAX])
{
    AS_AUTO(str_done) struct str b = {0};
    if (s->spec.method == STOP_NONE || p->n_ended == 0)
        return false;
    if (p->n_with_result == 0) {
        say_no_result(s, p, &b);
    } else if (s->n_decided == 0 && p->n_ended >= STOP_WARNING_AFTER) {
        str_printf(&b, "early stopping has decided nothing about %" PRIu64 " trials: ", p->n_ended);
        say_why(s, &b);
    } else {
        return false;
    }
    (void)snprintf(ret_text, STOP_WARNING_MAX, "%s", str_cstr(&b));
    return true;
}
