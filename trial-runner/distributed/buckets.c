/* The trainer's thread marks numbers as complete (buckets_complete()); the collective's thread
 * sums. A bucket's sum is posted when its last missing number is there and all buckets after it
 * were posted, so all ranks post in one order whatever each computes first. After a loss nothing
 * that was posted is used: the step is repeated in the next world, and numbers that were computed
 * stay (decision 8005). */
#include "trial-runner/distributed/buckets.h"

#include <stdlib.h>

#define BUCKETS_MAX 1024 /* then they become longer; below SHARD_SUM_TAGS */

struct bucket {
    struct coll_job job; /* must be first: the collective gives it back */
    struct buckets *owner;
    size_t first, n;
    size_t missing; /* numbers that are not complete yet */
};

struct buckets {
    struct shard_sum *sums;
    size_t n_buckets; /* the last one is what follows the parameters */
    struct bucket *bucket;
    /* The step: */
    struct coll *coll; /* NULL between steps: its world may be over */
    struct shard_step at;
    const struct own_sum *own;
    float *sum;
    size_t begun, early;
};

void buckets_free(struct buckets *b)
{
    if (!b)
        return;
    free(b->bucket);
    free(b);
}

static as_status sum_bucket(struct coll *c, struct coll_job *job, struct as_err *err)
{
    const struct bucket *k = (struct bucket *)job;
    const struct buckets *b = k->owner;
    return shard_sum_part(b->sums, c, b->at, own_sum_values(b->own), k->first, k->n,
                          (uint64_t)(k - b->bucket), b->sum, err);
}

as_status buckets_create(struct shard_sum *sums, size_t n_params, size_t n, struct buckets **ret,
                         struct as_err *err)
{
    size_t cut = n_params / BUCKET_NUMBERS; /* buckets of parameters, of about equal length */
    *ret = NULL;
    cut = cut < BUCKETS_MAX ? cut : BUCKETS_MAX;
    if (cut < 2 || !shard_sum_splits(sums))
        return AS_OK;
    AS_AUTO(buckets_freep) struct buckets *b = as_calloc(1, sizeof *b);
    if (!b)
        return as_fail_nomem(err);
    b->sums = sums;
    b->n_buckets = cut + 1;
    b->bucket = as_calloc(b->n_buckets, sizeof *b->bucket);
    if (!b->bucket)
        return as_fail_nomem(err);
    for (size_t k = 0; k < b->n_buckets; k++) {
        struct bucket *to = &b->bucket[k];
        size_t first = n_params, end = n;
        if (k < cut)
            coll_slice(n_params, (int32_t)cut, (int32_t)(cut - 1 - k), &first, &end);
        *to = (struct bucket){.owner = b, .first = first, .n = end - first};
        to->job.run = sum_bucket;
    }
    *ret = as_steal(b);
    return AS_OK;
}

void buckets_begin(struct buckets *b, struct coll *c, struct shard_step at,
                   const struct own_sum *own, float *sum)
{
    b->coll = c;
    b->at = at;
    b->own = own;
    b->sum = sum;
    b->begun = b->early = 0;
    for (size_t k = 0; k < b->n_buckets; k++)
        b->bucket[k].missing = b->bucket[k].n;
}

static void begin_next(struct buckets *b)
{
    coll_begin(b->coll, &b->bucket[b->begun].job);
    b->begun++;
}

void buckets_complete(struct buckets *b, size_t first, size_t n)
{
    for (size_t k = 0; k < b->n_buckets - 1; k++) {
        struct bucket *at = &b->bucket[k];
        size_t from = first > at->first ? first : at->first;
        size_t to = first + n < at->first + at->n ? first + n : at->first + at->n;
        at->missing -= to > from ? to - from : 0;
    }
    while (b->begun < b->n_buckets - 1 && b->bucket[b->begun].missing == 0)
        begin_next(b);
}

static as_status wait_for_all(struct buckets *b, struct as_err *err)
{
    as_status first = AS_OK;
    for (size_t k = 0; k < b->begun; k++) {
        as_status st = coll_finish(b->coll, &b->bucket[k].job, first == AS_OK ? err : NULL);
        if (first == AS_OK)
            first = st;
    }
    b->coll = NULL;
    return first;
}

as_status buckets_end(struct buckets *b, struct as_err *err)
{
    b->early = b->begun;
    while (b->begun < b->n_buckets)
        begin_next(b);
    return wait_for_all(b, err);
}

void buckets_abandon(struct buckets *b)
{
    coll_interrupt(b->coll); /* the others may never come to these sums */
    as_status st = wait_for_all(b, NULL);
    (void)st;
}

size_t buckets_count(const struct buckets *b)
{
    return b->n_buckets;
}

size_t buckets_begun_early(const struct buckets *b)
{
    return b->early;
}

size_t buckets_summed(struct buckets *b)
{
    size_t n = 0;
    if (!b->coll)
        return b->begun;
    while (n < b->begun && coll_is_done(b->coll, &b->bucket[n].job))
        n++;
    return n;
}
