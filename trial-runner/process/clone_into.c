/* The C library of Debian 12 has no function for clone3(), and syscall() cannot be used: its return
 * address would lie on the new process's stack. So the call and the first step of the process are
 * machine code, for x86-64. Sanitizers do not know the second stack: their builds have none of
 * it. */
#include "trial-runner/process/clone_into.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

#define STACK_SIZE (64 << 10)

#if defined(__x86_64__) && defined(CLONE_INTO_CGROUP) && !defined(__SANITIZE_ADDRESS__) &&         \
    !defined(__SANITIZE_THREAD__)
pid_t clone_into(int group, clone_fn *run, const void *arg)
{
    _Alignas(64) char stack[STACK_SIZE]; /* of the caller's, whose pages are there already */
    if (group < 0) {
        errno = EBADF;
        return -1;
    }
    struct clone_args args = {.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP,
                              .exit_signal = SIGCHLD,
                              .stack = (uintptr_t)stack,
                              .stack_size = sizeof stack,
                              .cgroup = (uint64_t)group};
    long pid = SYS_clone3;
    __asm__ volatile("syscall\n\t"
                     "testq %%rax, %%rax\n\t"
                     "jnz 1f\n\t" /* the caller goes on; the process is at the top of its stack */
                     "movq %[arg], %%rdi\n\t"
                     "callq *%[run]\n\t"
                     "hlt\n"
                     "1:"
                     : "+a"(pid)
                     : "D"(&args), "S"(sizeof args), [run] "r"(run), [arg] "r"(arg)
                     : "rcx", "r11", "memory");
    if (pid >= 0)
        return (pid_t)pid;
    errno = (int)-pid;
    return -1;
}
#else
pid_t clone_into(int group, clone_fn *run, const void *arg)
{
    (void)run;
    (void)arg;
    errno = group < 0 ? EBADF : ENOSYS;
    return -1;
}
#endif
