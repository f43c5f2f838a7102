/* One lock guards slices and list: the mailbox's thread holds it while it handles a request, the
 * trainer's thread at the border of a phase.
 *
 * The list hands out the lowest batch that nobody has. When it is to end early (a wish of a rank,
 * or its time is over), it hands out nothing above the highest batch that it has handed out, so
 * that what is done has no holes. */
#include "trial-runner/distributed/slice_service.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"

struct list {
    int64_t n, highest;    /* batches; one past the highest that was handed out */
    double *losses;        /* [n]: -INFINITY: not done */
    int32_t *owner;        /* [n]: who has it; -1: nobody */
    struct mail **waiting; /* by rank */
    int64_t out;           /* handed out, and not done */
    int64_t end_ns;        /* 0: without limit */
    uint32_t agreed;
    bool closing;
    bool sole; /* for rank 0 alone */
};

struct slice_service {
    const struct replica *replica;
    struct slice_updater *updater;
    const struct push_form *form;
    int32_t rank, n_ranks;
    uint32_t n_slices;
    size_t n; /* numbers: parameters and statistics */
    int64_t position;
    int32_t steps_done;
    pthread_mutex_t lock;               /* guards what follows */
    float *weights, *moment1, *moment2; /* whole vectors, of which this rank's slices count */
    float *gradient;                    /* [n]: of a slice, decoded */
    int32_t *updates;                   /* [n_slices], of this phase */
    struct list list;
};

static size_t slice_of(const struct slice_service *s, uint32_t k, size_t *ret_first)
{
    return push_slice_n(s->form, k, s->n_slices, ret_first);
}

void slice_service_free(struct slice_service *s)
{
    if (!s)
        return;
    (void)pthread_mutex_destroy(&s->lock);
    free(s->weights);
    free(s->moment1);
    free(s->moment2);
    free(s->gradient);
    free(s->updates);
    free(s->list.losses);
    free(s->list.owner);
    free(s->list.waiting);
    free(s);
}

as_status slice_service_create(int32_t rank, int32_t n_ranks, uint32_t n_slices,
                               const struct replica *r, struct slice_updater *updater,
                               const struct push_form *form, struct slice_service **ret,
                               struct as_err *err)
{
    struct slice_service *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    *s = (struct slice_service){.replica = r,
                                .updater = updater,
                                .form = form,
                                .rank = rank,
                                .n_ranks = n_ranks,
                                .n_slices = n_slices,
                                .n = r->n_params + r->n_state,
                                .position = -1};
    (void)pthread_mutex_init(&s->lock, NULL);
    s->weights = as_calloc(s->n, sizeof(float));
    s->moment1 = as_calloc(r->n_params, sizeof(float));
    s->moment2 = r->has_moment2 ? as_calloc(r->n_params, sizeof(float)) : NULL;
    s->gradient = as_calloc(s->n, sizeof(float));
    s->updates = as_calloc(n_slices, sizeof *s->updates);
    s->list.waiting = as_calloc((size_t)n_ranks, sizeof *s->list.waiting);
    if (!s->weights || !s->moment1 || (r->has_moment2 && !s->moment2) || !s->gradient ||
        !s->updates || !s->list.waiting) {
        slice_service_free(s);
        return as_fail_nomem(err);
    }
    *ret = s;
    return AS_OK;
}

/* ---- phases ---- */

as_status slice_service_begin(struct slice_service *s, const struct slice_phase *phase,
                              const struct slice_values *values, struct as_err *err)
{
    size_t n = (size_t)phase->n, n_params = s->replica->n_params;
    double *losses = as_calloc(n, sizeof *losses);
    int32_t *owner = as_calloc(n, sizeof *owner);
    if (!losses || !owner) {
        free(losses);
        free(owner);
        return as_fail_nomem(err);
    }
    (void)pthread_mutex_lock(&s->lock);
    struct list *l = &s->list;
    free(l->losses);
    free(l->owner);
    *l = (struct list){.n = phase->n,
                       .losses = losses,
                       .owner = owner,
                       .waiting = l->waiting,
                       .sole = phase->sole};
    int32_t before = 0;
    for (size_t i = 0; i < n; i++) {
        losses[i] = phase->losses[i];
        owner[i] = -1;
        if (losses[i] > -INFINITY) {
            l->highest = (int64_t)i + 1;
            before++;
        }
    }
    l->end_ns = phase->most_ms ? clock_mono_ns() + phase->most_ms * NS_PER_MS : 0;
    s->position = phase->position;
    s->steps_done = phase->steps_done;
    memcpy(s->weights, values->weights, s->n * sizeof(float));
    memcpy(s->moment1, values->moment1, n_params * sizeof(float));
    if (s->moment2)
        memcpy(s->moment2, values->moment2, n_params * sizeof(float));
    for (uint32_t k = 0; k < s->n_slices; k++)
        s->updates[k] = before;
    (void)pthread_mutex_unlock(&s->lock);
    return AS_OK;
}

