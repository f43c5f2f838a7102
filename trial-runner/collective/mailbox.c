/* A thread moves the messages of one mesh.
 *
 * Calls of other threads wait in `begun`; the thread numbers them, sends them, and keeps them in
 * `open` until their answers come. From each peer it receives one message after the other: a head
 * of fixed size, then as many bytes as the head says. A message to this rank itself takes the same
 * way, without the mesh.
 *
 * The thread alone touches the mesh, what is received and what is sent; the lock guards the queue
 * of begun calls, their ends, and what other threads may ask. */
#include "trial-runner/collective/mailbox.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "trial-runner/collective/mail_head.h"

/* A message on its way out. */
struct letter {
    struct letter *next;
    uint8_t head[MAIL_HEAD_BYTES];
    struct transfer t[2];
    size_t n;      /* transfers */
    uint8_t *copy; /* the bytes, if they are not the caller's; owned */
};

/* A request that is not answered yet. */
struct held {
    struct mail mail; /* first */
    uint64_t id;
    uint8_t *body;
    struct held *before, *after;
};

struct peer {
    bool lost;
    struct letter *first, *last; /* in the order in which they leave */
    uint64_t sent, received;     /* messages: both sides count them */
    size_t open;                 /* its requests that are not answered */
    /* The message that comes in: */
    uint8_t head_bytes[MAIL_HEAD_BYTES];
    struct mail_head head;
    uint8_t *body;
    struct transfer t;
    bool posted, has_head;
};

struct mailbox {
    struct coll_end *end; /* of the epoch */
    struct mailbox_opts opts;
    struct listener *listener;
    struct mesh *mesh;
    int32_t rank, n;
    pthread_t thread;
    bool has_thread, has_lock;
    struct peer *peers;
    struct held *held;
    struct mail_call *open; /* sent, and not answered */
    uint64_t next_id;

    pthread_mutex_t lock; /* guards what follows, and `done` of all calls */
    pthread_cond_t changed;
    struct mail_call *begun, *begun_last;
    bool stopping, over;
    bool *lost; /* by rank */
    uint64_t bytes_sent;
};

static void lock(struct mailbox *b)
{
    (void)pthread_mutex_lock(&b->lock);
}

static void unlock(struct mailbox *b)
{
    (void)pthread_mutex_unlock(&b->lock);
}

/* ---- calls ---- */

/* The call is in no list any more. Takes `answer`. */
static void end_call(struct mailbox *b, struct mail_call *call, as_status st, uint8_t *answer,
                     size_t n)
{
    void (*on_done)(void *, struct mail_call *) = call->on_done;
    void *arg = call->arg;
    lock(b);
    call->status = st;
    call->answer = answer;
    call->answer_n = n;
    call->done = true;
    (void)pthread_cond_broadcast(&b->changed);
    unlock(b);
    if (on_done) /* else the call may be gone already */
        on_done(arg, call);
}

static struct mail_call *take_open(struct mailbox *b, int32_t to, uint64_t id)
{
    for (struct mail_call **at = &b->open; *at; at = &(*at)->next)
        if ((*at)->to == to && (*at)->id == id) {
            struct mail_call *call = *at;
            *at = call->next;
            return call;
        }
    return NULL;
}

/* Ends the calls to `to`, or to all (-1). */
static void fail_open(struct mailbox *b, int32_t to)
{
    struct mail_call *failed = NULL;
    for (struct mail_call **at = &b->open; *at;) {
        struct mail_call *call = *at;
        if (to < 0 || call->to == to) {
            *at = call->next;
            call->next = failed;
            failed = call;
        } else {
            at = &call->next;
        }
    }
    while (failed) {
        struct mail_call *call = failed;
        failed = call->next;
        end_call(b, call, AS_E_UNAVAILABLE, NULL, 0);
    }
}

void mailbox_begin(struct mailbox *b, struct mail_call *call)
{
    call->done = false;
    call->next = NULL;
    call->answer = NULL;
    call->answer_n = 0;
    lock(b);
    if (b->begun)
        b->begun_last->next = call;
    else
        b->begun = call;
    b->begun_last = call;
    unlock(b);
    mesh_wake(b->mesh);
}

as_status mailbox_finish(struct mailbox *b, struct mail_call *call, struct as_err *err)
{
    lock(b);
    while (!call->done)
        (void)pthread_cond_wait(&b->changed, &b->lock);
    unlock(b);
    if (call->status < 0)
        return as_fail(err, call->status, "rank %d did not do what request %d of step %llu asks",
                       (int)call->to, (int)call->kind, (unsigned long long)call->step);
    return AS_OK;
}

bool mailbox_is_done(struct mailbox *b, const struct mail_call *call)
{
    lock(b);
    bool done = call->done;
    unlock(b);
    return done;
}

