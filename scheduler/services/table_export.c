/* Tables of sweeps that are kept between requests.
 *
 * What a table knows is bound to two ids of events. `seen` is the horizon when it was last brought
 * up to date: every event up to there is in it. `base` is the oldest version whose later changes
 * the rows remember; a reader with an older one makes the server look at the events between, if all
 * of them are kept. What a row shows may be newer than `seen`, since rows are read after the
 * horizon: the event follows, and the row is sent once more.
 *
 * Events are kept for days. A table that nobody asked for in half that time is read again, because
 * an event after `seen` may be gone.
 *
 * Locks: the cache's guards its list and is never held during a query; a table's own is held while
 * it is brought up to date and read. Nobody takes the first while he holds the second. */
#include "scheduler/services/table_export.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "scheduler/services/sweep_table.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/table_store.h"
#include "scheduler/sweep/stored_doc.h"

#define READ_ROWS 10000 /* trials of one statement: some 10 MB of texts */
#define MADE_FILES 4    /* of one table */
#define REUSE_ROWS 4096 /* the file of a smaller table is always made anew */
#define REUSE_PART 16   /* a file is used again until a sixteenth of the rows changed */

/* The file of a whole table, for one choice of columns. */
struct made_file {
    char *columns; /* owned; NULL: all */
    bool is_single;
    table_pack_fn *pack;
    char *bytes; /* owned; NULL: no file */
    size_t len;
    char etag[40];
    int64_t version, made_ns;
};

struct kept_table {
    struct kept_table *next;
    int64_t key;
    size_t users, bytes; /* guarded by the cache's lock, as used_ns */
    int64_t used_ns;

    pthread_mutex_t mu;    /* guards all below */
    struct sweep_table *t; /* owned; NULL: not read yet */
    int64_t base, version, seen;
    int64_t seen_ns; /* monotonic, when `seen` was read */
    struct made_file made[MADE_FILES];
    size_t next_made; /* the one to replace next */
};

struct table_cache {
    pthread_mutex_t mu; /* guards the list */
    struct kept_table *list;
    size_t bytes, max_bytes;
};

/* ---- what is kept ---- */

struct table_cache *table_cache_create(size_t max_bytes)
{
    struct table_cache *x = as_calloc(1, sizeof *x);
    if (!x)
        return NULL;
    (void)pthread_mutex_init(&x->mu, NULL); /* cannot fail on Linux */
    x->max_bytes = max_bytes;
    return x;
}

static void forget_files(struct kept_table *k)
{
    for (size_t i = 0; i < MADE_FILES; i++) {
        free(k->made[i].columns);
        free(k->made[i].bytes);
        k->made[i] = (struct made_file){0};
    }
}

static void kept_free(struct kept_table *k)
{
    forget_files(k);
    sweep_table_free(k->t);
    (void)pthread_mutex_destroy(&k->mu);
    free(k);
}

void table_cache_free(struct table_cache *x)
{
    if (!x)
        return;
    while (x->list) {
        struct kept_table *k = x->list;
        x->list = k->next;
        kept_free(k);
    }
    (void)pthread_mutex_destroy(&x->mu);
    free(x);
}

size_t table_cache_bytes(struct table_cache *x)
{
    pthread_mutex_lock(&x->mu);
    size_t n = x->bytes;
    pthread_mutex_unlock(&x->mu);
    return n;
}

/* The table of that sweep, empty if it is not kept; give it back. NULL when memory is out. */
static struct kept_table *kept_take(struct table_cache *x, int64_t key)
{
    pthread_mutex_lock(&x->mu);
    struct kept_table *k = x->list;
    while (k && k->key != key)
        k = k->next;
    if (!k && (k = as_calloc(1, sizeof *k))) {
        k->key = key;
        (void)pthread_mutex_init(&k->mu, NULL);
        k->next = x->list;
        x->list = k;
    }
    if (k)
        k->users++;
    pthread_mutex_unlock(&x->mu);
    return k;
}

