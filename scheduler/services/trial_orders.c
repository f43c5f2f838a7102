/* Orders of trials that are kept between requests.
 *
 * `seen` is the horizon of events when an order was last brought up to date: every event up to
 * there is in it. Keys are read after the horizon, so one may be newer; its event follows. Events
 * are kept for days: an order that nobody asked for in half that time is read again.
 *
 * New keys are sorted and merged into the array in its place, from its end: what is before the
 * first of them does not move, and only keys that are read again cost a look at all.
 *
 * Locks: that of the list of orders is never held during a query (kept_list.h); an order's own is
 * held while it is brought up to date and read. */
#include "scheduler/services/trial_orders.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "scheduler/rows/order_row.h"
#include "scheduler/services/kept_list.h"
#include "scheduler/store/order_store.h"
#include "scheduler/store/table_store.h"
#include "scheduler/sweep/stored_doc.h"

#define READ_ROWS 20000 /* keys of one statement */

struct order {
    struct kept kept;
    int64_t sweep_key;
    trial_sort sort;
    char *name; /* owned; NULL: none */
    bool descending;

    pthread_mutex_t mu;     /* guards all below */
    struct order_row *rows; /* owned, in order; all trials with numbers below `known` */
    size_t n, room;
    int64_t known;
    json_t *words; /* owned: the values of the parameter as texts; NULL: numbers */
    bool is_read;
    int64_t seen, seen_ns;
};

/* Which order a request needs. */
struct wanted_order {
    int64_t sweep_key;
    const struct trial_query *q;
};

struct trial_orders {
    struct kept_list orders;
};

/* ---- what is kept ---- */

static void forget_rows(struct order *o)
{
    free(o->rows);
    json_decref(o->words);
    o->rows = NULL;
    o->words = NULL;
    o->n = o->room = 0;
    o->known = 0;
    o->is_read = false;
}

static void order_free(struct order *o)
{
    if (!o)
        return;
    forget_rows(o);
    free(o->name);
    (void)pthread_mutex_destroy(&o->mu);
    free(o);
}
AS_DEFINE_FREEP(struct order, order_free)

static struct order *order_create(int64_t sweep_key, const struct trial_query *q)
{
    struct order *o = as_calloc(1, sizeof *o);
    if (!o)
        return NULL;
    (void)pthread_mutex_init(&o->mu, NULL);
    o->sweep_key = sweep_key;
    o->sort = q->sort;
    o->descending = q->descending;
    o->name = q->name ? as_strdup(q->name) : NULL;
    if (!q->name || o->name)
        return o;
    order_free(o);
    return NULL;
}

static struct kept *create_wanted(const void *ask)
{
    const struct wanted_order *w = ask;
    struct order *o = order_create(w->sweep_key, w->q);
    return o ? &o->kept : NULL;
}

static bool is_wanted(const struct kept *x, const void *ask)
{
    const struct order *o = (const struct order *)x;
    const struct wanted_order *w = ask;
    return o->sweep_key == w->sweep_key && o->sort == w->q->sort &&
           o->descending == w->q->descending && as_streq(o->name, w->q->name);
}

static void free_kept(struct kept *x)
{
    order_free((struct order *)x);
}

static const struct kept_kind kept_orders = {
    .is = is_wanted, .create = create_wanted, .free = free_kept};

struct trial_orders *trial_orders_create(size_t max_bytes)
{
    struct trial_orders *x = as_calloc(1, sizeof *x);
    if (x)
        kept_list_init(&x->orders, &kept_orders, max_bytes);
    return x;
}

void trial_orders_free(struct trial_orders *x)
{
    if (!x)
        return;
    kept_list_done(&x->orders);
    free(x);
}

size_t trial_orders_bytes(struct trial_orders *x)
{
    return kept_list_bytes(&x->orders);
}

/* ---- the array ---- */

