/* The connections of each address stand in two lists, silent and idle, in the order in which they
 * became so: the head of a list is the oldest. Links are descriptors, and addresses are entries of
 * one array, found through a table of hashed addresses with chains. */
#include "api/http/http_shares.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "base/fnv.h"

#define BUCKETS 4096
#define NONE (-1)
#define LISTS HTTP_SHARE_BUSY /* connections that are busy stand in no list */

struct list {
    int head, tail, n;
};

struct member {
    int prev, next;  /* in its list */
    int address;     /* its entry */
    uint64_t serial; /* connections before it */
    http_share_use use;
    bool is_in;
};

struct address {
    uint8_t key[16]; /* IPv6, or IPv4 mapped to it */
    int next;        /* in its bucket, or in the list of free entries */
    int used_prev, used_next;
    unsigned n;
    struct list lists[LISTS];
};

struct http_shares {
    struct http_share_limits limits;
    int n_fds;
    unsigned n;
    uint64_t n_added;          /* connections so far */
    struct member *members;    /* by descriptor */
    struct address *addresses; /* n_fds of them */
    int fresh;                 /* entries from here on were never used */
    int free_head;             /* entries below it that are free again */
    int used_head;             /* entries with connections */
    int buckets[BUCKETS];
};

as_status http_shares_create(int n_fds, const struct http_share_limits *limits,
                             struct http_shares **ret, struct as_err *err)
{
    struct http_shares *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    s->limits = *limits;
    s->n_fds = n_fds;
    s->free_head = s->used_head = NONE;
    for (int i = 0; i < BUCKETS; i++)
        s->buckets[i] = NONE;
    s->members = as_calloc((size_t)n_fds, sizeof *s->members);
    s->addresses = as_calloc((size_t)n_fds, sizeof *s->addresses);
    if (!s->members || !s->addresses) {
        http_shares_free(s);
        return as_fail_nomem(err);
    }
    *ret = s;
    return AS_OK;
}

void http_shares_free(struct http_shares *s)
{
    if (!s)
        return;
    free(s->members);
    free(s->addresses);
    free(s);
}

/* ---- addresses ---- */

