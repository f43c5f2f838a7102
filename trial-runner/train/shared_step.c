/* What all strategies need of the trainer (trial-runner/distributed/strategy.h): ranks meet, those
 * that are behind get the others' state, a step in which a rank was lost is repeated in the next
 * world.
 *
 * A state on its way is a head, the reports that the receiver has not written, the arrays of the
 * slot, and the parts that the strategy keeps. The receiver changes nothing before all of it has
 * arrived. */
#include "trial-runner/train/shared_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "trial-runner/train/evaluate.h"
#include "trial-runner/train/learner.h"
#include "trial-runner/train/learner_blocks.h"
#include "trial-runner/train/rank_lines.h"
#include "trial-runner/train/rank_standing.h"
#include "trial-runner/train/report_file.h"

struct shared_step {
    struct team *team;
    struct lockstep *ls;
    struct learner *learner;
    struct strategy strategy;
    struct device_card card;     /* this rank's */
    struct device_comm *devices; /* of the current world; NULL: vectors go through the host */
    int lost_devices;   /* times one after another that NCCL failed in a world that was whole */
    bool save;          /* a checkpoint is due at this rank */
    bool finishing;     /* this rank is in shared_step_finish() */
    bool stopping;      /* a rank of the world has finished for a stop: all do */
    bool whole;         /* the state was gathered after the last step */
    bool written;       /* this rank has finished the files, in shared_step_finish() */
    bool over;          /* so has rank 0 of this world: nobody needs a state any more */
    uint64_t exchanged; /* of all bytes, those of steps */
    int64_t steps;      /* runs of the strategy */
    int64_t busy_ns;    /* in runs that came through, with the waits for other ranks in them */
    int64_t busy_steps; /* the optimizer's steps of these runs */
};

#define DEVICE_FAILURES 3

/* Tags of the operations; those of a strategy are below. */
enum { TAG_HEAD = RANK_STANDING_TAG + 1, TAG_BODY }; /* team.c has those behind */

static struct member *member_of(const struct shared_step *s)
{
    return s->ls->member[0];
}

static const struct distributed_spec *spec_of(const struct shared_step *s)
{
    return &member_of(s)->spec.distributed;
}

static void part(struct shared_step *s)
{
    device_comm_free(s->devices);
    s->devices = NULL;
    s->over = s->whole = false; /* who leads next may have only its part of the state */
    team_part(s->team);
}

static int64_t position_of(const struct shared_step *s)
{
    return learner_step(member_of(s));
}

void shared_step_free(struct shared_step *s)
{
    if (!s)
        return;
    strategy_done(&s->strategy);
    device_comm_free(s->devices);
    learner_free(s->learner);
    free(s);
}

/* All ranks answer alike. NCCL does not encrypt. */
static bool uses_devices(const struct shared_step *s)
{
    const struct strategy_ops *ops = s->strategy.ops;
    return !spec_of(s)->encrypt && ops->uses_devices && ops->uses_devices(s->strategy.self);
}

static void read_card(struct shared_step *s)
{
    struct as_err why;
    device_card_read(s->ls->setup->be, &s->card, &why);
    if (!learner_is_on_device(s->learner))
        s->card.able = 0;
    if (s->card.able && s->card.peers.version == 0)
        (void)printf("no messages between devices: %s\n", why.msg);
}

as_status shared_step_create(struct team *team, struct lockstep *ls, struct shared_step **ret,
                             struct as_err *err)
{
    AS_AUTO(shared_step_freep) struct shared_step *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    const struct member *m = ls->member[0];
    *s = (struct shared_step){.team = team, .ls = ls};
    as_status st = learner_create(ls, &s->learner, err);
    if (st < 0)
        return st;
    struct strategy_setup setup = {.spec = &m->spec,
                                   .loss = ls->setup->loss,
                                   .replica = learner_replica(s->learner),
                                   .seed = m->seed};
    if ((st = strategy_init(&s->strategy, &setup, err)) < 0)
        return st;
    if (uses_devices(s))
        read_card(s);
    *ret = as_steal(s);
    return AS_OK;
}

