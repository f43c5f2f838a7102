/* One entry for each slice of a step that some rank still waits for. Steps of a slice complete in
 * their order, because nobody computes a step before it has the sum of the one before: so `over`
 * says of a shard that comes late that it is. */
#include "trial-runner/distributed/copy_service.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/shard_tree.h"

#define KEPT_BYTES ((size_t)64 << 20)

struct copy_entry {
    struct copy_entry *next;
    uint64_t step;
    uint32_t slice, total, n_here;
    size_t n;           /* numbers of the slice */
    float **shards;     /* [total]; NULL: it has not come */
    struct mail **asks; /* by rank: those that wait */
    bool *answered;     /* by rank */
    float *sum;         /* NULL: not complete yet */
};

struct copy_service {
    int32_t n_ranks;
    uint32_t n_slices;
    size_t n, n_wishes;
    bool is_over;   /* a rank is lost: no step will be complete any more */
    uint64_t *over; /* [n_slices]: the first step that is not complete */
    float *wishes;  /* [n_wishes]: of shards that came late */
    struct copy_entry *entries;
    size_t kept; /* bytes of complete sums */
};

static void free_entry(struct copy_entry *e)
{
    if (!e)
        return;
    for (uint32_t i = 0; e->shards && i < e->total; i++)
        free(e->shards[i]);
    free(e->shards);
    free(e->asks);
    free(e->answered);
    free(e->sum);
    free(e);
}

void copy_service_free(struct copy_service *s)
{
    if (!s)
        return;
    for (struct copy_entry *e = s->entries, *next; e; e = next) {
        next = e->next;
        free_entry(e);
    }
    free(s->over);
    free(s->wishes);
    free(s);
}

as_status copy_service_create(int32_t n_ranks, size_t n, size_t n_wishes, uint32_t n_slices,
                              struct copy_service **ret, struct as_err *err)
{
    AS_AUTO(copy_service_freep) struct copy_service *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    *s = (struct copy_service){
        .n_ranks = n_ranks, .n_slices = n_slices, .n = n, .n_wishes = n_wishes};
    s->over = as_calloc(n_slices, sizeof *s->over);
    s->wishes = as_calloc(n_wishes, sizeof *s->wishes);
    if (!s->over || !s->wishes)
        return as_fail_nomem(err);
    *ret = as_steal(s);
    return AS_OK;
}

/* ---- entries ---- */

static struct copy_head head_of(const struct mail *m)
{
    struct copy_head h;
    memcpy(&h, m->bytes, sizeof h);
    return h;
}

static struct copy_entry *find(const struct copy_service *s, uint64_t step, uint32_t slice)
{
    struct copy_entry *e = s->entries;
    while (e && (e->step != step || e->slice != slice))
        e = e->next;
    return e;
}

static struct copy_entry *add(struct copy_service *s, uint64_t step, const struct copy_head *h,
                              size_t n)
{
    struct copy_entry *e = as_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    *e = (struct copy_entry){.step = step, .slice = h->slice, .total = h->total, .n = n};
    e->shards = as_calloc(h->total, sizeof *e->shards);
    e->asks = as_calloc((size_t)s->n_ranks, sizeof(struct mail *));
    e->answered = as_calloc((size_t)s->n_ranks, sizeof *e->answered);
    if (!e->shards || !e->asks || !e->answered) {
        free_entry(e);
        return NULL;
    }
    e->next = s->entries;
    s->entries = e;
    return e;
}

static size_t sum_bytes(const struct copy_entry *e)
{
    return e->n * sizeof(float);
}

/* An entry whose sum all ranks have is gone. */
static void drop_if_over(struct copy_service *s, struct copy_entry *e)
{
    for (int32_t r = 0; r < s->n_ranks; r++)
        if (!e->answered[r])
            return;
    for (struct copy_entry **at = &s->entries; *at; at = &(*at)->next)
        if (*at == e) {
            *at = e->next;
            s->kept -= sum_bytes(e);
            free_entry(e);
            return;
        }
}

static void give_sum(struct mailbox *b, struct copy_entry *e, struct mail *m)
{
    struct mail_part part = {e->sum, sum_bytes(e)};
    e->answered[m->from] = true;
    mailbox_answer(b, m, AS_OK, &part, 1);
}

static void refuse_asks(struct copy_service *s, struct mailbox *b, struct copy_entry *e,
                        as_status why)
{
    for (int32_t r = 0; r < s->n_ranks; r++)
        if (e->asks[r]) {
            mailbox_answer(b, e->asks[r], why, NULL, 0);
            e->asks[r] = NULL;
        }
}

/* ---- sums ---- */

static as_status sum_shards(struct copy_entry *e)
{
    AS_AUTO(as_freep) struct shard_node *leaves = as_calloc(e->total, sizeof *leaves);
    AS_AUTO(as_freep) float *sum = as_calloc(e->n, sizeof *sum);
    if (!leaves || !sum)
        return AS_E_NOMEM;
    for (uint32_t i = 0; i < e->total; i++)
        leaves[i] = (struct shard_node){i, 0, e->shards[i]};
    as_status st =
        shard_tree_sum(e->total, shard_tree_root(e->total), leaves, e->total, sum, e->n, NULL);
    if (st == AS_OK)
        e->sum = as_steal(sum);
    return st;
}

/* What has come too late is wished in this step. */
static void add_wishes(struct copy_service *s, struct copy_entry *e)
{
    if (e->slice + 1 < s->n_slices)
        return;
    for (size_t w = 0; w < s->n_wishes && w < e->n; w++) {
        e->sum[e->n - 1 - w] += s->wishes[s->n_wishes - 1 - w];
        s->wishes[s->n_wishes - 1 - w] = 0;
    }
}

