/* Whether the server can serve: the database is reached, has the schema of this program, takes
 * writes, and has room on its disk. Asked at most once in READINESS_KEEP_MS, because anybody may
 * ask. */
#ifndef ASSAY_API_SERVER_READINESS_H
#define ASSAY_API_SERVER_READINESS_H

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

#define READINESS_KEEP_MS 1000

struct readiness;

/* disk: a folder on the disk of the database, if that is on this machine, or NULL. Both are
 * borrowed. Returns NULL when memory is out. */
struct readiness *readiness_create(struct store *db, const char *disk);
void readiness_free(struct readiness *r); /* NULL is fine */
AS_DEFINE_FREEP(struct readiness, readiness_free)

/* AS_E_UNAVAILABLE: *err has the reason in detail, which may name the database's address, and
 * *ret_public one for everybody (a literal). While another request asks, this is the last answer:
 * a database that hangs holds one worker. */
AS_MUST_CHECK as_status readiness_check(struct readiness *r, const char **ret_public,
                                        struct as_err *err);

#endif