/* Remove the table that was used longest ago and that nobody uses. */
static struct kept_table *oldest_unused_locked(struct table_cache *x)
{
    struct kept_table **oldest = NULL;
    for (struct kept_table **at = &x->list; *at; at = &(*at)->next)
        if ((*at)->users == 0 && (!oldest || (*at)->used_ns < (*oldest)->used_ns))
            oldest = at;
    if (!oldest)
        return NULL;
    struct kept_table *k = *oldest;
    *oldest = k->next;
    x->bytes -= k->bytes;
    return k;
}

static void kept_give_back(struct table_cache *x, struct kept_table *k, size_t bytes)
{
    struct kept_table *gone = NULL;
    pthread_mutex_lock(&x->mu);
    x->bytes += bytes - k->bytes;
    k->bytes = bytes;
    k->used_ns = clock_mono_ns();
    k->users--;
    while (x->bytes > x->max_bytes) {
        struct kept_table *out = oldest_unused_locked(x);
        if (!out)
            break;
        out->next = gone;
        gone = out;
    }
    pthread_mutex_unlock(&x->mu);
    while (gone) {
        struct kept_table *out = gone;
        gone = out->next;
        kept_free(out);
    }
}

static size_t kept_bytes(const struct kept_table *k)
{
    size_t n = sizeof *k + (k->t ? sweep_table_bytes(k->t) : 0);
    for (size_t i = 0; i < MADE_FILES; i++)
        n += k->made[i].len;
    return n;
}

/* ---- bring up to date ---- */

static as_status read_head(struct store *db, struct arena *a, const struct kept_table *k,
                           struct table_head *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_table_head(run.tx, a, k->key, !k->t, ret, err);
    return run.status;
}

static as_status put_rows(struct kept_table *k, const struct table_row *rows, size_t n,
                          struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = sweep_table_put(k->t, &rows[i], err);
    return st;
}

/* Read the trials that the table lacks. */
static as_status read_more(struct store *db, struct kept_table *k, int64_t total,
                           struct as_err *err)
{
    as_status st = AS_OK;
    while ((int64_t)sweep_table_rows(k->t) < total && st == AS_OK) {
        AS_AUTO(arena_done) struct arena a = {0};
        struct table_row *rows = NULL;
        size_t n = 0;
        int64_t from = (int64_t)sweep_table_rows(k->t);
        int64_t to = total - from > READ_ROWS ? from + READ_ROWS : total;
        struct tx_run run = tx_run_start(db, TX_READ, err);
        while (tx_run_again(&run))
            run.status = store_table_rows(run.tx, &a, k->key, from, to, &rows, &n, err);
        st = run.status;
        if (st == AS_OK && n == 0)
            return as_fail(err, AS_E_NOT_FOUND, "the sweep was deleted");
        if (st == AS_OK)
            st = put_rows(k, rows, n, err);
    }
    return st;
}

/* Read again the trials that changed. */
static as_status read_changed(struct store *db, struct kept_table *k,
                              const struct table_change *changes, size_t n, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i += READ_ROWS) {
        AS_AUTO(arena_done) struct arena a = {0};
        struct table_row *rows = NULL;
        size_t n_rows = 0, part = n - i < READ_ROWS ? n - i : READ_ROWS;
        struct tx_run run = tx_run_start(db, TX_READ, err);
        while (tx_run_again(&run))
            run.status =
                store_table_rows_of(run.tx, &a, k->key, changes + i, part, &rows, &n_rows, err);
        st = run.status == AS_OK ? put_rows(k, rows, n_rows, err) : run.status;
    }
    return st;
}

static void mark_changes(struct kept_table *k, const struct table_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sweep_table_mark(k->t, changes[i].number, changes[i].event);
}

static as_status list_changes(struct store *db, struct arena *a, const struct kept_table *k,
                              int64_t after, int64_t up_to, struct table_change **ret,
                              size_t *ret_n, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_table_changes(run.tx, a, k->key, after, up_to, ret, ret_n, err);
    return run.status;
}

/* Are all events after this one kept? Half of the time for which they are is left for transactions
 * that were open then and for differences of clocks. */
static as_status is_covered(struct store *db, int64_t event, bool *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status =
            store_table_covered(run.tx, event, store_config(db)->event_keep_ms / 2, ret, err);
    return run.status;
}