static void keep_wishes(struct copy_service *s, const struct copy_head *h, const float *values,
                        size_t n)
{
    for (size_t w = 0; h->slice + 1 == s->n_slices && w < s->n_wishes && w < n; w++)
        s->wishes[s->n_wishes - 1 - w] += values[n - 1 - w];
}

/* Completes an entry that has all shards. */
static void complete(struct copy_service *s, struct mailbox *b, struct copy_entry *e)
{
    if (sum_shards(e) != AS_OK) {
        refuse_asks(s, b, e, AS_E_NOMEM);
        return;
    }
    for (uint32_t i = 0; i < e->total; i++) {
        free(e->shards[i]);
        e->shards[i] = NULL;
    }
    add_wishes(s, e);
    s->over[e->slice] = e->step + 1;
    s->kept += sum_bytes(e);
    for (int32_t r = 0; r < s->n_ranks; r++)
        if (e->asks[r]) {
            give_sum(b, e, e->asks[r]);
            e->asks[r] = NULL;
        }
    drop_if_over(s, e);
}

/* Completes what can be, as long as there is room for it. */
static void complete_some(struct copy_service *s, struct mailbox *b)
{
    for (struct copy_entry *e = s->entries, *next; e && s->kept <= KEPT_BYTES; e = next) {
        next = e->next;
        if (!e->sum && e->n_here == e->total)
            complete(s, b, e);
    }
}

/* ---- requests ---- */

static void take_shard(struct copy_service *s, struct mailbox *b, struct copy_entry *e,
                       struct mail *m, const struct copy_head *h)
{
    const float *values = (const float *)(const void *)(m->bytes + sizeof *h);
    bool is_late = m->step < s->over[h->slice] || (e && (e->sum || e->shards[h->shard]));
    float *own = is_late || !e ? NULL : as_calloc(e->n, sizeof *own);
    if (is_late) {
        keep_wishes(s, h, values, (m->n - sizeof *h) / sizeof(float));
    } else if (own) {
        memcpy(own, values, sum_bytes(e));
        e->shards[h->shard] = own;
        e->n_here++;
    }
    mailbox_answer(b, m, is_late || own ? AS_OK : AS_E_NOMEM, NULL, 0);
    complete_some(s, b);
}

static void take_ask(struct copy_service *s, struct mailbox *b, struct copy_entry *e,
                     struct mail *m)
{
    if (e && e->sum) {
        give_sum(b, e, m);
        drop_if_over(s, e);
        complete_some(s, b);
    } else if (!e || e->asks[m->from]) {
        mailbox_answer(b, m, e ? AS_E_CONFLICT : AS_E_NOMEM, NULL, 0);
    } else {
        e->asks[m->from] = m;
        complete_some(s, b); /* one whose sum had no memory */
    }
}

static void tell_missing(const struct copy_service *s, struct mailbox *b,
                         const struct copy_entry *e, struct mail *m, const struct copy_head *h)
{
    AS_AUTO(as_freep) uint8_t *missing = as_calloc(h->total, 1);
    bool is_over = m->step < s->over[h->slice] || (e && e->sum);
    for (uint32_t i = 0; missing && !is_over && i < h->total; i++)
        missing[i] = !e || !e->shards[i];
    const struct mail_part part = {missing, h->total};
    mailbox_answer(b, m, missing ? AS_OK : AS_E_NOMEM, &part, missing ? 1 : 0);
}

/* Is the request one of this world? Sets the numbers of its slice. */
static bool is_sound(const struct copy_service *s, const struct mail *m, size_t *ret_n)
{
    size_t first, end;
    if (m->n < sizeof(struct copy_head) || m->from < 0 || m->from >= s->n_ranks ||
        m->kind < COPY_GIVE || m->kind > COPY_MISSING)
        return false;
    struct copy_head h = head_of(m);
    if (h.n_slices != s->n_slices || h.slice >= h.n_slices || h.total == 0 || h.shard >= h.total)
        return false;
    coll_slice(s->n, (int32_t)h.n_slices, (int32_t)h.slice, &first, &end);
    *ret_n = end - first;
    return m->n - sizeof h == (m->kind == COPY_GIVE ? *ret_n * sizeof(float) : 0);
}

void copy_service_request(void *arg, struct mailbox *b, struct mail *m)
{
    struct copy_service *s = arg;
    size_t n = 0;
    if (!is_sound(s, m, &n)) {
        mailbox_answer(b, m, AS_E_INVAL, NULL, 0);
        return;
    }
    struct copy_head h = head_of(m);
    struct copy_entry *e = find(s, m->step, h.slice);
    if (e && e->total != h.total) {
        mailbox_answer(b, m, AS_E_CONFLICT, NULL, 0);
        return;
    }
    if (s->is_over && !(e && e->sum)) {
        mailbox_answer(b, m, AS_E_UNAVAILABLE, NULL, 0);
        return;
    }
    if (!e && m->kind != COPY_MISSING && m->step >= s->over[h.slice])
        e = add(s, m->step, &h, n);
    if (m->kind == COPY_GIVE)
        take_shard(s, b, e, m, &h);
    else if (m->kind == COPY_ASK)
        take_ask(s, b, e, m);
    else
        tell_missing(s, b, e, m, &h);
}

void copy_service_lost(void *arg, struct mailbox *b, int32_t rank)
{
    struct copy_service *s = arg;
    (void)rank;
    s->is_over = true;
    for (struct copy_entry *e = s->entries; e; e = e->next)
        refuse_asks(s, b, e, AS_E_UNAVAILABLE);
}
