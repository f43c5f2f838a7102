/* Names are compared with the layers one by one: a layer that is missing, twice or at another place
 * is found at the first name that is not the next layer's. */
#include "model/plan/plan_blocks.h"

#include <stdio.h>

#include "base/json.h"
#include "base/str.h"

/* Where a name is in the document. */
struct place {
    const char *list; /* the pointer of `model_parallel` */
    size_t block, item;
};

static as_status refuse_name(struct place at, const char *found, const struct net_parts *layers,
                             size_t next, struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX];
    const char *why = "no layer of this model";
    (void)snprintf(pointer, sizeof pointer, "%s/%zu/%zu", at.list, at.block, at.item);
    for (size_t i = 0; i < layers->n; i++)
        if (as_streq(found, layers->of[i].name))
            why = i < next ? "there already" : "out of its place";
    if (next == layers->n)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found '%.40s', which is %s; expected no more layers after '%s'",
                          pointer, found, why, layers->of[next - 1].name);
    return as_fail_at(err, AS_E_INVAL, pointer,
                      "%s: found '%.40s', which is %s; expected '%s', the next of its %zu layers",
                      pointer, found, why, layers->of[next].name, layers->n);
}

static as_status join_named(const json_t *lists, const struct net_parts *layers, const char *at,
                            struct net_parts *blocks, struct as_err *err)
{
    size_t next = 0;
    for (size_t b = 0; b < json_array_size(lists); b++) {
        const json_t *names = json_array_get(lists, b);
        for (size_t i = 0; i < json_array_size(names); i++, next++) {
            const char *name = json_string_value(json_array_get(names, i));
            if (next == layers->n || !as_streq(name, layers->of[next].name))
                return refuse_name((struct place){at, b, i}, name, layers, next, err);
            blocks->of[b] =
                i == 0 ? layers->of[next] : net_part_join(&blocks->of[b], &layers->of[next]);
        }
        blocks->n = b + 1;
    }
    if (next == layers->n)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, at, "%s: '%s' is in no block, expected all %zu layers", at,
                      layers->of[next].name, layers->n);
}

as_status net_plan_blocks(const struct train_spec *spec, const struct net_plan *plan,
                          const char *pointer, struct net_parts *ret, struct as_err *err)
{
    const struct distributed_spec *d = &spec->distributed;
    AS_AUTO(net_parts_done) struct net_parts layers = {0};
    AS_AUTO(net_parts_done) struct net_parts blocks = {0};
    char at[AS_ERR_POINTER_MAX];
    (void)snprintf(at, sizeof at, "%s/distributed/model_parallel", pointer);
    *ret = (struct net_parts){0};
    if (d->strategy != DISTRIBUTED_MODEL_PARALLEL)
        return AS_OK;
    as_status st = net_plan_layers(plan, &layers, err);
    if (st < 0)
        return st;
    if (layers.n < 2)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found with a model of one layer, expected 2 or more", at);
    if (d->blocks) {
        blocks.of = as_calloc(json_array_size(d->blocks), sizeof *blocks.of);
        if (!blocks.of)
            return as_fail_nomem(err);
        if ((st = join_named(d->blocks, &layers, at, &blocks, err)) < 0)
            return st;
        *ret = blocks;
        blocks = (struct net_parts){0};
        return AS_OK;
    }
    *ret = layers;
    layers = (struct net_parts){0};
    return AS_OK;
}
