/* What a batch writes, in statements on sets: points and notes, results at rungs, forks, ends,
 * promotions and their events, in this order. The rows of the trials are read back last. */
#include "scheduler/store/batch_write_priv.h"

#include "scheduler/store/event_store.h"
#include "scheduler/store/fork_store.h"
#include "scheduler/store/trial_row_store.h"

/* The events of a batch, in the order of their writing. */
struct events {
    struct event_new *list;
    size_t n;
};

static as_status write_records(struct tx *t, struct arena *a, struct batch_changes *c,
                               struct events *events, struct as_err *err)
{
    struct trial_points *points = arena_alloc(a, c->n_records + 1, sizeof *points);
    struct trial_notes *notes = arena_alloc(a, c->n_records + 1, sizeof *notes);
    size_t n_points = 0, n_notes = 0, k = 0;
    if (!points || !notes)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n_records; i++) {
        if (c->records[i].points.n > 0)
            points[n_points++] = c->records[i].points;
        if (c->records[i].notes.n > 0)
            notes[n_notes++] = c->records[i].notes;
    }
    as_status st = n_notes > 0 ? store_note_put_many(t, notes, n_notes, err) : AS_OK;
    if (st == AS_OK && n_points > 0)
        st = store_measurement_add_many(t, points, n_points, err);
    for (size_t i = 0; i < c->n_records && st == AS_OK; i++) {
        struct batch_record *r = &c->records[i];
        if (r->points.n == 0)
            continue;
        r->points.ret = points[k++].ret;
        if (r->points.keeps_row) {
            r->points.ret.has_value = r->has_value;
            r->points.ret.value = r->value;
        }
        if (!r->is_report || r->points.ret.recorded == 0)
            continue;
        events->list[events->n++] = (struct event_new){.type = "trial.measured",
                                                       .sweep_key = r->points.sweep_key,
                                                       .sweep = r->sweep,
                                                       .has_number = true,
                                                       .number = r->points.number,
                                                       .state = trial_state_format(r->state),
                                                       .attempt = r->points.attempt,
                                                       .has_value = r->points.ret.has_value,
                                                       .value = r->points.ret.value};
    }
    return st;
}

/* May the batch count its ends itself? Nothing else of it changes what sweeps count. */
static bool counts_its_ends(const struct batch_changes *c)
{
    const struct rung_changes *r = &c->rungs;
    bool is_plain = r->n_results == 0 && r->n_forks == 0 && r->n_promotions == 0;
    for (size_t i = 0; i < c->n_ends && is_plain; i++)
        is_plain = c->ends[i].is_plain;
    return is_plain;
}

static as_status write_ends(struct tx *t, struct arena *a, const struct batch_changes *c,
                            struct events *events, struct as_err *err)
{
    struct trial_moved *trials = arena_alloc(a, c->n_ends + 1, sizeof *trials);
    struct attempt_ended *attempts = arena_alloc(a, c->n_ends + 1, sizeof *attempts);
    if (!trials || !attempts)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n_ends; i++) {
        const struct trial_moved *m = &c->ends[i].trial;
        trials[i] = *m;
        attempts[i] =
            (struct attempt_ended){m->sweep_key, m->number, m->move.attempt, c->ends[i].attempt};
        events->list[events->n++] = c->ends[i].event;
    }
    as_status st = counts_its_ends(c) ? store_trial_move_counted(t, a, trials, c->n_ends, err)
                                      : store_trial_move_many(t, trials, c->n_ends, err);
    return st == AS_OK ? store_attempt_end_many(t, attempts, c->n_ends, err) : st;
}

static as_status read_rows(struct tx *t, struct arena *a, struct batch_changes *c,
                           struct as_err *err)
{
    struct trial_key *keys = arena_alloc(a, c->n_rows + 1, sizeof *keys);
    struct arena **arenas = arena_alloc(a, c->n_rows + 1, sizeof(struct arena *));
    struct trial_row *rows = arena_alloc(a, c->n_rows + 1, sizeof *rows);
    if (!keys || !arenas || !rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n_rows; i++) {
        keys[i] = c->rows[i].key;
        arenas[i] = c->rows[i].arena;
    }
    as_status st = store_trial_get_many(t, keys, c->n_rows, arenas, rows, err);
    for (size_t i = 0; i < c->n_rows && st == AS_OK; i++)
        c->rows[i].row = rows[i];
    return st;
}

as_status batch_write(struct tx *t, struct arena *a, struct batch_changes *c, struct as_err *err)
{
    const struct rung_changes *rungs = &c->rungs;
    size_t most =
        c->n_records + c->n_ends + rungs->n_results + rungs->n_forks + rungs->n_promotions;
    struct events events = {.list = arena_alloc(a, most + 1, sizeof *events.list)};
    if (!events.list)
        return as_fail_nomem(err);
    as_status st = c->n_records > 0 ? write_records(t, a, c, &events, err) : AS_OK;
    if (st == AS_OK)
        st = store_rung_add_many(t, rungs->results, rungs->n_results, events.list, &events.n, err);
    if (st == AS_OK)
        st = store_fork_add_many(t, a, rungs->forks, rungs->n_forks, events.list, &events.n, err);
    if (st == AS_OK && c->n_ends > 0)
        st = write_ends(t, a, c, &events, err);
    if (st == AS_OK)
        st = store_rung_promote_many(t, rungs->promotions, rungs->n_promotions, events.list,
                                     &events.n, err);
    if (st == AS_OK && events.n > 0)
        st = store_event_add_many(t, events.list, events.n, err);
    return st == AS_OK && c->n_rows > 0 ? read_rows(t, a, c, err) : st;
}
