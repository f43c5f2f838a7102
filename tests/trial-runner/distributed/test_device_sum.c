/* Sums over shards on devices (emulated ones, with what stands in for NCCL): for any number of
 * ranks the bits of the tree, written down in the plainest way. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/check_main.h"
#include "tests/support/expect.h"
#include "trial-runner/distributed/device_sum.h"

#define RANKS_MAX 4
#define SHARDS_MAX 16
#define OPEN_MS PATIENCE_MS

static struct as_err err;

struct sum {
    uint32_t total;
    size_t n;
    int32_t ranks;
    bool uneven;
    uint8_t id[PEERS_ID_BYTES];
};

static float number_of(uint32_t shard, size_t i)
{
    return (float)((i * 2654435761U + shard * 40503U) % 100003U) / 77777.0F - 0.61F;
}

static float tree_value(uint32_t first, uint32_t level, uint32_t total, size_t i)
{
    if (level == 0)
        return number_of(first, i);
    uint32_t middle = first + (1U << (level - 1));
    float left = tree_value(first, level - 1, total, i);
    return middle < total ? left + tree_value(middle, level - 1, total, i) : left;
}

static void share_out(const struct sum *s, struct shard_run *ret)
{
    uint32_t next = 0;
    coll_spread(s->total, s->ranks, ret);
    for (int32_t r = 0; s->uneven && r < s->ranks; r++) {
        uint32_t count = r == s->ranks - 1 ? s->total - next : (s->total - next) / 3;
        ret[r] = (struct shard_run){next, count};
        next += count;
    }
}

static bool is_sum(const struct sum *s, const float *values)
{
    uint32_t level = 0;
    while ((1U << level) < s->total)
        level++;
    for (size_t i = 0; i < s->n; i++)
        if (values[i] != tree_value(0, level, s->total, i))
            return false;
    return true;
}

static int sum_rank(const struct sum *s, int32_t rank)
{
    struct backend *be = NULL;
    struct peers *p = NULL;
    struct device_sum *d = NULL;
    struct shard_run runs[RANKS_MAX];
    struct buf *partials[SHARDS_MAX] = {0}, *out = NULL;
    float *host = calloc(s->n, sizeof *host);
    share_out(s, runs);
    EXPECT(host && backend_open("cuda", NULL, &be, &err) == AS_OK);
    struct peers_group group = {.rank = rank, .n = s->ranks, .timeout_ms = OPEN_MS};
    memcpy(group.id, s->id, sizeof group.id);
    EXPECT(s->ranks == 1 || peers_open(be, &group, &p, &err) == AS_OK);
    EXPECT(device_sum_create(be, p, rank, s->ranks, runs, s->total, s->n, &d, &err) == AS_OK);
    EXPECT(buf_create(be, BUF_F32, s->n, &out, &err) == AS_OK);
    for (uint32_t k = 0; k < runs[rank].count; k++) {
        EXPECT(buf_create(be, BUF_F32, s->n, &partials[k], &err) == AS_OK);
        for (size_t i = 0; i < s->n; i++)
            host[i] = number_of(runs[rank].first + k, i);
        EXPECT(buf_upload(partials[k], 0, host, s->n, &err) == AS_OK);
    }
    for (int again = 0; again < 2; again++) { /* partials are not changed */
        EXPECT(device_sum_run(d, partials, out, &err) == AS_OK);
        EXPECT(!p || peers_wait(p, OPEN_MS, &err) == AS_OK);
        EXPECT(buf_download(out, 0, host, s->n, &err) == AS_OK);
        EXPECT(is_sum(s, host));
    }
    device_sum_free(d);
    peers_free(p);
    for (uint32_t k = 0; k < runs[rank].count; k++)
        buf_free(partials[k]);
    buf_free(out);
    backend_free(be);
    free(host);
    return 0;
}

static void sum_up(struct sum *s)
{
    pid_t pids[RANKS_MAX];
    struct backend *be = NULL;
    ck_ok(backend_open("cuda", NULL, &be, &err), err);
    ck_ok(peers_new_id(be, s->id, &err), err);
    backend_free(be);
    (void)fflush(NULL);
    for (int32_t r = 0; r < s->ranks; r++)
        if ((pids[r] = fork()) == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(sum_rank(s, r));
        }
    for (int32_t r = 0; r < s->ranks; r++) {
        int status = -1;
        ck_assert_int_eq(waitpid(pids[r], &status, 0), pids[r]);
        ck_assert_msg(status == 0, "rank %d of %d ended with %d", (int)r, (int)s->ranks, status);
    }
}

START_TEST(device_sums_have_equal_bits_for_any_number_of_ranks)
{
    static const uint32_t totals[] = {1, 2, 5, 8, 11};
    struct sum s = {.total = totals[_i], .n = 1003};
    for (s.ranks = 1; s.ranks <= RANKS_MAX; s.ranks++)
        for (int uneven = 0; uneven < 2; uneven++) {
            s.uneven = uneven;
            sum_up(&s);
        }
    s = (struct sum){.total = totals[_i], .n = 2, .ranks = 3}; /* a rank without a slice */
    sum_up(&s);
}
END_TEST

START_TEST(runs_that_are_no_runs_are_refused)
{
    static const struct shard_run wrong[][2] = {
        {{0, 2}, {3, 2}}, {{0, 2}, {2, 2}}, {{0, 4}, {4, 2}}, {{1, 2}, {3, 2}}};
    struct device_sum *d = NULL;
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++)
        ck_assert_int_eq(device_sum_create(NULL, NULL, 0, 2, wrong[i], 5, 10, &d, &err),
                         AS_E_INVAL);
    ck_assert_ptr_null(d);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("device_sum");
    TCase *t = tcase_create("device_sum");
    tcase_add_loop_test(t, device_sums_have_equal_bits_for_any_number_of_ranks, 0, 5);
    tcase_add_test(t, runs_that_are_no_runs_are_refused);
    suite_add_tcase(s, t);
    return s;
}
