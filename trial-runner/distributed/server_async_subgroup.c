/* The ranks of a group work on one batch: sums over them, and the next batch from the first of
 * them. */
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/server_async_priv.h"
#include "trial-runner/distributed/shard_tree.h"

static as_status finish_group(struct async *a, struct mail_call *calls, float *out,
                              struct as_err *err)
{
    size_t n_all = a->replica->n_numbers + N_WORK;
    as_status st = AS_OK;
    for (int32_t j = 0; j < a->group_n; j++) {
        size_t first, end;
        as_status own = mailbox_finish(a->box, &calls[j], st < 0 ? NULL : err);
        coll_slice(n_all, a->group_n, j, &first, &end);
        size_t bytes = (end - first) * sizeof(float);
        if (own == AS_OK && calls[j].answer_n != sizeof(struct sum_answer) + bytes)
            own = as_fail(err, AS_E_CONFLICT, "rank %d answers with %zu bytes", (int)calls[j].to,
                          calls[j].answer_n);
        if (own == AS_OK)
            memcpy(out + first, calls[j].answer + sizeof(struct sum_answer), bytes);
        free(calls[j].answer);
        st = st < 0 ? st : own;
    }
    return st;
}

as_status async_exchange(struct async *a, uint32_t total, struct shard_run run, float share,
                         const struct shard_node *nodes, size_t n_nodes, float *out,
                         struct as_err *err)
{
    size_t n_all = a->replica->n_numbers + N_WORK;
    AS_AUTO(as_freep) struct mail_call *calls = as_calloc((size_t)a->group_n, sizeof *calls);
    uint8_t *message = a->message;
    if (!calls)
        return as_fail_nomem(err);
    a->round++;
    for (int32_t j = 0; j < a->group_n; j++) {
        struct sum_head head = {.slice = (uint32_t)j,
                                .first = run.first,
                                .count = run.count,
                                .total = total,
                                .share = share,
                                .n_slices = (uint32_t)a->group_n};
        size_t first, end, size = sizeof head;
        coll_slice(n_all, a->group_n, j, &first, &end);
        memcpy(message, &head, sizeof head);
        for (size_t i = 0; i < n_nodes; i++, size += (end - first) * sizeof(float))
            memcpy(message + size, nodes[i].value + first, (end - first) * sizeof(float));
        calls[j] = (struct mail_call){.to = a->group_first + j,
                                      .kind = SUM_GIVE,
                                      .step = a->round,
                                      .parts = {{message, size}}};
        mailbox_begin(a->box, &calls[j]);
        message += size;
    }
    return finish_group(a, calls, out, err);
}

as_status async_share_work(struct async *a, int64_t *batch, struct as_err *err)
{
    const struct replica *r = a->replica;
    struct shard_node root = {.value = a->node};
    if (a->group_n == 1)
        return AS_OK;
    if (async_leads_group(a)) {
        memcpy(a->node, a->values.weights, a->n_weights * sizeof(float));
        a->node[r->n_numbers + WORK_HIGH] = (float)((*batch + 1) >> 20);
        a->node[r->n_numbers + WORK_LOW] = (float)((*batch + 1) & 0xfffff);
    }
    struct shard_run run = {0, async_leads_group(a)};
    as_status st = async_exchange(a, 1, run, (float)run.count, &root, run.count, a->sum, err);
    if (st < 0 || async_leads_group(a))
        return st;
    *batch = ((int64_t)a->sum[r->n_numbers + WORK_HIGH] << 20 |
              (int64_t)a->sum[r->n_numbers + WORK_LOW]) -
             1;
    memcpy(a->values.weights, a->sum, a->n_weights * sizeof(float));
    return *batch >= 0 ? async_write_state(a, false, err) : AS_OK;
}