static as_status begin_table(struct kept_table *k, const struct table_head *head,
                             struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    as_status st = stored_doc_read(head->document, NULL, &doc, err);
    if (st == AS_OK)
        st = sweep_table_create(doc->space, &k->t, err);
    if (st != AS_OK)
        return st;
    k->version = head->last_event ? head->last_event : head->horizon;
    k->base = k->version;
    return AS_OK;
}

static as_status extend_table(struct store *db, struct arena *a, struct kept_table *k,
                              const struct table_head *head, struct as_err *err)
{
    struct table_change *changes = NULL;
    size_t n = 0;
    as_status st = list_changes(db, a, k, k->seen, head->horizon, &changes, &n, err);
    size_t n_known = 0;
    while (st == AS_OK && n_known < n && changes[n_known].number < (int64_t)sweep_table_rows(k->t))
        n_known++;
    if (st == AS_OK)
        st = read_changed(db, k, changes, n_known, err);
    if (st == AS_OK)
        st = read_more(db, k, head->n_trials, err);
    if (st != AS_OK)
        return st;
    mark_changes(k, changes, n);
    if (head->last_event > k->version)
        k->version = head->last_event;
    return AS_OK;
}

/* Forget a table that may have missed an event. */
static as_status drop_old(struct store *db, struct kept_table *k, struct as_err *err)
{
    bool is_safe = k->t != NULL;
    as_status st = AS_OK;
    if (k->t && clock_mono_ns() - k->seen_ns > store_config(db)->event_keep_ms / 2 * NS_PER_MS)
        st = is_covered(db, k->seen, &is_safe, err);
    if (st == AS_OK && k->t && !is_safe) {
        sweep_table_free(k->t);
        k->t = NULL;
        forget_files(k);
    }
    return st;
}

static as_status bring_up_to_date(struct store *db, struct kept_table *k, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct table_head head = {0};
    as_status st = drop_old(db, k, err);
    int64_t now_ns = clock_mono_ns();
    if (st == AS_OK)
        st = read_head(db, &a, k, &head, err);
    if (st != AS_OK)
        return st;
    if (k->t) {
        st = extend_table(db, &a, k, &head, err);
    } else {
        st = begin_table(k, &head, err);
        if (st == AS_OK && (st = read_more(db, k, head.n_trials, err)) != AS_OK) {
            sweep_table_free(k->t); /* `seen` is not known yet */
            k->t = NULL;
        }
    }
    if (st != AS_OK)
        return st;
    k->seen = head.horizon;
    k->seen_ns = now_ns;
    return AS_OK;
}

/* May this version have its later changes from the table? Makes the rows remember more if the
 * events are kept. */
static as_status knows_since(struct store *db, struct kept_table *k, int64_t since, bool *ret,
                             struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct table_change *changes = NULL;
    size_t n = 0;
    bool is_there = false;
    *ret = since >= k->base && since <= k->seen;
    if (since >= k->base)
        return AS_OK;
    as_status st = is_covered(db, since, &is_there, err);
    if (st != AS_OK || !is_there)
        return st;
    if ((st = list_changes(db, &a, k, since, k->base, &changes, &n, err)) != AS_OK)
        return st;
    mark_changes(k, changes, n);
    k->base = since;
    *ret = true;
    return AS_OK;
}

/* ---- answer ---- */

static bool is_same(const struct made_file *m, const struct table_request *q)
{
    return m->bytes && m->pack == q->pack && m->is_single == q->is_single &&
           as_streq(m->columns, q->columns);
}

static bool is_fresh(const struct kept_table *k, const struct made_file *m)
{
    size_t rows = sweep_table_rows(k->t);
    if (m->version == k->version)
        return true;
    return rows >= REUSE_ROWS && clock_mono_ns() - m->made_ns < TABLE_STALE_MS * NS_PER_MS &&
           sweep_table_changed(k->t, m->version) <= rows / REUSE_PART;
}

static as_status pack_bytes(const struct table_request *q, struct str *b, struct as_err *err)
{
    struct str packed = {0};
    if (!q->pack)
        return AS_OK;
    as_status st = q->pack(b->s, b->len, &packed, err);
    if (st == AS_OK) {
        str_done(b);
        *b = packed;
    } else {
        str_done(&packed);
    }
    return st;
}