/* Trials without a key come last, equal keys by number. */
static int compare(const void *a, const void *b)
{
    const struct order_row *x = a, *y = b;
    if (x->has_key != y->has_key)
        return x->has_key ? -1 : 1;
    if (x->has_key && x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Take the rows of trials that are read again out of the order. */
static as_status take_out(struct order *o, const struct order_row *rows, size_t n,
                          struct as_err *err)
{
    bool is_known = false;
    for (size_t i = 0; i < n; i++)
        is_known |= rows[i].number < o->known;
    if (!is_known)
        return AS_OK;
    AS_AUTO(as_freep) unsigned char *is_new = as_calloc((size_t)o->known, 1);
    if (!is_new)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (rows[i].number < o->known)
            is_new[rows[i].number] = 1;
    size_t m = 0;
    for (size_t i = 0; i < o->n; i++)
        if (!is_new[o->rows[i].number])
            o->rows[m++] = o->rows[i];
    o->n = m;
    return AS_OK;
}

/* Let these rows take the place of those that the order has of the same trials, or be new in it.
 * AS_E_NOMEM: it is as it was. */
static as_status merge(struct order *o, struct order_row *rows, size_t n, struct as_err *err)
{
    int64_t top = o->known;
    size_t room = o->n + n + o->n / 16;
    if (n == 0)
        return AS_OK;
    for (size_t i = 0; i < n; i++) {
        rows[i].key = o->descending ? -rows[i].key : rows[i].key;
        top = rows[i].number >= top ? rows[i].number + 1 : top;
    }
    if (o->n + n > o->room) {
        as_status st = as_grow(&o->rows, room, sizeof *o->rows, err);
        if (st != AS_OK)
            return st;
        o->room = room;
    }
    as_status st = take_out(o, rows, n, err);
    if (st != AS_OK)
        return st;
    qsort(rows, n, sizeof *rows, compare);
    size_t from = o->n, to = o->n + n; /* from the end, until what is left is in its place */
    for (size_t k = n; k > 0; to--) {
        bool is_old = from > 0 && compare(&o->rows[from - 1], &rows[k - 1]) > 0;
        o->rows[to - 1] = is_old ? o->rows[--from] : rows[--k];
    }
    o->n += n;
    o->known = top;
    return AS_OK;
}

/* The places after `after`. */
static size_t places_after(const struct order *o, const struct trial_query *q,
                           const struct trial_place *after, size_t n, struct trial_place *ret)
{
    const struct order_row at = {
        .key = after->key, .number = after->number, .has_key = after->has_key};
    size_t low = 0, high = after->set ? o->n : 0, found = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&o->rows[middle], &at) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < o->n && found < n; i++) {
        const struct order_row *r = &o->rows[i];
        if (!q->state || r->state == *q->state)
            ret[found++] = (struct trial_place){true, r->has_key, r->key, r->number};
    }
    return found;
}

/* ---- bring up to date ---- */

static as_status add_word(json_t *words, const json_t *value, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = json_is_string(value) ? NULL : json_format_ordered(value);
    json_t *word = json_is_string(value) ? json_string(json_string_value(value))
                   : text                ? json_string(text)
                                         : NULL;
    return json_array_append_new(words, word) == 0 ? AS_OK : as_fail_nomem(err);
}

/* The values of a parameter as texts, unless all are numbers. */
static as_status read_words(struct order *o, const char *document, struct as_err *err)
{
    JSON_AUTO tree = NULL;
    JSON_AUTO words = json_array();
    const json_t *value;
    size_t i;
    bool is_number = true;
    as_status st = stored_doc_read(document, &tree, NULL, err);
    if (st != AS_OK)
        return st;
    const json_t *p = json_object_get(json_object_get(tree, "parameters"), o->name);
    if (!p)
        return as_fail(err, AS_E_INVAL, "the sweep has no parameter '%.80s' to sort by", o->name);
    JSON_AUTO values = json_deep_copy(json_object_get(p, "values"));
    if (as_streq(json_string_value(json_object_get(p, "type")), "bool"))
        values = json_pack("[b, b]", 0, 1);
    else if (json_object_get(p, "value"))
        values = json_pack("[O]", json_object_get(p, "value"));
    json_array_foreach(values, i, value)
    {
        is_number &= json_is_number(value);
        if ((st = add_word(words, value, err)) != AS_OK)
            return st;
    }
    o->words = is_number ? NULL : as_steal(words);
    return AS_OK;
}

/* What to read. The words are views of the order. */
static as_status key_of(struct arena *a, const struct order *o, const struct trial_query *q,
                        struct order_key *ret, struct as_err *err)
{
    struct order_key k = {.sort = o->sort, .name = o->name, .group = q->group};
    k.n_words = o->sort == TRIAL_BY_STATE ? TRIAL_STATES : json_array_size(o->words);
    const char **words = arena_alloc(a, k.n_words + 1, sizeof *words);
    if (!words)
        return as_fail_nomem(err);
    for (size_t i = 0; i < k.n_words; i++)
        words[i] = o->sort == TRIAL_BY_STATE ? trial_state_format((trial_state)i)
                                             : json_string_value(json_array_get(o->words, i));
    k.words = k.n_words > 0 ? words : NULL;
    *ret = k;
    return AS_OK;
}

