/* The warm start of `assay fit`: sweeps of earlier fits on this server whose tables have similar
 * figures (fit_similar.h). Their best configurations run first, and the search learns from all
 * their trials (`search.prior`) as far as the results agree. Behind them run configurations
 * that were good on public tables (fit_defaults.h). */
#include <string.h>

#include "base/json.h"
#include "cli/commands/fit_run.h"
#include "cli/fit/fit_defaults.h"
#include "cli/fit/fit_similar.h"
#include "cli/view/say.h"

#define LOOKED_AT 200 /* sweeps of earlier fits, the newest */

/* "x-fit (300 rows, 8 columns), …" */
static void list_sweeps(const struct fit_similar *found, size_t n, struct str *b)
{
    for (size_t i = 0; i < n; i++)
        str_printf(b, "%s%s (%.0f rows, %.0f columns)", i ? ", " : "", found[i].sweep,
                   found[i].figures.rows, found[i].figures.columns);
}

static as_status keep(struct fit *f, const struct fit_similar *found, size_t n, struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(f->warm[i], sizeof f->warm[i], "%s", found[i].sweep);
        f->plan.priors[i] = f->warm[i];
        if (json_array_append(f->warm_trials, (json_t *)found[i].best) != 0)
            return as_fail_nomem(err);
    }
    f->plan.n_priors = n;
    list_sweeps(found, n, &f->warm_from);
    return str_check(&f->warm_from, err);
}

as_status fit_warm_find(struct fit *f, struct as_err *err)
{
    JSON_AUTO sweeps = NULL;
    struct fit_similar found[FIT_WARM];
    const struct fit_figures own = fit_figures_of(&f->facts, f->plan.row_share);
    if (f->no_warm)
        return AS_OK;
    if (!(f->warm_trials = json_array()))
        return as_fail_nomem(err);
    as_status st = request_list(f->session.client, "/v1/sweeps", "tag=" FIT_TAG "&include=document",
                                LOOKED_AT, &sweeps, err);
    if (st < 0)
        return st;
    size_t n = fit_similar_find(&own, sweeps, FIT_WARM, found);
    st = keep(f, found, n, err);
    if (st == AS_OK && n > 0 && !f->print)
        say("Warm start: the search begins with the best configurations of %s",
            str_cstr(&f->warm_from));
    return st;
}

as_status fit_warm_defaults(struct fit *f, struct as_err *err)
{
    f->defaults = f->no_warm ? json_array() : fit_defaults();
    return f->defaults ? AS_OK : as_fail_nomem(err);
}

void fit_warm_look(struct fit *f)
{
    struct as_err why;
    if (f->no_warm || session_connect(&f->session, &why) != AS_OK)
        return;
    if (fit_warm_find(f, &why) != AS_OK)
        f->plan.n_priors = 0;
}
