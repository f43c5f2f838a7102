/* The words of a column of a table in memory, each once, found by their text. One thread at a
 * time. */
#ifndef ASSAY_SCHEDULER_SERVICES_COLUMN_WORDS_H
#define ASSAY_SCHEDULER_SERVICES_COLUMN_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

struct column_words { /* all zero: no words */
    char **list;      /* owned, and each of them; in the order in which they came */
    size_t n, cap;
    uint32_t *slots; /* owned: index + 1 of a word; open addressing, a power of two */
    size_t n_slots;
    size_t bytes; /* about what they need */
};

void column_words_done(struct column_words *w);

/* The index of the word of `len` bytes, which is added if it is new; it ends at a NUL byte.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status column_words_add(struct column_words *w, const char *word, size_t len,
                                         uint32_t *ret, struct as_err *err);

/* The words that some cells have, in the order of the cells, which become indices of them.
 *   cells      n indices of words of w, or COLUMNAR_NO_WORD
 *   ret_words  in the arena; views of w
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status column_words_pick(const struct column_words *w, uint32_t *cells, size_t n,
                                          struct arena *a, const char *const **ret_words,
                                          size_t *ret_n, struct as_err *err);

#endif
