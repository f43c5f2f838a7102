/* Forks: the statements that read the parameters of parents and insert the trials.
 *
 * What a fork is, its parent and its number, was decided in the plan, from the rung results alone.
 * Its parameters follow from its parent's, which no plan reads: so they are read here, and only
 * when something is forked. The files of the parent are copied as rows: from then on a fork is
 * like any trial that waits with a checkpoint, whatever becomes of its parent. */
#include "scheduler/store/fork_store.h"

#include <string.h>

#include "base/json.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_counts_priv.h"
#include "scheduler/sweep/doc_cache.h"
#include "scheduler/sweep/fork_params.h"
#include "scheduler/sweep/trial_state.h"

enum { FORK_PARENTS, FORK_ADD, FORK_LIST };

#define FORK_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, number, "number")                                                                   \
    NEXT(i64, step, "fork_step")
COLUMNS_WHOLE_ROW(struct fork_row, FORK_FIELDS)
COLUMNS_READER(fork, struct fork_row, FORK_FIELDS)
#define FORK_COLUMNS COLUMNS_SQL(FORK_FIELDS)

static const struct stmt stmts[] = {
    /* Of a sweep that comes several times the document is read once: $3. */
    [FORK_PARENTS] =
        {"fork_parents",
         "select u.place - 1, h.params, h.document, h.has from unnest($1::bigint[], $2::int[], "
         "$3::bool[], $4::bigint[]) with ordinality as u(key, number, wanted, step, place) cross "
         "join lateral (select t.params, case when u.wanted then s.document end as document, "
         "(select true from trial_file f where f.sweep_key = u.key and f.number = u.number and "
         "f.kind = 'kept' and starts_with(f.path, u.step || '/') limit 1) is not null as has from "
         "trial t join sweep_base s on s.key = t.sweep_key where t.sweep_key = u.key and "
         "t.number = u.number limit 1) h order by u.place"},
    [FORK_ADD] =
        {"fork_add",
         "with l as materialized (select * from unnest($1::bigint[], $2::int[], $3::int[], "
         "$4::bigint[], $5::int[], $6::text[], $7::text[]) as l(sweep_key, number, parent, step, "
         "next, params, suggestion)), counted as (" SQL_COUNTS_CHANGE
         "planned = c.planned + f.n from (select sweep_key, count(*) as n from l group by "
         "sweep_key) f" SQL_COUNTS_OF_EACH "), made as (insert into trial (sweep_key, number, "
         "state, params, suggestion, seed, origin, parent, fork_step, rung, shape, "
         "bytes_per_member) select l.sweep_key, l.number, 'queued', l.params::json, "
         "l.suggestion::json, p.seed, 'forked', l.parent, l.step, l.next, p.shape, "
         "p.bytes_per_member from l cross join lateral (select seed, shape, bytes_per_member from "
         "trial where sweep_key = l.sweep_key and number = l.parent limit 1) p order by "
         "l.sweep_key, l.number) insert into trial_file (sweep_key, number, kind, path, size, "
         "sha256) select l.sweep_key, l.number, 'checkpoint', substr(f.path, length(l.step::text) "
         "+ 2), f.size, f.sha256 from l cross join lateral (select path, size, sha256 from "
         "trial_file where sweep_key = l.sweep_key and number = l.parent and kind = 'kept' and "
         "starts_with(path, l.step || '/')) f"},
    [FORK_LIST] = {"fork_list",
                   "select " FORK_COLUMNS " from trial where sweep_key = $1 and parent = "
                   "$2 order by number limit $3"},
};
const struct stmt_set fork_stmts = {"fork", stmts, AS_ARRAY_LEN(stmts)};

/* ---- parameters ---- */

/* A fork while it is made. */
struct making {
    const struct fork_new *row;
    const struct sweep_doc *doc; /* of its sweep: a view of `ref` or of another fork's */
    struct doc_ref ref;
    const char *params, *suggestion; /* JSON, in the arena */
    bool has_files;                  /* its parent left something at that step */
};

struct makings {
    struct making *rows; /* in the arena */
    size_t n;
};

static void makings_done(struct makings *m)
{
    for (size_t i = 0; i < m->n; i++)
        doc_ref_done(&m->rows[i].ref);
}

static const char *keep_text(struct arena *a, const json_t *j)
{
    AS_AUTO(as_freep) char *text = j ? json_format_ordered(j) : NULL;
    return text ? arena_strdup(a, text) : NULL;
}

/* The parameters that follow from the parent's. */
static as_status explore_from(struct arena *a, struct making *m, const char *params,
                              struct as_err *err)
{
    const struct fork_new *f = m->row;
    const struct fork_made made = {f->number, f->parent, f->replaced, f->step};
    JSON_AUTO own = NULL;
    JSON_AUTO reason = NULL;
    as_status st = fork_params(m->doc, &made, params, &own, &reason, err);
    if (st != AS_OK)
        return st;
    m->params = keep_text(a, own);
    m->suggestion = keep_text(a, reason);
    return m->params && m->suggestion ? AS_OK : as_fail_nomem(err);
}

