#include "tests/scheduler/commit/members.h"

#include <pthread.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void set_done(struct commit_member *m)
{
    struct member *x = (struct member *)(void *)m;
    pthread_mutex_lock(&mu);
    ck_assert(!x->is_done);
    x->is_done = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mu);
}

static struct member *make(commit_kind kind, struct attempt_ref ref)
{
    struct member *x = as_calloc(1, sizeof *x);
    ck_assert_ptr_nonnull(x);
    x->m.kind = kind;
    x->m.ref = ref;
    x->m.ref.sweep = arena_strdup(&x->a, ref.sweep);
    x->m.arena = &x->a;
    x->m.done = set_done;
    return x;
}

struct member *member_record(struct attempt_ref ref, int64_t step, double loss)
{
    struct member *x = make(COMMIT_RECORD, ref);
    x->points[0] = (struct measurement){.step = step, .metric = "loss", .value = loss};
    x->m.in.report = (struct attempt_report){.points = x->points, .n_points = 1};
    return x;
}

struct member *member_end(struct attempt_ref ref, attempt_outcome outcome)
{
    struct member *x = make(COMMIT_END, ref);
    x->m.in.end = (struct completion){.outcome = outcome};
    return x;
}

struct member *member_claim(const char *runner, int64_t epoch, const char *claim_id, int64_t max)
{
    struct member *x = make(COMMIT_CLAIM, (struct attempt_ref){.sweep = "-"});
    struct claim_request *req = arena_alloc(&x->a, 1, sizeof *req);
    ck_assert_ptr_nonnull(req);
    *req = (struct claim_request){.runner = arena_strdup(&x->a, runner),
                                  .epoch = epoch,
                                  .claim_id = arena_strdup(&x->a, claim_id),
                                  .max_trials = max};
    x->m.in.claim = req;
    return x;
}

void member_final(struct member *x, double loss)
{
    x->points[0] = (struct measurement){.step = -1, .metric = "loss", .value = loss};
    x->m.in.end.metrics = x->points;
    x->m.in.end.n_metrics = 1;
}

void member_free(struct member *x)
{
    arena_done(&x->a);
    free(x);
}

as_status members_submit(struct committer *c, struct member **list, size_t n, struct as_err *err)
{
    struct commit_member *m[512];
    ck_assert_uint_le(n, AS_ARRAY_LEN(m));
    for (size_t i = 0; i < n; i++) {
        list[i]->is_done = false;
        m[i] = &list[i]->m;
    }
    return committer_submit(c, m, n, err);
}

void members_wait(struct member **list, size_t n)
{
    pthread_mutex_lock(&mu);
    for (size_t i = 0; i < n; i++)
        while (!list[i]->is_done)
            pthread_cond_wait(&changed, &mu);
    pthread_mutex_unlock(&mu);
}

bool member_is_done(struct member *x)
{
    pthread_mutex_lock(&mu);
    bool is_done = x->is_done;
    pthread_mutex_unlock(&mu);
    return is_done;
}

void members_commit(struct committer *c, struct member **list, size_t n)
{
    struct as_err err = {0};
    as_status st = members_submit(c, list, n, &err);
    ck_assert_msg(st == AS_OK, "submit: %s", err.msg);
    members_wait(list, n);
}
