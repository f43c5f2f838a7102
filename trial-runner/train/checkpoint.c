/* Writes and reads one member's checkpoint.
 *
 * A checkpoint holds everything that changes from step to step: parameters, moments, the average of
 * weights, running statistics, the step counter, the epoch's loss sum, the position, and with
 * `patience` the best weights so far, and the snapshots that were taken. All else is a function of
 * the train document, the data set and the seed; the fingerprint in the file stands for these
 * three, and a file with another fingerprint is refused. A fresh start instead would give the
 * result of another run without a word. After a file that is damaged it gives the same result, only
 * later, and is told (checkpoint_give_up).
 *
 * The position counts batches, because a checkpoint is written between two batches only. The last
 * report is in the file because a resumed run repeats it (group.c). */
#include "trial-runner/train/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <unistd.h>

#include "data/formats/safetensors.h"
#include "base/file.h"
#include "base/json.h"
#include "trial-runner/protocol/notes.h"
#include "trial-runner/train/channel.h"

#define FORMAT "assay-checkpoint-3"
#define FORMAT_BEFORE "assay-checkpoint-2" /* the same without a checksum; still read */
#define HEADER_SLACK ((size_t)16 << 20)    /* for the JSON header, which holds the last report */

#define CHECKPOINT_OWN_MAX ((size_t)4 << 30)

#define NAME_MAX_BYTES 64
#define BEST_NUMBERS 3 /* epoch, since, and the bits of value */
#define MAX_TENSORS (SLOT_PARTS + STRATEGY_MAX_PARTS + 4 + 3 + TRAIN_MAX_CYCLES)

/* The tensor of what a strategy keeps. */
static const char *part_name(const struct strategy_part *part, char ret[NAME_MAX_BYTES])
{
    (void)snprintf(ret, NAME_MAX_BYTES, "strategy.%s", part->name);
    return ret;
}

static struct safetensors_tensor vector_tensor(const char *name, safetensors_type type, size_t n,
                                               const void *data)
{
    return (struct safetensors_tensor){
        .name = name, .type = type, .n_dims = 1, .shape = {n}, .data = data};
}

/* ---- the best weights so far (best.h) ---- */

/* Add what `patience` needs; numbers [BEST_NUMBERS] must last until the file is written. Returns
 * the number of tensors. */
static size_t add_best(const struct member *m, int64_t *numbers, struct safetensors_tensor *tensors,
                       size_t n)
{
    const struct best *b = &m->best;
    if (b->epoch == 0)
        return n;
    numbers[0] = b->epoch;
    numbers[1] = b->since;
    memcpy(&numbers[2], &b->value, sizeof b->value);
    tensors[n++] = vector_tensor("best.numbers", SAFETENSORS_I64, BEST_NUMBERS, numbers);
    tensors[n++] = vector_tensor("best.weights", SAFETENSORS_F32, m->plan->n_params, b->weights);
    if (b->statistics)
        tensors[n++] =
            vector_tensor("best.statistics", SAFETENSORS_F32, m->plan->n_state, b->statistics);
    return n;
}

static as_status restore_best(struct member *m, const struct safetensors *file, struct as_err *err)
{
    struct best *b = &m->best;
    int64_t numbers[BEST_NUMBERS];
    const char *line = safetensors_metadata(file, "best");
    if (m->spec.patience == 0 || !line || !*line)
        return AS_OK;
    as_status st =
        safetensors_copy(file, "best.numbers", SAFETENSORS_I64, BEST_NUMBERS, numbers, err);
    if (st != AS_OK)
        return st;
    if (numbers[0] < 1 || numbers[0] > m->spec.epochs || numbers[1] < 0)
        return as_fail(err, AS_E_INVAL, "the best report of epoch %" PRId64 " is not in this job",
                       numbers[0]);
    st = best_alloc(b, m->plan->n_params, m->plan->n_state, err);
    if (st == AS_OK)
        st = safetensors_copy(file, "best.weights", SAFETENSORS_F32, m->plan->n_params, b->weights,
                              err);
    if (st == AS_OK && b->statistics)
        st = safetensors_copy(file, "best.statistics", SAFETENSORS_F32, m->plan->n_state,
                              b->statistics, err);
    if (st != AS_OK)
        return st;
    b->epoch = numbers[0];
    b->since = numbers[1];
    memcpy(&b->value, &numbers[2], sizeof b->value);
    str_clear(&b->line);
    str_puts(&b->line, line);
    return str_check(&b->line, err);
}

/* ---- snapshots (snapshots.h) ---- */

