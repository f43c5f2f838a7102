/* Rows stand in the order in which they came, and those of one trial are a chain: attempts and
 * seats are only added, never removed. */
#include "scheduler/services/attempts_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/formats/columnar.h"
#include "scheduler/services/column_words.h"
#include "scheduler/services/read_ahead.h"
#include "scheduler/store/table_store.h"

#define READ_TRIALS 5000 /* of one statement */
#define NO_ROW UINT32_MAX

enum { W_RUNNER, W_CLIENT, W_GROUP, W_OUTCOME, WORDS };
static const char *const word_columns[WORDS] = {"runner", "client", "group", "outcome"};

struct row {
    uint32_t trial, attempt, next; /* NO_ROW: it is the last one of its trial */
    int32_t seat;
    uint32_t words[WORDS];
    double began_at, ended_at;
};

struct trial {
    uint32_t first, last; /* NO_ROW: none */
    int64_t changed;
};

struct attempts_table {
    struct trial *trials; /* owned */
    size_t n_trials, cap_trials;
    struct row *rows; /* owned */
    size_t n_rows, cap_rows;
    struct column_words words[WORDS];
};

struct attempts_table *attempts_table_create(void)
{
    return as_calloc(1, sizeof(struct attempts_table));
}

void attempts_table_free(struct attempts_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < WORDS; i++)
        column_words_done(&t->words[i]);
    free(t->trials);
    free(t->rows);
    free(t);
}

as_status attempts_table_extend(struct attempts_table *t, size_t n, struct as_err *err)
{
    if (n > t->cap_trials) {
        size_t cap = n + n / 2 + 256;
        as_status st = as_grow(&t->trials, cap, sizeof *t->trials, err);
        if (st != AS_OK)
            return st;
        t->cap_trials = cap;
    }
    for (; t->n_trials < n; t->n_trials++)
        t->trials[t->n_trials] = (struct trial){NO_ROW, NO_ROW, 0};
    return AS_OK;
}

/* Add a row to the end of its trial's chain. */
static as_status append_row(struct attempts_table *t, const struct timeline_row *r,
                            struct row **ret, struct as_err *err)
{
    struct trial *trial = &t->trials[r->number];
    as_status st = t->n_rows < NO_ROW
                       ? as_reserve_one(&t->rows, t->n_rows, &t->cap_rows, sizeof *t->rows, err)
                       : as_fail(err, AS_E_TOO_LARGE, "a sweep has more attempts than fit a table");
    if (st != AS_OK)
        return st;
    uint32_t at = (uint32_t)t->n_rows++;
    t->rows[at] = (struct row){.trial = (uint32_t)r->number,
                               .attempt = (uint32_t)r->attempt,
                               .seat = (int32_t)r->seat,
                               .next = NO_ROW};
    if (trial->last == NO_ROW)
        trial->first = at;
    else
        t->rows[trial->last].next = at;
    trial->last = at;
    *ret = &t->rows[at];
    return AS_OK;
}

static struct row *find_row(const struct attempts_table *t, const struct timeline_row *r)
{
    for (uint32_t i = t->trials[r->number].first; i != NO_ROW; i = t->rows[i].next)
        if (t->rows[i].attempt == (uint32_t)r->attempt && t->rows[i].seat == (int32_t)r->seat)
            return &t->rows[i];
    return NULL;
}

as_status attempts_table_put(struct attempts_table *t, const struct timeline_row *r,
                             struct as_err *err)
{
    const char *const words[WORDS] = {r->runner, r->client, r->group, r->outcome};
    if (r->number < 0 || r->number >= (int64_t)t->n_trials)
        return as_fail(err, AS_E_INTERNAL, "trial %lld is missing", (long long)r->number);
    struct row *row = find_row(t, r);
    as_status st = row ? AS_OK : append_row(t, r, &row, err);
    if (st != AS_OK)
        return st;
    row->began_at = r->began_ms ? (double)r->began_ms : NAN;
    row->ended_at = r->ended_ms ? (double)r->ended_ms : NAN;
    for (size_t i = 0; i < WORDS && st == AS_OK; i++) {
        row->words[i] = COLUMNAR_NO_WORD;
        if (words[i])
            st = column_words_add(&t->words[i], words[i], strlen(words[i]), &row->words[i], err);
    }
    return st;
}

