/* Fibers on ucontext, each with a stack between two pages that nobody may touch. Stacks are used
 * again by the next simulations. */
#include "tests/simulation/fibers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tests/support/check_main.h"

#define STACK_BYTES (512 * 1024)
#define GUARD_BYTES 4096
#define FIBERS_MAX 4096

enum fiber_state { FIBER_FREE, FIBER_READY, FIBER_WAITS, FIBER_ENDED };

struct fiber {
    enum fiber_state state;
    ucontext_t at;
    char *stack; /* kept when the fiber has ended */
    void (*fn)(void *);
    void *(*thread)(void *); /* of pthread_create(); NULL: fn */
    void *arg;
    int node;
    int64_t not_before_ns; /* READY: when it goes on; WAITS: when it gives up */
    const void *place;
    const char *what;
    bool was_woken;
    int mutexes;
    void *own;
    size_t serial; /* no two fibers have the same */
};

struct rng sim_rng;
uint64_t sim_steps;

static struct fiber fibers[FIBERS_MAX];
static size_t n_fibers; /* places that were ever used in this simulation */
static size_t last_serial;
static struct fiber *running;
static ucontext_t scheduler;
static int64_t now_ns;
static int64_t node_until_ns[SIM_NODES];

/* The real functions, and those that the linker puts in their place. */
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __real_pthread_join(pthread_t t, void **ret);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __real_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __real_pthread_cond_signal(pthread_cond_t *c);
int __real_pthread_cond_broadcast(pthread_cond_t *c);
bool __real_clock_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t until_ns);
int64_t __real_clock_mono_ns(void);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_join(pthread_t t, void **ret);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_broadcast(pthread_cond_t *c);
bool __wrap_clock_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t until_ns);
int64_t __wrap_clock_mono_ns(void);

/* ---- fibers ---- */

void sim_begin(uint64_t seed)
{
    ck_assert_ptr_null(running);
    rng_init(&sim_rng, seed, 1);
    now_ns = NS_PER_S; /* 0 means "never" to some */
    sim_steps = 0;
    n_fibers = 0;
    for (int i = 0; i < SIM_NODES; i++)
        node_until_ns[i] = 0;
}

void sim_end(void)
{
    for (size_t i = 0; i < n_fibers; i++)
        ck_assert_int_eq(fibers[i].state, FIBER_FREE);
}

static void begin_fiber(void)
{
    if (running->thread)
        (void)running->thread(running->arg);
    else
        running->fn(running->arg);
    running->state = FIBER_ENDED;
    (void)swapcontext(&running->at, &scheduler);
}

