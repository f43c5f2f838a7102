/* One look: forget the jobs that are gone, count the deaths; how many jobs does the demand want
 * beyond those that are on their way; may it ask now; if nothing waits, which are idle.
 *
 * A job of several ranks need not have all of them at once: Kubernetes places the pods of a Job one
 * by one, and ranks register one after the other everywhere. While one of them is missing, the
 * demand has its slot, which is expected from this job and from no second one.
 *
 * A job that ended and never had a runner died at its start: a wrong path, an image that does not
 * exist, a token that was revoked. To ask again at once would fill the queue with jobs that die, so
 * the pause doubles until one has a runner. */
#include "cli/fleet/autoscale_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

void autoscale_memory_done(struct autoscale_memory *m)
{
    free(m->known);
    *m = (struct autoscale_memory){0};
}

void autoscale_action_done(struct autoscale_action *a)
{
    free(a->stop);
    str_done(&a->why);
    *a = (struct autoscale_action){0};
}

static struct autoscale_known *find(const struct autoscale_memory *m, const char *id)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->known[i].id, id) == 0)
            return &m->known[i];
    return NULL;
}

static bool is_listed(const struct autoscale_look *look, const char *id)
{
    for (size_t i = 0; i < look->n_units; i++)
        if (strcmp(look->units[i].unit->id, id) == 0)
            return true;
    return false;
}

/* Jobs that were known, never had a runner, and are gone; and those that were started since the
 * last look and are gone already, for a program that is not there ends within a second. One that
 * was cancelled, or that did its work between two looks, is no death: nobody can tell, but it is
 * rare, and costs a pause. */
static int64_t count_dead(const struct autoscale_memory *m, const struct autoscale_look *look)
{
    int64_t n = 0, unseen = m->asked;
    for (size_t i = 0; i < m->n; i++)
        n += !m->known[i].had_runner && !is_listed(look, m->known[i].id);
    for (size_t i = 0; i < look->n_units; i++)
        unseen -= !find(m, look->units[i].unit->id);
    return n + (unseen > 0 ? unseen : 0);
}

static void note_unit(struct autoscale_known *k, const struct autoscale_unit *u, int64_t now_ms)
{
    k->had_runner |= u->runners > 0;
    if (!u->is_idle)
        k->idle_since_ms = -1;
    else if (k->idle_since_ms < 0)
        k->idle_since_ms = now_ms;
}

/* Replace what is known by what the look has. *ret_dead: jobs that died at their start. */
static as_status remember(struct autoscale_memory *m, const struct autoscale_look *look,
                          int64_t *ret_dead, struct as_err *err)
{
    struct autoscale_known *known = as_calloc(look->n_units + 1, sizeof *known);
    bool has_runner = false;
    if (!known)
        return as_fail_nomem(err);
    for (size_t i = 0; i < look->n_units; i++) {
        const struct autoscale_unit *u = &look->units[i];
        const struct autoscale_known *before = find(m, u->unit->id);
        known[i].idle_since_ms = -1;
        if (before)
            known[i] = *before;
        else
            (void)snprintf(known[i].id, sizeof known[i].id, "%s", u->unit->id);
        has_runner |= !known[i].had_runner && u->runners > 0;
        m->cpus = u->cpus > m->cpus ? u->cpus : m->cpus;
        m->memory_bytes = u->memory_bytes > m->memory_bytes ? u->memory_bytes : m->memory_bytes;
        note_unit(&known[i], u, look->now_ms);
    }
    *ret_dead = count_dead(m, look);
    m->deaths = has_runner ? 0 : m->deaths + (*ret_dead > 0);
    free(m->known);
    m->known = known;
    m->n = look->n_units;
    m->asked = 0;
    return AS_OK;
}

static int64_t times(int64_t all, int64_t need, int64_t most)
{
    return all > 0 && need > 0 && all / need < most ? all / need : most;
}

/* How many slots of the kind one runner has; 0: it does not fit. Where the fleet does not say how
 * many cores and how much memory a job has, the runners that were seen do: else jobs would be asked
 * for again and again that are never large enough. */
