/* Trials, read from the database into their table (sweep_table.h). */
#include "scheduler/services/sweep_table.h"

#include "scheduler/services/read_ahead.h"
#include "scheduler/store/table_store.h"

#define READ_ROWS 2000 /* trials of one statement: some 2 MB of texts */

static as_status put_rows(struct sweep_table *t, const struct table_row *rows, size_t n,
                          struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = sweep_table_put(t, &rows[i], err);
    return st;
}

/* Trials that the table lacks, or that changed, on their way into it. */
struct some_trials {
    struct sweep_table *t;
    struct store *db;
    int64_t key, from, total; /* the next one to read, and behind the last one */
    struct {
        struct table_row *rows;
        size_t n;
    } parts[READ_AHEAD_PLACES];
};

static as_status read_part(void *arg, size_t place, struct arena *a, bool *ret_is_left,
                           struct as_err *err)
{
    struct some_trials *m = arg;
    struct table_row *rows = NULL;
    size_t n = 0;
    int64_t to = m->total - m->from > READ_ROWS ? m->from + READ_ROWS : m->total;
    struct tx_run run = tx_run_start(m->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_table_rows(run.tx, a, m->key, m->from, to, &rows, &n, err);
    if (run.status == AS_OK && n == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep was deleted");
    m->parts[place].rows = rows;
    m->parts[place].n = n;
    m->from = to;
    *ret_is_left = to < m->total;
    return run.status;
}

static as_status put_part(void *arg, size_t place, struct as_err *err)
{
    struct some_trials *m = arg;
    return put_rows(m->t, m->parts[place].rows, m->parts[place].n, err);
}

static as_status read_changed(void *arg, struct tx *t, struct arena *a,
                              const struct table_change *changes, size_t n, struct as_err *err)
{
    struct some_trials *m = arg;
    return store_table_rows_of(t, a, m->key, changes, n, &m->parts[0].rows, &m->parts[0].n, err);
}

static as_status put_changed(void *arg, struct as_err *err)
{
    return put_part(arg, 0, err);
}

static as_status read_trials(void *table, struct store *db, const struct table_news *news,
                             struct as_err *err)
{
    struct sweep_table *t = table;
    struct some_trials m = {.t = t,
                            .db = db,
                            .key = news->key,
                            .from = (int64_t)sweep_table_rows(t),
                            .total = news->n_trials};
    const struct read_ahead parts = {.arg = &m, .read = read_part, .put = put_part};
    const struct read_again changed = {
        .arg = &m, .most = READ_ROWS, .read = read_changed, .put = put_changed};
    as_status st = read_again(&changed, db, news, err);
    return st == AS_OK && m.from < m.total ? read_ahead(&parts, err) : st;
}

static as_status create_trials(const struct sweep_doc *doc, const char *subject, void **ret,
                               struct as_err *err)
{
    (void)subject;
    struct sweep_table *t = NULL;
    as_status st = sweep_table_create(doc, &t, err);
    if (st == AS_OK)
        *ret = t;
    return st;
}

static void free_trials(void *t)
{
    sweep_table_free(t);
}

static size_t trials_rows(const void *t)
{
    return sweep_table_rows(t);
}

static size_t trials_bytes(const void *t)
{
    return sweep_table_bytes(t);
}

static void mark_trials(void *t, int64_t number, int64_t event)
{
    sweep_table_mark(t, number, event);
}

static size_t trials_changed(const void *t, int64_t since)
{
    return sweep_table_changed(t, since);
}

static as_status write_trials(const void *t, const struct table_part *part, struct str *ret,
                              struct as_err *err)
{
    return sweep_table_write(t, part, ret, err);
}

const struct table_kind table_of_trials = {.create = create_trials,
                                           .free = free_trials,
                                           .trials = trials_rows,
                                           .bytes = trials_bytes,
                                           .read = read_trials,
                                           .mark = mark_trials,
                                           .changed = trials_changed,
                                           .write = write_trials};
