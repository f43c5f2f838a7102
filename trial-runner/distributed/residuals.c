/* Residuals move only when ranks change and when a checkpoint is written, so simple messages, one
 * shard after another, are fast enough. */
#include "trial-runner/distributed/residuals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tags of this file's messages; the strategies' own are below. */
enum { TAG_CLAIMS = 1 << 12, TAG_SHARD, TAG_SUM, TAG_CHANGED };

as_status residuals_init(struct residuals *ret, size_t n, uint32_t shards, bool of_sum,
                         struct as_err *err)
{
    struct residuals r = {
        .n = n, .shards = shards, .next = -1, .what = "what the messages have lost"};
    size_t all;
    if (__builtin_mul_overflow(n, (size_t)shards, &all))
        return as_fail(err, AS_E_TOO_LARGE, "%u residuals of %zu values", (unsigned)shards, n);
    r.of_shards = as_calloc(all, sizeof(float));
    r.now = as_calloc(shards, sizeof *r.now);
    r.after = as_calloc(shards, sizeof *r.after);
    r.held = as_calloc(shards, sizeof *r.held);
    r.changed = as_calloc(shards, sizeof *r.changed);
    r.written = as_calloc(shards, sizeof *r.written);
    r.of_sum = of_sum ? as_calloc(n, sizeof(float)) : NULL;
    r.sum_after = of_sum ? as_calloc(n, sizeof(float)) : NULL;
    if (r.of_shards && r.now && r.after && r.held && r.changed && r.written &&
        (!of_sum || (r.of_sum && r.sum_after))) {
        for (uint32_t i = 0; i < shards; i++)
            r.now[i] = r.of_shards + (size_t)i * n;
        residuals_hold_all(&r, 0);
        *ret = r;
        return AS_OK;
    }
    residuals_done(&r);
    return as_fail(err, AS_E_NOMEM, "out of memory for the residuals of %u shards",
                   (unsigned)shards);
}

static float *row_of(const struct residuals *r, uint32_t shard)
{
    return r->of_shards + (size_t)shard * r->n;
}

void residuals_done(struct residuals *r)
{
    for (uint32_t i = 0; r->of_shards && r->now && r->after && i < r->shards; i++)
        free(r->now[i] == row_of(r, i) ? r->after[i] : r->now[i]);
    free(r->of_shards);
    free(r->now);
    free(r->after);
    free(r->held);
    free(r->changed);
    free(r->written);
    free(r->of_sum);
    free(r->sum_after);
    *r = (struct residuals){0};
}

static void swap(struct residuals *r, uint32_t shard)
{
    float *now = r->now[shard];
    r->now[shard] = r->after[shard];
    r->after[shard] = now;
}

/* The residual is in its row of of_shards. Nothing is written about a next step. */
static void settle(struct residuals *r, uint32_t shard, bool keep)
{
    float *row = row_of(r, shard);
    if (r->now[shard] == row)
        return;
    if (keep)
        memcpy(row, r->now[shard], r->n * sizeof *row);
    swap(r, shard);
}

static void forget_written(struct residuals *r)
{
    memset(r->written, 0, r->shards * sizeof *r->written);
    r->sum_written = false;
    r->next = -1;
}

void residuals_begin(struct residuals *r, int64_t step, int64_t next, uint32_t shards)
{
    forget_written(r);
    r->step = step;
    r->next = next;
    r->begun = shards;
}

const float *residuals_before(const struct residuals *r, uint32_t shard)
{
    return r->now[shard];
}

as_status residuals_after(struct residuals *r, uint32_t shard, float **ret, struct as_err *err)
{
    if (!r->after[shard] && !(r->after[shard] = as_calloc(r->n, sizeof(float))))
        return as_fail_nomem(err);
    r->written[shard] = true;
    *ret = r->after[shard];
    return AS_OK;
}

