#include "trial-runner/train/shared_step.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a shard contributes, and what their sum is: numbers that follow each other.
 *   gradients [n_params]   running statistics [n_state]   loss   wish to stop */
struct layout {
    size_t params, state, loss, stop, n;
};

struct shared_step {
    struct team *team;
    struct lockstep *ls;
    struct layout at;
    uint32_t max_shards;
    float **partials;       /* [max_shards] of at.n numbers; allocated when first needed */
    bool *has;              /* [max_shards]: computed for the step at `position` */
    const void **own;       /* [max_shards]: this rank's run, for the sum */
    float *sum;             /* [at.n] */
    float *state;           /* [n_state]: the statistics before the step */
    int64_t position;       /* the step that `has` is about */
    struct shard_run *runs; /* by rank */
};

/* Tags of the operations; a step's are told apart by the step. */
enum { TAG_SUM = 1, TAG_POSITIONS, TAG_HEAD, TAG_BODY, TAG_FINISH };

static struct member *member_of(const struct shared_step *s)
{
    return s->ls->member[0];
}

/* Optimizer steps that are done. */
static int64_t position_of(const struct member *m)
{
    size_t per_batch = m->layout.per_batch;
    return m->epoch * m->layout.steps_per_epoch + (int64_t)((m->at + per_batch - 1) / per_batch);
}

void shared_step_free(struct shared_step *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; s->partials && i < s->max_shards; i++)
        free(s->partials[i]);
    free(s->partials);
    free(s->has);
    free(s->own);
    free(s->sum);
    free(s->state);
    free(s->runs);
    free(s);
}

as_status shared_step_create(struct team *team, struct lockstep *ls, struct shared_step **ret,
                             struct as_err *err)
{
    AS_AUTO(shared_step_freep) struct shared_step *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    const struct member *m = ls->member[0];
    const struct net_plan *plan = m->plan;
    *s = (struct shared_step){.team = team, .ls = ls, .position = -1};
    s->at = (struct layout){.params = 0,
                            .state = plan->n_params,
                            .loss = plan->n_params + plan->n_state,
                            .stop = plan->n_params + plan->n_state + 1,
                            .n = plan->n_params + plan->n_state + 2};
    s->max_shards = (uint32_t)m->layout.per_batch;
    s->partials = as_calloc(s->max_shards, sizeof *s->partials);
    s->has = as_calloc(s->max_shards, sizeof *s->has);
    s->own = as_calloc(s->max_shards, sizeof *s->own);
    s->sum = as_calloc(s->at.n, sizeof *s->sum);
    s->state = as_calloc(plan->n_state, sizeof *s->state);
    s->runs = as_calloc(WORLD_MAX_RANKS, sizeof *s->runs);
    if (!s->partials || !s->has || !s->own || !s->sum || !s->state || !s->runs)
        return as_fail_nomem(err);
    *ret = as_steal(s);
    return AS_OK;
}

bool shared_step_leads(const struct shared_step *s)
{
    const struct coll *c = team_coll(s->team);
    return c && coll_rank(c) == 0;
}

/* ---- catching up ---- */

/* The head of a state on its way: what the receiver needs to take the rest. */
struct state_head {
    int64_t epoch, at;
    int64_t report_bytes;
    int32_t steps, active;
    float loss_sum;
};

static as_status send_state(struct shared_step *s, struct coll *c, int32_t to, struct as_err *err)
{
    struct member *m = member_of(s);
    AS_AUTO(slot_state_done) struct slot_state state = {0};
    struct slot place = lockstep_slot(s->ls, 0);
    as_status st = slot_state_get(&place, &state, err);
    if (st < 0)
        return st;
    struct state_head h = {.epoch = m->epoch,
                           .at = (int64_t)m->at,
                           .report_bytes = (int64_t)m->last_report.len,
                           .steps = state.steps,
                           .active = state.active,
                           .loss_sum = state.loss_sum};
    struct coll_id head = {.tag = TAG_HEAD, .what = "state"}, body = {.tag = TAG_BODY};
    struct slot_part parts[SLOT_PARTS];
    slot_state_parts(&place, &state, parts);
    if ((st = coll_send(c, head, to, &h, sizeof h, err)) < 0 ||
        (st = coll_send(c, body, to, str_cstr(&m->last_report), m->last_report.len, err)) < 0)
        return st;
    for (size_t i = 0; i < SLOT_PARTS; i++)
        if (parts[i].values &&
            (st = coll_send(c, body, to, parts[i].values, parts[i].n * sizeof(float), err)) < 0)
            return st;
    return AS_OK;
}

