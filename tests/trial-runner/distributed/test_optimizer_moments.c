/* Worlds that are cut at every point of their meetings and steps, and what is left of the divided
 * moments.
 *
 * The ranks are threads that run optimizer_moments.c itself. One of them runs at a time: each
 * operation of the collective is a point where the stage, which draws from a seed, decides who goes
 * on, and when the world is over. So a rank may be through with a meeting while what it has sent to
 * another is still on its way, and lost: the connections of real processes cannot be cut at a
 * chosen point.
 *
 * Each history is checked to the bit: weights after every step, moments whenever they are
 * gathered. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/support/check_main.h"
#include "trial-runner/distributed/optimizer_moments.h"

enum {
    N = 23, /* parameters */
    STEPS = 200,
    ACTORS = 200, /* that ever live in a history */
    ALIVE = 6,    /* at a time */
    MESSAGES = 256,
    MESSAGE_BYTES = 256
};

/* ---- the training that each rank must see ---- */

struct numbers {
    float params[N], moment1[N], moment2[N];
};

static struct numbers truth[STEPS + 1]; /* by position */

static float gradient(int64_t step, size_t i)
{
    return (float)((size_t)(step * 37 + 11) * (i + 3) % 101) / 101.0F - 0.4F;
}

static as_status update_slice(void *self, struct backend *lane, int64_t step, int32_t steps_done,
                              const struct replica_slice *s, struct as_err *err)
{
    (void)self, (void)lane, (void)err;
    ck_assert_int_eq(step, steps_done);
    for (size_t i = 0; i < s->n; i++) {
        s->moment1[i] = 0.9F * s->moment1[i] + s->grads[i] + 0.01F * s->params[i];
        s->moment2[i] = 0.5F * s->moment2[i] + s->grads[i] * s->grads[i];
        s->params[i] -= 0.1F * s->moment1[i] / (1 + s->moment2[i]);
    }
    return AS_OK;
}

static void compute_truth(void)
{
    for (size_t i = 0; i < N; i++)
        truth[0].params[i] = (float)i;
    for (int64_t step = 0; step < STEPS; step++) {
        float grads[N];
        struct numbers *now = &truth[step + 1];
        *now = truth[step];
        for (size_t i = 0; i < N; i++)
            grads[i] = gradient(step, i);
        const struct replica_slice all = {0, N, now->params, grads, now->moment1, now->moment2};
        (void)update_slice(NULL, NULL, step, (int32_t)step, &all, NULL);
    }
}

/* ---- the stage ---- */

enum op_kind { OP_NONE, OP_WORLD, OP_ALL, OP_SEND, OP_RECEIVE, OP_END };

struct op {
    enum op_kind kind;
    struct coll_id id;
    int32_t peer;
    const void *from;
    void *to;
    size_t n, item_bytes; /* OP_ALL: items, of which a slice is this rank's; else bytes in n */
};

struct message {
    int32_t from, to;
    struct coll_id id;
    size_t bytes;
    char data[MESSAGE_BYTES];
};

/* What all ranks of a world have given to an operation of all. */
struct gathering {
    struct coll_id id;
    int32_t given, taken;
    char data[16384];
};

struct stage;

struct coll {
    struct stage *stage;
    int32_t rank, size;
};

struct actor {
    struct stage *stage;
    pthread_t thread;
    sem_t go;
    struct op op; /* what it waits for */
    as_status result;
    bool started, given, dies;
    struct coll coll;
    struct replica replica;
    struct train_spec spec;
    struct moments *moments;
    int64_t step;
    float params[N], sum[N];
    char failure[240];
};

struct stage {
    struct rng rng;
    sem_t back; /* an actor has come to an operation */
    int copies;
    struct actor actors[ACTORS];
    size_t n_actors;
    size_t members[ALIVE]; /* of the current world, by rank */
    int32_t size;
    struct message messages[MESSAGES];
    size_t n_messages;
    struct gathering gathering;
    int32_t through; /* ranks of the current world whose meeting is over */
    /* The ranks of the last world in which every rank had its slices. */
    size_t base[ALIVE];
    bool lost[ALIVE];
    int32_t n_base;
    bool is_base;  /* it is the current one */
    int64_t saved; /* the position of the last checkpoint */
    int64_t top;   /* the highest position */
    struct counts {
        size_t worlds;
        size_t unmet;      /* were over before any rank was through with their meeting */
        size_t half_met;   /* some ranks were through, and others not */
        size_t moving;     /* some rank waited for moments */
        size_t deaths;     /* of ranks of a base */
        size_t others;     /* of ranks that had no slices yet */
        size_t fell_back;  /* the only rank with a step's result was lost */
        size_t most_bytes; /* of moments on a rank when a world was over */
    } counts;
};

