/* What a batch of claims reads of the sweeps that it takes trials of: their rows, which it locks in
 * the order of keys, after those of the runners (batch_look.c); the oldest trials of their queues,
 * with the checkpoints of those that ran before; and how many steps may still begin. */
#include "scheduler/store/batch_take_priv.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { CLAIMS_QUEUE, CLAIMS_FILES };

static const struct stmt stmts[] = {
    [CLAIMS_QUEUE] =
        {"claims_queue",
         "select u.place - 1, h.* from unnest($1::bigint[], $2::bigint[]) with ordinality as "
         "u(key, most, place) cross join lateral (select t.number, t.attempt, t.seed, t.params, "
         "t.parent is not null "
         "from trial t where t.sweep_key = u.key and t.state = 'queued' order by t.number limit "
         "u.most) h"},
    [CLAIMS_FILES] =
        {"claims_files",
         "select u.place - 1, h.* from unnest($1::bigint[], $2::int[]) with ordinality as u(key, "
         "number, place) cross join lateral (select f.path, f.size, f.sha256 from trial_file f "
         "where f.sweep_key = u.key and f.number = u.number and f.kind = 'checkpoint') h order by "
         "u.place, h.path"},
};
const struct stmt_set batch_take_stmts = {"batch_take", stmts, AS_ARRAY_LEN(stmts)};

static as_status read_queues(struct tx *t, struct arena *a, struct batch_source *sources, size_t n,
                             struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    size_t n_wanted = 0;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        struct batch_source *s = &sources[i];
        int64_t most = s->row && s->row->head.counts.by_state[TRIAL_QUEUED] > 0 ? s->n_wanted : 0;
        s->queue = arena_alloc(a, (size_t)most + 1, sizeof *s->queue);
        if (!s->queue)
            return as_fail_nomem(err);
        n_wanted += (size_t)most;
        array_i64(&x.c[0], s->key);
        array_i64(&x.c[1], most);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK && n_wanted > 0)
        st = tx_query(t, &stmts[CLAIMS_QUEUE], ARGS(arg_array(&x, 0), arg_array(&x, 1)), &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        struct batch_source *s = &sources[read_i64(&rd)];
        struct batch_queued *q = &s->queue[s->n_queue++];
        q->number = read_i64(&rd);
        q->attempt = read_i64(&rd);
        q->seed = read_i64(&rd);
        q->params = read_str(&rd);
        q->is_fork = read_bool(&rd);
        st = reader_check(&rd, err);
    }
    return st;
}

/* The checkpoints of queued trials that ran before, and of forks. */
static as_status read_checkpoints(struct tx *t, struct arena *a, struct batch_queued *const *ran,
                                  const int64_t *keys, size_t n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x.c[0], keys[i]);
        array_i64(&x.c[1], ran[i]->number);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[CLAIMS_FILES], ARGS(arg_array(&x, 0), arg_array(&x, 1)), &r, err);
    struct file_row *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        struct file_list *files = &ran[read_i64(&rd)]->files;
        if (files->n++ == 0)
            files->rows = &rows[i];
        rows[i].path = read_str(&rd);
        rows[i].size = read_i64(&rd);
        rows[i].sha256 = read_str(&rd);
        st = reader_check(&rd, err);
    }
    return st;
}

static as_status read_files(struct tx *t, struct arena *a, struct batch_source *sources, size_t n,
                            struct as_err *err)
{
    size_t n_queued = 0, n_ran = 0;
    for (size_t i = 0; i < n; i++)
        n_queued += sources[i].n_queue;
    struct batch_queued **ran = arena_alloc(a, n_queued + 1, sizeof(struct batch_queued *));
    int64_t *keys = arena_alloc(a, n_queued + 1, sizeof *keys);
    if (!ran || !keys)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sources[i].n_queue; k++)
            if (sources[i].queue[k].attempt > 0 || sources[i].queue[k].is_fork) {
                keys[n_ran] = sources[i].key;
                ran[n_ran++] = &sources[i].queue[k];
            }
    return n_ran > 0 ? read_checkpoints(t, a, ran, keys, n_ran, err) : AS_OK;
}

/* What limits.max_steps lets begin. No statement where no sweep has it. */
static as_status read_steps_room(struct tx *t, struct arena *a, struct batch_source *sources,
                                 const int64_t *keys, size_t n, struct as_err *err)
{
    bool has_limit = false;
    for (size_t i = 0; i < n; i++) {
        sources[i].steps_room = INT64_MAX;
        has_limit |= sources[i].row && sources[i].row->head.limits_steps;
    }
    if (!has_limit)
        return AS_OK;
    int64_t *room = arena_alloc(a, n, sizeof *room);
    if (!room)
        return as_fail_nomem(err);
    as_status st = store_sweep_steps_room(t, keys, n, room, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        sources[i].steps_room = room[i];
    return st;
}

as_status batch_take(struct tx *t, struct arena *a, struct batch_source *sources, size_t n,
                     bool is_patient, struct as_err *err)
{
    int64_t *keys = arena_alloc(a, n + 1, sizeof *keys);
    struct sweep_locked **rows = arena_alloc(a, n + 1, sizeof(struct sweep_locked *));
    if (!keys || !rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        keys[i] = sources[i].key;
    as_status st = store_sweep_lock_many(t, a, keys, n, is_patient, rows, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        sources[i].row = rows[i];
    if (st == AS_OK)
        st = read_steps_room(t, a, sources, keys, n, err);
    if (st == AS_OK)
        st = read_queues(t, a, sources, n, err);
    return st == AS_OK ? read_files(t, a, sources, n, err) : st;
}