uint64_t mailbox_bytes_sent(struct mailbox *b)
{
    lock(b);
    uint64_t n = b->bytes_sent;
    unlock(b);
    return n;
}

bool mailbox_has_lost(struct mailbox *b, int32_t rank)
{
    lock(b);
    bool lost = b->lost[rank];
    unlock(b);
    return lost;
}

/* ---- sending ---- */

static void free_letter(struct letter *l)
{
    free(l->copy);
    free(l);
}

/* Frees the letters that have left. */
static void reap(struct peer *p)
{
    while (p->first && transfer_is_done(&p->first->t[p->first->n - 1])) {
        struct letter *l = p->first;
        p->first = l->next;
        free_letter(l);
    }
}

static void post(struct mailbox *b, struct letter *l, int32_t to, const void *from, size_t n)
{
    struct peer *p = &b->peers[to];
    if (n == 0)
        return;
    struct transfer *t = &l->t[l->n++];
    *t = (struct transfer){.peer = to,
                           .sends = true,
                           .step = p->sent,
                           .tag = l->n,
                           .what = "mail",
                           .from = from,
                           .length = n};
    mesh_post(b->mesh, t);
}

static size_t size_of(const struct mail_part *parts, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += parts[i].n;
    return sum;
}

/* The parts as one piece, or NULL. */
static uint8_t *join(const struct mail_part *parts, size_t n, size_t size)
{
    uint8_t *all = as_calloc(size, 1);
    size_t at = 0;
    for (size_t i = 0; all && i < n; at += parts[i++].n)
        if (parts[i].n)
            memcpy(all + at, parts[i].bytes, parts[i].n);
    return all;
}

/* Sends a message to another rank: head->n bytes, which are the caller's (`from`) or taken
 * (`copy`). False if there is no memory. */
static bool send_letter(struct mailbox *b, int32_t to, const struct mail_head *head,
                        const void *from, uint8_t *copy)
{
    struct peer *p = &b->peers[to];
    struct letter *l = as_calloc(1, sizeof *l);
    if (!l) {
        free(copy);
        return false;
    }
    l->copy = copy;
    mail_head_encode(head, l->head);
    post(b, l, to, l->head, MAIL_HEAD_BYTES);
    post(b, l, to, copy ? copy : from, (size_t)head->n);
    p->sent++;
    if (p->first)
        p->last->next = l;
    else
        p->first = l;
    p->last = l;
    lock(b);
    b->bytes_sent += head->n;
    unlock(b);
    coll_end_count(b->end, head->n);
    return true;
}

/* ---- requests of others ---- */

/* Takes the body. False if there is no memory. */
static bool hold(struct mailbox *b, int32_t from, const struct mail_head *head, uint8_t *body)
{
    struct held *h = as_calloc(1, sizeof *h);
    if (!h) {
        free(body);
        return false;
    }
    h->mail = (struct mail){
        .from = from, .kind = head->kind, .step = head->step, .bytes = body, .n = head->n};
    h->id = head->id;
    h->body = body;
    h->after = b->held;
    if (b->held)
        b->held->before = h;
    b->held = h;
    b->peers[from].open++;
    b->opts.on_request(b->opts.arg, b, &h->mail);
    return true;
}

static void release(struct mailbox *b, struct held *h)
{
    if (h->before)
        h->before->after = h->after;
    else
        b->held = h->after;
    if (h->after)
        h->after->before = h->before;
    b->peers[h->mail.from].open--;
    free(h->body);
    free(h);
}

void mailbox_answer(struct mailbox *b, struct mail *m, as_status status,
                    const struct mail_part *parts, size_t n)
{
    struct held *h = (struct held *)m;
    struct peer *p = &b->peers[m->from];
    size_t size = size_of(parts, n);
    uint8_t *copy = p->lost ? NULL : join(parts, n, size);
    struct mail_call *own = m->from == b->rank ? take_open(b, b->rank, h->id) : NULL;
    if (own) {
        end_call(b, own, copy ? status : AS_E_NOMEM, copy, copy ? size : 0);
    } else if (m->from != b->rank && !p->lost) {
        struct mail_head head = {.type = MAIL_ANSWER,
                                 .kind = copy ? (int32_t)status : (int32_t)AS_E_NOMEM,
                                 .id = h->id,
                                 .step = m->step,
                                 .n = copy ? size : 0};
        if (!send_letter(b, m->from, &head, NULL, copy))
            mesh_drop(b->mesh, m->from); /* it would wait for ever */
    } else {
        free(copy);
    }
    release(b, h);
}

/* ---- receiving ---- */