void slice_service_read(struct slice_service *s, uint32_t slice, const struct slice_values *ret)
{
    size_t first, n = slice_of(s, slice, &first), n_params = s->replica->n_params;
    size_t of_params = first >= n_params ? 0 : first + n > n_params ? n_params - first : n;
    (void)pthread_mutex_lock(&s->lock);
    memcpy(ret->weights + first, s->weights + first, n * sizeof(float));
    if (of_params) {
        memcpy(ret->moment1 + first, s->moment1 + first, of_params * sizeof(float));
        if (s->moment2)
            memcpy(ret->moment2 + first, s->moment2 + first, of_params * sizeof(float));
    }
    (void)pthread_mutex_unlock(&s->lock);
}

void slice_service_done(struct slice_service *s, double *ret, int64_t n)
{
    (void)pthread_mutex_lock(&s->lock);
    for (int64_t i = 0; i < n; i++)
        ret[i] = i < s->list.n ? s->list.losses[i] : (double)-INFINITY;
    (void)pthread_mutex_unlock(&s->lock);
}

/* ---- slices ---- */

/* Parameters are updated; statistics are replaced by those of who came last. */
static as_status update_slice(struct slice_service *s, uint32_t k, const float *from)
{
    size_t first, n = slice_of(s, k, &first), n_params = s->replica->n_params;
    size_t of_params = first >= n_params ? 0 : first + n > n_params ? n_params - first : n;
    as_status st = AS_OK;
    if (of_params) {
        struct replica_slice slice = {.first = first,
                                      .n = of_params,
                                      .params = s->weights + first,
                                      .grads = from,
                                      .moment1 = s->moment1 + first,
                                      .moment2 = s->moment2 ? s->moment2 + first : NULL};
        st = s->updater->update(s->updater, s->position + s->updates[k],
                                s->steps_done + s->updates[k], &slice, NULL);
    }
    if (st == AS_OK) {
        memcpy(s->weights + first + of_params, from + of_params, (n - of_params) * sizeof(float));
        s->updates[k]++;
    }
    return st;
}

/* Decodes the gradient of a request, and updates the slice. */
static as_status apply_push(struct slice_service *s, const struct slice_push *head,
                            const uint8_t *message, size_t n)
{
    const struct push_slice slice = {head->slice, s->n_slices, head->plain};
    memset(s->gradient, 0, n * sizeof *s->gradient);
    as_status st = push_decode_add(s->form, slice, message, s->gradient, NULL);
    return st < 0 ? st : update_slice(s, head->slice, s->gradient);
}

static void push(struct slice_service *s, struct mailbox *b, struct mail *m)
{
    struct slice_push head = {0};
    size_t first, n = 0;
    bool sound = m->n >= sizeof head;
    if (sound) {
        memcpy(&head, m->bytes, sizeof head);
        sound = head.slice < s->n_slices && head.plain <= 1 &&
                (int32_t)(head.slice % (uint32_t)s->n_ranks) == s->rank;
    }
    if (sound) {
        n = slice_of(s, head.slice, &first);
        sound = m->n ==
                sizeof head +
                    push_bytes(s->form, (struct push_slice){head.slice, s->n_slices, head.plain});
    }
    as_status st = !sound ? AS_E_INVAL
                   : m->step != (uint64_t)s->position
                       ? AS_E_STALE
                       : apply_push(s, &head, m->bytes + sizeof head, n);
    struct mail_part part = {st == AS_OK ? s->weights + first : NULL,
                             st == AS_OK ? n * sizeof(float) : 0};
    mailbox_answer(b, m, st, &part, 1);
}