bool shared_step_leads(const struct shared_step *s)
{
    const struct coll *c = team_coll(s->team);
    return c && coll_rank(c) == 0;
}

const struct strategy *shared_step_strategy(const struct shared_step *s)
{
    return &s->strategy;
}

/* ---- catching up ---- */

/* The head of a state on its way: what the receiver needs to take the rest. */
struct state_head {
    int64_t epoch, at;
    int64_t report_bytes;
    int32_t steps, active;
    float loss_sum;
};

/* `after`: the last step that the receiver has reported. */
static as_status send_state(struct shared_step *s, struct coll *c, int32_t to, int64_t after,
                            struct as_err *err)
{
    struct member *m = member_of(s);
    AS_AUTO(slot_state_done) struct slot_state state = {0};
    AS_AUTO(str_done) struct str lines = {0};
    struct slot place = lockstep_slot(s->ls, 0);
    as_status st = lockstep_state_get(s->ls, &state, err);
    if (st < 0 || (st = rank_lines_collect(m, after, &lines, err)) < 0)
        return st;
    struct state_head h = {.epoch = m->epoch,
                           .at = (int64_t)m->at,
                           .report_bytes = (int64_t)lines.len,
                           .steps = state.steps,
                           .active = state.active,
                           .loss_sum = state.loss_sum};
    struct coll_id head = {.tag = TAG_HEAD, .what = "state"}, body = {.tag = TAG_BODY};
    struct slot_part parts[SLOT_PARTS];
    slot_state_parts(&place, &state, parts);
    if ((st = coll_send(c, head, to, &h, sizeof h, err)) < 0 ||
        (st = coll_send(c, body, to, str_cstr(&lines), lines.len, err)) < 0)
        return st;
    for (size_t i = 0; i < SLOT_PARTS; i++)
        if (parts[i].values &&
            (st = coll_send(c, body, to, parts[i].values, parts[i].n * sizeof(float), err)) < 0)
            return st;
    struct strategy_part kept[STRATEGY_MAX_PARTS];
    size_t n = strategy_parts(&s->strategy, kept);
    for (size_t i = 0; st == AS_OK && i < n; i++)
        st = kept[i].spread
                 ? AS_OK
                 : coll_send(c, body, to, kept[i].values, kept[i].n * sizeof(float), err);
    return st;
}

/* What a strategy keeps, on its way in. */
struct arrived {
    struct strategy_part to[STRATEGY_MAX_PARTS];
    float *values[STRATEGY_MAX_PARTS];
    size_t n;
};

static void arrived_done(struct arrived *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->values[i]);
}

static as_status receive_kept(struct shared_step *s, struct coll *c, int32_t from,
                              struct arrived *ret, struct as_err *err)
{
    struct coll_id body = {.tag = TAG_BODY, .what = "state"};
    as_status st = AS_OK;
    ret->n = strategy_parts(&s->strategy, ret->to);
    for (size_t i = 0; st == AS_OK && i < ret->n; i++) {
        if (ret->to[i].spread)
            continue;
        ret->values[i] = as_calloc(ret->to[i].n, sizeof(float));
        if (!ret->values[i])
            return as_fail_nomem(err);
        st = coll_receive(c, body, from, ret->values[i], ret->to[i].n * sizeof(float), err);
    }
    return st;
}

static as_status receive_parts(struct shared_step *s, struct coll *c, int32_t from,
                               const struct state_head *h, struct slot_state *state,
                               struct str *ret_lines, struct as_err *err)
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
    str_puts(ret_lines, text);
    return str_check(ret_lines, err);
}

