/* The checkpoint of a model of trees: the trees at a boundary (tree_train.h), and what early
 * stopping knew there. A member that is stopped between two boundaries stores the rounds of the
 * last one, and computes the few rounds after it again when it resumes. */
#include "trial-runner/train/tree_trial_priv.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "data/formats/safetensors.h"
#include "trial-runner/train/channel.h"
#include "trial-runner/train/checkpoint.h"

#define FORMAT "assay-checkpoint-trees-1"

static as_status read_position(struct tree_trial *t, const struct safetensors *s,
                               struct as_err *err)
{
    int64_t rounds[2];
    struct position p = {0};
    const struct safetensors_tensor *trees = safetensors_get(s, "trees");
    const char *of = safetensors_metadata(s, "fingerprint");
    if (!as_streq(safetensors_metadata(s, "format"), FORMAT) || !trees ||
        trees->type != SAFETENSORS_U8)
        return as_fail(err, AS_E_INVAL, "it is not a checkpoint of trees, expected the format '%s'",
                       FORMAT);
    if (!as_streq(of, t->m->fingerprint))
        return as_fail(err, AS_E_INVAL,
                       "the checkpoint belongs to another job (another train document, data set or "
                       "seed)");
    as_status st = safetensors_copy(s, "position", SAFETENSORS_I64, 2, rounds, err);
    if (st == AS_OK)
        st = safetensors_copy(s, "best", SAFETENSORS_F64, 1, &p.best, err);
    if (st == AS_OK)
        st = tree_train_restore(t->train, trees->data, trees->size_bytes, err);
    if (st != AS_OK)
        return st;
    p.rounds = (size_t)rounds[0];
    p.best_rounds = (size_t)rounds[1];
    if (rounds[0] < 1 || p.rounds != tree_train_rounds(t->train) || rounds[1] < 0 ||
        rounds[1] > rounds[0] || !tree_train_is_boundary(t->train, p.rounds))
        return as_fail(err, AS_E_INVAL, "round %" PRId64 ", best %" PRId64 " is not in this job",
                       rounds[0], rounds[1]);
    t->now = t->boundary = p;
    return AS_OK;
}

as_status tree_trial_resume(struct tree_trial *t, struct as_err *err)
{
    struct member *m = t->m;
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    char text[80];
    m->saved_ns = clock_mono_ns();
    if (!m->checkpoint)
        return AS_OK;
    as_status st = checkpoint_read_own(m, &s, err);
    if (st != AS_OK || !s)
        return st;
    st = read_position(t, s, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "%.200s", m->checkpoint);
    const char *line = safetensors_metadata(s, "report");
    m->epoch = (int64_t)t->now.rounds;
    if (t->setup->job->rounds > 0) /* its first training has reported them */
        return AS_OK;
    str_puts(&m->last_report, line ? line : "");
    st = str_check(&m->last_report, err);
    if (st != AS_OK)
        return st;
    (void)snprintf(text, sizeof text, "resumed after round %zu", t->now.rounds);
    channel_log(m->channel, m->id, false, text);
    return m->last_report.len > 0 ? report_file_append(&m->report, &m->last_report, err) : AS_OK;
}

static as_status write_checkpoint(struct tree_trial *t, struct as_err *err)
{
    const struct position *p = &t->boundary;
    AS_AUTO(as_freep) char *trees = NULL;
    size_t len = 0;
    int64_t rounds[2] = {(int64_t)p->rounds, (int64_t)p->best_rounds};
    JSON_AUTO meta = json_pack("{s:s, s:s, s:s}", "format", FORMAT, "fingerprint",
                               t->m->fingerprint, "report", str_cstr(&t->m->last_report));
    if (!meta)
        return as_fail_nomem(err);
    as_status st = tree_train_save(t->train, p->rounds, &trees, &len, err);
    if (st != AS_OK)
        return st;
    const struct safetensors_tensor tensors[] = {
        {.name = "best", .type = SAFETENSORS_F64, .n_dims = 1, .shape = {1}, .data = &p->best},
        {.name = "position", .type = SAFETENSORS_I64, .n_dims = 1, .shape = {2}, .data = rounds},
        {.name = "trees", .type = SAFETENSORS_U8, .n_dims = 1, .shape = {len}, .data = trees},
    };
    return safetensors_write(t->m->checkpoint, meta, tensors, AS_ARRAY_LEN(tensors), err);
}

void tree_trial_save(struct tree_trial *t)
{
    struct member *m = t->m;
    struct as_err why;
    char text[AS_ERR_MSG_MAX + 60];
    if (!m->checkpoint || t->boundary.rounds == 0)
        return;
    int64_t start = clock_mono_ns();
    as_status st = write_checkpoint(t, &why);
    m->saved_ns = clock_mono_ns();
    m->save_cost_ns = m->saved_ns - start;
    if (st == AS_OK)
        return;
    (void)snprintf(text, sizeof text, "warning: going on without a checkpoint: %s", why.msg);
    channel_log(m->channel, m->id, true, text);
}