/* ---- write ---- */

struct writing {
    size_t n;
    uint32_t *trial, *attempt; /* owned, as all below */
    float *seat;
    double *began_at, *ended_at;
    uint32_t *words[WORDS];
    struct arena a; /* lists of words */
};

static void writing_done(struct writing *w)
{
    free(w->trial);
    free(w->attempt);
    free(w->seat);
    free(w->began_at);
    free(w->ended_at);
    for (size_t i = 0; i < WORDS; i++)
        free(w->words[i]);
    arena_done(&w->a);
}

static as_status writing_init(struct writing *w, size_t n, struct as_err *err)
{
    bool has_all = true;
    w->trial = as_calloc(n + 1, sizeof *w->trial);
    w->attempt = as_calloc(n + 1, sizeof *w->attempt);
    w->seat = as_calloc(n + 1, sizeof *w->seat);
    w->began_at = as_calloc(n + 1, sizeof *w->began_at);
    w->ended_at = as_calloc(n + 1, sizeof *w->ended_at);
    for (size_t i = 0; i < WORDS; i++) {
        w->words[i] = as_calloc(n + 1, sizeof *w->words[i]);
        has_all = has_all && w->words[i];
    }
    return has_all && w->trial && w->attempt && w->seat && w->began_at && w->ended_at
               ? AS_OK
               : as_fail_nomem(err);
}

static void put_row(struct writing *w, const struct row *r)
{
    w->trial[w->n] = r->trial;
    w->attempt[w->n] = r->attempt;
    w->seat[w->n] = r->seat < 0 ? NAN : (float)r->seat;
    w->began_at[w->n] = r->began_at;
    w->ended_at[w->n] = r->ended_at;
    for (size_t i = 0; i < WORDS; i++)
        w->words[i][w->n] = r->words[i];
    w->n++;
}

static bool is_chosen(const struct trial *trial, const struct table_part *part)
{
    return part->is_whole || trial->changed > part->since;
}

as_status attempts_table_write(const struct attempts_table *t, const struct table_part *part,
                               struct str *ret, struct as_err *err)
{
    AS_AUTO(writing_done) struct writing w = {0};
    char version[24];
    as_status st = writing_init(&w, t->n_rows, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < t->n_trials; i++)
        if (is_chosen(&t->trials[i], part))
            for (uint32_t at = t->trials[i].first; at != NO_ROW; at = t->rows[at].next)
                put_row(&w, &t->rows[at]);
    struct columnar_column columns[5 + WORDS] = {
        {.name = "trial", .type = COLUMNAR_U32, .values = w.trial},
        {.name = "attempt", .type = COLUMNAR_U32, .values = w.attempt},
        {.name = "seat", .type = COLUMNAR_F32, .values = w.seat},
        {.name = "began_at", .type = COLUMNAR_F64, .values = w.began_at},
        {.name = "ended_at", .type = COLUMNAR_F64, .values = w.ended_at}};
    for (size_t i = 0; i < WORDS && st == AS_OK; i++) {
        struct columnar_column *c = &columns[5 + i];
        *c = (struct columnar_column){
            .name = word_columns[i], .type = COLUMNAR_DICT, .values = w.words[i]};
        st = column_words_pick(&t->words[i], w.words[i], w.n, &w.a, &c->words, &c->n_words, err);
    }
    if (st != AS_OK)
        return st;
    (void)snprintf(version, sizeof version, "%lld", (long long)part->version);
    const struct columnar f = {.n_rows = w.n,
                               .version = version,
                               .is_whole = part->is_whole,
                               .columns = columns,
                               .n_columns = AS_ARRAY_LEN(columns),
                               .is_planar = part->is_planar};
    return columnar_write(&f, ret, err);
}

/* ---- as a kind ---- */

static as_status put_rows(struct attempts_table *t, const struct timeline_row *rows, size_t n,
                          struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = attempts_table_put(t, &rows[i], err);
    return st;
}