static void expect(struct mailbox *b, int32_t from, void *to, size_t n, uint64_t tag)
{
    struct peer *p = &b->peers[from];
    p->t = (struct transfer){
        .peer = from, .step = p->received, .tag = tag, .what = "mail", .to = to, .length = n};
    mesh_post(b->mesh, &p->t);
}

/* A whole message of `from` is there. False: the rank is not to be read any more. */
static bool deliver(struct mailbox *b, int32_t from)
{
    struct peer *p = &b->peers[from];
    uint8_t *body = p->body;
    p->body = NULL;
    p->posted = p->has_head = false;
    p->received++;
    if (p->head.type == MAIL_REQUEST)
        return hold(b, from, &p->head, body);
    struct mail_call *call = take_open(b, from, p->head.id);
    if (!call) {
        free(body);
        return b->over; /* else it answers what was not asked */
    }
    end_call(b, call, (as_status)p->head.kind, body, (size_t)p->head.n);
    return true;
}

/* The head is there: makes room for what follows. */
static bool take_head(struct mailbox *b, int32_t from)
{
    struct peer *p = &b->peers[from];
    if (mail_head_decode(p->head_bytes, b->opts.max_bytes, &p->head, NULL) < 0)
        return false;
    p->has_head = true;
    p->body = as_calloc((size_t)p->head.n, 1);
    if (p->body)
        expect(b, from, p->body, (size_t)p->head.n, 2);
    return p->body != NULL;
}

/* Receives from a peer what has come. False: the rank sends what it must not. */
static bool take_mail(struct mailbox *b, int32_t from)
{
    struct peer *p = &b->peers[from];
    for (;;) {
        if (p->lost || mesh_has_lost(b->mesh, from))
            return true;
        if (!p->posted) {
            if (p->open >= MAIL_OPEN_MAX)
                return true;
            expect(b, from, p->head_bytes, MAIL_HEAD_BYTES, 1);
            p->posted = true;
        }
        if (!transfer_is_done(&p->t))
            return true;
        if (!p->has_head && !take_head(b, from))
            return false;
        if (transfer_is_done(&p->t) && !deliver(b, from))
            return false;
    }
}

/* ---- the thread ---- */

static void lose(struct mailbox *b, int32_t rank)
{
    struct peer *p = &b->peers[rank];
    p->lost = true;
    while (p->first) {
        struct letter *l = p->first;
        p->first = l->next;
        free_letter(l);
    }
    free(p->body);
    p->body = NULL;
    lock(b);
    b->lost[rank] = true;
    unlock(b);
    fail_open(b, rank);
    if (b->opts.on_lost)
        b->opts.on_lost(b->opts.arg, b, rank);
}

/* A message travels in one piece: several parts are copied. */
static bool send_call(struct mailbox *b, struct mail_call *call, const struct mail_head *head)
{
    const struct mail_part *one = NULL;
    for (size_t i = 0; i < MAIL_PARTS; i++)
        if (call->parts[i].n == head->n)
            one = &call->parts[i];
    if (one)
        return send_letter(b, call->to, head, one->bytes, NULL);
    uint8_t *copy = join(call->parts, MAIL_PARTS, (size_t)head->n);
    return copy && send_letter(b, call->to, head, NULL, copy);
}

static void start_call(struct mailbox *b, struct mail_call *call, bool over)
{
    struct mail_head head = {.type = MAIL_REQUEST,
                             .kind = call->kind,
                             .step = call->step,
                             .id = b->next_id++,
                             .n = size_of(call->parts, MAIL_PARTS)};
    call->id = head.id;
    if (over || b->peers[call->to].lost || mesh_has_lost(b->mesh, call->to)) {
        end_call(b, call, AS_E_UNAVAILABLE, NULL, 0);
        return;
    }
    if (head.n > b->opts.max_bytes) {
        end_call(b, call, AS_E_TOO_LARGE, NULL, 0);
        return;
    }
    call->next = b->open;
    b->open = call;
    bool ok;
    if (call->to == b->rank) {
        uint8_t *body = join(call->parts, MAIL_PARTS, (size_t)head.n);
        ok = body && hold(b, b->rank, &head, body);
    } else {
        ok = send_call(b, call, &head);
    }
    if (!ok && (call = take_open(b, call->to, head.id)))
        end_call(b, call, AS_E_NOMEM, NULL, 0);
}

/* Sends what was begun. Returns false when the mailbox is to end. */
static bool start_calls(struct mailbox *b)
{
    bool is_over = coll_end_is_set(b->end);
    lock(b);
    struct mail_call *call = b->begun;
    bool goes_on = !b->stopping, over = b->over = b->over || is_over;
    b->begun = b->begun_last = NULL;
    unlock(b);
    while (call) {
        struct mail_call *next = call->next;
        start_call(b, call, over || !goes_on);
        call = next;
    }
    if (over)
        fail_open(b, -1);
    return goes_on;
}