void residuals_commit(struct residuals *r)
{
    for (uint32_t i = 0; i < r->shards; i++)
        if (r->written[i])
            swap(r, i);
    if (r->of_sum && r->sum_written)
        memcpy(r->of_sum + r->slice_first, r->sum_after + r->slice_first,
               (r->slice_end - r->slice_first) * sizeof(float));
    /* What others have computed has changed there, and not here. */
    for (uint32_t i = 0; i < r->shards; i++)
        r->held[i] = r->held[i] && i - r->run.first < r->run.count;
    for (uint32_t i = 0; i < r->begun; i++)
        r->changed[i] = r->next;
    r->sum_held = false;
    r->step = r->next;
    forget_written(r);
}

void residuals_spread(const struct residuals *r, uint32_t shards, int32_t n_ranks,
                      struct shard_run *ret)
{
    coll_spread(r->shards, n_ranks, ret);
    for (int32_t k = 0; k < n_ranks; k++) {
        struct shard_run *run = &ret[k];
        run->first = run->first < shards ? run->first : shards;
        run->count = run->count < shards - run->first ? run->count : shards - run->first;
    }
}

void residuals_merge(struct residuals *r, struct shard_run run)
{
    for (uint32_t i = run.first + 1; i < run.first + run.count; i++) {
        for (size_t k = 0; k < r->n; k++)
            r->now[run.first][k] += r->now[i][k];
        memset(r->now[i], 0, r->n * sizeof(float));
    }
}

void residuals_hold_all(struct residuals *r, int64_t step)
{
    forget_written(r);
    for (uint32_t i = 0; i < r->shards; i++) {
        settle(r, i, false);
        r->held[i] = true;
        r->changed[i] = step;
    }
    r->sum_held = true;
    r->step = step;
}

/* ---- meeting ---- */

/* What a rank holds. */
struct claims {
    size_t row; /* bytes of a rank's claims: a claim_head, then a flag for each shard */
    char *all;  /* [ranks, row] */
    int32_t n, own;
    int64_t step; /* where all ranks are now */
};

struct claim_head {
    int64_t step; /* the position that its residuals are right for */
    size_t sum_first, sum_end;
};

static const struct claim_head *head_of(const struct claims *l, int32_t rank)
{
    return (const struct claim_head *)(const void *)(l->all + (size_t)rank * l->row);
}

static bool claims_shard(const struct claims *l, int32_t rank, uint32_t shard)
{
    return l->all[(size_t)rank * l->row + sizeof(struct claim_head) + shard] != 0;
}

static bool is_behind(const struct claims *l, int32_t rank)
{
    return head_of(l, rank)->step != l->step;
}

static as_status exchange_claims(const struct residuals *r, struct coll *c, int64_t step,
                                 struct claims *ret, struct as_err *err)
{
    struct claims l = {.row = sizeof(struct claim_head) + (r->shards + 7) / 8 * 8,
                       .n = coll_size(c),
                       .own = coll_rank(c),
                       .step = step};
    l.all = as_calloc((size_t)l.n, l.row);
    if (!l.all)
        return as_fail_nomem(err);
    char *own = l.all + (size_t)l.own * l.row;
    struct claim_head head = {.step = r->step};
    if (r->step == step) { /* each step changes the sum's residual */
        head.sum_first = r->sum_held ? 0 : r->slice_first;
        head.sum_end = r->sum_held ? r->n : r->slice_end;
    }
    memcpy(own, &head, sizeof head);
    for (uint32_t i = 0; i < r->shards; i++)
        own[sizeof head + i] = r->held[i];
    *ret = l;
    return coll_allgather(c, (struct coll_id){.tag = TAG_CLAIMS, .what = "residuals"}, l.all,
                          (size_t)l.n, l.row, err);
}

/* A rank that is behind does not know which shards have changed since; one that has done all steps
 * does. `ret` [shards]; the same on all ranks. */
