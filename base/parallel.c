/* The calling thread does the first piece, and those that got no thread. */
#include "base/parallel.h"

#include <pthread.h>

#define MOST_THREADS 64

struct piece {
    void (*run)(void *arg, size_t begin, size_t end);
    void *arg;
    size_t begin, end;
    pthread_t thread;
};

static void *run_piece(void *arg)
{
    const struct piece *p = arg;
    p->run(p->arg, p->begin, p->end);
    return NULL;
}

void parallel_each(size_t n, size_t threads, void (*run)(void *arg, size_t begin, size_t end),
                   void *arg)
{
    struct piece pieces[MOST_THREADS];
    size_t most = threads < MOST_THREADS ? threads : MOST_THREADS;
    size_t count = most < 1 ? 1 : most < n ? most : n, started = 1;
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct piece){run, arg, n * i / count, n * (i + 1) / count, 0};
    while (started < count &&
           pthread_create(&pieces[started].thread, NULL, run_piece, &pieces[started]) == 0)
        started++;
    for (size_t i = started; i < count; i++)
        (void)run_piece(&pieces[i]);
    if (count > 0)
        (void)run_piece(&pieces[0]);
    for (size_t i = 1; i < started; i++)
        (void)pthread_join(pieces[i].thread, NULL);
}