static void *thread_main(void *arg)
{
    struct mailbox *b = arg;
    while (start_calls(b)) {
        as_status st = mesh_poll(b->mesh, NULL);
        for (int32_t r = 0; r < b->n; r++) {
            if (r == b->rank || b->peers[r].lost)
                continue;
            if (st < 0 || !take_mail(b, r))
                mesh_drop(b->mesh, r);
            reap(&b->peers[r]);
            if (mesh_has_lost(b->mesh, r))
                lose(b, r);
        }
    }
    fail_open(b, -1);
    return NULL;
}

/* ---- life ---- */

/* Every rank gets the endpoints of all mailboxes. */
static as_status swap_endpoints(struct mailbox *b, struct coll *c, struct endpoint *ret,
                                struct as_err *err)
{
    AS_AUTO(as_freep) char *all = as_calloc((size_t)b->n, ENDPOINT_TEXT_MAX);
    if (!all)
        return as_fail_nomem(err);
    (void)endpoint_format(&b->listener->endpoint, all + (size_t)b->rank * ENDPOINT_TEXT_MAX);
    struct coll_id id = {.what = "mailboxes"};
    as_status st = coll_allgather(c, id, all, (size_t)b->n, ENDPOINT_TEXT_MAX, err);
    for (int32_t r = 0; st == AS_OK && r < b->n; r++) {
        char *text = all + (size_t)r * ENDPOINT_TEXT_MAX;
        text[ENDPOINT_TEXT_MAX - 1] = '\0';
        st = endpoint_parse(text, &ret[r], err);
    }
    return st;
}

static as_status open_mesh(struct mailbox *b, struct coll *c, struct as_err *err)
{
    const struct mesh_opts *of_coll = coll_mesh_opts(c);
    struct mesh_opts opts = {.join_ms = of_coll->join_ms,
                             .silence_ms = of_coll->silence_ms,
                             .tcp_only = of_coll->tcp_only,
                             .over_fd = coll_end_fd(b->end),
                             .outlives_peers = true};
    AS_AUTO(as_freep) struct endpoint *peers = as_calloc((size_t)b->n, sizeof *peers);
    struct world own = *coll_world(c);
    own.peers = peers;
    if (!peers)
        return as_fail_nomem(err);
    as_status st = listener_create(coll_address(c), &b->listener, err);
    if (st == AS_OK)
        st = swap_endpoints(b, c, peers, err);
    return st < 0 ? st : mesh_create(b->listener, &own, &opts, &b->mesh, NULL, err);
}

as_status mailbox_create(struct coll *c, const struct mailbox_opts *opts, struct mailbox **ret,
                         struct as_err *err)
{
    AS_AUTO(mailbox_freep) struct mailbox *b = as_calloc(1, sizeof *b);
    if (!b)
        return as_fail_nomem(err);
    b->end = coll_end_get(c);
    b->opts = *opts;
    b->rank = coll_rank(c);
    b->n = coll_size(c);
    b->peers = as_calloc((size_t)b->n, sizeof *b->peers);
    b->lost = as_calloc((size_t)b->n, sizeof *b->lost);
    if (!b->peers || !b->lost)
        return as_fail_nomem(err);
    as_status st = open_mesh(b, c, err);
    if (st < 0)
        return st;
    (void)pthread_cond_init(&b->changed, NULL);
    (void)pthread_mutex_init(&b->lock, NULL);
    b->has_lock = true;
    if (pthread_create(&b->thread, NULL, thread_main, b) != 0)
        return as_fail(err, AS_E_NOMEM, "no thread for the mailbox");
    b->has_thread = true;
    *ret = as_steal(b);
    return AS_OK;
}

void mailbox_free(struct mailbox *b)
{
    if (!b)
        return;
    if (b->has_thread) {
        lock(b);
        b->stopping = true;
        unlock(b);
        mesh_wake(b->mesh);
        (void)pthread_join(b->thread, NULL);
    }
    mesh_free(b->mesh);
    listener_free(b->listener);
    for (struct held *h = b->held, *after; h; h = after) {
        after = h->after;
        release(b, h);
    }
    for (int32_t r = 0; b->peers && r < b->n; r++) {
        for (struct letter *l = b->peers[r].first, *next; l; l = next) {
            next = l->next;
            free_letter(l);
        }
        free(b->peers[r].body);
    }
    if (b->has_lock) {
        (void)pthread_cond_destroy(&b->changed);
        (void)pthread_mutex_destroy(&b->lock);
    }
    coll_end_free(b->end);
    free(b->peers);
    free(b->lost);
    free(b);
}