static int64_t slots_per_runner(const struct fleet_spec *s, const struct autoscale_memory *m,
                                const struct autoscale_kind *k)
{
    int64_t each = s->slots;
    if (k->gpus > 0)
        each = s->gpus / k->gpus < each ? s->gpus / k->gpus : each;
    each = times(s->cpus > 0 ? s->cpus : m->cpus, k->cpus, each);
    each = times(s->memory_bytes > 0 ? s->memory_bytes : m->memory_bytes, k->memory_bytes, each);
    return k->is_exclusive && each > 1 ? 1 : each;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* How many jobs of `each` slots these want, which need `ranks` together; those of a gang whose
 * ranks are more than `room` jobs have are wanted not at all, for a part of them would only wait.
 * *lacks: that was so. */
static int64_t jobs_for(int64_t all, int64_t ranks, int64_t each, int64_t room, bool *lacks)
{
    int64_t jobs = divide_up(all, each);
    if (ranks == 1 || jobs <= room)
        return jobs;
    /* Whole gangs alone: all / ranks of them wait, the first one perhaps with less. */
    int64_t first = all % ranks > 0 ? all % ranks : ranks, fit = 0;
    for (int64_t slots = first; slots <= all && divide_up(slots, each) <= room; slots += ranks)
        fit = divide_up(slots, each);
    *lacks |= fit == 0;
    return fit;
}

struct wish {
    int64_t slots, jobs; /* of the kinds that fit in a job; jobs beyond those on their way */
    int64_t on_the_way;  /* jobs without a runner yet */
    int64_t coming;      /* runners of jobs that have some */
    bool lacks_room;     /* for a whole gang */
};

static void make_wish(const struct fleet_spec *s, const struct autoscale_bounds *b,
                      const struct autoscale_look *look, const struct autoscale_memory *m,
                      struct wish *w)
{
    int64_t wanted = 0, alive = (int64_t)look->n_units;
    *w = (struct wish){0};
    for (size_t i = 0; i < look->n_units; i++) {
        w->on_the_way += look->units[i].runners == 0 && look->units[i].unit->state != UNIT_ENDING;
        w->coming += look->units[i].coming;
    }
    int64_t coming = w->coming;
    for (size_t i = 0; i < look->n_kinds; i++) {
        const struct autoscale_kind *k = &look->kinds[i];
        int64_t room = b->max - alive + w->on_the_way - wanted, slots = k->slots;
        int64_t each = slots_per_runner(s, m, k);
        if (each < 1)
            continue;
        w->slots += slots;
        for (; coming > 0 && slots > 0; coming--)
            slots -= each < slots ? each : slots;
        wanted += jobs_for(slots, k->ranks, each * s->ranks, room > 0 ? room : 0, &w->lacks_room);
    }
    w->jobs = wanted > w->on_the_way ? wanted - w->on_the_way : 0;
    if (alive + w->jobs < b->min)
        w->jobs = b->min - alive;
}

static int64_t pause_left(const struct autoscale_memory *m, int64_t now_ms)
{
    int64_t left = m->asked_ms > 0 ? m->asked_ms + m->wait_ms - now_ms : 0;
    return left > 0 ? left : 0;
}

static void plan_start(const struct autoscale_bounds *b, const struct autoscale_look *look,
                       const struct autoscale_memory *m, const struct wish *w, int64_t dead,
                       struct autoscale_action *ret)
{
    char buf[32];
    int64_t room = b->max - (int64_t)look->n_units, left_ms = pause_left(m, look->now_ms);
    int64_t n = w->jobs < room ? w->jobs : room;
    str_printf(&ret->why, "%lld slots wait, %zu jobs, %lld of them without a runner yet: ",
               (long long)w->slots, look->n_units, (long long)w->on_the_way);
    if (dead > 0)
        str_printf(&ret->why, "%lld ended before their runners had registered (see their logs); ",
                   (long long)dead);
    if (n <= 0)
        str_printf(&ret->why,
                   w->lacks_room ? "the ranks of a trial need more jobs than --max %lld"
                                 : "--max %lld is reached",
                   (long long)b->max);
    else if (left_ms > 0)
        str_printf(&ret->why, "%lld more in %s%s", (long long)n,
                   clock_format_duration(left_ms, buf), m->deaths > 0 ? " (backing off)" : "");
    else
        str_printf(&ret->why, "start %lld", (long long)n);
    ret->start = n > 0 && left_ms == 0 ? n : 0;
}

static void say_coming(const struct autoscale_look *look, const struct wish *w,
                       struct autoscale_action *ret)
{
    str_printf(&ret->why, "%lld slots wait for %lld jobs that have no runner yet",
               (long long)w->slots, (long long)w->on_the_way);
    if (w->coming > 0)
        str_printf(&ret->why, " and %lld ranks of jobs that have some", (long long)w->coming);
    str_printf(&ret->why, "; %zu jobs", look->n_units);
}

/* It does nothing, and nobody waits for it. */
static bool is_superfluous(const struct autoscale_bounds *b, const struct autoscale_look *look,
                           const struct autoscale_memory *m, size_t i)
{
    const struct autoscale_unit *u = &look->units[i];
    int64_t idle_since_ms = m->known[i].idle_since_ms;
    if (u->unit->state == UNIT_ENDING)
        return false;
    if (u->unit->state == UNIT_PENDING && u->runners == 0)
        return true;
    return idle_since_ms >= 0 && look->now_ms - idle_since_ms >= b->idle_ms;
}

/* Those that wait in the queue first: they cost nothing yet. */
static as_status plan_stop(const struct autoscale_bounds *b, const struct autoscale_look *look,
                           const struct autoscale_memory *m, struct autoscale_action *ret,
                           struct as_err *err)
{
    int64_t left = 0;
    ret->stop = as_calloc(look->n_units + 1, sizeof *ret->stop);
    if (!ret->stop)
        return as_fail_nomem(err);
    for (size_t i = 0; i < look->n_units; i++)
        left += look->units[i].unit->state != UNIT_ENDING;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < look->n_units && left > b->min; i++) {
            bool in_queue = look->units[i].runners == 0;
            if (in_queue != (pass == 0) || !is_superfluous(b, look, m, i))
                continue;
            ret->stop[ret->n_stop++] = look->units[i].unit->id;
            left--;
        }
    if (ret->n_stop > 0)
        str_printf(&ret->why, "nothing waits: end %zu of %zu jobs that do nothing", ret->n_stop,
                   look->n_units);
    else
        str_printf(&ret->why, "nothing waits; %zu jobs", look->n_units);
    return AS_OK;
}

