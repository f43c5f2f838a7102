/* A runner says the fleet and the job that it belongs to, and only the engine knows which of its
 * jobs that is. Runners that are lost count as none: their job may have ended, or may come back. */
#include "cli/fleet/fleet_look.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"

void fleet_look_done(struct fleet_look *l)
{
    free(l->units);
    free(l->used);
    free(l->kinds);
    *l = (struct fleet_look){0};
}

static int64_t number(const json_t *j, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(j, name));
}

/* A live runner of the fleet: it is one of the unit whose job it says. */
static void add_runner(const struct fleet_spec *s, const json_t *runner, struct fleet_look *l)
{
    const char *job = json_string_value(json_object_get(runner, "job"));
    const char *fleet = json_string_value(json_object_get(runner, "fleet"));
    const char *state = json_string_value(json_object_get(runner, "state"));
    if (!job || !as_streq(fleet, s->name) || !as_streq(state, "live"))
        return;
    for (size_t i = 0; i < l->n; i++) {
        if (!engine_of(s)->is_of(job, s, l->units[i].unit->id))
            continue;
        struct autoscale_unit *u = &l->units[i];
        int64_t cpus = number(runner, "cpus"), memory = number(runner, "memory_bytes");
        u->runners++;
        u->cpus = cpus > u->cpus ? cpus : u->cpus;
        u->memory_bytes = memory > u->memory_bytes ? memory : u->memory_bytes;
        l->used[i] += number(runner, "used_slots") > 0 ? number(runner, "used_slots")
                                                       : number(runner, "running");
        u->is_idle = l->used[i] == 0;
        return;
    }
}

static void add_kind(const json_t *kind, struct fleet_look *l)
{
    struct autoscale_kind k = {.slots = number(kind, "slots"),
                               .ranks = number(kind, "ranks"),
                               .gpus = number(kind, "gpus"),
                               .cpus = number(kind, "cpus"),
                               .memory_bytes = number(kind, "memory_bytes"),
                               .is_exclusive = json_is_true(json_object_get(kind, "exclusive"))};
    k.ranks = k.ranks < 1 ? 1 : k.ranks;
    if (k.slots > 0)
        l->kinds[l->n_kinds++] = k;
}

as_status fleet_look_make(const struct fleet_spec *spec, const struct fleet_units *units,
                          const json_t *runners, const json_t *demand, struct fleet_look *ret,
                          struct as_err *err)
{
    const json_t *kinds = json_object_get(demand, "kinds"), *item;
    size_t i;
    ret->n = units->n;
    ret->units = as_calloc(units->n + 1, sizeof *ret->units);
    ret->used = as_calloc(units->n + 1, sizeof *ret->used);
    ret->kinds = as_calloc(json_array_size(kinds) + 1, sizeof *ret->kinds);
    if (!ret->units || !ret->used || !ret->kinds)
        return as_fail_nomem(err);
    for (i = 0; i < units->n; i++)
        ret->units[i].unit = &units->v[i];
    json_array_foreach(runners, i, item) add_runner(spec, item, ret);
    json_array_foreach(kinds, i, item) add_kind(item, ret);
    return AS_OK;
}

/* 0 goes first. */
static int rank_of(const struct autoscale_unit *u)
{
    return u->unit->state == UNIT_PENDING && u->runners == 0 ? 0 : u->is_idle ? 1 : 2;
}

as_status fleet_look_surplus(const struct fleet_look *l, int64_t keep, const char ***ret_ids,
                             size_t *ret_n, struct as_err *err)
{
    const char **ids = as_calloc(l->n + 1, sizeof *ids);
    int64_t left = 0;
    size_t n = 0;
    if (!ids)
        return as_fail_nomem(err);
    for (size_t i = 0; i < l->n; i++)
        left += l->units[i].unit->state != UNIT_ENDING;
    for (int rank = 0; rank < 3; rank++)
        for (size_t i = l->n; i-- > 0 && left > keep;) {
            if (l->units[i].unit->state == UNIT_ENDING || rank_of(&l->units[i]) != rank)
                continue;
            ids[n++] = l->units[i].unit->id;
            left--;
        }
    *ret_ids = ids;
    *ret_n = n;
    return AS_OK;
}
