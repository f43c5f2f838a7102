/* A runner says the fleet and the job that it belongs to, and only the engine knows which of its
 * jobs that is. Runners that are lost count as none: their job may have ended, or may come back.
 *
 * A rank that left does not come back while the others stay, and no engine says of a job which of
 * its ranks have started. The server's list does: it has those that left or were lost for a day. */
#include "cli/fleet/fleet_look.h"

#include <stdlib.h>
#include <string.h>

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

static const char *text(const json_t *j, const char *name)
{
    const char *found = json_string_value(json_object_get(j, name));
    return found ? found : "";
}

/* The unit of the runner, by the job that it says; l->n: of another fleet, or of none. */
static size_t unit_of(const struct fleet_spec *s, const json_t *runner, const struct fleet_look *l)
{
    size_t i = 0;
    if (!as_streq(text(runner, "fleet"), s->name))
        return l->n;
    while (i < l->n && !engine_of(s)->is_of(text(runner, "job"), s, l->units[i].unit->id))
        i++;
    return i;
}

static void add_live(const json_t *runner, struct autoscale_unit *u, int64_t *used)
{
    int64_t cpus = number(runner, "cpus"), memory = number(runner, "memory_bytes");
    u->runners++;
    u->cpus = cpus > u->cpus ? cpus : u->cpus;
    u->memory_bytes = memory > u->memory_bytes ? memory : u->memory_bytes;
    *used +=
        number(runner, "used_slots") > 0 ? number(runner, "used_slots") : number(runner, "running");
    u->is_idle = *used == 0;
}

/* What a unit's runners say: first the live ones, then those that are gone. began: when the first
 * live one of each unit registered, views of the runners; ISO times compare as texts. One that was
 * last seen before that is of an earlier run of the job: Slurm starts a job again after a node
 * failed. */
static void add_runners(const struct fleet_spec *s, const json_t *runners, struct fleet_look *l,
                        const char **began)
{
    size_t i;
    const json_t *r;
    for (size_t u = 0; u < l->n; u++)
        l->units[u].coming = s->ranks;
    json_array_foreach(runners, i, r)
    {
        size_t at = as_streq(text(r, "state"), "live") ? unit_of(s, r, l) : l->n;
        if (at == l->n)
            continue;
        add_live(r, &l->units[at], &l->used[at]);
        l->units[at].coming--;
        if (!began[at] || strcmp(text(r, "registered_at"), began[at]) < 0)
            began[at] = text(r, "registered_at");
    }
    json_array_foreach(runners, i, r)
    {
        size_t at = as_streq(text(r, "state"), "live") ? l->n : unit_of(s, r, l);
        if (at < l->n && began[at] && strcmp(text(r, "seen_at"), began[at]) >= 0)
            l->units[at].coming--;
    }
    for (size_t u = 0; u < l->n; u++)
        if (l->units[u].runners == 0 || l->units[u].coming < 0 ||
            l->units[u].unit->state == UNIT_ENDING)
            l->units[u].coming = 0;
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
    AS_AUTO(as_freep) const char **began = as_calloc(units->n + 1, sizeof *began);
    if (!ret->units || !ret->used || !ret->kinds || !began)
        return as_fail_nomem(err);
    for (i = 0; i < units->n; i++)
        ret->units[i].unit = &units->v[i];
    add_runners(spec, runners, ret, began);
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
