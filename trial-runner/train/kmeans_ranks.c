/* A state on its way is a head, the reports that the receiver has not written, and the centroids:
 * all that a rank needs, because sums follow from them. So any rank that has come farthest can give
 * it, and nothing is lost with a rank. */
#include "trial-runner/train/kmeans_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/collective/world.h"
#include "trial-runner/train/rank_lines.h"
#include "trial-runner/train/rank_standing.h"

enum { TAG_SUM = 1, TAG_HEAD = RANK_STANDING_TAG + 1, TAG_BODY };

struct kmeans_ranks {
    struct team *team;
    struct member *m;
    struct kmeans_state *state;
    struct shard_run *runs; /* by rank */
    bool finishing;         /* this rank is in kmeans_ranks_finish() */
    bool stopping;
    uint64_t sums;
    int64_t busy_ns, n_iterations; /* of this rank's */
};

as_status kmeans_ranks_create(struct team *team, struct member *m, struct kmeans_state *state,
                              struct kmeans_ranks **ret, struct as_err *err)
{
    AS_AUTO(kmeans_ranks_freep) struct kmeans_ranks *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail_nomem(err);
    *r = (struct kmeans_ranks){.team = team, .m = m, .state = state};
    r->runs = as_calloc(WORLD_MAX_RANKS, sizeof *r->runs);
    if (!r->runs)
        return as_fail_nomem(err);
    *ret = as_steal(r);
    return AS_OK;
}

void kmeans_ranks_free(struct kmeans_ranks *r)
{
    if (!r)
        return;
    free(r->runs);
    free(r);
}

bool kmeans_ranks_leads(const struct kmeans_ranks *r)
{
    const struct coll *c = team_coll(r->team);
    return c && coll_rank(c) == 0;
}

bool kmeans_ranks_stopping(const struct kmeans_ranks *r)
{
    return r->stopping;
}

bool kmeans_ranks_stop_asked(const struct kmeans_ranks *r)
{
    return team_stop_asked(r->team);
}

static int64_t iteration_ns(const struct kmeans_ranks *r)
{
    return r->n_iterations > 0 ? r->busy_ns / r->n_iterations : 0;
}

void kmeans_ranks_progress(struct kmeans_ranks *r, int64_t took_ns)
{
    r->busy_ns += took_ns;
    r->n_iterations++;
    team_progress(r->team, r->m->epoch, iteration_ns(r));
}

void kmeans_ranks_part(struct kmeans_ranks *r)
{
    team_part(r->team);
}

/* ---- the state on its way ---- */

struct state_head {
    int64_t epoch, settled, report_bytes;
};

/* `after`: the last step that the receiver has reported. */
static as_status send_state(struct kmeans_ranks *r, struct coll *c, int32_t to, int64_t after,
                            struct as_err *err)
{
    AS_AUTO(str_done) struct str lines = {0};
    struct coll_id id = {.tag = TAG_HEAD, .what = "centroids"};
    as_status st = rank_lines_collect(r->m, after, &lines, err);
    if (st < 0)
        return st;
    struct state_head h = {r->m->epoch, r->state->settled, (int64_t)lines.len};
    if ((st = coll_send(c, id, to, &h, sizeof h, err)) < 0)
        return st;
    id.tag = TAG_BODY;
    st = coll_send(c, id, to, str_cstr(&lines), lines.len, err);
    return st < 0 ? st
                  : coll_send(c, id, to, r->state->centroids, r->state->n * sizeof(float), err);
}

