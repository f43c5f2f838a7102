/* An entry keeps the best throughput of each power of two and how often it was measured. WORTH and
 * TRIES are of decision 7003: a doubling has to bring a tenth, and one figure decides nothing,
 * because figures of members that end within a second are rough. The least recently used shape
 * makes room for a new one. */
#include "trial-runner/group/group_size.h"

#include <string.h>

#include "base/mem.h"

#define WORTH 1.1 /* the factor that doubling must bring */
#define TRIES 2   /* measurements of a size before it can be given up */

void group_sizes_done(struct group_sizes *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].shape);
    s->n = 0;
}

static const struct group_size *find_shape(const struct group_sizes *s, const char *shape)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].shape, shape) == 0)
            return &s->v[i];
    return NULL;
}

/* Returns the entry of the shape: its own, a new one, or that of the least recently used shape. */
static struct group_size *place_for_shape(struct group_sizes *s, const char *shape)
{
    struct group_size *e = (struct group_size *)find_shape(s, shape);
    if (e)
        return e;
    char *copy = as_strdup(shape);
    if (!copy)
        return NULL;
    if (s->n < GROUP_SIZE_SHAPES) {
        e = &s->v[s->n++];
    } else {
        e = &s->v[0];
        for (size_t i = 1; i < s->n; i++)
            if (s->v[i].used < e->used)
                e = &s->v[i];
        free(e->shape);
    }
    *e = (struct group_size){.shape = copy};
    return e;
}

as_status group_sizes_note(struct group_sizes *s, const char *shape, int64_t members,
                           double rows_per_second, struct as_err *err)
{
    if (members < 1 || !(rows_per_second > 0))
        return AS_OK;
    struct group_size *e = place_for_shape(s, shape);
    size_t power = 0;
    if (!e)
        return as_fail_nomem(err);
    while (power + 1 < AS_ARRAY_LEN(e->per_size) && (int64_t)2 << power <= members)
        power++;
    if (rows_per_second > e->per_size[power])
        e->per_size[power] = rows_per_second;
    if (e->figures[power] < TRIES)
        e->figures[power]++;
    e->used = ++s->notes;
    return AS_OK;
}

as_status group_sizes_bound(struct group_sizes *s, const char *shape, int64_t members,
                            struct as_err *err)
{
    struct group_size *e = place_for_shape(s, shape);
    if (!e)
        return as_fail_nomem(err);
    if (e->most == 0 || members < e->most)
        e->most = members > 1 ? members : 1;
    e->used = ++s->notes;
    return AS_OK;
}

static int64_t next_of(const struct group_size *e)
{
    size_t i = 3; /* log2 of GROUP_SIZE_FIRST */
    while (i + 1 < AS_ARRAY_LEN(e->per_size) && e->per_size[i] > 0) {
        if (e->figures[i + 1] == TRIES && e->per_size[i + 1] < WORTH * e->per_size[i])
            break;
        i++;
    }
    int64_t next = (int64_t)1 << i;
    return e->most > 0 && e->most < next ? e->most : next;
}

int64_t group_sizes_next(const struct group_sizes *s, const char *shape)
{
    const struct group_size *e = find_shape(s, shape);
    return e ? next_of(e) : GROUP_SIZE_FIRST;
}

json_t *group_sizes_json(const struct group_sizes *s)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < s->n; i++)
        if (json_array_append_new(list, json_pack("{s:s,s:I}", "shape", s->v[i].shape, "members",
                                                  (json_int_t)next_of(&s->v[i]))) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}
