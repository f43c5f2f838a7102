/* Runs assayd for a test. Its output goes to one file for each process. If the process ends in
 * another way than the test expected, the output is shown on stderr: it has a sanitizer's
 * report. */
#ifndef ASSAY_TESTS_API_SERVER_ASSAYD_PROCESS_H
#define ASSAY_TESTS_API_SERVER_ASSAYD_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Start the assayd of $ASSAY_BUILD_ROOT. Its stdout and stderr go to a new file in `dir`, which
 * must stay until the process was waited for. args   without the program's name; NULL-terminated;
 * borrowed Fails the test when it cannot. */
pid_t assayd_start(const char *dir, const char *const *args);

/* Wait for its end: the exit status; -1000 - SIGNAL when a signal ended it; -1 when it still ran
 * after PATIENCE_MS (it is killed). When that is not `want`, the end of its log goes to stderr. */
int assayd_wait(pid_t pid, int want);

/* Whether it runs still. When it does not, nobody expected that: the end of its log goes to stderr.
 */
bool assayd_runs(pid_t pid);

/* Wait until its log contains `text`. Fails the test when it ends before. */
void assayd_await_log(pid_t pid, const char *text);

/* After a test that failed half-way: kill what was not waited for, and show the logs. */
void assayd_end_all(void);

#endif
