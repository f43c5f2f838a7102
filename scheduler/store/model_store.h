/* Tables model, model_version and model_alias.
 *
 * Whoever writes any of them holds the row of the model (store_model_lock), so versions get their
 * numbers one after another, and a version cannot go while an alias comes. */
#ifndef ASSAY_SCHEDULER_STORE_MODEL_STORE_H
#define ASSAY_SCHEDULER_STORE_MODEL_STORE_H

#include "base/arena.h"
#include "scheduler/rows/model_row.h"
#include "scheduler/store/tx.h"

/* Lock the row of a model until the transaction ends. `make`: create the model if there is none.
 * *ret_newest: the number that was given last. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_model_lock(struct tx *t, const char *name, bool make,
                                         int64_t *ret_newest, struct as_err *err);
/* Something of the model changed: a version of this number was added (0: something else). */
AS_MUST_CHECK as_status store_model_changed(struct tx *t, const char *name, int64_t version,
                                            struct as_err *err);
/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_model_get(struct tx *t, struct arena *a, const char *name,
                                        struct model_row *ret, struct as_err *err);
/* Names above `after` ("" for all); *ret_more: there are more. */
AS_MUST_CHECK as_status store_model_list(struct tx *t, struct arena *a, const char *after,
                                         int64_t size, struct model_page *ret, bool *ret_more,
                                         struct as_err *err);
/* Delete it with its versions and aliases. Its row stays, so that no number is given again. */
AS_MUST_CHECK as_status store_model_delete(struct tx *t, const char *name, struct as_err *err);

/* AS_E_NOT_FOUND: its content is no longer stored. */
AS_MUST_CHECK as_status store_model_version_add(struct tx *t, const struct model_version_row *v,
                                                struct as_err *err);
/* The version that has this content; *ret is 0 if there is none. */
AS_MUST_CHECK as_status store_model_version_of(struct tx *t, const char *model, const char *sha256,
                                               int64_t *ret, struct as_err *err);
/* The version that an alias means, or ("default") that the name alone means. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_model_alias_get(struct tx *t, const char *model, const char *alias,
                                              int64_t *ret, struct as_err *err);
/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_model_version_get(struct tx *t, struct arena *a, const char *model,
                                                int64_t version, struct model_version_row *ret,
                                                struct as_err *err);
/* Newest first, numbers below `before` (0: all), without inputs, outputs, members and lineage. */
AS_MUST_CHECK as_status store_model_version_list(struct tx *t, struct arena *a, const char *model,
                                                 int64_t before, int64_t size,
                                                 struct model_version_page *ret, bool *ret_more,
                                                 struct as_err *err);
/* The versions that learned from a data set of this name, by the names of their models and newest
 * first, after a place (a model and a version of it, or "" for all); without the same columns. */
AS_MUST_CHECK as_status store_model_version_learned(struct tx *t, struct arena *a,
                                                    const char *dataset, const char *model,
                                                    int64_t before, int64_t size,
                                                    struct model_version_page *ret, bool *ret_more,
                                                    struct as_err *err);
/* AS_E_NOT_FOUND: there is no such version, or (foreign key) an alias has it: look before. */
AS_MUST_CHECK as_status store_model_version_delete(struct tx *t, const char *model, int64_t version,
                                                   struct as_err *err);

/* AS_E_NOT_FOUND: there is no such version. */
AS_MUST_CHECK as_status store_model_alias_set(struct tx *t, const char *model, const char *alias,
                                              int64_t version, struct as_err *err);
/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_model_alias_delete(struct tx *t, const char *model, const char *alias,
                                                 struct as_err *err);

/* The content of a data set when a sweep was created: its digest in the arena; NULL: the sweep does
 * not know it. */
AS_MUST_CHECK as_status store_model_dataset(struct tx *t, struct arena *a, int64_t sweep_key,
                                            const char *dataset, const char **ret,
                                            struct as_err *err);

#endif