/* Trials that are new or changed, on their way into the table. */
struct some_trials {
    struct attempts_table *t;
    struct store *db;
    int64_t key, from, total; /* the next one to read, and behind the last one */
    struct {
        struct timeline_row *rows;
        size_t n, to;
    } parts[READ_AHEAD_PLACES];
};

static as_status read_part(void *arg, size_t place, struct arena *a, bool *ret_is_left,
                           struct as_err *err)
{
    struct some_trials *x = arg;
    struct timeline_row *rows = NULL;
    size_t n = 0;
    int64_t to = x->total - x->from > READ_TRIALS ? x->from + READ_TRIALS : x->total;
    struct tx_run run = tx_run_start(x->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_table_attempts(run.tx, a, x->key, x->from, to, &rows, &n, err);
    x->parts[place].rows = rows;
    x->parts[place].n = n;
    x->parts[place].to = (size_t)to;
    x->from = to;
    *ret_is_left = to < x->total;
    return run.status;
}

static as_status put_part(void *arg, size_t place, struct as_err *err)
{
    struct some_trials *x = arg;
    as_status st = attempts_table_extend(x->t, x->parts[place].to, err);
    if (st == AS_OK)
        st = put_rows(x->t, x->parts[place].rows, x->parts[place].n, err);
    return st;
}

static as_status read_changed(void *arg, struct tx *t, struct arena *a,
                              const struct table_change *changes, size_t n, struct as_err *err)
{
    struct some_trials *x = arg;
    return store_table_attempts_of(t, a, x->key, changes, n, &x->parts[0].rows, &x->parts[0].n,
                                   err);
}

static as_status put_changed(void *arg, struct as_err *err)
{
    struct some_trials *x = arg;
    return put_rows(x->t, x->parts[0].rows, x->parts[0].n, err);
}

static as_status read_attempts(void *table, struct store *db, const struct table_news *news,
                               struct as_err *err)
{
    struct attempts_table *t = table;
    struct some_trials x = {
        .t = t, .db = db, .key = news->key, .from = (int64_t)t->n_trials, .total = news->n_trials};
    const struct read_ahead parts = {.arg = &x, .read = read_part, .put = put_part};
    const struct read_again changed = {
        .arg = &x, .most = READ_TRIALS, .read = read_changed, .put = put_changed};
    as_status st = read_again(&changed, db, news, err);
    if (st == AS_OK && x.from < x.total)
        st = read_ahead(&parts, err);
    return st;
}

static as_status create_attempts(const struct sweep_doc *doc, const char *subject, void **ret,
                                 struct as_err *err)
{
    (void)doc;
    (void)subject;
    *ret = attempts_table_create();
    return *ret ? AS_OK : as_fail_nomem(err);
}

static void free_attempts(void *t)
{
    attempts_table_free(t);
}

static size_t attempts_trials(const void *table)
{
    const struct attempts_table *t = table;
    return t->n_trials;
}

static size_t attempts_bytes(const void *table)
{
    const struct attempts_table *t = table;
    size_t n = sizeof *t + t->cap_trials * sizeof *t->trials + t->cap_rows * sizeof *t->rows;
    for (size_t i = 0; i < WORDS; i++)
        n += t->words[i].bytes;
    return n;
}

static void mark_attempts(void *table, int64_t number, int64_t event)
{
    struct attempts_table *t = table;
    if (number >= 0 && number < (int64_t)t->n_trials && t->trials[number].changed < event)
        t->trials[number].changed = event;
}

static size_t attempts_changed(const void *table, int64_t since)
{
    const struct attempts_table *t = table;
    size_t n = 0;
    for (size_t i = 0; i < t->n_trials; i++)
        n += t->trials[i].changed > since;
    return n;
}

static as_status write_attempts(const void *t, const struct table_part *part, struct str *ret,
                                struct as_err *err)
{
    return attempts_table_write(t, part, ret, err);
}

const struct table_kind table_of_attempts = {.create = create_attempts,
                                             .free = free_attempts,
                                             .trials = attempts_trials,
                                             .bytes = attempts_bytes,
                                             .read = read_attempts,
                                             .mark = mark_attempts,
                                             .changed = attempts_changed,
                                             .write = write_attempts};