static const char *snapshot_name(size_t i, char ret[NAME_MAX_BYTES])
{
    (void)snprintf(ret, NAME_MAX_BYTES, "snapshot.%zu", i);
    return ret;
}

static size_t add_snapshots(const struct member *m, char names[][NAME_MAX_BYTES],
                            struct safetensors_tensor *tensors, size_t n)
{
    size_t numbers = m->plan->n_params + m->plan->n_state;
    for (size_t i = 0; i < m->snapshots.n; i++)
        tensors[n++] = vector_tensor(snapshot_name(i, names[i]), SAFETENSORS_F32, numbers,
                                     m->snapshots.values[i]);
    return n;
}

/* Those that were taken before the position, which is already read. */
static as_status restore_snapshots(struct member *m, const struct safetensors *file,
                                   struct as_err *err)
{
    struct snapshots *s = &m->snapshots;
    size_t numbers = m->plan->n_params + m->plan->n_state;
    size_t taken = snapshots_after(&m->spec, m->epoch);
    for (s->n = 0; s->n < taken; s->n++) {
        char name[NAME_MAX_BYTES];
        as_status st = snapshots_alloc(s, numbers, err);
        if (st == AS_OK)
            st = safetensors_copy(file, snapshot_name(s->n, name), SAFETENSORS_F32, numbers,
                                  s->values[s->n], err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* Write the member to the file `path`. */
static as_status write_to(struct lockstep *ls, size_t slot, const char *path, struct as_err *err)
{
    const struct member *m = ls->member[slot];
    AS_AUTO(slot_state_done) struct slot_state own = {0};
    const struct slot_state *s = ls->whole ? ls->whole : &own;
    struct slot_part parts[SLOT_PARTS];
    struct safetensors_tensor tensors[MAX_TENSORS];
    struct strategy_part kept[STRATEGY_MAX_PARTS];
    char names[STRATEGY_MAX_PARTS][NAME_MAX_BYTES];
    size_t n = 0;
    int64_t position[2] = {m->epoch, (int64_t)(m->at / m->layout.per_batch)};
    int64_t best[BEST_NUMBERS];
    char snapshot_names[TRAIN_MAX_CYCLES][NAME_MAX_BYTES];
    JSON_AUTO meta = json_pack("{s:s, s:s, s:s*, s:s, s:s}", "format", FORMAT, "fingerprint",
                               m->fingerprint, "kin", m->kin[0] ? m->kin : NULL, "report",
                               str_cstr(&m->last_report), "best", str_cstr(&m->best.line));
    if (!meta)
        return as_fail(err, AS_E_NOMEM, "out of memory for a checkpoint");
    struct slot place = lockstep_slot(ls, slot);
    /* What is whole was gathered after a step; the numbers of now are the slot's. */
    as_status st =
        ls->whole ? lockstep_state_get(ls, &own, err) : slot_state_get(&place, &own, err);
    if (st != AS_OK)
        return st;
    slot_state_parts(&place, s, parts);
    for (size_t i = 0; i < SLOT_PARTS; i++)
        if (parts[i].values)
            tensors[n++] =
                vector_tensor(parts[i].name, SAFETENSORS_F32, parts[i].n, parts[i].values);
    size_t n_kept = ls->strategy ? strategy_parts(ls->strategy, kept) : 0;
    for (size_t i = 0; i < n_kept; i++)
        tensors[n++] = vector_tensor(part_name(&kept[i], names[i]), SAFETENSORS_F32, kept[i].n,
                                     kept[i].values);
    tensors[n++] = vector_tensor("steps", SAFETENSORS_I32, 1, &own.steps);
    tensors[n++] = vector_tensor("active", SAFETENSORS_I32, 1, &own.active);
    tensors[n++] = vector_tensor("loss_sum", SAFETENSORS_F32, 1, &own.loss_sum);
    tensors[n++] = vector_tensor("position", SAFETENSORS_I64, 2, position);
    n = add_best(m, best, tensors, n);
    n = add_snapshots(m, snapshot_names, tensors, n);
    return safetensors_write(path, meta, tensors, n, err);
}

as_status checkpoint_write(struct lockstep *ls, size_t slot, struct as_err *err)
{
    return write_to(ls, slot, ls->member[slot]->checkpoint, err);
}

/* The folder of what is kept after an epoch, beside the member's own file. */
static char *kept_folder(const struct member *m, int64_t epoch)
{
    AS_AUTO(str_done) struct str path = {0};
    const char *last = strrchr(m->checkpoint, '/');
    str_printf(&path, "%.*s/" CHECKPOINT_KEPT "%" PRId64, (int)(last - m->checkpoint),
               m->checkpoint, epoch);
    return str_take(&path);
}

as_status checkpoint_keep(struct lockstep *ls, size_t slot, struct as_err *err)
{
    struct member *m = ls->member[slot];
    const size_t at = m->at;
    AS_AUTO(as_freep) char *folder = kept_folder(m, m->epoch + 1);
    AS_AUTO(as_freep) char *path = folder ? file_join(folder, CHECKPOINT_NAME) : NULL;
    if (!path)
        return as_fail_nomem(err);
    as_status st = file_mkdirs(folder, 0777, err);
    m->epoch++; /* where a fork begins: before the first batch of the next epoch */
    m->at = 0;
    if (st >= 0)
        st = write_to(ls, slot, path, err);
    m->epoch--;
    m->at = at;
    return st;
}

/* *ret_is_fork: it is of another trial, which this one goes on from with other values. */
static as_status check_identity(const struct member *m, const struct safetensors *s,
                                bool *ret_is_fork, struct as_err *err)
{
    const char *format = safetensors_metadata(s, "format");
    const char *of = safetensors_metadata(s, "fingerprint");
    if (!as_streq(format, FORMAT) && !as_streq(format, FORMAT_BEFORE))
        return as_fail(err, AS_E_INVAL,
                       "it is not a checkpoint: its format is '%.40s', expected '%s'",
                       format ? format : "", FORMAT);
    *ret_is_fork = !as_streq(of, m->fingerprint) && m->kin[0] &&
                   as_streq(safetensors_metadata(s, "kin"), m->kin);
    if (!as_streq(of, m->fingerprint) && !*ret_is_fork)
        return as_fail(err, AS_E_INVAL,
                       "the checkpoint belongs to another job (another train document, data set or "
                       "seed)");
    return AS_OK;
}

static as_status check_whole(const struct member *m, const struct safetensors *s,
                             struct as_err *err)
{
    if (!as_streq(safetensors_metadata(s, "format"), FORMAT) ||
        safetensors_metadata(s, SAFETENSORS_CHECKSUM))
        return AS_OK;
    return as_fail(
        err, AS_E_INVAL,
        "%.200s: the file is damaged: it has no checksum, expected '" SAFETENSORS_CHECKSUM
        "' in its metadata",
        m->checkpoint);
}

static as_status read_position(struct member *m, const struct safetensors *s, struct as_err *err)
{
    int64_t position[2];
    as_status st = safetensors_copy(s, "position", SAFETENSORS_I64, 2, position, err);
    if (st != AS_OK)
        return st;
    if (position[0] < 0 || position[0] > m->spec.epochs || position[1] < 0 ||
        position[1] >= m->layout.steps_per_epoch ||
        (position[0] == m->spec.epochs && position[1] > 0))
        return as_fail(err, AS_E_INVAL, "epoch %" PRId64 ", step %" PRId64 " is not in this job",
                       position[0], position[1]);
    const char *line = safetensors_metadata(s, "report");
    str_clear(&m->last_report);
    str_puts(&m->last_report, line ? line : "");
    m->epoch = position[0];
    m->at = (size_t)position[1] * m->layout.per_batch;
    return str_check(&m->last_report, err);
}

/* What the strategy of a large trial keeps. Its arrays are used only after the whole file is
 * read. */
static as_status restore_kept(const struct strategy *strategy, const struct safetensors *file,
                              struct as_err *err)
{
    struct strategy_part kept[STRATEGY_MAX_PARTS];
    size_t n = strategy ? strategy_parts(strategy, kept) : 0;
    for (size_t i = 0; i < n; i++) {
        char name[NAME_MAX_BYTES];
        as_status st = safetensors_copy(file, part_name(&kept[i], name), SAFETENSORS_F32, kept[i].n,
                                        kept[i].values, err);
        if (st != AS_OK)
            return st;
    }
    return strategy && strategy->ops->restored ? strategy->ops->restored(strategy->self, true, err)
                                               : AS_OK;
}

/* Of a member whose ranks hold parts of the network the arrays stay whole until they have met. */
static as_status keep_whole(struct lockstep *ls, struct slot_state *s, struct as_err *err)
{
    struct slot place = lockstep_slot(ls, 0);
    const struct slot_state numbers = {
        .steps = s->steps, .active = s->active, .loss_sum = s->loss_sum};
    as_status st = lockstep_make_whole(ls, err);
    if (st != AS_OK)
        return st;
    slot_state_done(ls->whole);
    *ls->whole = *s;
    *s = (struct slot_state){0};
    return slot_state_put(&place, &numbers, err);
}

static as_status restore_member(struct lockstep *ls, size_t slot, const struct safetensors *file,
                                struct as_err *err)
{
    struct member *m = ls->member[slot];
    AS_AUTO(slot_state_done) struct slot_state s = {0};
    struct slot_part parts[SLOT_PARTS];
    struct slot place = lockstep_slot(ls, slot);
    bool is_fork = false;
    as_status st = check_identity(m, file, &is_fork, err);
    if (st != AS_OK)
        return st;
    place.needs.divided = m->divides_moments; /* with divides_layers all of it comes back */
    st = slot_state_create(&place, &s, err);
    if (st != AS_OK)
        return st;
    slot_state_parts(&place, &s, parts);
    for (size_t i = 0; i < SLOT_PARTS; i++) {
        if (!parts[i].values)
            continue;
        st = safetensors_copy(file, parts[i].name, SAFETENSORS_F32, parts[i].n, parts[i].values,
                              err);
        if (st != AS_OK)
            return st;
    }
    st = safetensors_copy(file, "steps", SAFETENSORS_I32, 1, &s.steps, err);
    if (st != AS_OK)
        return st;
    st = safetensors_copy(file, "active", SAFETENSORS_I32, 1, &s.active, err);
    if (st != AS_OK)
        return st;
    st = safetensors_copy(file, "loss_sum", SAFETENSORS_F32, 1, &s.loss_sum, err);
    if (st != AS_OK)
        return st;
    st = read_position(m, file, err);
    if (st != AS_OK)
        return st;
    st = restore_best(m, file, err);
    if (st != AS_OK)
        return st;
    st = restore_snapshots(m, file, err);
    if (st != AS_OK)
        return st;
    st = restore_kept(ls->strategy, file, err);
    if (st != AS_OK)
        return st;
    if (is_fork) { /* what was measured so far is its parent's */
        str_clear(&m->last_report);
        s.loss_sum = 0;
    }
    return m->divides_layers ? keep_whole(ls, &s, err) : slot_state_put(&place, &s, err);
}

as_status checkpoint_read(struct lockstep *ls, size_t slot, bool *ret_found, struct as_err *err)
{
    const struct member *m = ls->member[slot];
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    struct strategy_part kept[STRATEGY_MAX_PARTS];
    size_t most = (4 * m->plan->n_params + m->plan->n_state) * sizeof(float) + HEADER_SLACK;
    if (m->spec.patience > 0)
        most += (m->plan->n_params + m->plan->n_state) * sizeof(float);
    most += (size_t)train_spec_snapshots(&m->spec) * (m->plan->n_params + m->plan->n_state) *
            sizeof(float);
    size_t n_kept = ls->strategy ? strategy_parts(ls->strategy, kept) : 0;
    for (size_t i = 0; i < n_kept; i++)
        most += kept[i].n * sizeof(float);
    as_status st = safetensors_read(m->checkpoint, most, &s, err);
    if (st == AS_E_NOT_FOUND) {
        *ret_found = false;
        return AS_OK;
    }
    if (st == AS_OK)
        st = check_whole(m, s, err);
    if (st != AS_OK)
        return st;
    st = restore_member(ls, slot, s, err);
    if (st == AS_E_INVAL) /* it is whole, and not of this job */
        st = err->code = AS_E_CONFLICT;
    if (st != AS_OK)
        return as_err_prefix(err, st, "%.200s", m->checkpoint);
    *ret_found = true;
    return AS_OK;
}

as_status checkpoint_read_own(struct member *m, struct safetensors **ret, struct as_err *err)
{
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    struct as_err why;
    as_status st = safetensors_read(m->checkpoint, CHECKPOINT_OWN_MAX, &s, &why);
    *ret = NULL;
    if (st == AS_OK && !safetensors_metadata(s, SAFETENSORS_CHECKSUM))
        st = as_fail(&why, AS_E_INVAL, "%.200s: the file is damaged: it has no checksum",
                     m->checkpoint);
    if (st == AS_E_INVAL)
        return checkpoint_give_up(m, &why, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : as_fail(err, st, "%s", why.msg);
    *ret = as_steal(s);
    return AS_OK;
}

as_status checkpoint_give_up(struct member *m, const struct as_err *why, struct as_err *err)
{
    AS_AUTO(str_done) struct str text = {0}, line = {0};
    str_printf(&text, "the checkpoint is not used, and the trial begins again: %s", why->msg);
    channel_log(m->channel, m->id, true, str_cstr(&text));
    JSON_AUTO note = json_pack("{s:s}", NOTE_CHECKPOINT_LOST, why->msg);
    json_format_to(&line, note);
    str_putc(&line, '\n');
    as_status st = note ? str_check(&line, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    (void)unlink(m->checkpoint);
    return report_file_append(&m->report, &line, err);
}
