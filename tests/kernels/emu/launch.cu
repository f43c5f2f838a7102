/* One launch: blocks one after another, their threads as fibers.
 *
 * The scheduler resumes every lane of a warp until each has ended or waits at a barrier. It ends
 * the program if only some lanes of a warp are at a shuffle, or if some threads of a block have
 * ended while others wait at a barrier: a device would hang there. One launch runs at a time, under
 * a mutex, because the running block is global state. */
#include "tests/kernels/emu/emu.cuh"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <mutex>

#include "tests/kernels/emu/fiber.cuh"

#define BLOCK_MAX 1024
#define SHARED_MAX ((size_t)48 << 10) /* bytes, without an attribute that allows more */

struct emu_place emu_here;

typedef enum state { READY, AT_BARRIER, IN_WARP, ENDED } state;

struct thread {
    state is;
    unsigned parity; /* the half of the warp's buffer that its next exchange uses */
    uint3 at;
};

struct warp {
    struct emu_words half[2];
};

static std::mutex one_launch; /* guards everything below: one block runs at a time */
static struct thread threads[BLOCK_MAX];
static struct warp warps[BLOCK_MAX / EMU_WARP];
static size_t n_threads, running;
static const std::function<void()> *body;
static const char *kernel_name;
static bool backwards;
static size_t dynamic_bytes;
static std::map<const void *, size_t> allowed; /* dynamic shared memory that the program allowed */

#ifndef __SANITIZE_ADDRESS__
extern "C" char __start_emu_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_emu_shared[] __attribute__((weak, visibility("hidden")));
#endif

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)fprintf(stderr, "emu: kernel %s, block %u,%u,%u: ", kernel_name, emu_here.block.x,
                  emu_here.block.y, emu_here.block.z);
    (void)vfprintf(stderr, fmt, args);
    (void)fputc('\n', stderr);
    va_end(args);
    abort();
}

/* ---- inside a kernel ---- */

static void wait_as(state s)
{
    threads[running].is = s;
    fiber_yield();
}

void __syncthreads(void)
{
    wait_as(AT_BARRIER);
}

unsigned emu_lane(void)
{
    return (unsigned)(running % EMU_WARP);
}

const struct emu_words *emu_exchange(unsigned mask, uint64_t value)
{
    struct emu_words *w = &warps[running / EMU_WARP].half[threads[running].parity];
    if (mask != 0xffffffffu)
        die("a shuffle with the mask %#x: only whole warps are modelled", mask);
    w->lane[emu_lane()] = value;
    threads[running].parity ^= 1;
    wait_as(IN_WARP);
    return w;
}

unsigned __ballot_sync(unsigned mask, int yes)
{
    const struct emu_words *w = emu_exchange(mask, yes != 0);
    unsigned bits = 0;
    for (int i = 0; i < EMU_WARP; i++)
        bits |= (unsigned)w->lane[i] << i;
    return bits;
}

int __any_sync(unsigned mask, int yes)
{
    return __ballot_sync(mask, yes) != 0;
}

/* ---- the scheduler ---- */

static void fiber_main(void)
{
    for (;;) {
        (*body)();
        wait_as(ENDED);
    }
}

static size_t in_order(size_t i, size_t n)
{
    return backwards ? n - 1 - i : i;
}

static void run_thread(size_t i)
{
    running = i;
    emu_here.thread = threads[i].at;
    fiber_resume(i);
}

/* Run until every lane has ended or waits at a barrier. */
static void run_warp(size_t w)
{
    size_t first = w * EMU_WARP;
    size_t lanes = n_threads - first < EMU_WARP ? n_threads - first : EMU_WARP;
    for (;;) {
        size_t waiting = 0;
        for (size_t i = 0; i < lanes; i++) {
            size_t t = first + in_order(i, lanes);
            if (threads[t].is == READY)
                run_thread(t);
            waiting += threads[t].is == IN_WARP;
        }
        if (waiting == 0)
            return;
        if (waiting != EMU_WARP)
            die("%zu lanes of warp %zu are at a shuffle, the others are not", waiting, w);
        for (size_t i = 0; i < lanes; i++)
            threads[first + i].is = READY;
    }
}

