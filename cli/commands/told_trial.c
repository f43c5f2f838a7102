/* Finds the trial and its sweep before anything is sent, so that a misspelt metric is an error of
 * the command line and not a failed trial (decision 9002). Without --client the holder is read from
 * the server and accepted only if it is a default name of this user on this host. */
#include "cli/commands/told_trial.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/commands/client_name.h"

#define ABSURD 1e9 /* times as large as the best value: docs/search.md */

void told_trial_done(struct told_trial *h)
{
    json_decref(h->sweep);
    json_decref(h->trial);
    *h = (struct told_trial){0};
}

as_status told_trial_parse_args(int n, char **args, struct trial_ref *ret, int *ret_used,
                                struct as_err *err)
{
    struct trial_ref ref;
    as_status st = request_parse_ref(args[0], true, &ref, err);
    int used = 1;
    if (st < 0)
        return st;
    if (ref.number < 0) {
        if (n < 2 || as_parse_i64(args[1], &ref.number, NULL) < 0 || ref.number < 0)
            return as_fail(err, AS_E_USAGE, "expected the number of a trial after '%.80s'%s%.40s%s",
                           args[0], n < 2 ? "" : ", found '", n < 2 ? "" : args[1],
                           n < 2 ? "" : "'");
        used = 2;
    }
    *ret = ref;
    *ret_used = used;
    return AS_OK;
}

static as_status choose_client(struct told_trial *h, const char *named, struct as_err *err)
{
    const char *holder = json_string_value(json_object_get(h->trial, "client"));
    const char *state = json_string_value(json_object_get(h->trial, "state"));
    if (named && *named)
        h->client = named;
    else if (holder && client_name_is_ours(holder))
        h->client = holder;
    else if (holder)
        return as_fail(err, AS_E_CONFLICT,
                       "%s/%lld is held by the client '%.63s'; to act for it, add --client %.63s",
                       h->ref.sweep, (long long)h->ref.number, holder, holder);
    else
        return as_fail(err, AS_E_CONFLICT,
                       "%s/%lld is %s and nobody asked for it; `assay ask %s` hands out a trial",
                       h->ref.sweep, (long long)h->ref.number, state ? state : "?", h->ref.sweep);
    return AS_OK;
}

as_status told_trial_find(struct client *c, const struct trial_ref *ref, const char *named,
                          struct told_trial *ret, struct as_err *err)
{
    AS_AUTO(told_trial_done) struct told_trial h = {.ref = *ref};
    struct trial_ref sweep = *ref;
    sweep.number = -1;
    as_status st = request_get(c, ref, NULL, NULL, &h.trial, err);
    if (st < 0)
        return st;
    st = request_get(c, &sweep, NULL, NULL, &h.sweep, err);
    if (st < 0)
        return st;
    st = choose_client(&h, named, err);
    if (st < 0)
        return st;
    *ret = h;
    h = (struct told_trial){0};
    return AS_OK;
}

/* Report a missing metric, with the names of the given ones. */
static as_status fail_missing(const char *name, const json_t *metrics, struct as_err *err)
{
    struct str found = {0};
    const char *given;
    json_t *v;
    json_object_foreach((json_t *)metrics, given, v)
    {
        (void)v;
        str_printf(&found, "%s%s", found.len ? ", " : "", given);
    }
    as_status st =
        as_fail(err, AS_E_INVAL, "expected a value of '%.60s', a metric of the sweep; found %.100s",
                name, found.len ? str_cstr(&found) : "none");
    str_done(&found);
    return st;
}

as_status told_trial_check_metrics(const json_t *sweep, const json_t *trial, const json_t *metrics,
                                   struct as_err *err)
{
    static const struct {
        const char *list, *field;
    } wanted[] = {{"metrics", "name"}, {"constraints", "metric"}};
    const json_t *before = json_object_get(trial, "metrics");
    for (size_t k = 0; k < AS_ARRAY_LEN(wanted); k++) {
        size_t i;
        json_t *item;
        json_array_foreach(json_object_get(sweep, wanted[k].list), i, item)
        {
            const char *name = json_string_value(json_object_get(item, wanted[k].field));
            if (name && !json_object_get(metrics, name) && !json_object_get(before, name))
                return fail_missing(name, metrics, err);
        }
    }
    return AS_OK;
}

bool told_trial_is_absurd(const json_t *sweep, const json_t *metrics, const char **ret_name,
                          double *ret_value, double *ret_best)
{
    const json_t *first = json_array_get(json_object_get(sweep, "metrics"), 0);
    const char *name = json_string_value(json_object_get(first, "name"));
    const json_t *best = json_object_get(json_object_get(sweep, "best"), "value");
    const json_t *value = name ? json_object_get(metrics, name) : NULL;
    if (!json_is_number(value) || !json_is_number(best))
        return false;
    *ret_name = name;
    *ret_value = json_number_value(value);
    *ret_best = json_number_value(best);
    return isfinite(*ret_value) && fabs(*ret_value) / ABSURD > fmax(1, fabs(*ret_best));
}