static as_status await(struct actor *a, struct op op)
{
    a->op = op;
    (void)sem_post(&a->stage->back);
    (void)sem_wait(&a->go);
    a->op.kind = OP_NONE;
    return a->result;
}

static struct actor *actor_of(struct coll *c)
{
    return &c->stage->actors[c->stage->members[c->rank]];
}

static as_status operate(struct coll *c, struct op op, struct as_err *err)
{
    as_status st = await(actor_of(c), op);
    return st < 0 ? as_fail(err, st, "the epoch is over") : AS_OK;
}

int32_t coll_rank(const struct coll *c)
{
    return c->rank;
}

int32_t coll_size(const struct coll *c)
{
    return c->size;
}

as_status coll_allgather(struct coll *c, struct coll_id id, void *out, size_t n, size_t item_bytes,
                         struct as_err *err)
{
    struct op op = {.kind = OP_ALL, .id = id, .to = out, .n = n, .item_bytes = item_bytes};
    return operate(c, op, err);
}

as_status coll_barrier(struct coll *c, struct coll_id id, struct as_err *err)
{
    return coll_allgather(c, id, NULL, 0, 1, err);
}

as_status coll_send(struct coll *c, struct coll_id id, int32_t to, const void *data, size_t bytes,
                    struct as_err *err)
{
    struct op op = {.kind = OP_SEND, .id = id, .peer = to, .from = data, .n = bytes};
    return operate(c, op, err);
}

as_status coll_receive(struct coll *c, struct coll_id id, int32_t from, void *data, size_t bytes,
                       struct as_err *err)
{
    struct op op = {.kind = OP_RECEIVE, .id = id, .peer = from, .to = data, .n = bytes};
    return operate(c, op, err);
}

static void expect_id(const struct coll_id *a, const struct coll_id *b)
{
    ck_assert_msg(a->tag == b->tag && a->step == b->step,
                  "a rank is at tag %u of %llu, not %u of %llu", (unsigned)a->tag,
                  (unsigned long long)a->step, (unsigned)b->tag, (unsigned long long)b->step);
}

/* A rank gives its slice as soon as it has come; that alone does not wake it. */
static void give(struct stage *s, struct actor *a)
{
    struct gathering *g = &s->gathering;
    size_t first, end, bytes = a->op.item_bytes;
    if (g->given == 0)
        g->id = a->op.id;
    expect_id(&a->op.id, &g->id);
    ck_assert_uint_le(a->op.n * bytes, sizeof g->data);
    coll_slice(a->op.n, s->size, a->coll.rank, &first, &end);
    if (a->op.n > 0)
        memcpy(g->data + first * bytes, (char *)a->op.to + first * bytes, (end - first) * bytes);
    g->given++;
    a->given = true;
}

static struct message *message_to(struct stage *s, const struct actor *a)
{
    for (size_t i = 0; i < s->n_messages; i++)
        if (s->messages[i].to == a->coll.rank && s->messages[i].from == a->op.peer)
            return &s->messages[i];
    return NULL;
}

static bool may_go_on(struct stage *s, const struct actor *a)
{
    if (a->op.kind == OP_ALL) /* nobody begins another one before all have taken this one */
        return a->given && s->gathering.given == s->size;
    return a->op.kind == OP_SEND || (a->op.kind == OP_RECEIVE && message_to(s, a));
}

static void put_message(struct stage *s, const struct actor *a)
{
    ck_assert_uint_lt(s->n_messages, MESSAGES);
    ck_assert_uint_le(a->op.n, MESSAGE_BYTES);
    struct message *m = &s->messages[s->n_messages++];
    *m = (struct message){.from = a->coll.rank, .to = a->op.peer, .id = a->op.id, .bytes = a->op.n};
    memcpy(m->data, a->op.from, a->op.n);
}