static void poison_shared(void)
{
#ifndef __SANITIZE_ADDRESS__
    if (__start_emu_shared != NULL)
        memset(__start_emu_shared, 0xff, (size_t)(__stop_emu_shared - __start_emu_shared));
#endif
    memset(emu_here.dynamic, 0xff, dynamic_bytes);
}

static void run_block(void)
{
    for (size_t i = 0; i < n_threads; i++) {
        unsigned x = emu_here.threads.x, y = emu_here.threads.y;
        threads[i] = {READY, 0, {(unsigned)i % x, (unsigned)i / x % y, (unsigned)i / x / y}};
    }
    poison_shared();
    size_t n_warps = (n_threads + EMU_WARP - 1) / EMU_WARP;
    for (;;) {
        for (size_t w = 0; w < n_warps; w++)
            run_warp(in_order(w, n_warps));
        size_t ended = 0;
        for (size_t i = 0; i < n_threads; i++)
            ended += threads[i].is == ENDED;
        if (ended == n_threads)
            return;
        if (ended > 0)
            die("%zu of %zu threads ended while the others wait at a barrier", ended, n_threads);
        for (size_t i = 0; i < n_threads; i++)
            threads[i].is = READY;
    }
}

static void run_grid(const char *name, dim3 grid, dim3 block, size_t shared,
                     const std::function<void()> &what)
{
    static bool begun;
    std::lock_guard<std::mutex> lock(one_launch);
    std::vector<char> room(shared + 1);
    if (!begun) {
        const char *order = getenv("EMU_ORDER");
        backwards = order != NULL && strcmp(order, "reverse") == 0;
        fibers_create(BLOCK_MAX, fiber_main);
        begun = true;
    }
    kernel_name = name;
    body = &what;
    n_threads = (size_t)block.x * block.y * block.z;
    emu_here = {{0, 0, 0}, {0, 0, 0}, block, grid, room.data()};
    dynamic_bytes = shared;
    size_t n_blocks = (size_t)grid.x * grid.y * grid.z;
    for (size_t i = 0; i < n_blocks; i++) {
        size_t b = in_order(i, n_blocks);
        emu_here.block = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
                          (unsigned)(b / grid.x / grid.y)};
        run_block();
    }
}

/* ---- launches ---- */

void emu_set_error(cudaError_t e);

cudaError_t emu_allow_shared(const void *kernel, int bytes)
{
    if (bytes < 0 || (size_t)bytes > emu_shared_max())
        return cudaErrorInvalidValue;
    std::lock_guard<std::mutex> lock(one_launch);
    allowed[kernel] = (size_t)bytes;
    return cudaSuccess;
}

static size_t shared_limit(const void *kernel)
{
    std::lock_guard<std::mutex> lock(one_launch);
    size_t asked = allowed.count(kernel) > 0 ? allowed[kernel] : 0;
    return asked > SHARED_MAX ? asked : SHARED_MAX;
}

static bool fits(const void *kernel, dim3 grid, dim3 block, size_t shared)
{
    size_t n = (size_t)block.x * block.y * block.z;
    return grid.x >= 1 && grid.x <= 0x7fffffffu && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 &&
           grid.z <= 65535 && n >= 1 && n <= BLOCK_MAX && block.z <= 64 &&
           shared <= shared_limit(kernel);
}

void emu_launch_body(const char *name, const void *kernel, dim3 grid, dim3 block, size_t shared,
                     cudaStream_t s, std::function<void()> what)
{
    if (!fits(kernel, grid, block, shared)) {
        emu_set_error(cudaErrorInvalidConfiguration);
        return;
    }
    emu_enqueue(s, [=] {
        if (emu_counts(name))
            run_grid(name, grid, block, shared, what);
    });
}
