#include "search/regression/repeats.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

struct entry {
    uint64_t hash; /* of the configuration */
    size_t trial;
};

static int by_hash(const void *a, const void *b)
{
    const struct entry *p = a, *q = b;
    if (p->hash != q->hash)
        return p->hash < q->hash ? -1 : 1;
    return (p->trial > q->trial) - (p->trial < q->trial);
}

/* Every kind of value uses all eight bytes. */
static uint64_t hash_of(const struct space *space, const struct config *c)
{
    uint64_t h = 0;
    for (size_t i = 0; i < space->n; i++)
        h = rng_mix(h, c->entries[i].active ? (uint64_t)c->entries[i].value.integer : i);
    return h;
}

static bool has_value(const struct observation *o)
{
    return o->state == OBSERVED_COMPLETED && isfinite(o->values[0]);
}

/* One configuration measured by both trials. */
static void compare(const struct observation *a, const struct observation *b, struct repeats *r)
{
    if (!has_value(a) || !has_value(b))
        return;
    if (a->values[0] != b->values[0])
        r->noise = NOISE_SEEN;
    else if (r->noise == NOISE_UNKNOWN && b->is_suggested)
        r->noise = NOISE_NONE;
}

as_status repeats_judge(const struct search_spec *spec, const struct observation *trials, size_t n,
                        struct repeats *ret, struct as_err *err)
{
    struct repeats r = {0};
    AS_AUTO(as_freep) struct entry *entries = as_calloc(n, sizeof *entries);
    if (!entries)
        return as_fail(err, AS_E_NOMEM, "out of memory for the repeats among %zu trials", n);
    for (size_t i = 0; i < n; i++)
        entries[i] = (struct entry){hash_of(spec->space, trials[i].config), i};
    qsort(entries, n, sizeof *entries, by_hash);
    for (size_t k = 1; k < n; k++) {
        const struct observation *a = &trials[entries[k - 1].trial], *b = &trials[entries[k].trial];
        if (entries[k].hash != entries[k - 1].hash ||
            !config_equal(spec->space, a->config, b->config))
            continue;
        r.n += b->is_suggested;
        compare(a, b, &r);
    }
    if (spec->is_exact)
        r.noise = NOISE_NONE;
    *ret = r;
    return AS_OK;
}
