/* What differs between the tables of a sweep that the server keeps (table_export.h): how one is
 * begun, how it is brought up to date, and how its file is written. */
#ifndef ASSAY_SCHEDULER_SERVICES_TABLE_KIND_H
#define ASSAY_SCHEDULER_SERVICES_TABLE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "scheduler/rows/table_row.h"
#include "scheduler/store/store.h"
#include "scheduler/sweep/sweep_doc.h"

/* What to write of a table. */
struct table_part {
    const char *columns; /* names, a comma between them; `number` is always there. NULL: all */
    size_t max_points;   /* of one trial; only of points */
    bool is_planar;      /* columns of f64 as planes of bytes (columnar.h) */
    bool is_single;      /* numbers that were measured or searched as f32 */
    bool is_whole;       /* all rows; false: those of trials that changed after `since` */
    int64_t since;
    int64_t version; /* the event that its reader may pass as `since` next */
};

/* What is new in the database since a table was read. */
struct table_news {
    int64_t key;                        /* of the sweep */
    const struct table_change *changes; /* of trials that it has read; ascending by number */
    size_t n_changes;
    int64_t n_trials;
};

/* A table has a place for each trial, and marks when the trial changed last. One thread at a time.
 */
struct table_kind {
    /* An empty table. `subject` is what the request names: a metric; NULL: nothing. Both are
     * borrowed for the call. AS_E_NOMEM. */
    as_status (*create)(const struct sweep_doc *doc, const char *subject, void **ret,
                        struct as_err *err);
    void (*free)(void *t);
    size_t (*trials)(const void *t); /* how many it has read */
    size_t (*bytes)(const void *t);  /* about what it holds */
    /* Read trials that changed, and those that it lacks. After a failure it may have read a part;
     * the same news will be read again. AS_E_NOT_FOUND: the sweep was deleted. */
    as_status (*read)(void *t, struct store *db, const struct table_news *news, struct as_err *err);
    /* That event changed the trial; a number that it has not read is ignored. */
    void (*mark)(void *t, int64_t number, int64_t event);
    size_t (*changed)(const void *t, int64_t since); /* how many trials changed after that event */
    /* Append the file (data/formats/columnar.h). AS_E_INVAL: there is no such column. */
    as_status (*write)(const void *t, const struct table_part *part, struct str *ret,
                       struct as_err *err);
};

extern const struct table_kind table_of_trials;   /* sweep_table.h */
extern const struct table_kind table_of_points;   /* points_table.h; its subject is a metric */
extern const struct table_kind table_of_attempts; /* attempts_table.h */

#endif