static void make_key(const struct sockaddr *addr, uint8_t key[16])
{
    memset(key, 0, 16);
    if (addr && addr->sa_family == AF_INET) {
        key[10] = key[11] = 0xff;
        memcpy(key + 12, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
    } else if (addr && addr->sa_family == AF_INET6) {
        memcpy(key, &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr, 16);
    }
}

static int *bucket_of(struct http_shares *s, const uint8_t key[16])
{
    uint64_t h = fnv64(FNV64_BASIS, key, 16);
    return &s->buckets[(h ^ h >> 32) % BUCKETS];
}

static int find_address(struct http_shares *s, const uint8_t key[16])
{
    int at = *bucket_of(s, key);
    while (at != NONE && memcmp(s->addresses[at].key, key, 16) != 0)
        at = s->addresses[at].next;
    return at;
}

/* An entry for a new address. There are as many entries as descriptors, so one is free. */
static int add_address(struct http_shares *s, const uint8_t key[16])
{
    int at = s->free_head != NONE ? s->free_head : s->fresh++;
    struct address *a = &s->addresses[at];
    int *bucket = bucket_of(s, key);
    if (at == s->free_head)
        s->free_head = a->next;
    *a = (struct address){.next = *bucket, .used_prev = NONE, .used_next = s->used_head};
    memcpy(a->key, key, 16);
    for (int i = 0; i < LISTS; i++)
        a->lists[i] = (struct list){NONE, NONE, 0};
    *bucket = at;
    if (s->used_head != NONE)
        s->addresses[s->used_head].used_prev = at;
    s->used_head = at;
    return at;
}

static void remove_address(struct http_shares *s, int at)
{
    struct address *a = &s->addresses[at];
    int *link = bucket_of(s, a->key);
    while (*link != at)
        link = &s->addresses[*link].next;
    *link = a->next;
    if (a->used_prev != NONE)
        s->addresses[a->used_prev].used_next = a->used_next;
    else
        s->used_head = a->used_next;
    if (a->used_next != NONE)
        s->addresses[a->used_next].used_prev = a->used_prev;
    a->next = s->free_head;
    s->free_head = at;
}

/* ---- lists ---- */

static void append_member(struct http_shares *s, int fd)
{
    struct member *m = &s->members[fd];
    if (m->use >= LISTS)
        return;
    struct list *l = &s->addresses[m->address].lists[m->use];
    m->prev = l->tail;
    m->next = NONE;
    *(l->tail == NONE ? &l->head : &s->members[l->tail].next) = fd;
    l->tail = fd;
    l->n++;
}

static void unlink_member(struct http_shares *s, int fd)
{
    struct member *m = &s->members[fd];
    if (m->use >= LISTS)
        return;
    struct list *l = &s->addresses[m->address].lists[m->use];
    *(m->prev == NONE ? &l->head : &s->members[m->prev].next) = m->next;
    *(m->next == NONE ? &l->tail : &s->members[m->next].prev) = m->prev;
    l->n--;
}

static struct member *member_of(struct http_shares *s, int fd)
{
    return fd >= 0 && fd < s->n_fds && s->members[fd].is_in ? &s->members[fd] : NULL;
}

void http_shares_use(struct http_shares *s, int fd, http_share_use use)
{
    struct member *m = member_of(s, fd);
    if (!m || m->use == use)
        return;
    unlink_member(s, fd);
    m->use = use;
    append_member(s, fd);
}

void http_shares_remove(struct http_shares *s, int fd)
{
    struct member *m = member_of(s, fd);
    if (!m)
        return;
    unlink_member(s, fd);
    m->is_in = false;
    s->n--;
    if (--s->addresses[m->address].n == 0)
        remove_address(s, m->address);
}

/* ---- room for a new connection ---- */

/* The oldest connection of this address that may be closed. */
static int oldest_of(const struct address *a)
{
    return a->lists[HTTP_SHARE_SILENT].n ? a->lists[HTTP_SHARE_SILENT].head
                                         : a->lists[HTTP_SHARE_IDLE].head;
}

static bool gives_before(const struct http_shares *s, const struct list *a, const struct list *b)
{
    if (!b || a->n != b->n)
        return a->n > (b ? b->n : 0);
    return a->n > 0 && s->members[a->head].serial < s->members[b->head].serial;
}

/* The same for all addresses: of the one that has the most silent connections, else of the one that
 * has the most idle ones. Where several have as many, the one that came first: who has just come
 * with its first connection has not had the time to send a request. */
static int oldest_of_all(const struct http_shares *s)
{
    for (int use = 0; use < LISTS; use++) {
        const struct list *most = NULL;
        for (int at = s->used_head; at != NONE; at = s->addresses[at].used_next) {
            const struct list *l = &s->addresses[at].lists[use];
            if (gives_before(s, l, most))
                most = l;
        }
        if (most)
            return most->head;
    }
    return NONE;
}

int http_shares_add(struct http_shares *s, int fd, const struct sockaddr *addr)
{
    uint8_t key[16];
    int victim = HTTP_SHARE_ROOM;
    if (fd < 0 || fd >= s->n_fds || s->members[fd].is_in)
        return HTTP_SHARE_REFUSED;
    make_key(addr, key);
    int at = find_address(s, key);
    bool is_share_full =
        s->limits.per_address > 0 && at != NONE && s->addresses[at].n >= s->limits.per_address;
    if (is_share_full || s->n >= s->limits.all) {
        victim = is_share_full ? oldest_of(&s->addresses[at]) : oldest_of_all(s);
        if (victim == NONE)
            return HTTP_SHARE_REFUSED;
        http_shares_remove(s, victim);
        at = find_address(s, key); /* the victim may have been its only connection */
    }
    if (at == NONE)
        at = add_address(s, key);
    s->members[fd] = (struct member){
        .address = at, .serial = s->n_added++, .use = HTTP_SHARE_SILENT, .is_in = true};
    append_member(s, fd);
    s->addresses[at].n++;
    s->n++;
    return victim;
}
