/* All trials of a sweep as one file of columns (data/formats/columnar.h, sweep_table.h), their
 * points (points_table.h) or their attempts (attempts_table.h), and what changed since.
 *
 * The server keeps the tables that were asked for last, within a limit of bytes over all sweeps,
 * and extends them by the trials that events name: a request reads what is new. The file of a whole
 * table is made once for all who ask for the same columns. A table that is not kept is read again,
 * and then costs what its sweep is large.
 *
 * A version is the id of an event, so it means the same on every server of the database: who has a
 * table of any of them may ask another one for what changed since. */
#ifndef ASSAY_SCHEDULER_SERVICES_TABLE_EXPORT_H
#define ASSAY_SCHEDULER_SERVICES_TABLE_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/str.h"
#include "scheduler/services/table_kind.h"
#include "scheduler/store/store.h"

#define TABLE_CACHE_BYTES ((size_t)512 << 20)

struct table_cache;

/* NULL when memory is out. Owned by the caller. */
struct table_cache *table_cache_create(size_t max_bytes);
/* No request may be running. */
void table_cache_free(struct table_cache *x);
AS_DEFINE_FREEP(struct table_cache, table_cache_free)
/* What it holds, for tests and figures. Any thread. */
size_t table_cache_bytes(struct table_cache *x);

/* Compress the bytes, appending to `ret`. AS_E_NOMEM. */
typedef as_status table_pack_fn(const void *bytes, size_t len, struct str *ret, struct as_err *err);

struct table_request {
    const struct table_kind *kind; /* table_of_trials, table_of_points, table_of_attempts */
    const char *sweep;             /* id */
    const char *columns;           /* of trials: names, a comma between them; NULL: all */
    const char *metric;            /* of points; NULL: that of the first objective */
    size_t max_points;             /* of points: for each trial, POINTS_LINE_MIN or more */
    bool is_single;                /* numbers that were measured or searched as f32 */
    bool is_planar;                /* columns of f64 as planes of bytes (columnar.h) */
    bool has_since;
    int64_t since;       /* the version that the caller has */
    table_pack_fn *pack; /* NULL: as it is */
};

struct table_answer {
    const char *bytes; /* in the arena, as all below */
    size_t len;
    const char *etag; /* quoted; of whole tables, else NULL */
};

/* What is shown of the trials that changed after `since`; the whole table if there is no `since`,
 * or if the server cannot know what changed after it. A whole table of many trials may be one that
 * was made up to TABLE_STALE_MS ago, if few trials changed meanwhile: its version says so, and what
 * changed after it is the next request. Any thread. AS_E_NOT_FOUND: no such sweep. AS_E_INVAL: no
 * such column. AS_E_UNAVAILABLE, AS_E_NOMEM. */
#define TABLE_STALE_MS 30000
AS_MUST_CHECK as_status table_export(struct store *db, struct table_cache *cache, struct arena *a,
                                     const struct table_request *q, struct table_answer *ret,
                                     struct as_err *err);

#endif
