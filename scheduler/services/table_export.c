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
 * Locks: that of the list of tables is never held during a query (kept_list.h); a table's own is
 * held while it is brought up to date and read. */
#include "scheduler/services/table_export.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "scheduler/services/kept_list.h"
#include "scheduler/store/table_store.h"
#include "scheduler/sweep/stored_doc.h"

#define MADE_FILES 4      /* of one table */
#define REUSE_TRIALS 4096 /* the file of a smaller table is always made anew */
#define REUSE_PART 16     /* a file is used again until a sixteenth of the trials changed */

/* The file of a whole table, for one choice of columns. */
struct made_file {
    char *columns; /* owned; NULL: all */
    size_t max_points;
    bool is_single, is_planar;
    table_pack_fn *pack;
    char *bytes; /* owned; NULL: no file */
    size_t len;
    char etag[40];
    int64_t version, made_ns;
};

struct kept_table {
    struct kept kept;
    int64_t key;
    const struct table_kind *kind;
    char *subject; /* owned; NULL: none */

    pthread_mutex_t mu; /* guards all below */
    void *t;            /* owned; NULL: not read yet */
    int64_t base, version, seen;
    int64_t seen_ns; /* monotonic, when `seen` was read */
    struct made_file made[MADE_FILES];
    size_t next_made; /* the one to replace next */
};

/* Which table a request needs. */
struct wanted_table {
    const struct table_kind *kind;
    int64_t key;
    const char *subject; /* NULL: none */
};

struct table_cache {
    struct kept_list tables;
};

/* ---- what is kept ---- */

static void forget_files(struct kept_table *k)
{
    for (size_t i = 0; i < MADE_FILES; i++) {
        free(k->made[i].columns);
        free(k->made[i].bytes);
        k->made[i] = (struct made_file){0};
    }
}

static void forget_table(struct kept_table *k)
{
    if (k->t)
        k->kind->free(k->t);
    k->t = NULL;
    forget_files(k);
}

static void kept_free(struct kept *x)
{
    struct kept_table *k = (struct kept_table *)x;
    forget_table(k);
    free(k->subject);
    (void)pthread_mutex_destroy(&k->mu);
    free(k);
}

static struct kept *kept_create(const void *ask)
{
    const struct wanted_table *w = ask;
    struct kept_table *k = as_calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->key = w->key;
    k->kind = w->kind;
    k->subject = as_strdup(w->subject);
    if (w->subject && !k->subject) {
        free(k);
        return NULL;
    }
    (void)pthread_mutex_init(&k->mu, NULL); /* cannot fail on Linux */
    return &k->kept;
}

static bool is_wanted(const struct kept *x, const void *ask)
{
    const struct kept_table *k = (const struct kept_table *)x;
    const struct wanted_table *w = ask;
    return k->key == w->key && k->kind == w->kind && as_streq(k->subject, w->subject);
}

static const struct kept_kind kept_tables = {
    .is = is_wanted, .create = kept_create, .free = kept_free};

struct table_cache *table_cache_create(size_t max_bytes)
{
    struct table_cache *x = as_calloc(1, sizeof *x);
    if (x)
        kept_list_init(&x->tables, &kept_tables, max_bytes);
    return x;
}

void table_cache_free(struct table_cache *x)
{
    if (!x)
        return;
    kept_list_done(&x->tables);
    free(x);
}

size_t table_cache_bytes(struct table_cache *x)
{
    return kept_list_bytes(&x->tables);
}