static void take_message(struct stage *s, const struct actor *a)
{
    struct message *m = message_to(s, a);
    expect_id(&a->op.id, &m->id);
    ck_assert_uint_eq(a->op.n, m->bytes);
    memcpy(a->op.to, m->data, m->bytes);
    s->n_messages--;
    memmove(m, m + 1, (size_t)(s->messages + s->n_messages - m) * sizeof *m);
}

static void take_gathered(struct stage *s, struct actor *a)
{
    if (a->op.n > 0)
        memcpy(a->op.to, s->gathering.data, a->op.n * a->op.item_bytes);
    a->given = false;
    if (++s->gathering.taken == s->size)
        s->gathering.given = s->gathering.taken = 0;
}

/* Runs the rank until its next operation. */
static void go_on(struct stage *s, struct actor *a, as_status result)
{
    a->result = result;
    (void)sem_post(&a->go);
    (void)sem_wait(&s->back);
    ck_assert_msg(a->failure[0] == '\0', "world %zu: %s", s->counts.worlds, a->failure);
}

static void complete(struct stage *s, struct actor *a)
{
    if (a->op.kind == OP_SEND)
        put_message(s, a);
    else if (a->op.kind == OP_RECEIVE)
        take_message(s, a);
    else
        take_gathered(s, a);
    go_on(s, a, AS_OK);
}

/* ---- a rank ---- */

enum { TAG_POSITIONS = 1, TAG_STATE, TAG_SUM };

static int64_t replica_step(const void *self)
{
    return ((const struct actor *)self)->step;
}

static as_status params_get(void *self, size_t first, size_t n, float *ret, struct as_err *err)
{
    (void)err;
    memcpy(ret, ((struct actor *)self)->params + first, n * sizeof *ret);
    return AS_OK;
}

static as_status update_with(void *self, struct backend *lane, float *sum,
                             as_status (*step)(void *arg, const float *grads, float *params,
                                               struct as_err *err),
                             void *arg, struct as_err *err)
{
    struct actor *a = self;
    float params[N];
    (void)lane;
    memcpy(params, a->params, sizeof params);
    as_status st = step(arg, sum, params, err);
    if (st < 0)
        return st;
    memcpy(a->params, params, sizeof params);
    a->step++;
    return AS_OK;
}

static const struct replica_ops replica_ops = {.step = replica_step,
                                               .params_get = params_get,
                                               .update_slice = update_slice,
                                               .update_with = update_with};

/* What a rank gets that is behind. */
struct state {
    int64_t step;
    float params[N];
};

static as_status transfer(struct meeting *m, int32_t from, int32_t to, struct as_err *err)
{
    struct coll_id id = {.tag = TAG_STATE, .step = (uint64_t)to};
    struct actor *a = actor_of(m->coll);
    struct state state = {.step = a->step};
    memcpy(state.params, a->params, sizeof state.params);
    if (coll_rank(m->coll) == from)
        return coll_send(m->coll, id, to, &state, sizeof state, err);
    if (coll_rank(m->coll) != to)
        return AS_OK;
    as_status st = coll_receive(m->coll, id, from, &state, sizeof state, err);
    if (st < 0)
        return st;
    a->step = state.step;
    memcpy(a->params, state.params, sizeof state.params);
    moments_restored(a->moments, false);
    return AS_OK;
}

static bool is_true(struct actor *a, const char *what, const float *values, const float *right)
{
    if (memcmp(values, right, N * sizeof *values) == 0)
        return true;
    (void)snprintf(a->failure, sizeof a->failure, "%s differ at position %lld", what,
                   (long long)a->step);
    return false;
}

static as_status meet(struct actor *a, struct as_err *err)
{
    int64_t steps[ALIVE];
    steps[a->coll.rank] = a->step;
    as_status st = coll_allgather(&a->coll, (struct coll_id){.tag = TAG_POSITIONS}, steps,
                                  (size_t)a->coll.size, sizeof *steps, err);
    struct meeting meeting = {.coll = &a->coll, .steps = steps, .transfer = transfer};
    if (st == AS_OK)
        st = moments_meet(a->moments, &meeting, err);
    if (st == AS_OK)
        a->stage->through++;
    return st;
}