static as_status agree_on_changes(const struct residuals *r, struct coll *c, const struct claims *l,
                                  int64_t *ret, struct as_err *err)
{
    int32_t root = 0, behind = 0;
    for (int32_t k = l->n - 1; k >= 0; k--) {
        behind += is_behind(l, k);
        root = is_behind(l, k) ? root : k;
    }
    memcpy(ret, r->changed, r->shards * sizeof *ret);
    for (uint32_t i = 0; behind == l->n && i < r->shards; i++)
        ret[i] = l->step; /* nobody knows */
    if (behind == 0 || behind == l->n)
        return AS_OK;
    return coll_broadcast(c, (struct coll_id){.tag = TAG_CHANGED, .what = "residuals"}, root, ret,
                          r->shards * sizeof *ret, err);
}

static int32_t owner_of(const struct shard_run *runs, int32_t n, uint32_t shard)
{
    for (int32_t k = 0; k < n; k++)
        if (shard - runs[k].first < runs[k].count)
            return k;
    return 0;
}

/* Has this rank the residual as it is now? */
static bool is_right(const struct claims *l, const int64_t *changed, int32_t rank, uint32_t shard)
{
    int64_t step = head_of(l, rank)->step;
    return claims_shard(l, rank, shard) &&
           (step == l->step || (step < l->step && step >= changed[shard]));
}

/* Who holds the residual; best the owner, and rather a rank that is not behind. -1: nobody. */
static int32_t holder_of(const struct claims *l, const int64_t *changed, uint32_t shard,
                         int32_t owner)
{
    for (int behind = 0; behind <= 1; behind++) {
        int32_t found = -1;
        for (int32_t k = l->n - 1; k >= 0; k--)
            if (is_behind(l, k) == behind && is_right(l, changed, k, shard))
                found = found == owner ? owner : k;
        if (found >= 0)
            return found;
    }
    return -1;
}

static as_status move_shard(struct residuals *r, struct coll *c, uint32_t shard, int32_t from,
                            int32_t to, struct as_err *err)
{
    struct coll_id id = {.step = shard, .tag = TAG_SHARD, .what = "residual"};
    size_t bytes = r->n * sizeof(float);
    int32_t own = coll_rank(c);
    if (from == to)
        return AS_OK;
    if (own == from)
        return coll_send(c, id, to, r->now[shard], bytes, err);
    return own == to ? coll_receive(c, id, from, r->now[shard], bytes, err) : AS_OK;
}

static as_status move_shards(struct residuals *r, struct coll *c, const struct claims *l,
                             const int64_t *changed, const struct shard_run *runs,
                             struct as_err *err)
{
    as_status st = AS_OK;
    for (uint32_t i = 0; st == AS_OK && i < r->shards; i++) {
        int32_t to = owner_of(runs, l->n, i), from = holder_of(l, changed, i, to);
        if (from >= 0)
            st = move_shard(r, c, i, from, to, err);
        else if (to == l->own)
            memset(r->now[i], 0, r->n * sizeof(float));
        r->lost += from < 0;
    }
    return st;
}

/* All is where it belongs: this rank is at the position of the others. */
static void take_position(struct residuals *r, const struct claims *l, const int64_t *changed,
                          const struct shard_run *runs)
{
    for (uint32_t i = 0; i < r->shards; i++)
        r->held[i] = is_right(l, changed, l->own, i) || i - runs[l->own].first < runs[l->own].count;
    memcpy(r->changed, changed, r->shards * sizeof *changed);
    r->run = runs[l->own];
    r->step = l->step;
}

/* Each value of the sum's residual comes from the first rank that holds it. The sum over the ranks
 * has one term that is not 0. */
