#include "scheduler/lifecycle/ensemble_sizes.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

void ensemble_sizes_done(struct ensemble_sizes *s)
{
    free(s->own);
    free(s->parts);
    free(s->has);
    *s = (struct ensemble_sizes){0};
}

static const struct ensemble_candidate *candidate_of(const struct ensemble_data *d, size_t i)
{
    return &d->candidates[d->index[i]];
}

/* {"sweep/7": bytes} of all that the candidates see: its members are the parts, in their order. */
static as_status list_parts(const struct ensemble_data *d, json_t *ret, struct as_err *err)
{
    for (size_t i = 0; i < d->n_taken; i++) {
        const char *text = candidate_of(d, i)->stack;
        JSON_AUTO stack = NULL;
        json_t *seen;
        size_t k;
        as_status st = text ? json_parse(text, strlen(text), &stack, err) : AS_OK;
        if (st != AS_OK)
            return st;
        json_array_foreach(stack, k, seen)
        {
            const char *name = json_string_value(json_array_get(seen, 0));
            if (name && json_object_set(ret, name, json_array_get(seen, 1)) < 0)
                return as_fail_nomem(err);
        }
    }
    return AS_OK;
}

/* Which parts does the candidate's file have? It may be one of them itself. */
static as_status mark_parts(const struct ensemble_candidate *c, json_t *parts, bool *has,
                            struct as_err *err)
{
    JSON_AUTO stack = NULL;
    JSON_AUTO itself = json_sprintf("%s/%lld", c->sweep, (long long)c->number);
    size_t part = 0, k;
    const char *name;
    json_t *bytes, *seen;
    as_status st = c->stack ? json_parse(c->stack, strlen(c->stack), &stack, err) : AS_OK;
    if (st == AS_OK && !itself)
        st = as_fail_nomem(err);
    if (st != AS_OK)
        return st;
    json_object_foreach(parts, name, bytes)
    {
        has[part] = as_streq(name, json_string_value(itself));
        json_array_foreach(stack, k, seen)
        {
            has[part] |= as_streq(name, json_string_value(json_array_get(seen, 0)));
        }
        part++;
    }
    return AS_OK;
}

as_status ensemble_sizes_read(const struct ensemble_data *d, int64_t max_bytes,
                              struct ensemble_sizes *ret, struct as_err *err)
{
    JSON_AUTO parts = json_object();
    const char *name;
    json_t *bytes;
    size_t part = 0;
    as_status st = parts ? list_parts(d, parts, err) : as_fail_nomem(err);
    if (st != AS_OK)
        return st;
    size_t n = json_object_size(parts);
    ret->own = as_calloc(d->n_taken, sizeof *ret->own);
    ret->parts = as_calloc(n + 1, sizeof *ret->parts);
    ret->has = as_calloc(d->n_taken, (n + 1) * sizeof *ret->has);
    if (!ret->own || !ret->parts || !ret->has)
        return as_fail_nomem(err);
    json_object_foreach(parts, name, bytes) ret->parts[part++] = json_integer_value(bytes);
    for (size_t i = 0; i < d->n_taken; i++) {
        int64_t left = candidate_of(d, i)->model_size;
        bool *has = ret->has + i * n;
        if ((st = mark_parts(candidate_of(d, i), parts, has, err)) != AS_OK)
            return st;
        for (part = 0; part < n; part++)
            left -= has[part] ? ret->parts[part] : 0;
        ret->own[i] = left > 0 ? left : 0;
    }
    ret->of = (struct ensemble_bytes){
        .max = max_bytes, .own = ret->own, .parts = ret->parts, .n_parts = n, .has = ret->has};
    return AS_OK;
}
