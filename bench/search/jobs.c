#include "bench/search/jobs.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

as_status jobs_run(const char *program, size_t jobs, jobs_share share, void *ctx,
                   struct as_err *err)
{
    pid_t children[JOBS_MAX];
    size_t n = 0;
    as_status st = AS_OK;
    if (jobs == 1)
        return share(ctx, 0, err);
    for (size_t job = 0; job < jobs; job++) {
        pid_t pid = fork();
        if (pid == 0) {
            st = share(ctx, job, err);
            if (st < 0)
                (void)fprintf(stderr, "%s: %s\n", program, err->msg);
            _exit(st < 0);
        }
        if (pid > 0)
            children[n++] = pid;
        else
            st = as_fail(err, AS_E_IO, "no process for job %zu", job);
    }
    for (size_t i = 0; i < n; i++) {
        int status = 0;
        (void)waitpid(children[i], &status, 0);
        if (status != 0)
            st = as_fail(err, AS_E_IO, "a job failed");
    }
    return st;
}