/* Takes the state of rank `from`. Nothing of this rank changes before all of it has arrived. */
static as_status receive_state(struct shared_step *s, struct coll *c, int32_t from,
                               struct as_err *err)
{
    struct member *m = member_of(s);
    AS_AUTO(slot_state_done) struct slot_state state = {0};
    AS_AUTO(str_done) struct str lines = {0};
    AS_AUTO(arrived_done) struct arrived kept = {0};
    struct slot place = lockstep_slot(s->ls, 0);
    struct state_head h;
    as_status st;
    if ((st = coll_receive(c, (struct coll_id){.tag = TAG_HEAD, .what = "state"}, from, &h,
                           sizeof h, err)) < 0 ||
        (st = lockstep_state_new(s->ls, &state, err)) < 0)
        return st;
    if (h.epoch < 0 || h.epoch > m->spec.epochs || h.at < 0 ||
        (size_t)h.at > m->layout.micro_steps || h.report_bytes < 0 ||
        h.report_bytes > (int64_t)(REPORT_LINES_MAX + CONTROL_MAX_LINE))
        return as_fail(err, AS_E_INVAL, "rank %d sends a state that is not of this trial",
                       (int)from);
    if ((st = receive_parts(s, c, from, &h, &state, &lines, err)) < 0 ||
        (st = receive_kept(s, c, from, &kept, err)) < 0)
        return st;
    state.steps = h.steps;
    state.active = h.active;
    state.loss_sum = h.loss_sum;
    if ((st = slot_state_put(&place, &state, err)) < 0)
        return st;
    for (size_t i = 0; i < kept.n; i++)
        if (kept.values[i])
            memcpy(kept.to[i].values, kept.values[i], kept.to[i].n * sizeof(float));
    m->epoch = h.epoch;
    m->at = (size_t)h.at;
    if ((st = rank_lines_take(m, &lines, err)) < 0)
        return st;
    const struct strategy_ops *ops = s->strategy.ops;
    return ops->restored ? ops->restored(s->strategy.self, false, err) : AS_OK;
}

/* Where ranks must evaluate together, those that have are ahead of those that have not. */
static int64_t order_of(const struct shared_step *s)
{
    bool together = s->strategy.ops->evaluate != NULL;
    return together ? 2 * position_of(s) + (member_of(s)->at == 0) : position_of(s);
}

/* From device to device, or through the host? People are told, and tests. */
static as_status meet_devices(struct shared_step *s, const struct rank_standing *all,
                              struct as_err *err)
{
    struct coll *c = team_coll(s->team);
    int32_t n = coll_size(c), rank = coll_rank(c);
    struct as_err why = {0};
    if (!uses_devices(s))
        return AS_OK;
    AS_AUTO(as_freep) struct device_card *cards = as_calloc((size_t)n, sizeof *cards);
    if (!cards)
        return as_fail_nomem(err);
    for (int32_t r = 0; r < n; r++)
        cards[r] = all[r].card;
    as_status st = device_comm_open(c, s->ls->setup->be, cards, &s->devices, &why, err);
    if (st == AS_OK && s->card.able)
        (void)printf("rank %d of %d: vectors travel %s%s%s\n", (int)rank, (int)n,
                     s->devices ? "from device to device" : "through the host",
                     why.msg[0] ? ": " : "", why.msg);
    return st;
}

/* A meeting, and whose it is. */
struct own_meeting {
    struct meeting meeting;
    struct shared_step *shared;
    const struct rank_standing *all; /* of each rank; borrowed */
};

static as_status transfer(struct meeting *m, int32_t from, int32_t to, struct as_err *err)
{
    const struct own_meeting *own = (struct own_meeting *)m;
    struct shared_step *s = own->shared;
    int32_t rank = coll_rank(m->coll);
    if (rank == from && from != to)
        return send_state(s, m->coll, to, own->all[to].reported, err);
    if (rank != to || from == to)
        return AS_OK;
    as_status st = receive_state(s, m->coll, from, err);
    m->moved = m->moved || st == AS_OK;
    return st;
}

