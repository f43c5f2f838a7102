/* The reason of a suggestion of `gp` in words. */
#ifndef ASSAY_SEARCH_GP_GP_WORDS_H
#define ASSAY_SEARCH_GP_GP_WORDS_H

#include "search/problem/method.h"

/* Contract of explain() in search/problem/method.h. */
void gp_explain(const struct search_method *m, const json_t *reason, const json_t *metrics,
                struct str *b);

#endif
