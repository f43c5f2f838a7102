/* Grouping: how many trials may share a process, and which of them do.
 *
 * Trials are placed one by one in the sweep's order: into the first open group of their shape, else
 * into a free slot, which opens a group. The oldest trial is never weighed against later ones, so
 * that no choice of shapes can keep a trial waiting while a slot is free. */
#include "scheduler/assign/grouping.h"

#include "base/number.h"
#include "base/str.h"

static int64_t measured_of(const struct group_limits *limits, const char *shape)
{
    for (size_t i = 0; i < limits->n_measured; i++)
        if (as_streq(limits->measured[i].shape, shape))
            return limits->measured[i].members;
    return GROUP_UNMEASURED;
}

int64_t group_places(const struct group_limits *limits, struct group_rule rule, const char *shape,
                     int64_t bytes_per_member)
{
    int64_t n = rule.max;
    if (!limits->fit.group)
        n = as_min_i64(n, limits->members);
    if (!limits->fit.group && !rule.is_given)
        n = as_min_i64(n, measured_of(limits, shape));
    int64_t bytes = rule.on_gpu && limits->gpu_memory_bytes > 0 ? limits->gpu_memory_bytes
                                                                : limits->memory_bytes;
    if (bytes > 0)
        n = as_min_i64(n, bytes / bytes_per_member);
    return as_max_i64(n, 1);
}

int64_t group_most(const struct group_limits *limits, struct group_rule rule)
{
    int64_t n = GROUP_UNMEASURED;
    for (size_t i = 0; i < limits->n_measured; i++)
        n = as_max_i64(n, limits->measured[i].members);
    if (rule.is_given)
        n = rule.max;
    return as_max_i64(as_min_i64(n, as_min_i64(rule.max, limits->members)), 1);
}

void grouping_begin(struct grouping *g, int64_t slots, int64_t room, int64_t there_is)
{
    g->slots = slots;
    g->room = room;
    g->even = slots > 0 ? as_max_i64((as_min_i64(room, there_is) + slots - 1) / slots, 1) : 1;
}

static bool may_join(const struct open_group *o, const struct queued_trial *q)
{
    return q->may_share && q->shape && as_streq(q->shape, o->shape);
}

void grouping_limit_reach(struct grouping *g, const struct queued_trial *queue, size_t n)
{
    const struct open_group *o = &g->groups[0];
    size_t i = 0;
    while (i < n && may_join(o, &queue[i]))
        i++;
    g->reach = i < n ? queue[i].number + GROUP_REACH * o->places : INT64_MAX;
}

/* The first open group with a place for that trial, or NULL. */
static struct open_group *find_group(struct grouping *g, int64_t number, const char *shape)
{
    for (size_t i = 0; shape && number <= g->reach && i < g->n_groups; i++)
        if (g->groups[i].free > 0 && as_streq(g->groups[i].shape, shape))
            return &g->groups[i];
    return NULL;
}

/* Open a free slot with this trial. *ret_id is NULL if the trial is alone there. */
static as_status open_slot(struct grouping *g, struct arena *a, int64_t number, int64_t attempt,
                           const struct trial_shape *shape, const char **ret_id, struct as_err *err)
{
    int64_t places = g->limits && shape->text
                         ? group_places(g->limits, g->rule, shape->text, shape->bytes_per_member)
                         : 1;
    *ret_id = NULL;
    g->slots--;
    g->room--;
    if (places < 2 || g->n_groups == GROUP_SLOTS_MAX)
        return AS_OK;
    *ret_id = arena_printf(a, "%s.g%lld.%lld", g->sweep, (long long)number, (long long)attempt);
    if (!*ret_id)
        return as_fail_nomem(err);
    g->groups[g->n_groups++] = (struct open_group){.id = *ret_id,
                                                   .shape = shape->text,
                                                   .places = places,
                                                   .free = as_min_i64(places, g->even) - 1};
    return AS_OK;
}

/* Let queued trials join an open group, in the queue's order; sets taken[i] for each. */
static void join_groups(struct grouping *g, const struct queued_trial *queue, size_t n, bool *taken,
                        struct begun_trial *ret, size_t *ret_n)
{
    for (size_t i = 0; i < n && g->room > 0; i++) {
        struct open_group *o =
            taken[i] || !queue[i].may_share ? NULL : find_group(g, queue[i].number, queue[i].shape);
        if (!o)
            continue;
        o->free--;
        g->room--;
        taken[i] = true;
        ret[(*ret_n)++] = (struct begun_trial){queue[i].number, o->id};
    }
}

as_status grouping_queue(struct grouping *g, struct arena *a, const struct queued_trial *queue,
                         size_t n, struct begun_trial *ret, size_t *ret_n, struct as_err *err)
{
    bool *taken = arena_alloc(a, n + 1, sizeof *taken);
    *ret_n = 0;
    if (!taken)
        return as_fail_nomem(err);
    join_groups(g, queue, n, taken, ret, ret_n);
    /* The oldest trial that is left opens the next slot. Later trials of its shape join before
     * the next slot opens, so that a group is filled in the queue's order. */
    for (size_t i = 0; i < n && g->slots > 0 && g->room > 0; i++) {
        const struct queued_trial *q = &queue[i];
        const struct trial_shape shape = {q->may_share ? q->shape : NULL, q->bytes_per_member};
        const char *id = NULL;
        if (taken[i])
            continue;
        as_status st = open_slot(g, a, q->number, q->attempt + 1, &shape, &id, err);
        if (st != AS_OK)
            return st;
        taken[i] = true;
        ret[(*ret_n)++] = (struct begun_trial){q->number, id};
        if (id)
            join_groups(g, queue, n, taken, ret, ret_n);
    }
    for (size_t i = 0; i < n; i++)
        g->ahead -= queue[i].is_ahead && !taken[i];
    return AS_OK;
}

int64_t grouping_wants(const struct grouping *g)
{
    int64_t each = g->limits ? as_min_i64(group_most(g->limits, g->rule), g->even) : 1;
    int64_t n = g->slots * each;
    for (size_t i = 0; i < g->n_groups; i++)
        n += g->groups[i].free;
    return as_max_i64(as_min_i64(n, g->room), 0);
}

as_status grouping_suggestion(struct grouping *g, struct arena *a, int64_t number,
                              const struct trial_shape *shape, grouping_decision *ret,
                              const char **ret_group, struct as_err *err)
{
    struct open_group *o = g->room > 0 ? find_group(g, number, shape->text) : NULL;
    *ret = GROUPING_RUNS;
    *ret_group = NULL;
    if (o) {
        *ret_group = o->id;
        o->free--;
        g->room--;
        return AS_OK;
    }
    if (g->slots > 0 && g->room > 0)
        return open_slot(g, a, number, 1, shape, ret_group, err);
    if (g->ahead > 0 && grouping_wants(g) > 0 && number <= g->reach) {
        *ret = GROUPING_WAITS;
        g->ahead--;
        return AS_OK;
    }
    *ret = GROUPING_ENOUGH;
    return AS_OK;
}