/* The ranks of a new world compare their positions, and agree on the state to go on from. */
static as_status compare(struct shared_step *s, bool *ret_moved, struct as_err *err)
{
    struct coll *c = team_coll(s->team);
    int32_t n = coll_size(c);
    const struct member *m = member_of(s);
    const struct rank_standing own = {.position = order_of(s),
                                      .stopping = s->finishing && m->epoch < m->spec.epochs,
                                      .written = s->written,
                                      .card = s->card};
    AS_AUTO(as_freep) struct rank_standing *all = NULL;
    AS_AUTO(as_freep) int64_t *steps = as_calloc((size_t)n, sizeof *steps);
    as_status st = steps ? rank_standing_exchange(c, m, &own, &all, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    for (int32_t r = 0; r < n; r++) {
        steps[r] = all[r].position;
        s->stopping = s->stopping || all[r].stopping;
    }
    if ((st = meet_devices(s, all, err)) < 0)
        return st;
    struct own_meeting met = {
        .meeting = {.coll = c, .steps = steps, .transfer = transfer, .devices = s->devices},
        .shared = s,
        .all = all};
    s->over = all[0].written != 0;
    st = s->strategy.ops->meet && !s->over
             ? s->strategy.ops->meet(s->strategy.self, &met.meeting, err)
             : meeting_catch_up(&met.meeting, err);
    *ret_moved = *ret_moved || met.meeting.moved;
    return st;
}

static as_status meet(struct shared_step *s, bool *ret_moved, struct as_err *err)
{
    while (!team_coll(s->team)) {
        as_status st = team_meet(s->team, spec_of(s)->encrypt, err);
        if (st < 0)
            return st;
        st = compare(s, ret_moved, err);
        if (st == AS_E_UNAVAILABLE)
            part(s);
        else if (st < 0)
            return st;
        else
            team_joined(s->team, position_of(s));
    }
    return AS_OK;
}

/* ---- steps ---- */

static bool gathers(const struct shared_step *s)
{
    const struct strategy_ops *ops = s->strategy.ops;
    return ops->gather && (!ops->gathers || ops->gathers(s->strategy.self));
}

/* A step has failed. NCCL may have been the first to see that a rank is gone; but if it fails again
 * and again before any step is done, in worlds that nobody has said to be over, it is not for
 * this machine. */
static void doubt_devices(struct shared_step *s)
{
    if (!s->devices || coll_size(team_coll(s->team)) == 1 || coll_is_over(team_coll(s->team)))
        return;
    if (++s->lost_devices < DEVICE_FAILURES || s->card.peers.version == 0)
        return;
    s->card.peers.version = 0;
    (void)printf("no messages between devices: they have failed %d times\n", s->lost_devices);
}

static int64_t step_ns(const struct shared_step *s)
{
    return s->busy_steps > 0 ? s->busy_ns / s->busy_steps : 0;
}

bool shared_step_ask_save(struct shared_step *s)
{
    if (!gathers(s) || s->whole)
        return false;
    s->save = true;
    return true;
}

as_status shared_step_run(struct shared_step *s, struct backend *lane, struct shared_outcome *ret,
                          struct as_err *err)
{
    const struct strategy_ops *ops = s->strategy.ops;
    *ret = (struct shared_outcome){0};
    s->whole = false;
    for (;;) {
        unsigned agreed = 0;
        as_status st = meet(s, &ret->moved, err);
        if (st < 0 || ret->moved)
            return st;
        if (s->stopping) { /* the others wait in shared_step_finish() */
            ret->stop = true;
            return AS_OK;
        }
        unsigned wishes = (team_stop_asked(s->team) ? STRATEGY_STOP : 0U) |
                          (s->save && shared_step_leads(s) ? STRATEGY_SAVE : 0U);
        uint64_t before = coll_bytes_sent(team_coll(s->team));
        int64_t begin_ns = clock_mono_ns(), position = position_of(s);
        st = ops->run(s->strategy.self, team_coll(s->team), lane, wishes, &agreed, err);
        s->exchanged += coll_bytes_sent(team_coll(s->team)) - before;
        if (st == AS_OK) {
            ret->stop = (agreed & STRATEGY_STOP) != 0;
            ret->save = (agreed & STRATEGY_SAVE) != 0;
            s->save = false;
            s->lost_devices = 0;
            s->steps++;
            s->busy_ns += clock_mono_ns() - begin_ns;
            s->busy_steps += position_of(s) - position;
            if (ops->figure)
                member_of(s)->duality_gap = ops->figure(s->strategy.self);
            team_progress(s->team, position_of(s), step_ns(s));
            return AS_OK;
        }
        if (st != AS_E_UNAVAILABLE)
            return st;
        doubt_devices(s);
        part(s);
        /* A broken device gives the same status as a lost rank; no world would be of use to it. */
        if (learner_is_on_device(s->learner) && (st = backend_sync(lane, err)) < 0)
            return st;
    }
}

static as_status gather(struct shared_step *s, struct backend *lane, struct as_err *err)
{
    const struct strategy *strategy = &s->strategy;
    return gathers(s) ? strategy->ops->gather(strategy->self, team_coll(s->team), lane, err)
                      : AS_OK;
}

/* For people, and for tests. */
static void print_traffic(const struct shared_step *s)
{
    const struct coll *c = team_coll(s->team);
    (void)printf("rank %d of %d: %llu bytes sent in %lld exchanges (%s), %llu in all\n",
                 (int)coll_rank(c), (int)coll_size(c), (unsigned long long)s->exchanged,
                 (long long)s->steps, s->strategy.ops->name,
                 (unsigned long long)team_bytes_sent(s->team));
    struct strategy_progress p = {0};
    if (s->strategy.ops->progress)
        p = s->strategy.ops->progress(s->strategy.self);
    if (p.buckets > 0)
        (void)printf("rank %d of %d: %zu of %zu buckets left before the gradient was complete\n",
                     (int)coll_rank(c), (int)coll_size(c), p.begun_early, p.buckets);
}

/* It is not repeated after a loss: some ranks may have come through, and do the next step. */
as_status shared_step_gather(struct shared_step *s, struct backend *lane, bool *ret_whole,
                             struct as_err *err)
{
    as_status st = gather(s, lane, err);
    *ret_whole = s->whole = st == AS_OK;
    if (st != AS_E_UNAVAILABLE)
        return st;
    part(s);
    return AS_OK;
}

as_status shared_step_evaluate(struct shared_step *s, struct backend *lane, bool gathers_too,
                               struct evaluation *ret, bool *ret_moved, struct as_err *err)
{
    *ret_moved = false;
    for (;;) {
        as_status st = meet(s, ret_moved, err);
        if (st < 0 || *ret_moved)
            return st;
        st = evaluate_together(s->ls, lane, team_coll(s->team), ret, err);
        if (st == AS_OK && gathers_too)
            st = gather(s, lane, err);
        if (st != AS_E_UNAVAILABLE)
            return st;
        part(s);
    }
}

/* The state for it becomes whole on the rank that leads. */
static as_status finish_files(struct shared_step *s, struct backend *lane, bool is_saved,
                              as_status (*finish)(void *arg, struct as_err *err), void *arg,
                              struct as_err *err)
{
    const bool divides = member_of(s)->divides_layers;
    as_status st = is_saved || divides ? gather(s, lane, err) : AS_OK;
    if (st == AS_OK && shared_step_leads(s) && divides && !is_saved)
        st = learner_blocks_predict(s->ls, err);
    if (st == AS_OK && shared_step_leads(s)) {
        st = finish(arg, err);
        s->written = st == AS_OK;
    }
    return st;
}

/* Others may leave, with what they hold of the state, before rank 0 knows that all have heard of
 * the end. It finishes the files once, so it needs no state for meeting again. */
as_status shared_step_finish(struct shared_step *s, struct backend *lane, bool is_saved,
                             as_status (*finish)(void *arg, struct as_err *err), void *arg,
                             struct as_err *err)
{
    bool moved = false;
    s->finishing = true;
    for (;;) {
        as_status st = meet(s, &moved, err);
        if (st == AS_OK && !s->over)
            st = finish_files(s, lane, is_saved, finish, arg, err);
        if (st == AS_OK)
            st = team_leave_together(s->team, (uint64_t)position_of(s), err);
        if (st == AS_OK) {
            print_traffic(s);
            team_progress_last(s->team, position_of(s), step_ns(s));
        }
        if (st != AS_E_UNAVAILABLE || !team_coll(s->team))
            return st;
        part(s);
    }
}