/* ---- the list ---- */

static int64_t next_batch(const struct list *l)
{
    int64_t limit = l->closing ? l->highest : l->n;
    for (int64_t i = 0; i < limit; i++)
        if (l->owner[i] < 0 && !(l->losses[i] > -INFINITY))
            return i;
    return -1;
}

static void answer_end(struct list *l, struct mailbox *b, struct mail *m)
{
    struct slice_taken t = {.batch = -1, .agreed = l->agreed};
    while (t.count < l->n && l->losses[t.count] > -INFINITY)
        t.count++;
    float *losses = as_calloc((size_t)t.count, sizeof *losses);
    for (int64_t i = 0; losses && i < t.count; i++)
        losses[i] = (float)l->losses[i];
    struct mail_part parts[2] = {{&t, sizeof t}, {losses, (size_t)t.count * sizeof *losses}};
    mailbox_answer(b, m, losses ? AS_OK : AS_E_NOMEM, parts, losses ? 2 : 0);
    free(losses);
}

/* Answers who waits: with a batch, or with the end when nobody has one any more, and none is left
 * for a rank that may not have asked yet. */
static void serve(struct slice_service *s, struct mailbox *b)
{
    struct list *l = &s->list;
    for (int32_t r = 0; r < (l->sole ? 1 : s->n_ranks); r++) {
        int64_t i = l->waiting[r] ? next_batch(l) : -1;
        if (i < 0)
            continue;
        struct slice_taken t = {.batch = i};
        struct mail_part part = {&t, sizeof t};
        struct mail *m = l->waiting[r];
        l->waiting[r] = NULL;
        l->owner[i] = r;
        l->out++;
        l->highest = i >= l->highest ? i + 1 : l->highest;
        mailbox_answer(b, m, AS_OK, &part, 1);
    }
    bool over = l->out == 0 && !(l->sole && next_batch(l) >= 0);
    for (int32_t r = 0; over && r < s->n_ranks; r++) {
        struct mail *m = l->waiting[r];
        l->waiting[r] = NULL;
        if (m)
            answer_end(l, b, m);
    }
}

static void take(struct slice_service *s, struct mailbox *b, struct mail *m)
{
    struct list *l = &s->list;
    struct slice_take t;
    bool sound = m->n == sizeof t && s->rank == 0 && !l->waiting[m->from];
    if (sound) {
        memcpy(&t, m->bytes, sizeof t);
        sound = t.done >= -1 && t.done < l->n;
    }
    if (!sound || m->step != (uint64_t)s->position) {
        mailbox_answer(b, m, sound ? AS_E_STALE : AS_E_INVAL, NULL, 0);
        return;
    }
    if (t.done >= 0) {
        l->losses[t.done] = (double)t.loss;
        l->out -= l->owner[t.done] == m->from;
        l->owner[t.done] = l->owner[t.done] == m->from ? -1 : l->owner[t.done];
    }
    l->agreed |= t.wishes;
    l->closing = l->closing || l->agreed || (l->end_ns && clock_mono_ns() > l->end_ns);
    l->waiting[m->from] = m;
    serve(s, b);
}

void slice_service_request(void *arg, struct mailbox *b, struct mail *m)
{
    struct slice_service *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    if (m->kind == SLICE_PUSH)
        push(s, b, m);
    else if (m->kind == SLICE_TAKE)
        take(s, b, m);
    else
        mailbox_answer(b, m, AS_E_INVAL, NULL, 0);
    (void)pthread_mutex_unlock(&s->lock);
}

void slice_service_lost(void *arg, struct mailbox *b, int32_t rank)
{
    struct slice_service *s = arg;
    struct list *l = &s->list;
    (void)pthread_mutex_lock(&s->lock);
    for (int64_t i = 0; i < l->n; i++)
        if (l->owner[i] == rank) {
            l->owner[i] = -1;
            l->out--;
        }
    if (l->waiting[rank]) {
        mailbox_answer(b, l->waiting[rank], AS_E_UNAVAILABLE, NULL, 0);
        l->waiting[rank] = NULL;
    }
    serve(s, b);
    (void)pthread_mutex_unlock(&s->lock);
}
