/* assay-train as a child process, as the runner starts it. It writes its measurements to a named
 * pipe, so a test can act when a certain line arrives. The child may be up to some 25 lines further
 * by then: there it waits for room in the pipe. */
#ifndef ASSAY_TESTS_SUPPORT_CHILD_H
#define ASSAY_TESTS_SUPPORT_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/support/temp_folder.h"

struct child {
    pid_t pid;
    int gone;    /* pidfd: readable when the child has ended */
    int report;  /* the pipe, open in both directions, so that it outlives each writer */
    size_t have; /* bytes in buf that were not returned yet */
    char buf[512];
    char dir[TEMP_FOLDER_SIZE]; /* job.json, report, checkpoints/, artifacts/, out, err */
};

/* A folder for jobs. */
void child_setup(struct child *c);
void child_teardown(struct child *c);

/* The path DIR/name; free(). */
char *child_path(const struct child *c, const char *name);

/* Write DIR/name. */
void child_write(const struct child *c, const char *name, const void *bytes, size_t len);
/* The bytes of DIR/name, NUL-terminated; free(). */
char *child_read(const struct child *c, const char *name, size_t *ret_len);

/* Start it on DIR/job.json with this seed; `option` may be NULL. */
void child_start(struct child *c, const char *seed, const char *option);

/* The next report line without its end, or NULL when the child has ended. */
const char *child_line(struct child *c, char *buf, size_t size);

/* Has it ended? It is still to be waited for. */
bool child_has_ended(const struct child *c);

/* Wait for the end: the exit status, or minus the signal. */
int child_wait(struct child *c);

#endif
