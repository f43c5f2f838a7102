/* One entry for each slice of a step that some rank still waits for. The gifts stay in the requests
 * that brought them until the entry is complete; then all are answered, and the sum stays until the
 * ranks that were late have asked for it too. What late ranks may leave behind is bounded
 * (KEPT_BYTES): beyond that a sum waits for all. */
#include "trial-runner/distributed/sum_service.h"

#include <string.h>

#include "trial-runner/distributed/shard_tree.h"

#define KEPT_BYTES ((size_t)64 << 20)

struct entry {
    struct entry *next;
    uint64_t step;
    uint32_t slice, n_slices, total;
    size_t n;            /* numbers of the slice */
    struct mail **gifts; /* by rank: those that wait */
    bool *answered;      /* by rank */
    void *sum;           /* as it is sent; NULL: not complete yet */
    size_t bytes;        /* of it */
};

struct sum_service {
    int32_t first, n_ranks, lost;
    const struct push_form *form;
    uint32_t backup;
    bool *is_lost; /* by rank */
    struct entry *entries;
    size_t kept; /* bytes of complete sums */
};

static void free_entry(struct entry *e)
{
    if (!e)
        return;
    free(e->gifts);
    free(e->answered);
    free(e->sum);
    free(e);
}

void sum_service_free(struct sum_service *s)
{
    if (!s)
        return;
    for (struct entry *e = s->entries, *next; e; e = next) {
        next = e->next;
        free_entry(e);
    }
    free(s->is_lost);
    free(s);
}

as_status sum_service_create(int32_t first, int32_t n_ranks, const struct push_form *form,
                             uint32_t backup, struct sum_service **ret, struct as_err *err)
{
    AS_AUTO(sum_service_freep) struct sum_service *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    *s = (struct sum_service){.first = first, .n_ranks = n_ranks, .form = form, .backup = backup};
    s->is_lost = as_calloc((size_t)n_ranks, sizeof *s->is_lost);
    if (!s->is_lost)
        return as_fail_nomem(err);
    *ret = as_steal(s);
    return AS_OK;
}

static struct sum_head head_of(const struct mail *m)
{
    struct sum_head h;
    memcpy(&h, m->bytes, sizeof h);
    return h;
}

static struct entry *find(const struct sum_service *s, uint64_t step, uint32_t slice)
{
    struct entry *e = s->entries;
    while (e && (e->step != step || e->slice != slice))
        e = e->next;
    return e;
}

static struct entry *add(struct sum_service *s, uint64_t step, const struct sum_head *h, size_t n)
{
    struct entry *e = as_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    *e = (struct entry){
        .step = step, .slice = h->slice, .n_slices = h->n_slices, .total = h->total, .n = n};
    e->gifts = as_calloc((size_t)s->n_ranks, sizeof(struct mail *));
    e->answered = as_calloc((size_t)s->n_ranks, sizeof *e->answered);
    if (!e->gifts || !e->answered) {
        free_entry(e);
        return NULL;
    }
    e->next = s->entries;
    s->entries = e;
    return e;
}

static void remove_entry(struct sum_service *s, struct entry *e)
{
    for (struct entry **at = &s->entries; *at; at = &(*at)->next)
        if (*at == e) {
            *at = e->next;
            s->kept -= e->bytes;
            free_entry(e);
            return;
        }
}

/* An entry that nobody will ask for any more is gone. */
static void drop_if_over(struct sum_service *s, struct entry *e)
{
    for (int32_t r = 0; r < s->n_ranks; r++)
        if (!e->answered[r] && !s->is_lost[r])
            return;
    remove_entry(s, e);
}

static void give_sum(struct sum_service *s, struct mailbox *b, struct entry *e, struct mail *m,
                     bool late)
{
    struct sum_answer a = {.late = late};
    struct mail_part parts[2] = {{&a, sizeof a}, {e->sum, e->bytes}};
    e->answered[m->from - s->first] = true;
    mailbox_answer(b, m, AS_OK, parts, 2);
}

/* Is what came enough? */
static bool is_enough(const struct sum_service *s, const struct entry *e, float *ret_share)
{
    int32_t here = 0, alive = s->n_ranks - s->lost;
    int32_t need = s->n_ranks - (int32_t)s->backup;
    if (s->kept > KEPT_BYTES && need < alive)
        need = alive;
    *ret_share = 0;
    for (int32_t r = 0; r < s->n_ranks; r++)
        if (e->gifts[r]) {
            here++;
            *ret_share += head_of(e->gifts[r]).share;
        }
    return here >= need && *ret_share > 0;
}