static as_status receive_parts(struct shared_step *s, struct coll *c, int32_t from,
                               const struct state_head *h, struct slot_state *state,
                               struct str *report, struct as_err *err)
{
    struct coll_id body = {.tag = TAG_BODY, .what = "state"};
    struct slot place = lockstep_slot(s->ls, 0);
    struct slot_part parts[SLOT_PARTS];
    AS_AUTO(as_freep) char *text = as_calloc((size_t)h->report_bytes + 1, 1);
    if (!text)
        return as_fail_nomem(err);
    as_status st = coll_receive(c, body, from, text, (size_t)h->report_bytes, err);
    slot_state_parts(&place, state, parts);
    for (size_t i = 0; st == AS_OK && i < SLOT_PARTS; i++)
        if (parts[i].values)
            st = coll_receive(c, body, from, parts[i].values, parts[i].n * sizeof(float), err);
    if (st < 0)
        return st;
    str_clear(report);
    str_puts(report, text);
    return str_check(report, err);
}

/* Takes the state of rank `from`. Nothing of this rank changes before all of it has arrived. */
static as_status receive_state(struct shared_step *s, struct coll *c, int32_t from,
                               struct as_err *err)
{
    struct member *m = member_of(s);
    AS_AUTO(slot_state_done) struct slot_state state = {0};
    AS_AUTO(str_done) struct str report = {0};
    struct slot place = lockstep_slot(s->ls, 0);
    struct state_head h;
    as_status st;
    if ((st = coll_receive(c, (struct coll_id){.tag = TAG_HEAD, .what = "state"}, from, &h,
                           sizeof h, err)) < 0 ||
        (st = slot_state_create(&place, &state, err)) < 0)
        return st;
    if (h.epoch < 0 || h.epoch > m->spec.epochs || h.at < 0 ||
        (size_t)h.at > m->layout.micro_steps || h.report_bytes < 0 ||
        h.report_bytes > (int64_t)CONTROL_MAX_LINE)
        return as_fail(err, AS_E_INVAL, "rank %d sends a state that is not of this trial",
                       (int)from);
    if ((st = receive_parts(s, c, from, &h, &state, &report, err)) < 0)
        return st;
    state.steps = h.steps;
    state.active = h.active;
    state.loss_sum = h.loss_sum;
    if ((st = slot_state_put(&place, &state, err)) < 0)
        return st;
    m->epoch = h.epoch;
    m->at = (size_t)h.at;
    struct str before = m->last_report;
    m->last_report = report;
    report = before;
    return AS_OK;
}

/* What ranks compare when they meet. */
struct standing {
    int64_t position;
    uint64_t job; /* of the member's fingerprint */
};

static uint64_t job_of(const struct member *m)
{
    uint64_t job = 0;
    (void)sscanf(m->fingerprint, "%16" SCNx64, &job);
    return job;
}

static as_status compare_jobs(const struct standing *all, int32_t rank, int32_t n,
                              struct as_err *err)
{
    for (int32_t r = 0; r < n; r++)
        if (all[r].job != all[rank].job)
            return as_fail(
                err, AS_E_CONFLICT,
                "rank %d has another job than rank %d (train document, data set or seed)", (int)r,
                (int)rank);
    return AS_OK;
}

