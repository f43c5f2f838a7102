#include "scheduler/services/kept_list.h"

#include "base/clock.h"

void kept_list_init(struct kept_list *l, const struct kept_kind *kind, size_t max_bytes)
{
    *l = (struct kept_list){.kind = kind, .max_bytes = max_bytes};
    (void)pthread_mutex_init(&l->mu, NULL); /* cannot fail on Linux */
}

static void free_all(const struct kept_kind *kind, struct kept *x)
{
    while (x) {
        struct kept *next = x->next;
        kind->free(x);
        x = next;
    }
}

void kept_list_done(struct kept_list *l)
{
    free_all(l->kind, l->first);
    (void)pthread_mutex_destroy(&l->mu);
}

struct kept *kept_list_take(struct kept_list *l, const void *ask)
{
    pthread_mutex_lock(&l->mu);
    struct kept *x = l->first;
    while (x && !l->kind->is(x, ask))
        x = x->next;
    if (!x && (x = l->kind->create(ask))) {
        x->next = l->first;
        l->first = x;
    }
    if (x)
        x->users++;
    pthread_mutex_unlock(&l->mu);
    return x;
}

/* Remove the thing that was used longest ago and that nobody uses. */
static struct kept *oldest_unused_locked(struct kept_list *l)
{
    struct kept **oldest = NULL;
    for (struct kept **at = &l->first; *at; at = &(*at)->next)
        if ((*at)->users == 0 && (!oldest || (*at)->used_ns < (*oldest)->used_ns))
            oldest = at;
    if (!oldest)
        return NULL;
    struct kept *x = *oldest;
    *oldest = x->next;
    l->bytes -= x->bytes;
    return x;
}

void kept_list_give_back(struct kept_list *l, struct kept *x, size_t bytes)
{
    struct kept *gone = NULL, *out;
    pthread_mutex_lock(&l->mu);
    l->bytes += bytes - x->bytes;
    x->bytes = bytes;
    x->used_ns = clock_mono_ns();
    x->users--;
    while (l->bytes > l->max_bytes && (out = oldest_unused_locked(l))) {
        out->next = gone;
        gone = out;
    }
    pthread_mutex_unlock(&l->mu);
    free_all(l->kind, gone);
}

size_t kept_list_bytes(struct kept_list *l)
{
    pthread_mutex_lock(&l->mu);
    size_t n = l->bytes;
    pthread_mutex_unlock(&l->mu);
    return n;
}