/* The nodes of all gifts, in the order of their shards. */
static size_t list_nodes(const struct sum_service *s, const struct entry *e, struct shard_node *ret)
{
    size_t n = 0;
    for (int32_t r = 0; r < s->n_ranks; r++) {
        if (!e->gifts[r])
            continue;
        struct sum_head h = head_of(e->gifts[r]);
        const float *values = (const float *)(const void *)(e->gifts[r]->bytes + sizeof h);
        size_t first = n;
        n += shard_tree_cover(e->total, (struct shard_run){h.first, h.count}, ret + n);
        for (size_t i = first; i < n; i++)
            ret[i].value = values + (i - first) * e->n;
    }
    return n;
}

/* Reads the messages of a gift's n nodes, one behind another, into `to`. */
static void read_nodes(const struct sum_service *s, const struct entry *e, const struct mail *m,
                       struct shard_node *nodes, size_t n, float *to)
{
    const struct push_slice slice = {e->slice, e->n_slices, false};
    const uint8_t *in = m->bytes + sizeof(struct sum_head);
    size_t left = m->n - sizeof(struct sum_head), bytes = 0;
    for (size_t i = 0; i < n && push_measure(s->form, slice, in, left, &bytes); i++) {
        push_read(s->form, slice, in, to + i * e->n);
        nodes[i].value = to + i * e->n;
        in += bytes;
        left -= bytes;
    }
}

/* As list_nodes(), of messages that are measured. *ret_values: the caller's, free(). */
static as_status list_measured(const struct sum_service *s, const struct entry *e,
                               struct shard_node *ret, size_t *ret_n, float **ret_values)
{
    struct shard_node nodes[SHARD_TREE_NODES];
    size_t all = 0, n = 0;
    for (int32_t r = 0; r < s->n_ranks; r++)
        if (e->gifts[r]) {
            struct sum_head h = head_of(e->gifts[r]);
            all += shard_tree_cover(e->total, (struct shard_run){h.first, h.count}, nodes);
        }
    float *values = as_calloc(all * e->n, sizeof *values);
    if (!values)
        return AS_E_NOMEM;
    for (int32_t r = 0; r < s->n_ranks; r++)
        if (e->gifts[r]) {
            struct sum_head h = head_of(e->gifts[r]);
            size_t some = shard_tree_cover(e->total, (struct shard_run){h.first, h.count}, ret + n);
            read_nodes(s, e, e->gifts[r], ret + n, some, values + n * e->n);
            n += some;
        }
    *ret_n = n;
    *ret_values = values;
    return AS_OK;
}

static as_status sum_nodes(const struct sum_service *s, const struct entry *e, float *sum)
{
    AS_AUTO(as_freep) float *values = NULL;
    AS_AUTO(as_freep)
    struct shard_node *nodes = as_calloc((size_t)s->n_ranks, SHARD_TREE_NODES * sizeof *nodes);
    if (!nodes)
        return AS_E_NOMEM;
    size_t n = 0;
    as_status st = AS_OK;
    if (push_is_measured(s->form))
        st = list_measured(s, e, nodes, &n, &values);
    else
        n = list_nodes(s, e, nodes);
    if (st < 0)
        return st;
    return shard_tree_sum(e->total, shard_tree_root(e->total), nodes, n, sum, e->n, NULL);
}

/* Runs are in the order of the ranks. */
static as_status sum_messages(const struct sum_service *s, const struct entry *e, float *sum)
{
    as_status st = AS_OK;
    for (int32_t r = 0; r < s->n_ranks; r++) {
        if (!e->gifts[r])
            continue;
        struct sum_head h = head_of(e->gifts[r]);
        const struct push_slice slice = {e->slice, e->n_slices, h.plain};
        const uint8_t *in = e->gifts[r]->bytes + sizeof h;
        size_t left = e->gifts[r]->n - sizeof h, bytes = 0;
        for (uint32_t i = 0; st == AS_OK && i < h.count; i++, in += bytes, left -= bytes)
            st = push_measure(s->form, slice, in, left, &bytes)
                     ? push_decode_add(s->form, slice, in, sum, NULL)
                     : AS_E_INTERNAL; /* is_sound() has measured it */
    }
    return st;
}

/* Keeps the sum as it is sent: float32, or what of it is not 0. Takes `sum`. */
static as_status keep_sum(struct sum_service *s, struct entry *e, float *sum)
{
    e->sum = sum;
    e->bytes = e->n * sizeof *sum;
    if (push_is_measured(s->form)) {
        const struct push_slice slice = {e->slice, e->n_slices, false};
        e->sum = as_calloc(push_bytes(s->form, slice), 1);
        e->bytes = e->sum ? push_encode_sum(s->form, slice, sum, e->sum) : 0;
        free(sum);
    }
    s->kept += e->bytes;
    return e->sum ? AS_OK : AS_E_NOMEM;
}