/* Brings ranks that are behind to the position of the first rank that is not. */
static as_status catch_up(struct shared_step *s, bool *ret_moved, struct as_err *err)
{
    struct coll *c = team_coll(s->team);
    int32_t rank = coll_rank(c), n = coll_size(c), ahead = 0;
    AS_AUTO(as_freep) struct standing *all = as_calloc((size_t)n, sizeof *all);
    if (!all)
        return as_fail_nomem(err);
    all[rank] =
        (struct standing){.position = position_of(member_of(s)), .job = job_of(member_of(s))};
    as_status st = coll_allgather(c, (struct coll_id){.tag = TAG_POSITIONS, .what = "positions"},
                                  all, (size_t)n, sizeof *all, err);
    if (st < 0 || (st = compare_jobs(all, rank, n, err)) < 0)
        return st;
    for (int32_t r = 1; r < n; r++)
        if (all[r].position > all[ahead].position)
            ahead = r;
    for (int32_t r = 0; st == AS_OK && r < n; r++) {
        if (all[r].position == all[ahead].position)
            continue;
        if (rank == ahead)
            st = send_state(s, c, r, err);
        else if (rank == r && (st = receive_state(s, c, ahead, err)) == AS_OK)
            *ret_moved = true;
    }
    return st;
}

static as_status meet(struct shared_step *s, bool *ret_moved, struct as_err *err)
{
    while (!team_coll(s->team)) {
        as_status st = team_meet(s->team, err);
        if (st < 0)
            return st;
        st = catch_up(s, ret_moved, err);
        if (st == AS_E_UNAVAILABLE)
            team_part(s->team);
        else if (st < 0)
            return st;
        else
            team_joined(s->team, position_of(member_of(s)));
    }
    return AS_OK;
}

as_status shared_step_meet(struct shared_step *s, struct as_err *err)
{
    bool moved = false;
    return meet(s, &moved, err);
}

/* ---- shards ---- */

static uint32_t shards_now(const struct shared_step *s)
{
    const struct member *m = member_of(s);
    size_t left = m->layout.micro_steps - m->at;
    return (uint32_t)(left < m->layout.per_batch ? left : m->layout.per_batch);
}

/* Begins the step at the member's position, or goes on with it: then what was computed stays. */
static as_status begin_step(struct shared_step *s, struct as_err *err)
{
    const struct member *m = member_of(s);
    if (s->position == position_of(m))
        return AS_OK;
    s->position = position_of(m);
    memset(s->has, 0, s->max_shards * sizeof *s->has);
    return network_read_state(s->ls->network, 0, s->state, err);
}

/* The gradient, the statistics and the loss of one shard, as its share of the batch. */
static as_status compute_shard(struct shared_step *s, struct backend *lane, uint32_t shard,
                               struct as_err *err)
{
    struct lockstep *ls = s->ls;
    struct member *m = member_of(s);
    const struct layout *at = &s->at;
    size_t micro = m->at + shard;
    as_status st;
    if (!s->partials[shard] && !(s->partials[shard] = as_calloc(at->n, sizeof(float))))
        return as_fail_nomem(err);
    float *to = s->partials[shard];
    /* Each shard begins with the statistics and the loss as they were before the step. */
    if ((st = network_write_state(ls->network, 0, s->state, err)) < 0 ||
        (st = loss_sums_clear(&ls->losses->train, 0, 1, err)) < 0 ||
        (st = lockstep_gradients(ls, lane, 0, micro, err)) < 0 ||
        (st = network_read(ls->network, network_gradients(ls->network), 0, m->plan, to + at->params,
                           err)) < 0 ||
        (st = network_read_state(ls->network, 0, to + at->state, err)) < 0 ||
        (st = buf_download(ls->losses->train.loss, 0, to + at->loss, 1, err)) < 0)
        return st;
    float share = (float)epoch_layout_share(&m->layout, micro);
    for (size_t i = 0; i < at->loss; i++)
        to[i] *= share;
    s->has[shard] = true;
    return AS_OK;
}

