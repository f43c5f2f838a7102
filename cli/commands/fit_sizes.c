/* Sizes are those of the stored files: an ensemble's file has the files of its members, and little
 * more. Several ensembles share members, so each trial is asked for once. */
#include "cli/commands/fit_sizes.h"

#include <stdio.h>

#include "base/json.h"

#define RETRY_MS 30000
#define MODEL_NAME "model.safetensors"

void fit_sizes_done(struct fit_sizes *c)
{
    json_decref(c->known);
    c->known = NULL;
}

as_status fit_size_of_trial(struct fit_sizes *c, const json_t *trial, int64_t *ret,
                            struct as_err *err)
{
    char key[128], rest[48];
    JSON_AUTO files = NULL;
    size_t i;
    json_t *file;
    struct trial_ref of = *c->of->sweep;
    const char *sweep = json_string_value(json_object_get(trial, "sweep"));
    json_int_t number = json_integer_value(json_object_get(trial, "number"));
    if (sweep)
        (void)snprintf(of.sweep, sizeof of.sweep, "%s", sweep);
    (void)snprintf(key, sizeof key, "%s/%lld", of.sweep, (long long)number);
    if (!c->known && !(c->known = json_object()))
        return as_fail_nomem(err);
    const json_t *known = json_object_get(c->known, key);
    *ret = json_integer_value(known);
    if (known)
        return AS_OK;
    (void)snprintf(rest, sizeof rest, "trials/%lld/artifacts", (long long)number);
    as_status st = request_get_within(c->s->client, &of, rest, RETRY_MS, &files, err);
    if (st < 0)
        return st;
    json_array_foreach(json_object_get(files, "items"), i, file)
    {
        if (as_streq(json_string_value(json_object_get(file, "path")), MODEL_NAME))
            *ret = json_integer_value(json_object_get(file, "size"));
    }
    return json_object_set_new(c->known, key, json_integer(*ret)) == 0 ? AS_OK : as_fail_nomem(err);
}

static bool is_of_layer(const struct fit_sizes *c, const json_t *member)
{
    return c->of->layer &&
           as_streq(json_string_value(json_object_get(member, "sweep")), c->of->layer);
}

static bool is_member(const json_t *ensemble, const struct trial_ref *trial)
{
    size_t i;
    json_t *member;
    json_array_foreach(json_object_get(ensemble, "members"), i, member)
    {
        if (json_integer_value(json_object_get(member, "number")) == trial->number &&
            as_streq(json_string_value(json_object_get(member, "sweep")), trial->sweep))
            return true;
    }
    return false;
}

/* Each trial of a further layer has in its file what it sees; their ensemble has it once. How many
 * bytes the ensemble has less than its members' files. */
static as_status shared_by_layer(struct fit_sizes *c, const json_t *ensemble, int64_t *ret,
                                 struct as_err *err)
{
    size_t i;
    json_t *item;
    int64_t n = 0, all = 0, alone = 0;
    json_array_foreach(json_object_get(ensemble, "members"), i, item) n += is_of_layer(c, item);
    *ret = 0;
    json_array_foreach((json_t *)c->of->stack, i, item)
    {
        struct trial_ref seen;
        int64_t bytes = 0;
        as_status st = request_parse_ref(json_string_value(item), false, &seen, err);
        if (st < 0 || n == 0)
            return st;
        JSON_AUTO trial =
            json_pack("{s:s, s:I}", "sweep", seen.sweep, "number", (json_int_t)seen.number);
        st = trial ? fit_size_of_trial(c, trial, &bytes, err) : as_fail_nomem(err);
        if (st < 0)
            return st;
        all += bytes;
        alone += is_member(ensemble, &seen) ? 0 : bytes;
    }
    *ret = n * all - alone;
    return AS_OK;
}

as_status fit_size_of_ensemble(struct fit_sizes *c, const json_t *ensemble, int64_t *ret,
                               struct as_err *err)
{
    size_t i;
    json_t *member;
    int64_t shared = 0;
    as_status measured = shared_by_layer(c, ensemble, &shared, err);
    if (measured < 0)
        return measured;
    *ret = -shared;
    json_array_foreach(json_object_get(ensemble, "members"), i, member)
    {
        int64_t one = 0;
        as_status st = fit_size_of_trial(c, member, &one, err);
        if (st < 0)
            return st;
        *ret += one;
    }
    return AS_OK;
}