static void complete(struct sum_service *s, struct mailbox *b, struct entry *e, float share)
{
    float *sum = as_calloc(e->n, sizeof *sum);
    as_status st = AS_E_NOMEM;
    if (sum)
        st = push_by_shard(s->form) ? sum_messages(s, e, sum) : sum_nodes(s, e, sum);
    bool whole = true;
    for (int32_t r = 0; r < s->n_ranks; r++)
        whole = whole && e->gifts[r];
    for (size_t i = 0; st == AS_OK && !whole && i < e->n; i++)
        sum[i] /= share;
    if (st == AS_OK)
        st = keep_sum(s, e, sum);
    else
        free(sum);
    for (int32_t r = 0; r < s->n_ranks; r++) {
        struct mail *m = e->gifts[r];
        e->gifts[r] = NULL;
        if (m && st == AS_OK)
            give_sum(s, b, e, m, false);
        else if (m)
            mailbox_answer(b, m, st, NULL, 0);
    }
    if (st == AS_OK)
        drop_if_over(s, e);
    else
        remove_entry(s, e);
}

/* Are there so many messages, and nothing behind them? */
static bool are_messages(const struct sum_service *s, const struct mail *m,
                         const struct sum_head *h, size_t items)
{
    const struct push_slice slice = {h->slice, h->n_slices, h->plain};
    const uint8_t *in = m->bytes + sizeof *h;
    size_t left = m->n - sizeof *h, bytes = 0;
    for (size_t i = 0; i < items; i++, in += bytes, left -= bytes)
        if (!push_measure(s->form, slice, in, left, &bytes))
            return false;
    return left == 0;
}

/* Is the request one of this world? Sets the numbers of its slice. */
static bool is_sound(const struct sum_service *s, const struct mail *m, size_t *ret_n)
{
    struct shard_node nodes[SHARD_TREE_NODES];
    size_t first, items = 0, bytes;
    if (m->n < sizeof(struct sum_head) || m->from < s->first || m->from >= s->first + s->n_ranks)
        return false;
    struct sum_head h = head_of(m);
    if (h.n_slices == 0 || h.n_slices > WORLD_MAX_RANKS || h.slice >= h.n_slices || h.total == 0 ||
        h.plain > 1 || h.first > h.total || h.count > h.total - h.first || !(h.share >= 0))
        return false;
    *ret_n = push_slice_n(s->form, h.slice, h.n_slices, &first);
    bytes = push_bytes(s->form, (struct push_slice){h.slice, h.n_slices, h.plain});
    if (m->kind == SUM_GIVE)
        items = push_by_shard(s->form)
                    ? h.count
                    : shard_tree_cover(h.total, (struct shard_run){h.first, h.count}, nodes);
    if (m->kind == SUM_GIVE && (s->form->codec || push_is_measured(s->form)))
        return are_messages(s, m, &h, items);
    return !__builtin_mul_overflow(items, bytes, &bytes) && m->n - sizeof h == bytes;
}

void sum_service_request(void *arg, struct mailbox *b, struct mail *m)
{
    struct sum_service *s = arg;
    size_t n = 0;
    float share;
    if ((m->kind != SUM_GIVE && m->kind != SUM_PEEK) || !is_sound(s, m, &n)) {
        mailbox_answer(b, m, AS_E_INVAL, NULL, 0);
        return;
    }
    struct sum_head h = head_of(m);
    struct entry *e = find(s, m->step, h.slice);
    if (e && e->sum) {
        give_sum(s, b, e, m, m->kind == SUM_GIVE);
        drop_if_over(s, e);
        return;
    }
    if (s->lost > (int32_t)s->backup) { /* this step will never be complete */
        mailbox_answer(b, m, AS_E_UNAVAILABLE, NULL, 0);
        return;
    }
    if (m->kind == SUM_PEEK) {
        mailbox_answer(b, m, AS_E_NOT_FOUND, NULL, 0);
        return;
    }
    if (!e)
        e = add(s, m->step, &h, n);
    if (!e || e->n != n || e->n_slices != h.n_slices || e->total != h.total ||
        e->gifts[m->from - s->first]) {
        mailbox_answer(b, m, e ? AS_E_CONFLICT : AS_E_NOMEM, NULL, 0);
        return;
    }
    e->gifts[m->from - s->first] = m;
    if (is_enough(s, e, &share))
        complete(s, b, e, share);
}

/* With backup the others go on without the lost rank. */
void sum_service_lost(void *arg, struct mailbox *b, int32_t rank)
{
    struct sum_service *s = arg;
    if (rank < s->first || rank >= s->first + s->n_ranks)
        return;
    s->is_lost[rank - s->first] = true;
    s->lost++;
    for (struct entry *e = s->entries, *next; e; e = next) {
        float share;
        next = e->next;
        if (e->sum) {
            drop_if_over(s, e);
        } else if (s->lost > (int32_t)s->backup) {
            for (int32_t r = 0; r < s->n_ranks; r++)
                if (e->gifts[r])
                    mailbox_answer(b, e->gifts[r], AS_E_UNAVAILABLE, NULL, 0);
            remove_entry(s, e);
        } else if (is_enough(s, e, &share)) {
            complete(s, b, e, share);
        }
    }
}
