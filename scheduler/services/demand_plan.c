/* Each sweep in turn puts as many slots as it can into what is left on the runners, as claims do
 * it in milliseconds; the rest waits. So a runner that has just registered is counted at once,
 * although its first claim is still on its way.
 *
 * Claims weigh priorities, turns and trials that wait for room; here sweeps come one after the
 * other. The sum is the same wherever sweeps have the same needs. Where a small trial and a large
 * one compete for the rest of a runner, it may differ by that rest. */
#include "scheduler/services/demand_plan.h"

#include "base/mem.h"
#include "base/str.h"

/* How often `need` fits into what is left of `all`; need 0: any number of times. */
static int64_t times(int64_t all, int64_t used, int64_t need, int64_t most)
{
    int64_t left = all > used ? all - used : 0;
    return need > 0 && left / need < most ? left / need : most;
}

/* How many slots of the sweep fit in what is left on the runner. */
static int64_t fits(const struct demand_sweep *s, const struct demand_runner *r)
{
    int64_t n = times(r->slots, r->slots_used, 1, INT64_MAX);
    if (r->is_shut || (s->is_gang && !r->takes_seats))
        return 0;
    n = times(r->gpus, r->gpus_used, s->gpus, n);
    n = times(r->cpus, r->cpus_used, s->cpus, n);
    return times(r->memory_bytes, r->memory_used, s->memory_bytes, n);
}

/* The runners of the machine of v[at], which stand together: v[*from] to v[*until - 1]. */
static void machine_of(const struct demand_runner *v, size_t n, size_t at, size_t *from,
                       size_t *until)
{
    *from = at;
    *until = at + 1;
    if (!v[at].machine)
        return;
    while (*from > 0 && as_streq(v[*from - 1].machine, v[at].machine))
        *from -= 1;
    while (*until < n && as_streq(v[*until].machine, v[at].machine))
        *until += 1;
}

/* Take k slots of the runner. Cores and memory that it shares are those of the others, too. */
static void take(const struct demand_sweep *s, int64_t k, struct demand_runner *v, size_t n,
                 size_t at)
{
    size_t from, until;
    v[at].slots_used += k;
    v[at].gpus_used += k * s->gpus;
    machine_of(v, n, at, &from, &until);
    for (size_t i = from; i < until; i++) {
        if (i != at && !(v[i].shares && v[at].shares))
            continue;
        v[i].cpus_used += k * s->cpus;
        v[i].memory_used += k * s->memory_bytes;
    }
}

/* The same for a trial that needs the machine to itself: 1 if nothing runs there. */
static int64_t take_machine(const struct demand_sweep *s, struct demand_runner *v, size_t n,
                            size_t at)
{
    size_t from, until;
    if (fits(s, &v[at]) < 1)
        return 0;
    machine_of(v, n, at, &from, &until);
    for (size_t i = from; i < until; i++)
        if (v[i].slots_used > 0)
            return 0;
    v[at].slots_used++;
    for (size_t i = from; i < until; i++)
        v[i].is_shut = true;
    return 1;
}

/* Returns how many of `want` slots are placed. */
static int64_t place(const struct demand_sweep *s, int64_t want, struct demand_runner *v, size_t n)
{
    int64_t placed = 0;
    for (size_t i = 0; i < n && placed < want; i++) {
        int64_t k = s->is_exclusive ? 0 : fits(s, &v[i]);
        k = k < want - placed ? k : want - placed;
        if (k > 0)
            take(s, k, v, n, i);
        placed += s->is_exclusive ? take_machine(s, v, n, i) : k;
    }
    return placed;
}

/* The slots that the sweep needs for all that it may hand out: trials of one shape share some. */
static int64_t slots_of(const struct demand_sweep *s)
{
    int64_t group = s->group > 1 ? s->group : 1, room = s->room > 0 ? s->room : 0;
    int64_t each = (room / group + (room % group > 0)) * s->ranks;
    return (each > s->kept ? each - s->kept : 0) + s->missing;
}

static bool is_of_kind(const struct demand_kind *k, const struct demand_sweep *s)
{
    return k->gpus == s->gpus && k->cpus == s->cpus && k->memory_bytes == s->memory_bytes &&
           k->ranks == s->ranks && k->is_exclusive == s->is_exclusive;
}

static void add_kind(struct demand *d, const struct demand_sweep *s, int64_t slots)
{
    size_t i = 0;
    while (i < d->n && !is_of_kind(&d->kinds[i], s))
        i++;
    if (i == DEMAND_KINDS_MAX)
        return;
    if (i == d->n)
        d->kinds[d->n++] = (struct demand_kind){.gpus = s->gpus,
                                                .cpus = s->cpus,
                                                .memory_bytes = s->memory_bytes,
                                                .ranks = s->ranks,
                                                .is_exclusive = s->is_exclusive,
                                                .since_ms = s->since_ms};
    struct demand_kind *k = &d->kinds[i];
    k->slots += slots;
    k->sweeps++;
    k->since_ms = s->since_ms < k->since_ms ? s->since_ms : k->since_ms;
}

as_status demand_plan(const struct demand_sweep *sweeps, size_t n_sweeps,
                      struct demand_runner *runners, size_t n_runners, struct arena *a,
                      struct demand *ret, struct as_err *err)
{
    struct demand d = {.runners = (int64_t)n_runners};
    d.kinds = arena_alloc(a, DEMAND_KINDS_MAX, sizeof *d.kinds);
    if (!d.kinds)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n_sweeps; i++) {
        const struct demand_sweep *s = &sweeps[i];
        int64_t want = slots_of(s), waits = want - place(s, want, runners, n_runners);
        if (waits == 0)
            continue;
        d.slots += waits;
        d.since_ms = d.since_ms == 0 || s->since_ms < d.since_ms ? s->since_ms : d.since_ms;
        add_kind(&d, s, waits);
    }
    for (size_t i = 0; i < n_runners; i++)
        d.free_slots +=
            runners[i].is_shut ? 0 : times(runners[i].slots, runners[i].slots_used, 1, INT64_MAX);
    *ret = d;
    return AS_OK;
}
