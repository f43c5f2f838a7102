/* Clocks. Inside a process, time is monotonic nanoseconds. Lease times come from the database. */
#ifndef ASSAY_BASE_CLOCK_H
#define ASSAY_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

int64_t clock_mono_ns(void); /* CLOCK_MONOTONIC */
int64_t clock_wall_ms(void); /* Unix time, for logs and display only */

/* "2026-11-20T18:47:03.123Z" from Unix milliseconds; buf >= 32. Returns buf. */
const char *clock_format_utc(int64_t wall_ms, char *buf);

/* Unix milliseconds of "2026-11-20T18:47:03.123Z". AS_E_INVAL for anything else. */
AS_MUST_CHECK as_status clock_parse_utc(const char *text, int64_t *ret_ms, struct as_err *err);

/* "1.2 s", "3 m 04 s", "2 h 10 m"; buf >= 32. Returns buf. */
const char *clock_format_duration(int64_t ms, char *buf);

/* Sleep; signals do not shorten it. Only for polling loops that have no descriptor to poll. */
void clock_sleep_ms(int64_t ms);

/* Initialise a condition whose waits are measured by clock_mono_ns(). Cannot fail on Linux. */
void clock_cond_init(pthread_cond_t *c);

/* Wait for such a condition until a time of clock_mono_ns(). The mutex is held before and after.
 * False: the time has passed. */
bool clock_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t until_ns);

#endif
