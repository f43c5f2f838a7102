#include "scheduler/services/column_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/formats/columnar.h"

static size_t hash_of(const char *s, size_t len)
{
    uint64_t h = fnv64(FNV64_BASIS, s, len);
    return (size_t)(h ^ (h >> 32));
}

void column_words_done(struct column_words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->list[i]);
    free(w->list);
    free(w->slots);
}

/* The slot of the word, or the free one where it would stand. */
static uint32_t *slot_of(const struct column_words *w, const char *word, size_t len)
{
    size_t i = hash_of(word, len) & (w->n_slots - 1);
    for (; w->slots[i] != 0; i = (i + 1) & (w->n_slots - 1)) {
        const char *there = w->list[w->slots[i] - 1];
        if (strncmp(there, word, len) == 0 && there[len] == '\0')
            break;
    }
    return &w->slots[i];
}

static as_status make_room(struct column_words *w, struct as_err *err)
{
    if (2 * (w->n + 1) <= w->n_slots)
        return AS_OK;
    size_t n = w->n_slots ? 2 * w->n_slots : 16;
    uint32_t *slots = as_calloc(n, sizeof *slots);
    if (!slots)
        return as_fail_nomem(err);
    free(w->slots);
    w->slots = slots;
    w->n_slots = n;
    for (size_t i = 0; i < w->n; i++)
        *slot_of(w, w->list[i], strlen(w->list[i])) = (uint32_t)i + 1;
    return AS_OK;
}

as_status column_words_add(struct column_words *w, const char *word, size_t len, uint32_t *ret,
                           struct as_err *err)
{
    len = strnlen(word, len);
    as_status st = make_room(w, err);
    if (st != AS_OK)
        return st;
    uint32_t *slot = slot_of(w, word, len);
    if (*slot == 0) {
        if ((st = as_reserve_one(&w->list, w->n, &w->cap, sizeof *w->list, err)) != AS_OK)
            return st;
        char *copy = as_calloc(len + 1, 1);
        if (!copy)
            return as_fail_nomem(err);
        memcpy(copy, word, len);
        w->list[w->n++] = copy;
        w->bytes += len + 32; /* with its slots and malloc's own */
        *slot = (uint32_t)w->n;
    }
    *ret = *slot - 1;
    return AS_OK;
}

as_status column_words_pick(const struct column_words *w, uint32_t *cells, size_t n,
                            struct arena *a, const char *const **ret_words, size_t *ret_n,
                            struct as_err *err)
{
    AS_AUTO(as_freep) uint32_t *places = as_calloc(w->n + 1, sizeof *places);
    const char **list = arena_alloc(a, n + 1, sizeof *list);
    size_t n_words = 0;
    if (!places || !list)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        if (cells[i] == COLUMNAR_NO_WORD)
            continue;
        uint32_t *place = &places[cells[i]];
        if (*place == 0) {
            list[n_words++] = w->list[cells[i]];
            *place = (uint32_t)n_words;
        }
        cells[i] = *place - 1;
    }
    *ret_words = list;
    *ret_n = n_words;
    return AS_OK;
}