static as_status gather(struct actor *a, struct as_err *err)
{
    struct strategy_part parts[MOMENTS_PARTS];
    as_status st = moments_gather(a->moments, &a->coll, err);
    if (st < 0 || a->coll.rank != 0)
        return st;
    ck_assert_uint_eq(moments_parts(a->moments, parts), 2);
    if (is_true(a, "moments", parts[0].values, truth[a->step].moment1) &&
        is_true(a, "second moments", parts[1].values, truth[a->step].moment2))
        a->stage->saved = a->step;
    return AS_OK;
}

static as_status train(struct actor *a, struct as_err *err)
{
    as_status st = AS_OK;
    while (st == AS_OK && a->step < STEPS && !a->failure[0]) {
        int64_t step = a->step;
        struct coll_id id = {.tag = TAG_SUM, .step = (uint64_t)step};
        memset(a->sum, 0, sizeof a->sum); /* on its way it is undefined */
        st = coll_barrier(&a->coll, id, err);
        for (size_t i = 0; i < N; i++)
            a->sum[i] = gradient(step, i);
        if (st == AS_OK)
            st = moments_update(a->moments, &a->coll, NULL, a->sum, err);
        if (st == AS_OK && is_true(a, "weights", a->params, truth[a->step].params) &&
            a->step % 3 == 0)
            st = gather(a, err);
    }
    return st;
}

static void *rank_main(void *arg)
{
    struct actor *a = arg;
    for (;;) {
        struct as_err err = {0};
        (void)await(a, (struct op){.kind = OP_WORLD});
        if (a->dies)
            break;
        as_status st = meet(a, &err);
        if (st == AS_OK)
            st = train(a, &err);
        if (st < 0 && st != AS_E_UNAVAILABLE)
            (void)snprintf(a->failure, sizeof a->failure, "%s", err.msg);
        if (a->dies || a->failure[0] || a->step == STEPS)
            break;
    }
    a->op.kind = OP_END;
    (void)sem_post(&a->stage->back);
    return NULL;
}

/* ---- histories ---- */

static bool lives(const struct actor *a)
{
    return a->started && a->op.kind != OP_END;
}

static size_t count_alive(const struct stage *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_actors; i++)
        n += lives(&s->actors[i]);
    return n;
}

/* A new rank begins at the start, or with a checkpoint. */
static void add(struct stage *s, bool from_checkpoint)
{
    struct as_err err;
    struct actor *a = &s->actors[s->n_actors++];
    ck_assert_uint_le(s->n_actors, ACTORS);
    *a = (struct actor){.stage = s, .replica = {.ops = &replica_ops, .n_params = N}};
    a->replica.self = a;
    a->replica.has_moment2 = true;
    a->spec.distributed.state_copies = s->copies;
    struct strategy_setup setup = {.spec = &a->spec, .replica = &a->replica};
    ck_ok(moments_create(&setup, &a->moments, &err), err);
    if (from_checkpoint) {
        struct strategy_part parts[MOMENTS_PARTS];
        a->step = s->saved;
        ck_assert_uint_eq(moments_parts(a->moments, parts), 2);
        memcpy(parts[0].values, truth[a->step].moment1, sizeof a->params);
        memcpy(parts[1].values, truth[a->step].moment2, sizeof a->params);
        moments_restored(a->moments, true);
    }
    memcpy(a->params, truth[a->step].params, sizeof a->params);
    (void)sem_init(&a->go, 0, 0);
    a->started = true;
    ck_assert_int_eq(pthread_create(&a->thread, NULL, rank_main, a), 0);
    (void)sem_wait(&s->back);
}

/* May it die, by the promise of optimizer_moments.h? */
static bool may_die(const struct stage *s, size_t who)
{
    if (count_alive(s) < 2)
        return false;
    for (int32_t i = 0; i < s->n_base; i++)
        if (s->base[i] == who)
            return s->copies > 1 && s->n_base > 1 && !s->lost[(i + 1) % s->n_base] &&
                   !s->lost[(i + s->n_base - 1) % s->n_base];
    return true;
}

static void end(struct stage *s, struct actor *a)
{
    a->dies = true;
    go_on(s, a, AS_E_UNAVAILABLE);
    ck_assert_int_eq(a->op.kind, OP_END);
    (void)pthread_join(a->thread, NULL);
    moments_free(a->moments);
    (void)sem_destroy(&a->go);
}