as_status autoscale_plan(const struct fleet_spec *spec, const struct autoscale_bounds *bounds,
                         const struct autoscale_look *look, struct autoscale_memory *m,
                         struct autoscale_action *ret, struct as_err *err)
{
    struct wish w;
    int64_t dead = 0;
    as_status st = remember(m, look, &dead, err);
    if (st < 0)
        return st;
    if (dead > 0) { /* from now on, whenever it asked last */
        m->asked_ms = look->now_ms;
        autoscale_asked(m, bounds, look->now_ms, true, 0);
    }
    make_wish(spec, bounds, look, m, &w);
    if (w.jobs > 0 || w.lacks_room)
        plan_start(bounds, look, m, &w, dead, ret);
    else if (w.slots > 0)
        say_coming(look, &w, ret);
    else if ((st = plan_stop(bounds, look, m, ret, err)) < 0)
        return st;
    return str_check(&ret->why, err);
}

void autoscale_asked(struct autoscale_memory *m, const struct autoscale_bounds *bounds,
                     int64_t now_ms, bool with_success, int64_t started)
{
    int64_t wait_ms = bounds->cool_down_ms;
    m->deaths += !with_success;
    for (int64_t i = 0; i < m->deaths && wait_ms < AUTOSCALE_BACK_OFF_MAX_MS; i++)
        wait_ms = wait_ms > 0 ? wait_ms * 2 : 1000;
    m->wait_ms = wait_ms < AUTOSCALE_BACK_OFF_MAX_MS ? wait_ms : AUTOSCALE_BACK_OFF_MAX_MS;
    m->asked_ms = now_ms;
    m->asked = started;
}
