/* The thread that measures what the attempts use of the machine: processor and memory of their
 * sessions, GPUs by the driver.
 *
 * One look at all processes of the machine serves all attempts. It holds no lock, and its results
 * are given to the attempts that still run then. A look costs more on a machine with
 * many processes, so the pause grows with it: this thread uses at most a hundredth of a core.
 *
 * The members of a group share a process: each has an equal share of what it uses while that many
 * of them run. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "trial-runner/agent/agent.h"
#include "trial-runner/process/sessions.h"

#define EVERY_MS 1000
#define COST_FACTOR 99 /* the least pause after a look, in times of the look */

struct looks {
    struct session_use *v;
    size_t n, cap;
    struct nvml_meter *meter; /* NULL: this runner has no GPU, or the driver does not say */
    double gpu_busy[GPUS_MAX], gpu_memory[GPUS_MAX]; /* below 0: not known */
};

/* The session of the processes that work for the attempt now; 0: none does. */
static pid_t session_of(struct attempt *t)
{
    pthread_mutex_lock(&t->lock);
    pid_t session = t->phase == ATTEMPT_RUNNING ? t->session : 0;
    pthread_mutex_unlock(&t->lock);
    return session;
}

/* List the sessions of all attempts that run. */
static void list_sessions(struct agent *a, struct looks *l)
{
    pthread_mutex_lock(&a->lock);
    l->n = 0;
    if (a->n > l->cap && as_grow(&l->v, a->n, sizeof *l->v, NULL) == AS_OK)
        l->cap = a->n;
    for (size_t i = 0; i < a->n && l->n < l->cap; i++) {
        pid_t session = session_of(a->attempts[i]);
        size_t k = 0;
        while (k < l->n && l->v[k].session != session)
            k++;
        if (session > 0 && k == l->n)
            l->v[l->n++] = (struct session_use){.session = session};
    }
    pthread_mutex_unlock(&a->lock);
}

static const struct session_use *find_session(const struct looks *l, pid_t session)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].session == session && l->v[i].processes > 0)
            return &l->v[i];
    return NULL;
}

/* How many attempts share the session. Under agent.lock. */
static size_t sharers_locked(struct agent *a, pid_t session)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        n += session_of(a->attempts[i]) == session;
    return n;
}

/* A driver may take its time, so no lock is held. */
static void read_gpus(struct looks *l, const struct options *o)
{
    for (size_t i = 0; i < o->gpus.n; i++) {
        l->gpu_busy[i] = l->gpu_memory[i] = -1;
        if (l->meter)
            nvml_meter_read(l->meter, o->gpus.v[i].id, &l->gpu_busy[i], &l->gpu_memory[i]);
    }
}

/* v + more, where below 0 means that nothing is known. */
static double sum_known(double v, double more)
{
    return more < 0 ? v : v < 0 ? more : v + more;
}

static void add_gpus(const struct looks *l, const struct options *o, const bool taken[GPUS_MAX],
                     struct usage_reading *r)
{
    for (size_t i = 0; i < o->gpus.n; i++) {
        if (!taken[i])
            continue;
        r->v[USAGE_GPU] = sum_known(r->v[USAGE_GPU], l->gpu_busy[i]);
        r->v[USAGE_GPU_MEMORY] = sum_known(r->v[USAGE_GPU_MEMORY], l->gpu_memory[i]);
    }
}

/* Give the attempt its part of what its session used since the last look. A member that joins a
 * process that runs already begins with its second look: what was before is not its own. */
static void give(struct agent *a, const struct looks *l, struct attempt *t, int64_t now_ns)
{
    struct usage_reading r = {{-1, -1, -1, -1}};
    pid_t session = session_of(t);
    const struct session_use *s = session > 0 ? find_session(l, session) : NULL;
    size_t n = s ? sharers_locked(a, session) : 0;
    if (n == 0)
        return;
    add_gpus(l, a->options, t->group ? t->group->gpu_taken : t->hold.gpu_taken, &r);
    pthread_mutex_lock(&t->lock);
    int64_t from_ns = t->use_read_ns ? t->use_read_ns : t->group ? now_ns : t->began_ns;
    int64_t for_ms = (now_ns - from_ns) / NS_PER_MS, used_ms = s->cpu_ms - t->use_cpu_ms;
    if (for_ms > 0) {
        r.v[USAGE_CPU] = used_ms > 0 ? (double)used_ms / (double)for_ms : 0;
        r.v[USAGE_MEMORY] = (double)s->memory_bytes;
        for (usage_kind k = 0; k < USAGE_KINDS; k++)
            r.v[k] = r.v[k] > 0 ? r.v[k] / (double)n : r.v[k];
        usage_add(&t->use, (now_ns - t->began_ns) / NS_PER_MS, for_ms, &r);
    }
    t->use_cpu_ms = s->cpu_ms;
    t->use_read_ns = now_ns;
    pthread_mutex_unlock(&t->lock);
}

/* Look once. Returns how long it took. */
static int64_t look(struct agent *a, struct looks *l)
{
    int64_t began = clock_mono_ns();
    list_sessions(a, l);
    if (l->n == 0)
        return 0;
    sessions_read("", l->v, l->n);
    read_gpus(l, a->options);
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n; i++)
        give(a, l, a->attempts[i], clock_mono_ns());
    pthread_mutex_unlock(&a->lock);
    return (clock_mono_ns() - began) / NS_PER_MS;
}

void *measure_use_main(void *arg)
{
    struct agent *a = arg;
    struct looks l = {0};
    struct as_err err = {0};
    if (a->options->gpus.n > 0 && nvml_meter_open(&l.meter, &err) < 0)
        log_write(LOG_INFO, "the use of GPUs is not measured", "error=\"%s\"", err.msg);
    for (bool quits = false; !quits;) {
        int64_t ms = COST_FACTOR * look(a, &l);
        int64_t until = clock_mono_ns() + (ms > EVERY_MS ? ms : EVERY_MS) * NS_PER_MS;
        pthread_mutex_lock(&a->lock);
        while (!a->quitting && clock_cond_wait(&a->changed, &a->lock, until))
            continue;
        quits = a->quitting;
        pthread_mutex_unlock(&a->lock);
    }
    nvml_meter_close(l.meter);
    free(l.v);
    return NULL;
}