static struct fiber *add_fiber(int node, void *arg)
{
    size_t i = 0;
    while (i < n_fibers && fibers[i].state != FIBER_FREE)
        i++;
    ck_assert_uint_lt(i, FIBERS_MAX);
    n_fibers = i == n_fibers ? i + 1 : n_fibers;
    struct fiber *f = &fibers[i];
    char *stack = f->stack;
    if (!stack) {
        stack = mmap(NULL, STACK_BYTES + 2 * GUARD_BYTES, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ck_assert_msg((void *)stack != MAP_FAILED, "no memory for a stack");
        ck_assert_int_eq(mprotect(stack + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE), 0);
    }
    *f = (struct fiber){
        .state = FIBER_READY, .stack = stack, .arg = arg, .node = node, .serial = ++last_serial};
    ck_assert_int_eq(getcontext(&f->at), 0);
    f->at.uc_stack.ss_sp = stack + GUARD_BYTES;
    f->at.uc_stack.ss_size = STACK_BYTES;
    makecontext(&f->at, begin_fiber, 0);
    return f;
}

void sim_spawn(int node, void (*fn)(void *), void *arg)
{
    add_fiber(node, arg)->fn = fn;
}

int sim_node(void)
{
    return running->node;
}

void **sim_own(void)
{
    return &running->own;
}

void sim_stop_node(int node, int64_t until_ns)
{
    node_until_ns[node] = until_ns;
}

/* ---- the scheduler ---- */

/* When may it go on? INT64_MAX: it waits for another. */
static int64_t time_of(const struct fiber *f)
{
    int64_t at = f->not_before_ns;
    return at > node_until_ns[f->node] ? at : node_until_ns[f->node];
}

static void fail_stuck(void)
{
    for (size_t i = 0; i < n_fibers; i++)
        if (fibers[i].state != FIBER_FREE)
            (void)fprintf(stderr, "fiber %zu of node %d: %s\n", i, fibers[i].node,
                          fibers[i].what ? fibers[i].what : "ready");
    ck_abort_msg("every fiber waits for another");
}

/* The next fiber: one of those that may run now, else the clock goes on to the first that may. */
static struct fiber *choose(void)
{
    int64_t first_ns = INT64_MAX;
    size_t n_ready = 0, n_left = 0;
    for (size_t i = 0; i < n_fibers; i++) {
        if (fibers[i].state == FIBER_FREE)
            continue;
        int64_t at = time_of(&fibers[i]);
        n_left++;
        n_ready += at <= now_ns;
        first_ns = at < first_ns ? at : first_ns;
    }
    if (n_left == 0)
        return NULL;
    if (first_ns == INT64_MAX)
        fail_stuck();
    if (n_ready == 0) {
        now_ns = first_ns;
        return choose();
    }
    size_t k = rng_below(&sim_rng, n_ready);
    for (size_t i = 0;; i++)
        if (fibers[i].state != FIBER_FREE && time_of(&fibers[i]) <= now_ns && k-- == 0)
            return &fibers[i];
}

void sim_run(void)
{
    for (struct fiber *f; (f = choose());) {
        running = f;
        sim_steps++;
        (void)swapcontext(&scheduler, &f->at);
        running = NULL;
        if (f->state == FIBER_ENDED)
            f->state = FIBER_FREE;
    }
}

static void stop_here(void)
{
    (void)swapcontext(&running->at, &scheduler);
    running->state = FIBER_READY;
    running->not_before_ns = 0;
    running->what = NULL;
}

static void check_no_mutex(void)
{
    ck_assert_msg(running->mutexes == 0, "a mutex is held over a round trip");
}

void sim_yield(void)
{
    check_no_mutex();
    stop_here();
}

void sim_sleep_ms(double ms)
{
    check_no_mutex();
    running->not_before_ns = now_ns + (int64_t)(ms * (double)NS_PER_MS);
    stop_here();
}

int64_t sim_now_ns(void)
{
    return now_ns;
}

static bool wait_at(const void *place, int64_t until_ns, const char *what)
{
    running->state = FIBER_WAITS;
    running->place = place;
    running->what = what;
    running->was_woken = false;
    running->not_before_ns = until_ns;
    stop_here();
    return running->was_woken;
}

bool sim_wait(const void *place, int64_t until_ns, const char *what)
{
    check_no_mutex();
    return wait_at(place, until_ns, what);
}

static void wake_fiber(struct fiber *f)
{
    f->state = FIBER_READY;
    f->was_woken = true;
    f->not_before_ns = 0;
}

void sim_wake(const void *place)
{
    for (size_t i = 0; i < n_fibers; i++)
        if (fibers[i].state == FIBER_WAITS && fibers[i].place == place)
            wake_fiber(&fibers[i]);
}

bool sim_chance(double p)
{
    return rng_uniform(&sim_rng) < p;
}

void sim_pause(double ms)
{
    sim_sleep_ms(rng_uniform(&sim_rng) * ms);
}

/* ---- pthreads and the clock ---- */

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
    if (!running)
        return __real_pthread_create(t, a, fn, arg);
    struct fiber *f = add_fiber(running->node, arg);
    f->thread = fn;
    *t = (pthread_t)f->serial;
    return 0;
}

int __wrap_pthread_join(pthread_t t, void **ret)
{
    if (!running)
        return __real_pthread_join(t, ret);
    for (size_t i = 0; i < n_fibers; i++)
        while (fibers[i].state != FIBER_FREE && fibers[i].serial == t)
            sim_sleep_ms(0.1);
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    if (!running)
        return __real_pthread_mutex_lock(m);
    if (running->mutexes == 0 && sim_chance(0.2))
        sim_yield();
    running->mutexes++;
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    if (!running)
        return __real_pthread_mutex_unlock(m);
    running->mutexes--;
    return 0;
}

static bool wait_for_cond(const void *c, int64_t until_ns)
{
    ck_assert_int_eq(running->mutexes, 1);
    running->mutexes = 0;
    bool woken = wait_at(c, until_ns, "a condition");
    running->mutexes = 1;
    return woken;
}

int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    if (!running)
        return __real_pthread_cond_wait(c, m);
    (void)wait_for_cond(c, INT64_MAX);
    return 0;
}

bool __wrap_clock_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t until_ns)
{
    return running ? wait_for_cond(c, until_ns) : __real_clock_cond_wait(c, m, until_ns);
}

int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
    size_t n = 0, k = 0;
    if (!running)
        return __real_pthread_cond_signal(c);
    for (size_t i = 0; i < n_fibers; i++)
        n += fibers[i].state == FIBER_WAITS && fibers[i].place == c;
    if (n == 0)
        return 0;
    k = rng_below(&sim_rng, n);
    for (size_t i = 0;; i++) {
        if (fibers[i].state != FIBER_WAITS || fibers[i].place != c || k-- > 0)
            continue;
        wake_fiber(&fibers[i]);
        return 0;
    }
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *c)
{
    if (!running)
        return __real_pthread_cond_broadcast(c);
    sim_wake(c);
    return 0;
}

int64_t __wrap_clock_mono_ns(void)
{
    return running ? now_ns : __real_clock_mono_ns();
}
