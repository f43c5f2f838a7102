/* Fibers on the host: each has a stack with a guard page, and a switch is a call.
 *
 * A test switches fibers millions of times, so the switch must be cheap. On x86-64 it is a few
 * lines of assembly that save the registers which a call preserves; elsewhere it is ucontext. Each
 * switch is announced to ASan, because it must know which stack is in use. */
#include "tests/kernels/emu/fiber.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES ((size_t)256 << 10)
#define GUARD_BYTES ((size_t)4096)

/* glibc's swapcontext asks the kernel for the signal mask each time, which takes half a
 * microsecond. On x86-64 we switch only the registers that a call preserves. */
#ifdef __x86_64__
typedef void *context;

extern "C" void emu_switch(void **save, void *to);
__asm__(".text\n"
        ".hidden emu_switch\n"
        ".globl emu_switch\n"
        ".type emu_switch, @function\n"
        "emu_switch:\n"
        "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
        "ret\n"
        ".size emu_switch, .-emu_switch\n");

static void context_switch(context *from, context *to)
{
    emu_switch(from, *to);
}

/* Prepare the stack as if `main` had been called at its top: the ABI aligns it after a call to
 * eight past a multiple of 16. */
static void context_make(context *c, char *stack, void (*main)(void))
{
    void **top = (void **)(stack + STACK_BYTES) - 2;
    *top = (void *)main; /* emu_switch's ret jumps there */
    top[1] = NULL;
    *c = top - 6;
}
#else
typedef ucontext_t context;

static void context_switch(context *from, context *to)
{
    (void)swapcontext(from, to);
}

static void context_make(context *c, char *stack, void (*main)(void))
{
    (void)getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = STACK_BYTES;
    c->uc_link = NULL;
    makecontext(c, main, 0);
}
#endif

static context outside;
static std::vector<context> fibers;
static std::vector<char *> stacks;
static size_t current;
static void (*entry)(void);

#ifdef __SANITIZE_ADDRESS__
static const void *outside_stack;
static size_t outside_size;
static void *outside_fake;
static std::vector<void *> fakes;

static void entered(void *fake)
{
    __sanitizer_finish_switch_fiber(fake, &outside_stack, &outside_size);
}

static void resume(size_t i)
{
    __sanitizer_start_switch_fiber(&outside_fake, stacks[i], STACK_BYTES);
    context_switch(&outside, &fibers[i]);
    __sanitizer_finish_switch_fiber(outside_fake, NULL, NULL);
}

static void leave(size_t i)
{
    __sanitizer_start_switch_fiber(&fakes[i], outside_stack, outside_size);
    context_switch(&fibers[i], &outside);
    entered(fakes[i]);
}
#else
static void entered(void *fake)
{
    (void)fake;
}

static void resume(size_t i)
{
    context_switch(&outside, &fibers[i]);
}

static void leave(size_t i)
{
    context_switch(&fibers[i], &outside);
}
#endif

static void begin(void)
{
    entered(NULL);
    entry();
    abort(); /* it never returns */
}

void fibers_create(size_t n, void (*main)(void))
{
    entry = main;
    size_t each = STACK_BYTES + GUARD_BYTES;
    char *all = (char *)mmap(NULL, n * each, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) {
        perror("emu: stacks");
        abort();
    }
    fibers.resize(n);
    for (size_t i = 0; i < n; i++) {
        (void)mprotect(all + i * each, GUARD_BYTES, PROT_NONE);
        stacks.push_back(all + i * each + GUARD_BYTES);
        context_make(&fibers[i], stacks[i], begin);
    }
#ifdef __SANITIZE_ADDRESS__
    fakes.resize(n);
#endif
}

void fiber_resume(size_t i)
{
    current = i;
    resume(i);
}

void fiber_yield(void)
{
    leave(current);
}
