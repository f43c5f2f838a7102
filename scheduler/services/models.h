/* Models: versions of what sweeps found, under names and aliases of people.
 *
 * A version is one model file (model/file/model_file.h), content under its digest, with what it
 * takes and gives, how good it is, and where it comes from. It outlives its sweep.
 *
 * Every function: AS_E_UNAVAILABLE when the database is away, AS_E_NOMEM. Rows live in `a`. */
#ifndef ASSAY_SCHEDULER_SERVICES_MODELS_H
#define ASSAY_SCHEDULER_SERVICES_MODELS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/model_row.h"
#include "scheduler/rows/page.h"
#include "scheduler/store/store.h"

#define MODEL_NAME_MAX 64
#define MODEL_CONTENT_MAX (INT64_C(1) << 30) /* bytes of the files of all members of a version */

typedef enum model_use {
    MODEL_RECOMMENDED, /* the ensemble if the sweep recommends it, else its best trial */
    MODEL_ENSEMBLE,
    MODEL_SINGLE
} model_use;
extern const char *const model_use_words[]; /* NULL-terminated: "recommended", … */

/* What becomes a version. */
struct model_request {
    const char *sweep; /* id */
    int64_t trial;     /* its number; -1: what `ensemble` and `use` say */
    int64_t ensemble;  /* number of one that was asked for after the end; 0: what `use` says */
    model_use use;
    const char *by; /* the id of a token; NULL: none */
};

/* Add a version: compose its file from the files of the trials, store the file, and give it the
 * next number. The model is created if there is none of that name. *ret_created is false if a
 * version of the model has this content already; that version is returned. Takes seconds. May be
 * repeated. AS_E_INVAL with pointer: the name. AS_E_NOT_FOUND: no such sweep, trial or ensemble.
 * AS_E_CONFLICT: a trial has not completed, or the sweep has not ended or has no ensemble, or the
 * ensemble is not computed, or one of its sweeps was deleted. AS_E_UNSUPPORTED: a trial stored
 * no model, or one that cannot be kept (the API answers 422); the message names the trial.
 * AS_E_TOO_LARGE: above MODEL_CONTENT_MAX. AS_E_IO. */
AS_MUST_CHECK as_status model_add(struct store *db, struct arena *a, const char *model,
                                  const struct model_request *q, struct model_version_row *ret,
                                  bool *ret_created, struct as_err *err);

/* In the order of names (of their bytes). AS_E_INVAL: the cursor. */
AS_MUST_CHECK as_status model_list(struct store *db, struct arena *a, const struct page_req *page,
                                   struct model_page *ret, struct as_err *err);
/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status model_get(struct store *db, struct arena *a, const char *name,
                                  struct model_row *ret, struct as_err *err);
/* Delete it with all its versions. Its numbers are not given again. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status model_delete(struct store *db, const char *name, struct as_err *err);

/* Newest first. AS_E_NOT_FOUND: there is no such model. AS_E_INVAL: the cursor. */
AS_MUST_CHECK as_status model_version_list(struct store *db, struct arena *a, const char *name,
                                           const struct page_req *page,
                                           struct model_version_page *ret, struct as_err *err);
/* Those that learned from a data set of this name, whatever content it had then, also if it is
 * gone; by the names of their models, newest first. AS_E_NOT_FOUND: there are none, and no such
 * data set. AS_E_INVAL: the cursor. */
AS_MUST_CHECK as_status model_versions_learned(struct store *db, struct arena *a,
                                               const char *dataset, const struct page_req *page,
                                               struct model_version_page *ret, struct as_err *err);
/* `version`: a number, an alias, or "default": the champion if there is one, else the newest.
 * AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status model_version_get(struct store *db, struct arena *a, const char *name,
                                          const char *version, struct model_version_row *ret,
                                          struct as_err *err);
/* `version`: as above, but not "default". AS_E_NOT_FOUND. AS_E_CONFLICT: an alias means it. */
AS_MUST_CHECK as_status model_version_delete(struct store *db, const char *name,
                                             const char *version, struct as_err *err);

/* Let an alias mean a version from now on. *ret: the model then. AS_E_INVAL: that is no alias.
 * AS_E_NOT_FOUND: no such model or version. */
AS_MUST_CHECK as_status model_alias_set(struct store *db, struct arena *a, const char *name,
                                        const char *alias, int64_t version, struct model_row *ret,
                                        struct as_err *err);
/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status model_alias_delete(struct store *db, const char *name, const char *alias,
                                           struct as_err *err);

#endif
