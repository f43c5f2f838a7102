/* Work that is cut into items, done by several threads. */
#ifndef ASSAY_BASE_PARALLEL_H
#define ASSAY_BASE_PARALLEL_H

#include <stddef.h>

/* Calls run(arg, begin, end) for pieces that cover items 0 to n - 1, at most `threads` at once, and
 * returns when all are done. What a piece writes is its own; which pieces there are must not
 * show. */
void parallel_each(size_t n, size_t threads, void (*run)(void *arg, size_t begin, size_t end),
                   void *arg);

#endif