static size_t kept_bytes(const struct kept_table *k)
{
    size_t n = sizeof *k + (k->t ? k->kind->bytes(k->t) : 0);
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

static void mark_changes(struct kept_table *k, const struct table_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        k->kind->mark(k->t, changes[i].number, changes[i].event);
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
        st = k->kind->create(doc, k->subject, &k->t, err);
    if (st != AS_OK)
        return st;
    k->version = head->last_event ? head->last_event : head->horizon;
    k->base = k->version;
    return AS_OK;
}

static as_status extend_table(struct store *db, struct arena *a, struct kept_table *k,
                              const struct table_head *head, struct as_err *err)
{
    const int64_t known = (int64_t)k->kind->trials(k->t);
    struct table_news news = {.key = k->key, .n_trials = head->n_trials};
    struct table_change *changes = NULL;
    size_t n = 0;
    as_status st = list_changes(db, a, k, k->seen, head->horizon, &changes, &n, err);
    if (st != AS_OK)
        return st;
    news.changes = changes;
    while (news.n_changes < n && changes[news.n_changes].number < known)
        news.n_changes++;
    if ((st = k->kind->read(k->t, db, &news, err)) != AS_OK)
        return st;
    mark_changes(k, changes, n);
    if (head->last_event > k->version)
        k->version = head->last_event;
    return AS_OK;
}

static as_status read_table(struct store *db, struct kept_table *k, const struct table_head *head,
                            struct as_err *err)
{
    const struct table_news news = {.key = k->key, .n_trials = head->n_trials};
    as_status st = begin_table(k, head, err);
    if (st == AS_OK)
        st = k->kind->read(k->t, db, &news, err);
    if (st != AS_OK)
        forget_table(k); /* `seen` is not known yet */
    return st;
}

/* Forget a table that may have missed an event. */
static as_status drop_old(struct store *db, struct kept_table *k, struct as_err *err)
{
    bool is_safe = k->t != NULL;
    as_status st = AS_OK;
    if (k->t && clock_mono_ns() - k->seen_ns > store_config(db)->event_keep_ms / 2 * NS_PER_MS)
        st = is_covered(db, k->seen, &is_safe, err);
    if (st == AS_OK && !is_safe)
        forget_table(k);
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
    st = k->t ? extend_table(db, &a, k, &head, err) : read_table(db, k, &head, err);
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
           m->is_planar == q->is_planar && m->max_points == q->max_points &&
           as_streq(m->columns, q->columns);
}

static bool is_fresh(const struct kept_table *k, const struct made_file *m)
{
    size_t trials = k->kind->trials(k->t);
    if (m->version == k->version)
        return true;
    return trials >= REUSE_TRIALS && clock_mono_ns() - m->made_ns < TABLE_STALE_MS * NS_PER_MS &&
           k->kind->changed(k->t, m->version) <= trials / REUSE_PART;
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
    const struct table_part part = {.columns = q->columns,
                                    .max_points = q->max_points,
                                    .is_single = q->is_single,
                                    .is_planar = q->is_planar,
                                    .is_whole = is_whole,
                                    .since = q->since,
                                    .version = k->version};
    as_status st = k->kind->write(k->t, &part, ret, err);
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
    *ret = (struct made_file){.max_points = q->max_points,
                              .is_single = q->is_single,
                              .is_planar = q->is_planar,
                              .pack = q->pack,
                              .version = k->version,
                              .made_ns = now_ns};
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

static as_status find_sweep(struct store *db, struct arena *a, const struct table_request *q,
                            int64_t *ret_key, const char **ret_metric, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_table_sweep(run.tx, a, q->sweep, ret_key, ret_metric, err);
    return run.status;
}

as_status table_export(struct store *db, struct table_cache *cache, struct arena *a,
                       const struct table_request *q, struct table_answer *ret, struct as_err *err)
{
    int64_t key = 0;
    const char *subject = NULL;
    as_status st = find_sweep(db, a, q, &key, &subject, err);
    if (st != AS_OK)
        return st;
    if (q->kind != &table_of_points)
        subject = NULL;
    else if (q->metric)
        subject = q->metric;
    const struct wanted_table wanted = {q->kind, key, subject};
    struct kept_table *k = (struct kept_table *)kept_list_take(&cache->tables, &wanted);
    if (!k)
        return as_fail_nomem(err);
    pthread_mutex_lock(&k->mu);
    st = answer_locked(db, k, a, q, ret, err);
    if (kept_bytes(k) > cache->tables.max_bytes)
        forget_files(k); /* they cost less than to read the table again */
    size_t bytes = kept_bytes(k);
    pthread_mutex_unlock(&k->mu);
    kept_list_give_back(&cache->tables, &k->kept, bytes);
    return st;
}
