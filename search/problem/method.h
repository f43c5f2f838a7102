/* A method of search as a table of operations.
 *
 * Each method defines one `const struct search_method` in its own folder (or in its own file of
 * search/sampling/), and search/suggest.c lists them. No other code depends on a particular method:
 * callers read the properties here and call the functions below. */
#ifndef ASSAY_SEARCH_PROBLEM_METHOD_H
#define ASSAY_SEARCH_PROBLEM_METHOD_H

#include "base/str.h"
#include "search/problem/problem.h"

/* What a method computes once for a space and every suggestion reads, such as a grid's list of
 * cells. Each method casts to its own type. Never changes: distinct threads may read one. */
struct search_prepared;

/* What an earlier suggestion computed and a later one may use again, such as factors of matrices.
 * Each method casts to its own type. One thread at a time. */
struct search_method_cache;

struct search_method {
    const char *name; /* in documents and reasons */

    /* Suggestions depend on the history and take milliseconds. If false, they are a function of the
     * index alone and cost O(parameters). */
    bool is_model_based;

    /* Suggestions run through a finite list, each configuration once: the sweep ends with the list
     * and accepts no trials that people add. Such a method has `prepare`. */
    bool is_enumeration;

    /* Is there anything to suggest? This searches less thoroughly than a suggestion does, so that a
     * space that passes here does not fail later. NULL: `prepare` checks it. Errors as sample. */
    as_status (*check)(const struct search_spec *spec, struct as_err *err);

    /* Contract of search_prepare(). NULL: nothing to prepare. */
    as_status (*prepare)(const struct space *space, const char *pointer,
                         struct search_prepared **ret, uint64_t *ret_total, struct as_err *err);
    void (*prepared_free)(struct search_prepared *p);

    /* Contract of search_sample(). */
    as_status (*sample)(const struct search_spec *spec, struct config **ret, struct as_err *err);

    /* What this method adds to operations that several methods share: a struct population_method
     * (search/population/population.h). NULL: it shares none. */
    const void *own;

    /* Contract of suggest() in search/suggest.h, with this method's own cache. spec->method is this
     * method. */
    as_status (*suggest)(const struct search_spec *spec, const struct history *history,
                         const json_t *state, uint64_t number, uint64_t index,
                         struct search_method_cache *cache, struct suggestion *ret,
                         struct as_err *err);

    /* Append why a suggestion of this method is as it is: a part of a sentence, made of its reason.
     * Fields that are absent or of another kind are left out, because reasons that earlier versions
     * have stored are read as well.
     *   m        this method
     *   reason   as suggest() made it; borrowed
     *   metrics  the objectives, [{"name": …}], in their order; NULL: unknown; borrowed
     * NULL: its reasons have the name of another method. */
    void (*explain)(const struct search_method *m, const json_t *reason, const json_t *metrics,
                    struct str *b);

    /* The cache; all NULL: the method has none. cache_create returns NULL when memory is out;
     * cache_bytes is about what it holds. */
    struct search_method_cache *(*cache_create)(void);
    void (*cache_free)(struct search_method_cache *c);
    size_t (*cache_bytes)(const struct search_method_cache *c);
};

/* Compute what the method keeps for the space.
 *   space      borrowed; must outlive *ret
 *   pointer    the parameters' JSON pointer in the document, for errors
 *   ret        owned by the caller, search_prepared_free(); NULL for methods that prepare nothing
 *   ret_total  how many configurations an enumeration has; 0 for the other methods
 * AS_E_INVAL, AS_E_TOO_LARGE: the method cannot search this space, with the reason.
 * AS_E_UNSUPPORTED: the constraints allow no configuration. AS_E_NOMEM. */
AS_MUST_CHECK as_status search_prepare(const struct search_method *m, const struct space *space,
                                       const char *pointer, struct search_prepared **ret,
                                       uint64_t *ret_total, struct as_err *err);
/* p may be NULL. */
void search_prepared_free(const struct search_method *m, struct search_prepared *p);

/* Is there anything to suggest? Call it after search_prepare(). AS_E_UNSUPPORTED: no configuration
 * that the constraints allow was found; pointer and message name the constraint. AS_E_NOMEM. */
AS_MUST_CHECK as_status search_check(const struct search_spec *spec, struct as_err *err);

/* A configuration that the method may suggest, to check what its trial would run. Reads no history;
 * not necessarily the first suggestion.
 *   ret  owned by the caller, config_free()
 * AS_E_UNSUPPORTED as above; what search_prepare() returns if it was not called; AS_E_NOMEM. */
AS_MUST_CHECK as_status search_sample(const struct search_spec *spec, struct config **ret,
                                      struct as_err *err);

#endif
