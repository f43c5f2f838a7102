#include "tests/trial-runner/distributed/toy.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "tests/support/check_main.h"

struct toy_board *toy_board_create(void)
{
    void *b = mmap(NULL, sizeof(struct toy_board), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(b, MAP_FAILED);
    return b;
}

void toy_board_free(struct toy_board *b)
{
    (void)munmap(b, sizeof *b);
}

float toy_target(size_t i, uint32_t shard)
{
    return (float)(i % 17) * 0.37F - (float)((i + shard * 5) % 11) * 0.113F;
}

float toy_optimum(size_t i)
{
    double sum = 0;
    for (uint32_t s = 0; s < TOY_SHARDS; s++)
        sum += (double)toy_target(i, s);
    return (float)(sum / TOY_SHARDS);
}

double toy_distance(const float *x)
{
    double worst = 0;
    for (size_t i = 0; i < TOY_N; i++) {
        double d = fabs((double)x[i] - (double)toy_optimum(i));
        worst = d > worst || isnan(d) ? d : worst;
    }
    return worst;
}

bool toy_wait(const _Atomic int32_t *counter, int32_t at_least, int64_t patience_ms)
{
    int64_t until_ns = clock_mono_ns() + patience_ms * NS_PER_MS;
    while (*counter < at_least && clock_mono_ns() < until_ns)
        clock_sleep_ms(1);
    return *counter >= at_least;
}

void toy_meet(struct toy *t, int32_t nth)
{
    t->board->met++;
    (void)toy_wait(&t->board->met, nth * t->n_ranks, PATIENCE_MS);
}

static int64_t toy_step(const void *self)
{
    const struct toy *t = self;
    return t->epoch * t->epoch_steps + t->at;
}

static uint32_t toy_shards(const void *self, int64_t ahead)
{
    const struct toy *t = self;
    return t->epoch < TOY_EPOCHS && t->at + ahead < t->epoch_steps ? TOY_SHARDS : 0;
}

static float toy_share(const void *self, int64_t ahead, uint32_t shard)
{
    (void)self, (void)ahead, (void)shard;
    return 1.0F / TOY_SHARDS;
}

static double toy_rate(const void *self, int64_t step)
{
    (void)step;
    return (double)((const struct toy *)self)->rate;
}

static as_status toy_params_get(void *self, size_t first, size_t n, float *ret, struct as_err *err)
{
    (void)err;
    memcpy(ret, ((struct toy *)self)->x + first, n * sizeof *ret);
    return AS_OK;
}

static as_status toy_gradient(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                              float *to, struct as_err *err)
{
    struct toy *t = self;
    (void)lane, (void)err;
    if (t->before)
        t->before(t, toy_step(t) + ahead, shard);
    double loss = 0;
    for (size_t i = 0; i < TOY_N; i++) {
        to[i] = t->x[i] - toy_target(i, shard);
        loss += (double)to[i] * (double)to[i];
    }
    to[TOY_N] = (float)loss;
    t->board->done[t->rank] = (int32_t)(toy_step(t) + ahead) + 1;
    return AS_OK;
}

static as_status toy_gradient_taken(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                                    const struct replica_sink *sink, struct as_err *err)
{
    float g[TOY_N + 1];
    as_status st = toy_gradient(self, lane, ahead, shard, g, err);
    if (st == AS_OK)
        sink->take(sink->arg, 0, g, TOY_N + 1);
    return st;
}

static as_status toy_update(void *self, struct backend *lane, const float *sum, struct as_err *err)
{
    struct toy *t = self;
    (void)lane, (void)err;
    for (size_t i = 0; i < TOY_N; i++)
        t->x[i] -= t->rate * sum[i];
    t->loss += sum[TOY_N];
    t->at++;
    t->steps_done++;
    return AS_OK;
}

static as_status toy_local_step(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                                struct as_err *err)
{
    float g[TOY_N + 1];
    struct toy *t = self;
    as_status st = toy_gradient(self, lane, ahead, shard, g, err);
    for (size_t i = 0; i < TOY_N; i++)
        t->x[i] -= t->rate * g[i];
    return st;
}

static void toy_advance(void *self, int64_t steps)
{
    ((struct toy *)self)->at += steps;
}

static as_status toy_state_new(void *self, struct slot_state *ret, struct as_err *err)
{
    (void)self;
    *ret = (struct slot_state){.params = as_calloc(TOY_N, sizeof(float)),
                               .moment1 = as_calloc(TOY_N, sizeof(float))};
    return ret->params && ret->moment1 ? AS_OK : as_fail_nomem(err);
}

static as_status toy_state_get(void *self, struct slot_state *s, struct as_err *err)
{
    struct toy *t = self;
    (void)err;
    if (s->params)
        memcpy(s->params, t->x, sizeof t->x);
    if (s->moment1)
        memcpy(s->moment1, t->moment, sizeof t->moment);
    s->steps = t->steps_done;
    s->active = 1;
    s->loss_sum = t->loss;
    return AS_OK;
}

static as_status toy_state_put(void *self, const struct slot_state *s, struct as_err *err)
{
    struct toy *t = self;
    (void)err;
    if (s->params)
        memcpy(t->x, s->params, sizeof t->x);
    if (s->moment1)
        memcpy(t->moment, s->moment1, sizeof t->moment);
    t->steps_done = s->steps;
    t->loss = s->loss_sum;
    return AS_OK;
}

struct toy_updater {
    struct slice_updater updater; /* first */
    struct toy_board *board;
    float rate;
};

static as_status toy_slice(struct slice_updater *u, int64_t step, int32_t steps_done,
                           const struct replica_slice *s, struct as_err *err)
{
    (void)step, (void)steps_done, (void)err;
    const struct toy_updater *t = (const struct toy_updater *)u;
    t->board->pushes++;
    for (size_t i = 0; i < s->n; i++)
        s->params[i] -= t->rate * s->grads[i];
    return AS_OK;
}

static as_status toy_update_slice(void *self, struct backend *lane, int64_t step,
                                  int32_t steps_done, const struct replica_slice *s,
                                  struct as_err *err)
{
    (void)lane, (void)step, (void)steps_done, (void)err;
    for (size_t i = 0; i < s->n; i++)
        s->params[i] -= ((struct toy *)self)->rate * s->grads[i];
    return AS_OK;
}

static void toy_updater_free(struct slice_updater *u)
{
    free(u);
}

static as_status toy_updater_new(void *self, struct backend *lane, struct slice_updater **ret,
                                 struct as_err *err)
{
    struct toy_updater *u = as_calloc(1, sizeof *u);
    (void)lane;
    if (!u)
        return as_fail_nomem(err);
    u->updater = (struct slice_updater){toy_slice, toy_updater_free};
    u->board = ((struct toy *)self)->board;
    u->rate = ((struct toy *)self)->rate;
    *ret = &u->updater;
    return AS_OK;
}

static const struct replica_ops toy_ops = {.step = toy_step,
                                           .shards = toy_shards,
                                           .share = toy_share,
                                           .rate = toy_rate,
                                           .params_get = toy_params_get,
                                           .gradient = toy_gradient,
                                           .gradient_taken = toy_gradient_taken,
                                           .update = toy_update,
                                           .local_step = toy_local_step,
                                           .advance = toy_advance,
                                           .update_slice = toy_update_slice,
                                           .state_new = toy_state_new,
                                           .state_get = toy_state_get,
                                           .state_put = toy_state_put,
                                           .updater_new = toy_updater_new};

void toy_init(struct toy *t, int32_t rank, int32_t n_ranks, struct toy_board *board)
{
    *t = (struct toy){
        .rank = rank, .n_ranks = n_ranks, .board = board, .rate = 0.2F, .epoch_steps = TOY_STEPS};
    t->tensor = (struct replica_tensor){0, TOY_N, 1};
    t->replica = (struct replica){.ops = &toy_ops,
                                  .self = t,
                                  .n_params = TOY_N,
                                  .n_numbers = TOY_N + 1,
                                  .max_shards = TOY_SHARDS,
                                  .tensors = &t->tensor,
                                  .n_tensors = 1};
}

static int train_with(struct toy *t, struct strategy *s, struct coll *c)
{
    int32_t rank = t->rank;
    struct as_err err = {0};
    struct toy_board *b = t->board;
    for (t->epoch = 0; t->epoch < TOY_EPOCHS; t->epoch++)
        for (t->at = 0; t->at < t->epoch_steps;) {
            unsigned agreed = 0;
            as_status st = s->ops->run(s->self, c, NULL, 0, &agreed, &err);
            if (st == AS_E_UNAVAILABLE) {
                b->ends[rank] = 2;
                return 0;
            }
            EXPECT(st == AS_OK);
            b->steps[rank] = (int32_t)toy_step(t);
        }
    memcpy(b->x[rank], t->x, sizeof t->x);
    b->ends[rank] = 1;
    return 0;
}

int toy_train(struct toy *t, const struct ranks *r)
{
    int32_t rank = t->rank;
    struct as_err err = {0};
    struct strategy s = {0};
    struct strategy_setup setup = {.spec = &t->spec, .replica = &t->replica, .seed = 12};
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    EXPECT(c);
    EXPECT(strategy_init(&s, &setup, &err) == AS_OK);
    int how = train_with(t, &s, c);
    /* Nobody leaves before all have come to their ends: a rank that leaves is a lost one. */
    int64_t until_ns = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    for (int32_t i = 0; how == 0 && i < r->n; i++)
        while (!t->board->ends[i] && !t->board->dead[i] && clock_mono_ns() < until_ns)
            clock_sleep_ms(1);
    strategy_done(&s);
    return how;
}

int toy_run_rank(const struct ranks *r, int32_t rank, void *plan)
{
    const struct toy_plan *p = plan;
    static struct toy t;
    toy_init(&t, rank, r->n, p->board);
    t.spec.distributed = p->spec;
    t.before = p->before;
    return toy_train(&t, r);
}

struct toy_board *toy_run_equal(int32_t n, struct distributed_spec spec,
                                void (*before)(struct toy *t, int64_t step, uint32_t shard))
{
    struct toy_plan p = {.spec = spec, .board = toy_board_create(), .before = before};
    ck_assert(ranks_run(n, toy_run_rank, &p));
    for (int32_t r = 0; r < n; r++) {
        ck_assert_int_eq(p.board->ends[r], 1);
        ck_assert(memcmp(p.board->x[r], p.board->x[0], sizeof p.board->x[0]) == 0);
    }
    return p.board;
}