static as_status compute_run(struct shared_step *s, struct backend *lane, struct shard_run run,
                             struct as_err *err)
{
    for (uint32_t i = 0; i < run.count; i++) {
        uint32_t shard = run.first + i;
        if (!s->has[shard]) {
            as_status st = compute_shard(s, lane, shard, err);
            if (st < 0)
                return st;
        }
        /* A rank that is to stop says so in its first shard; a rank without one cannot, and stops
         * when another does. */
        s->partials[shard][s->at.stop] = i == 0 && team_stop_asked(s->team);
        s->own[i] = s->partials[shard];
    }
    return AS_OK;
}

/* Every rank has the sum: update the weights, and go behind the batch. */
static as_status apply_sum(struct shared_step *s, struct backend *lane, uint32_t shards,
                           float loss_before, struct as_err *err)
{
    struct lockstep *ls = s->ls;
    struct member *m = member_of(s);
    struct optimizer *o = ls->optimizer;
    struct buf *gradients =
        ls->traits[0].needs.accumulate ? o->sum : network_gradients(ls->network);
    float loss = loss_before + s->sum[s->at.loss];
    as_status st;
    if ((st = network_write(ls->network, gradients, 0, m->plan, s->sum + s->at.params, err)) < 0 ||
        (st = network_write_state(ls->network, 0, s->sum + s->at.state, err)) < 0 ||
        (st = buf_upload(ls->losses->train.loss, 0, &loss, 1, err)) < 0 ||
        (st = lockstep_update(ls, lane, 0, m->at + shards - 1, err)) < 0)
        return st;
    m->at += shards;
    return AS_OK;
}

static as_status sum_up(struct shared_step *s, struct backend *lane, uint32_t shards,
                        struct as_err *err)
{
    struct coll *c = team_coll(s->team);
    struct coll_id id = {.step = (uint64_t)s->position, .tag = TAG_SUM, .what = "gradients"};
    coll_spread(shards, coll_size(c), s->runs);
    as_status st = compute_run(s, lane, s->runs[coll_rank(c)], err);
    if (st < 0)
        return st;
    return coll_tree_sum(c, id, &reduce_f32_sum, s->runs, shards, s->own, s->sum, s->at.n, err);
}

as_status shared_step_run(struct shared_step *s, struct backend *lane, bool *ret_stop,
                          bool *ret_moved, struct as_err *err)
{
    struct lockstep *ls = s->ls;
    float loss_before = 0;
    as_status st = buf_download(ls->losses->train.loss, 0, &loss_before, 1, err);
    *ret_moved = false;
    while (st == AS_OK) {
        st = meet(s, ret_moved, err);
        if (st < 0 || *ret_moved)
            return st;
        uint32_t shards = shards_now(s);
        if ((st = begin_step(s, err)) < 0)
            return st;
        st = sum_up(s, lane, shards, err);
        if (st == AS_OK) {
            *ret_stop = s->sum[s->at.stop] > 0;
            if ((st = apply_sum(s, lane, shards, loss_before, err)) == AS_OK)
                team_progress(s->team, position_of(member_of(s)));
            return st;
        }
        if (st != AS_E_UNAVAILABLE)
            return st;
        team_part(s->team);
        /* What the network holds is of some shard: catching up and checkpoints need the state
         * before the step. */
        if ((st = network_write_state(ls->network, 0, s->state, err)) == AS_OK)
            st = buf_upload(ls->losses->train.loss, 0, &loss_before, 1, err);
    }
    return st;
}

as_status shared_step_finish(struct shared_step *s,
                             as_status (*finish)(void *arg, struct as_err *err), void *arg,
                             struct as_err *err)
{
    bool moved = false;
    for (;;) {
        as_status st = meet(s, &moved, err);
        if (st == AS_OK && shared_step_leads(s))
            st = finish(arg, err);
        if (st < 0)
            return st;
        struct coll_id id = {.step = (uint64_t)position_of(member_of(s)), .tag = TAG_FINISH};
        st = coll_barrier(team_coll(s->team), id, err);
        if (st != AS_E_UNAVAILABLE)
            return st;
        team_part(s->team);
    }
}