static as_status write_part(const struct kept_table *k, const struct table_request *q,
                            bool is_whole, struct str *ret, struct as_err *err)
{
    const struct sweep_table_part part = {.columns = q->columns,
                                          .is_single = q->is_single,
                                          .is_whole = is_whole,
                                          .since = q->since,
                                          .version = k->version};
    as_status st = sweep_table_write(k->t, &part, ret, err);
    return st == AS_OK ? pack_bytes(q, ret, err) : st;
}

static as_status make_file(struct kept_table *k, const struct table_request *q,
                           struct made_file *ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    char digest[SHA256_HEX_SIZE];
    int64_t now_ns = clock_mono_ns();
    as_status st = write_part(k, q, true, &b, err);
    if (st == AS_OK)
        st = sha256_of(b.s, b.len, digest, err);
    AS_AUTO(as_freep) char *columns = as_strdup(q->columns);
    if (st == AS_OK && q->columns && !columns)
        st = as_fail_nomem(err);
    if (st != AS_OK)
        return st;
    free(ret->columns);
    free(ret->bytes);
    *ret = (struct made_file){
        .is_single = q->is_single, .pack = q->pack, .version = k->version, .made_ns = now_ns};
    ret->columns = as_steal(columns);
    ret->len = b.len;
    ret->bytes = str_take(&b);
    (void)snprintf(ret->etag, sizeof ret->etag, "\"%.32s\"", digest);
    return AS_OK;
}

static as_status answer_whole(struct kept_table *k, struct arena *a, const struct table_request *q,
                              struct table_answer *ret, struct as_err *err)
{
    struct made_file *m = NULL;
    for (size_t i = 0; i < MADE_FILES; i++)
        if (is_same(&k->made[i], q))
            m = &k->made[i];
    if (!m || !is_fresh(k, m)) {
        if (!m)
            m = &k->made[k->next_made++ % MADE_FILES];
        as_status st = make_file(k, q, m, err);
        if (st != AS_OK)
            return st;
    }
    char *bytes = arena_alloc(a, m->len + 1, 1);
    char *etag = arena_strdup(a, m->etag);
    if (!bytes || !etag)
        return as_fail_nomem(err);
    memcpy(bytes, m->bytes, m->len);
    *ret = (struct table_answer){.bytes = bytes, .len = m->len, .etag = etag};
    return AS_OK;
}

static as_status answer_part(const struct kept_table *k, struct arena *a,
                             const struct table_request *q, struct table_answer *ret,
                             struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    as_status st = write_part(k, q, false, &b, err);
    if (st != AS_OK)
        return st;
    char *bytes = arena_alloc(a, b.len + 1, 1);
    if (!bytes)
        return as_fail_nomem(err);
    memcpy(bytes, b.s, b.len);
    *ret = (struct table_answer){.bytes = bytes, .len = b.len};
    return AS_OK;
}

static as_status answer_locked(struct store *db, struct kept_table *k, struct arena *a,
                               const struct table_request *q, struct table_answer *ret,
                               struct as_err *err)
{
    bool has_part = false;
    as_status st = bring_up_to_date(db, k, err);
    if (st == AS_OK && q->has_since)
        st = knows_since(db, k, q->since, &has_part, err);
    if (st != AS_OK)
        return st;
    return has_part ? answer_part(k, a, q, ret, err) : answer_whole(k, a, q, ret, err);
}

as_status table_export(struct store *db, struct table_cache *cache, struct arena *a,
                       const struct table_request *q, struct table_answer *ret, struct as_err *err)
{
    int64_t key = 0;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_sweep_key(run.tx, q->sweep, &key, err);
    if (run.status != AS_OK)
        return run.status;
    struct kept_table *k = kept_take(cache, key);
    if (!k)
        return as_fail_nomem(err);
    pthread_mutex_lock(&k->mu);
    as_status st = answer_locked(db, k, a, q, ret, err);
    if (kept_bytes(k) > cache->max_bytes)
        forget_files(k); /* they cost less than to read the table again */
    size_t bytes = kept_bytes(k);
    pthread_mutex_unlock(&k->mu);
    kept_give_back(cache, k, bytes);
    return st;
}
