#include "data/value_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

#define FIRST_CAP ((size_t)64)

void value_counts_done(struct value_counts *v)
{
    free(v->places);
    *v = (struct value_counts){0};
}

uint64_t value_hash(const char *s, size_t len)
{
    uint64_t h = len, word;
    for (; len >= sizeof word; s += sizeof word, len -= sizeof word) {
        memcpy(&word, s, sizeof word);
        h = rng_mix(h, word);
    }
    word = 0;
    memcpy(&word, s, len);
    h = rng_mix(h, word);
    return h ? h : 1;
}

/* The place of the hash, or the free place where it belongs. */
static struct value_count *find(const struct value_counts *v, uint64_t hash)
{
    size_t at = (size_t)hash & (v->cap - 1);
    while (v->places[at].hash && v->places[at].hash != hash)
        at = (at + 1) & (v->cap - 1);
    return &v->places[at];
}

static as_status grow(struct value_counts *v, struct as_err *err)
{
    struct value_counts larger = {.cap = v->cap ? 2 * v->cap : FIRST_CAP, .n = v->n};
    larger.places = as_calloc(larger.cap, sizeof *larger.places);
    if (!larger.places)
        return as_fail(err, AS_E_NOMEM, "out of memory for the values of a column");
    for (size_t i = 0; i < v->cap; i++)
        if (v->places[i].hash)
            *find(&larger, v->places[i].hash) = v->places[i];
    free(v->places);
    *v = larger;
    return AS_OK;
}

as_status value_counts_add(struct value_counts *v, uint64_t hash, struct value_count **ret,
                           struct as_err *err)
{
    if (2 * v->n >= v->cap) {
        as_status st = grow(v, err);
        if (st != AS_OK)
            return st;
    }
    struct value_count *place = find(v, hash);
    v->n += place->hash == 0;
    place->hash = hash;
    place->n++;
    *ret = place;
    return AS_OK;
}
