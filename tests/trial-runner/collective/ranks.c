#include "tests/trial-runner/collective/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tests/support/check_main.h"

void ranks_init(struct ranks *r, int32_t n)
{
    struct as_err err;
    *r = (struct ranks){.n = n};
    random_bytes(r->secret, sizeof r->secret);
    for (int32_t i = 0; i < n; i++) {
        if (listener_create("127.0.0.1", &r->listeners[i], &err) < 0) {
            (void)fprintf(stderr, "listener: %s\n", err.msg);
            abort();
        }
        r->peers[i] = r->listeners[i]->endpoint;
    }
}

void ranks_done(struct ranks *r)
{
    for (int32_t i = 0; i < r->n; i++)
        listener_free(r->listeners[i]);
}

struct world ranks_world(const struct ranks *r, int32_t rank, uint32_t epoch)
{
    struct world w = {.attempt = 77,
                      .epoch = epoch,
                      .rank = rank,
                      .n = r->n,
                      .peers = r->peers,
                      .encrypt = r->encrypt};
    memcpy(w.secret, r->secret, sizeof w.secret);
    return w;
}

void ranks_start(struct ranks *r, rank_fn *f, void *arg)
{
    (void)fflush(NULL);
    for (int32_t i = 0; i < r->n; i++) {
        r->pids[i] = fork();
        if (r->pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int32_t k = 0; k < r->n; k++)
                if (k != i)
                    listener_free(r->listeners[k]);
            int how = f(r, i, arg);
            (void)fflush(NULL);
            _exit(how);
        }
    }
    /* A rank that is dead must not seem to listen still. */
    for (int32_t i = 0; i < r->n; i++) {
        listener_free(r->listeners[i]);
        r->listeners[i] = NULL;
    }
}

struct coll *ranks_open(const struct ranks *r, int32_t rank, const struct mesh_opts *opts)
{
    struct as_err err = {0};
    struct world w = ranks_world(r, rank, 1);
    struct mesh_opts patient = opts ? *opts : (struct mesh_opts){0};
    struct coll *c = NULL;
    patient.join_ms = patient.join_ms ? patient.join_ms : PATIENCE_MS;
    patient.silence_ms = patient.silence_ms ? patient.silence_ms : PATIENCE_MS;
    if (coll_create(r->listeners[rank], &w, &patient, &c, NULL, &err) < 0)
        (void)fprintf(stderr, "rank %d: %s\n", (int)rank, err.msg);
    return c;
}

void *ranks_share(size_t bytes)
{
    void *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(b, MAP_FAILED);
    return b;
}

void ranks_await(const _Atomic int32_t *counter, int32_t at_least)
{
    int64_t until_ns = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (*counter < at_least && clock_mono_ns() < until_ns)
        clock_sleep_ms(1);
}

int ranks_wait(struct ranks *r, int32_t rank)
{
    int status = 0;
    if (waitpid(r->pids[rank], &status, 0) < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool ranks_run(int32_t n, rank_fn *f, void *arg)
{
    struct ranks r;
    bool well = true;
    ranks_init(&r, n);
    ranks_start(&r, f, arg);
    for (int32_t i = 0; i < n; i++) {
        int how = ranks_wait(&r, i);
        if (how != 0)
            (void)fprintf(stderr, "rank %d of %d ended with %d\n", (int)i, (int)n, how);
        well = well && how == 0;
    }
    ranks_done(&r);
    return well;
}