/* Read the keys of the trials that the order lacks. */
static as_status read_more(struct store *db, struct order *o, const struct order_key *k,
                           int64_t from, int64_t total, struct as_err *err)
{
    as_status st = AS_OK;
    for (; from < total && st == AS_OK; from += READ_ROWS) {
        AS_AUTO(arena_done) struct arena a = {0};
        struct order_row *rows = NULL;
        size_t n = 0;
        int64_t to = total - from > READ_ROWS ? from + READ_ROWS : total;
        struct tx_run run = tx_run_start(db, TX_READ, err);
        while (tx_run_again(&run))
            run.status = store_order_rows(run.tx, &a, o->sweep_key, k, from, to, &rows, &n, err);
        st = run.status == AS_OK ? merge(o, rows, n, err) : run.status;
    }
    return st;
}

/* Read again the keys of the trials that events name. */
static as_status read_changed(struct store *db, struct order *o, const struct order_key *k,
                              int64_t horizon, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct table_change *changes = NULL;
    struct order_row *rows = NULL;
    size_t n = 0, n_rows = 0;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status =
            store_table_changes(run.tx, &a, o->sweep_key, o->seen, horizon, &changes, &n, err);
    while (run.status == AS_OK && n > 0 && changes[n - 1].number >= o->known)
        n--; /* read_more reads it */
    if (run.status != AS_OK || n == 0)
        return run.status;
    struct tx_run keys = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&keys))
        keys.status =
            store_order_rows_of(keys.tx, &a, o->sweep_key, k, changes, n, &rows, &n_rows, err);
    return keys.status == AS_OK ? merge(o, rows, n_rows, err) : keys.status;
}

static as_status bring_up_to_date(struct store *db, struct order *o, const struct trial_query *q,
                                  struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct table_head head = {0};
    struct order_key k;
    int64_t now_ns = clock_mono_ns();
    if (o->is_read && now_ns - o->seen_ns > store_config(db)->event_keep_ms / 2 * NS_PER_MS)
        forget_rows(o);
    bool needs_words = !o->is_read && o->sort == TRIAL_BY_PARAM;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_table_head(run.tx, &a, o->sweep_key, needs_words, &head, err);
    as_status st = run.status;
    if (st == AS_OK && needs_words)
        st = read_words(o, head.document, err);
    if (st == AS_OK)
        st = key_of(&a, o, q, &k, err);
    if (st == AS_OK && o->is_read)
        st = read_changed(db, o, &k, head.horizon, err);
    if (st == AS_OK)
        st = read_more(db, o, &k, o->known, head.n_trials, err);
    if (st != AS_OK) {
        if (!o->is_read)
            forget_rows(o); /* `seen` is not known yet */
        return st;
    }
    o->is_read = true;
    o->seen = head.horizon;
    o->seen_ns = now_ns;
    return AS_OK;
}

/* A list of one group is short, and its order is not kept. */
static as_status page_of_group(struct store *db, int64_t sweep_key, const struct trial_query *q,
                               const struct trial_place *after, size_t n, struct trial_place *ret,
                               size_t *ret_n, struct as_err *err)
{
    AS_AUTO(order_freep) struct order *o = order_create(sweep_key, q);
    if (!o)
        return as_fail_nomem(err);
    as_status st = bring_up_to_date(db, o, q, err);
    if (st == AS_OK)
        *ret_n = places_after(o, q, after, n, ret);
    return st;
}

as_status trial_orders_page(struct store *db, struct trial_orders *x, int64_t sweep_key,
                            const struct trial_query *q, const struct trial_place *after, size_t n,
                            struct trial_place *ret, size_t *ret_n, struct as_err *err)
{
    if (q->group)
        return page_of_group(db, sweep_key, q, after, n, ret, ret_n, err);
    const struct wanted_order wanted = {sweep_key, q};
    struct order *o = (struct order *)kept_list_take(&x->orders, &wanted);
    if (!o)
        return as_fail_nomem(err);
    pthread_mutex_lock(&o->mu);
    as_status st = bring_up_to_date(db, o, q, err);
    if (st == AS_OK)
        *ret_n = places_after(o, q, after, n, ret);
    size_t bytes = sizeof *o + o->room * sizeof *o->rows;
    pthread_mutex_unlock(&o->mu);
    kept_list_give_back(&x->orders, &o->kept, bytes);
    return st;
}