/* Nothing of this rank changes before all of it has arrived. */
static as_status receive_state(struct kmeans_ranks *r, struct coll *c, int32_t from,
                               struct as_err *err)
{
    struct coll_id id = {.tag = TAG_HEAD, .what = "centroids"};
    struct state_head h;
    AS_AUTO(str_done) struct str lines = {0};
    AS_AUTO(as_freep) float *values = as_calloc(r->state->n, sizeof *values);
    as_status st = values ? coll_receive(c, id, from, &h, sizeof h, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    if (h.epoch < 0 || h.epoch > r->m->spec.epochs || h.report_bytes < 0 ||
        h.report_bytes > (int64_t)(REPORT_LINES_MAX + CONTROL_MAX_LINE))
        return as_fail(err, AS_E_INVAL, "rank %d sends a state that is not of this trial",
                       (int)from);
    AS_AUTO(as_freep) char *text = as_calloc((size_t)h.report_bytes + 1, 1);
    if (!text)
        return as_fail_nomem(err);
    id.tag = TAG_BODY;
    if ((st = coll_receive(c, id, from, text, (size_t)h.report_bytes, err)) < 0 ||
        (st = coll_receive(c, id, from, values, r->state->n * sizeof *values, err)) < 0)
        return st;
    str_puts(&lines, text);
    if ((st = str_check(&lines, err)) < 0)
        return st;
    memcpy(r->state->centroids, values, r->state->n * sizeof *values);
    r->state->settled = h.settled != 0;
    r->m->epoch = h.epoch;
    return lines.len > 0 ? rank_lines_take(r->m, &lines, err) : AS_OK;
}

/* ---- meeting ---- */

/* The first of those that have come farthest; the others get its state. */
static as_status catch_up(struct kmeans_ranks *r, const struct rank_standing *all,
                          struct as_err *err)
{
    struct coll *c = team_coll(r->team);
    int32_t rank = coll_rank(c), n = coll_size(c), ahead = 0;
    as_status st = AS_OK;
    for (int32_t i = 1; i < n; i++)
        ahead = all[i].position > all[ahead].position ? i : ahead;
    for (int32_t i = 0; st == AS_OK && i < n; i++) {
        if (all[i].position == all[ahead].position)
            continue;
        if (rank == ahead)
            st = send_state(r, c, i, all[i].reported, err);
        else if (rank == i)
            st = receive_state(r, c, ahead, err);
    }
    return st;
}

static as_status compare(struct kmeans_ranks *r, struct as_err *err)
{
    struct coll *c = team_coll(r->team);
    const struct member *m = r->m;
    bool over = r->state->settled || m->epoch >= m->spec.epochs;
    const struct rank_standing own = {.position = m->epoch, .stopping = r->finishing && !over};
    AS_AUTO(as_freep) struct rank_standing *all = NULL;
    as_status st = rank_standing_exchange(c, m, &own, &all, err);
    if (st < 0)
        return st;
    for (int32_t i = 0; i < coll_size(c); i++)
        r->stopping = r->stopping || all[i].stopping;
    return catch_up(r, all, err);
}

as_status kmeans_ranks_meet(struct kmeans_ranks *r, bool *ret_met, struct as_err *err)
{
    *ret_met = false;
    while (!team_coll(r->team)) {
        as_status st = team_meet(r->team, r->m->spec.distributed.encrypt, err);
        if (st < 0)
            return st;
        *ret_met = true;
        st = compare(r, err);
        if (st == AS_E_UNAVAILABLE)
            kmeans_ranks_part(r);
        else if (st < 0)
            return st;
        else
            team_joined(r->team, r->m->epoch);
    }
    return AS_OK;
}

/* ---- sums ---- */

struct shard_run kmeans_ranks_own(const struct kmeans_ranks *r, uint32_t total)
{
    const struct coll *c = team_coll(r->team);
    coll_spread(total, coll_size(c), r->runs);
    return r->runs[coll_rank(c)];
}

as_status kmeans_ranks_sum(struct kmeans_ranks *r, uint64_t round, uint32_t total,
                           double *const *partials, size_t n, double *ret, struct as_err *err)
{
    struct coll *c = team_coll(r->team);
    const struct coll_id id = {.step = round, .tag = TAG_SUM, .what = "sums of clusters"};
    coll_spread(total, coll_size(c), r->runs);
    r->sums++;
    return coll_tree_sum(c, id, &reduce_f64_sum, r->runs, total, (const void *const *)partials, ret,
                         n, err);
}

/* ---- the end ---- */

/* For people, and for tests. */
static void print_traffic(const struct kmeans_ranks *r)
{
    const struct coll *c = team_coll(r->team);
    (void)printf("rank %d of %d: %llu bytes sent in %llu sums (kmeans)\n", (int)coll_rank(c),
                 (int)coll_size(c), (unsigned long long)team_bytes_sent(r->team),
                 (unsigned long long)r->sums);
}

as_status kmeans_ranks_finish(struct kmeans_ranks *r,
                              as_status (*finish)(void *arg, struct as_err *err), void *arg,
                              struct as_err *err)
{
    r->finishing = true;
    for (;;) {
        bool met;
        as_status st = kmeans_ranks_meet(r, &met, err);
        if (st == AS_OK && kmeans_ranks_leads(r))
            st = finish(arg, err);
        if (st == AS_OK)
            st = team_leave_together(r->team, (uint64_t)r->m->epoch, err);
        if (st == AS_OK) {
            print_traffic(r);
            team_progress_last(r->team, r->m->epoch, iteration_ns(r));
        }
        if (st != AS_E_UNAVAILABLE || !team_coll(r->team))
            return st;
        kmeans_ranks_part(r);
    }
}
