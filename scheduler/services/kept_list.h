/* Things that are kept between requests, up to a number of bytes: tables, orders of lists. What was
 * used longest ago and is not in use goes first.
 *
 * A thing has `struct kept` as its first member. The list's lock guards these members and is held
 * for a walk of the list alone: what else a thing holds has a lock of its own, which nobody holds
 * while he takes a thing or gives it back. */
#ifndef ASSAY_SCHEDULER_SERVICES_KEPT_LIST_H
#define ASSAY_SCHEDULER_SERVICES_KEPT_LIST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kept {
    struct kept *next;
    size_t users, bytes;
    int64_t used_ns; /* monotonic */
};

/* What the things of a list are. `ask` is the caller's. */
struct kept_kind {
    bool (*is)(const struct kept *x, const void *ask); /* is it the one that is asked for? */
    struct kept *(*create)(const void *ask);           /* empty; NULL when memory is out */
    void (*free)(struct kept *x);
};

struct kept_list {
    pthread_mutex_t mu;
    const struct kept_kind *kind;
    struct kept *first; /* owned, and all after it */
    size_t bytes, max_bytes;
};

void kept_list_init(struct kept_list *l, const struct kept_kind *kind, size_t max_bytes);
/* Nothing may be in use. */
void kept_list_done(struct kept_list *l);

/* The thing that is asked for, made empty if it is not kept; give it back. NULL when memory is out.
 * Any thread. */
struct kept *kept_list_take(struct kept_list *l, const void *ask);

/* `bytes`: what it holds now. Any thread. */
void kept_list_give_back(struct kept_list *l, struct kept *x, size_t bytes);

/* What all of them hold. Any thread. */
size_t kept_list_bytes(struct kept_list *l);

#endif