/* The fork before this one that is of the same sweep; NULL: it is the first. */
static struct making *same_sweep(const struct makings *m, size_t place)
{
    for (size_t i = 0; i < place; i++)
        if (m->rows[i].row->sweep_key == m->rows[place].row->sweep_key)
            return &m->rows[i];
    return NULL;
}

static as_status read_parent(struct tx *t, struct arena *a, struct makings *m,
                             const struct result *r, int row, struct as_err *err)
{
    struct reader rd;
    reader_init(&rd, r, row, a);
    struct making *now = &m->rows[read_i64(&rd)];
    const char *params = read_str(&rd), *document = read_str(&rd);
    now->has_files = read_bool(&rd);
    as_status st = reader_check(&rd, err);
    if (st != AS_OK)
        return st;
    if (document &&
        (st = doc_cache_read(store_docs(tx_store(t)), document, true, &now->ref, err)) != AS_OK)
        return st;
    const struct making *first = same_sweep(m, (size_t)(now - m->rows));
    now->doc = first ? first->doc : now->ref.doc;
    if (!now->doc)
        return as_fail(err, AS_E_INTERNAL, "the document of the sweep '%.80s' was not read",
                       now->row->sweep);
    return explore_from(a, now, params, err);
}

/* In the order of the set, so the first of a sweep comes before the others. */
static as_status read_parents(struct tx *t, struct arena *a, struct makings *m, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < m->n; i++) {
        array_i64(&x.c[0], m->rows[i].row->sweep_key);
        array_i64(&x.c[1], m->rows[i].row->parent);
        array_str(&x.c[2], same_sweep(m, i) ? "f" : "t");
        array_i64(&x.c[3], m->rows[i].row->step);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[FORK_PARENTS],
                      ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3)),
                      &r, err);
    if (st == AS_OK && (size_t)r.rows != m->n)
        return as_fail(err, AS_E_INTERNAL, "%d of %zu parents of forks are there", r.rows, m->n);
    for (int k = 0; k < r.rows && st == AS_OK; k++)
        st = read_parent(t, a, m, &r, k, err);
    return st;
}

/* ---- rows ---- */

static as_status insert(struct tx *t, const struct makings *m, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    arrays_open(&x);
    for (size_t i = 0; i < m->n; i++) {
        const struct fork_new *f = m->rows[i].row;
        array_i64(&x.c[0], f->sweep_key);
        array_i64(&x.c[1], f->number);
        array_i64(&x.c[2], f->parent);
        array_i64(&x.c[3], f->step);
        array_i64(&x.c[4], f->next);
        array_str(&x.c[5], m->rows[i].params);
        array_str(&x.c[6], m->rows[i].suggestion);
    }
    as_status st = arrays_close(&x, err);
    return st == AS_OK ? tx_exec(t, &stmts[FORK_ADD],
                                 ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2),
                                      arg_array(&x, 3), arg_array(&x, 4), arg_array(&x, 5),
                                      arg_array(&x, 6)),
                                 NULL, err)
                       : st;
}

static as_status event_of(struct arena *a, const struct making *m, struct event_new *ret,
                          struct as_err *err)
{
    const struct fork_new *f = m->row;
    const char *lost = "; its parent left no checkpoint there, so it begins from its start";
    const char *reason = arena_printf(
        a, "it goes on from trial %lld at step %lld, in place of trial %lld%s",
        (long long)f->parent, (long long)f->step, (long long)f->replaced, m->has_files ? "" : lost);
    *ret = (struct event_new){.type = "trial.changed",
                              .sweep_key = f->sweep_key,
                              .sweep = f->sweep,
                              .has_number = true,
                              .number = f->number,
                              .state = trial_state_format(TRIAL_QUEUED),
                              .reason = reason};
    return reason ? AS_OK : as_fail_nomem(err);
}

as_status store_fork_add_many(struct tx *t, struct arena *a, const struct fork_new *rows, size_t n,
                              struct event_new *events, size_t *n_events, struct as_err *err)
{
    AS_AUTO(makings_done) struct makings m = {0};
    if (n == 0)
        return AS_OK;
    m.rows = arena_alloc(a, n, sizeof *m.rows);
    if (!m.rows)
        return as_fail_nomem(err);
    for (; m.n < n; m.n++)
        m.rows[m.n] = (struct making){.row = &rows[m.n]};
    as_status st = read_parents(t, a, &m, err);
    if (st == AS_OK)
        st = insert(t, &m, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = event_of(a, &m.rows[i], &events[(*n_events)++], err);
    return st;
}

as_status store_fork_list(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                          int64_t limit, struct fork_row **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[FORK_LIST],
                            ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(limit)), &r, err);
    if (st == AS_OK)
        st = read_fork_rows(&r, r.rows, a, ret, err);
    if (st == AS_OK)
        *ret_n = (size_t)r.rows;
    return st;
}