static as_status move_sum(struct residuals *r, struct coll *c, const struct claims *l,
                          struct as_err *err)
{
    bool whole = true;
    for (int32_t k = 0; k < l->n; k++)
        whole = whole && head_of(l, k)->sum_first == 0 && head_of(l, k)->sum_end == r->n;
    if (whole)
        return AS_OK;
    AS_AUTO(as_freep) float *own = as_calloc(r->n, sizeof *own);
    AS_AUTO(as_freep) float *all = as_calloc(r->n, sizeof *all);
    AS_AUTO(as_freep) bool *taken = as_calloc(r->n, sizeof *taken);
    if (!own || !all || !taken)
        return as_fail_nomem(err);
    for (int32_t k = 0; k < l->own; k++)
        for (size_t i = head_of(l, k)->sum_first; i < head_of(l, k)->sum_end; i++)
            taken[i] = true;
    for (size_t i = head_of(l, l->own)->sum_first; i < head_of(l, l->own)->sum_end; i++)
        own[i] = taken[i] ? 0 : r->of_sum[i];
    as_status st =
        coll_allreduce(c, (struct coll_id){.tag = TAG_SUM, .what = "residual of the sum"},
                       COLL_RING, &reduce_f32_sum, own, all, r->n, err);
    if (st == AS_OK)
        memcpy(r->of_sum, all, r->n * sizeof(float));
    return st;
}

static as_status move_all(struct residuals *r, struct coll *c, int64_t step,
                          const struct shard_run *runs, struct as_err *err)
{
    struct claims l = {0};
    AS_AUTO(as_freep) int64_t *changed = as_calloc(r->shards, sizeof *changed);
    as_status st = changed ? exchange_claims(r, c, step, &l, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = agree_on_changes(r, c, &l, changed, err);
    if (st == AS_OK)
        st = move_shards(r, c, &l, changed, runs, err);
    if (st == AS_OK && r->of_sum)
        st = move_sum(r, c, &l, err);
    if (st == AS_OK)
        take_position(r, &l, changed, runs);
    free(l.all);
    return st;
}

as_status residuals_meet(struct residuals *r, struct coll *c, int64_t step,
                         const struct shard_run *runs, size_t sum_first, size_t sum_end,
                         struct as_err *err)
{
    if (r->next > r->step && r->next <= step)
        residuals_commit(r); /* the others have the result of the step that this rank missed */
    forget_written(r);
    r->lost = 0;
    as_status st = move_all(r, c, step, runs, err);
    if (st < 0)
        return st;
    r->sum_held = true;
    r->slice_first = sum_first;
    r->slice_end = sum_end;
    if (r->lost > 0 && coll_rank(c) == 0)
        (void)fprintf(
            stderr,
            "assay-train: of %u shards %s is gone with their rank, and begins anew from 0\n",
            (unsigned)r->lost, r->what);
    return AS_OK;
}

/* ---- checkpoints ---- */

size_t residuals_parts(struct residuals *r, struct strategy_part *ret)
{
    size_t n = 0;
    if (r->of_shards)
        ret[n++] = (struct strategy_part){
            .name = "residuals", .values = r->of_shards, .n = r->n * r->shards, .spread = true};
    if (r->of_sum)
        ret[n++] = (struct strategy_part){
            .name = "residual_of_sum", .values = r->of_sum, .n = r->n, .spread = true};
    return n;
}

as_status residuals_gather(struct residuals *r, struct coll *c, const struct shard_run *runs,
                           struct as_err *err)
{
    struct claims l = {0};
    int32_t n = coll_size(c);
    as_status st = AS_OK;
    for (uint32_t i = 0; st == AS_OK && i < r->shards; i++)
        st = move_shard(r, c, i, owner_of(runs, n, i), 0, err);
    for (uint32_t i = 0; st == AS_OK && coll_rank(c) == 0 && i < r->shards; i++)
        settle(r, i, true);
    if (st < 0 || !r->of_sum)
        return st;
    st = exchange_claims(r, c, r->step, &l, err);
    if (st == AS_OK)
        st = move_sum(r, c, &l, err);
    free(l.all);
    return st;
}