static void kill_some(struct stage *s)
{
    for (size_t tries = rng_below(&s->rng, 4); tries > 0; tries--) {
        size_t who = s->members[rng_below(&s->rng, (uint64_t)s->size)];
        if (!lives(&s->actors[who]) || !may_die(s, who))
            continue;
        bool is_of_base = false;
        for (int32_t i = 0; i < s->n_base; i++)
            if (s->base[i] == who)
                is_of_base = s->lost[i] = true;
        end(s, &s->actors[who]);
        s->counts.deaths += is_of_base;
        s->counts.others += !is_of_base;
    }
}

static void begin_world(struct stage *s)
{
    int64_t top = 0;
    s->size = 0;
    s->n_messages = 0;
    s->gathering.given = s->gathering.taken = s->through = 0;
    s->is_base = false;
    s->counts.worlds++;
    for (size_t i = 0; i < s->n_actors; i++)
        if (lives(&s->actors[i])) {
            s->members[s->size++] = i;
            top = s->actors[i].step > top ? s->actors[i].step : top;
        }
    s->counts.fell_back += top < s->top;
    s->top = top;
    for (int32_t r = 0; r < s->size; r++) {
        struct actor *a = &s->actors[s->members[r]];
        a->coll = (struct coll){s, r, s->size};
        a->given = false;
    }
    for (int32_t r = 0; r < s->size; r++)
        go_on(s, &s->actors[s->members[r]], AS_OK);
}

/* All ranks have their slices of this world as soon as one is through with the meeting. */
static void note_base(struct stage *s)
{
    if (s->through == 0 || s->is_base)
        return;
    s->is_base = true;
    s->n_base = s->size;
    memcpy(s->base, s->members, sizeof s->base);
    memset(s->lost, 0, sizeof s->lost);
}

/* A rank that may go on; the favourite goes on while it can. -1: they wait for each other. */
static int32_t next_rank(struct stage *s, int32_t favourite)
{
    int32_t able[ALIVE], n = 0;
    for (int32_t r = 0; r < s->size; r++) {
        struct actor *a = &s->actors[s->members[r]];
        if (a->op.kind == OP_ALL && !a->given && s->gathering.taken == 0)
            give(s, a);
    }
    for (int32_t r = 0; r < s->size; r++)
        if (may_go_on(s, &s->actors[s->members[r]])) {
            if (r == favourite)
                return r;
            able[n++] = r;
        }
    return n > 0 ? able[rng_below(&s->rng, (uint64_t)n)] : -1;
}

static void count_cut(struct stage *s)
{
    bool moving = false;
    for (int32_t r = 0; r < s->size; r++) {
        const struct op *op = &s->actors[s->members[r]].op;
        moving = moving || (op->kind == OP_RECEIVE && op->id.tag != TAG_STATE);
    }
    s->counts.moving += moving;
    s->counts.unmet += s->through == 0;
    s->counts.half_met += s->through > 0 && s->through < s->size;
}

static void measure(struct stage *s)
{
    for (int32_t r = 0; r < s->size; r++) {
        struct actor *a = &s->actors[s->members[r]];
        size_t bytes = lives(a) ? moments_bytes(a->moments) : 0;
        s->counts.most_bytes = bytes > s->counts.most_bytes ? bytes : s->counts.most_bytes;
    }
}

/* When a world is over: after some operations; or that many after the first rank is through with
 * the meeting, or has done a step that others have not. */
enum cut { CUT_AFTER_SOME, CUT_AFTER_MEETING, CUT_AFTER_STEP, CUTS };

static bool has_come_to(const struct stage *s, enum cut cut, int64_t top)
{
    return cut == CUT_AFTER_SOME || (cut == CUT_AFTER_MEETING && s->through > 0) ||
           (cut == CUT_AFTER_STEP && s->top > top);
}

static void run_world(struct stage *s)
{
    static const uint64_t spans[CUTS] = {60, 4, 4};
    enum cut cut = (enum cut)rng_below(&s->rng, CUTS);
    uint64_t left = rng_below(&s->rng, spans[cut]);
    int32_t favourite = (int32_t)rng_below(&s->rng, (uint64_t)s->size + 1);
    begin_world(s);
    for (int64_t top = s->top; s->top < STEPS - 2;) {
        if (has_come_to(s, cut, top) && left-- == 0)
            break;
        int32_t r = next_rank(s, favourite);
        ck_assert_int_ge(r, 0);
        struct actor *a = &s->actors[s->members[r]];
        complete(s, a);
        s->top = a->step > s->top ? a->step : s->top;
        note_base(s);
    }
    count_cut(s);
    kill_some(s); /* they have no part in how the others hear that the epoch is over */
    for (int32_t r = 0; r < s->size; r++)
        if (lives(&s->actors[s->members[r]]))
            go_on(s, &s->actors[s->members[r]], AS_E_UNAVAILABLE);
    measure(s);
}

