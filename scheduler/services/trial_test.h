/* The figures of a trial on test rows: the artifact test.json. They are of one trial, read when it
 * is asked for: nothing that compares trials has them. */
#ifndef ASSAY_SCHEDULER_SERVICES_TRIAL_TEST_H
#define ASSAY_SCHEDULER_SERVICES_TRIAL_TEST_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/file_row.h"
#include "scheduler/store/store.h"

#define TRIAL_TEST_NAME "test.json"

/* Read {"rows", "metrics": {name: number}} from the file of that name among the trial's artifacts.
 * *ret is its text in the arena, in our own form; NULL if there is no such file, or it is another
 * text, too long, or gone: a program may call any file so. AS_E_UNAVAILABLE, AS_E_NOMEM. */
AS_MUST_CHECK as_status trial_test_read(struct store *db, struct arena *a,
                                        const struct file_list *artifacts, const char **ret,
                                        struct as_err *err);

#endif