/* With one copy nobody dies who has slices: nothing happens any more when there is no place for
 * another rank. */
static bool is_over(const struct stage *s)
{
    return s->top >= STEPS - 2 || s->n_actors + 2 >= ACTORS ||
           (s->copies == 1 && s->n_base == ALIVE);
}

static void run_history(struct stage *s, uint64_t seed, int copies)
{
    rng_init(&s->rng, seed, 0);
    (void)sem_init(&s->back, 0, 0);
    s->copies = copies;
    for (size_t n = 1 + rng_below(&s->rng, 5); n > 0; n--)
        add(s, false);
    while (!is_over(s)) {
        run_world(s);
        for (size_t n = rng_below(&s->rng, s->copies == 1 ? 2 : 3); n > 0 && count_alive(s) < ALIVE;
             n--)
            add(s, rng_below(&s->rng, 2));
    }
    for (size_t i = 0; i < s->n_actors; i++)
        if (lives(&s->actors[i]))
            end(s, &s->actors[i]);
    (void)sem_destroy(&s->back);
}

static struct counts run_all(int copies, uint64_t histories)
{
    struct counts n = {0};
    for (uint64_t seed = 0; seed < histories; seed++) {
        struct stage *s = calloc(1, sizeof *s);
        ck_assert_ptr_nonnull(s);
        run_history(s, seed, copies);
        n.worlds += s->counts.worlds;
        n.unmet += s->counts.unmet;
        n.half_met += s->counts.half_met;
        n.moving += s->counts.moving;
        n.deaths += s->counts.deaths;
        n.others += s->counts.others;
        n.fell_back += s->counts.fell_back;
        n.most_bytes = s->counts.most_bytes > n.most_bytes ? s->counts.most_bytes : n.most_bytes;
        free(s);
    }
    (void)fprintf(stderr,
                  "%d copies: %zu worlds, %zu not met, %zu met by some, %zu while moments moved; "
                  "%zu and %zu deaths, %zu steps fallen back; at most %zu bytes of %zu\n",
                  copies, n.worlds, n.unmet, n.half_met, n.moving, n.deaths, n.others, n.fell_back,
                  n.most_bytes, 2 * N * sizeof(float));
    ck_assert_uint_le(n.most_bytes, 2 * 2 * N * sizeof(float));
    /* The histories have what they are about. */
    ck_assert_uint_gt(n.unmet, 50);
    ck_assert_uint_gt(n.half_met, 50);
    ck_assert_uint_gt(n.moving, 30);
    ck_assert_uint_gt(n.others, 10);
    return n;
}

static int shown; /* standard output, while it is muted */

/* optimizer_moments.c prints what a rank holds after each meeting. */
static void setup(void)
{
    (void)fflush(stdout);
    shown = dup(STDOUT_FILENO);
    ck_assert_int_ge(shown, 0);
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stdout));
    compute_truth();
}

static void teardown(void)
{
    (void)fflush(stdout);
    (void)dup2(shown, STDOUT_FILENO);
    (void)close(shown);
}

/* Neighbours never die both before all have their slices anew; anything else happens. */
START_TEST(two_copies_survive_deaths_and_cut_meetings)
{
    struct counts n = run_all(2, 8);
    ck_assert_uint_gt(n.deaths, 300);
    ck_assert_uint_gt(n.fell_back, 20);
}
END_TEST

/* Only ranks die that have no slice yet. */
START_TEST(one_copy_survives_cut_meetings)
{
    struct counts n = run_all(1, 100);
    ck_assert_uint_eq(n.deaths, 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("moments");
    TCase *t = tcase_create("moments");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, two_copies_survive_deaths_and_cut_meetings);
    tcase_add_test(t, one_copy_survives_cut_meetings);
    suite_add_tcase(s, t);
    return s;
}
