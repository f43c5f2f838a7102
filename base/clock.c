#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int64_t clock_mono_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t clock_wall_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / NS_PER_MS;
}

const char *clock_format_utc(int64_t wall_ms, char *buf)
{
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;
    if (!gmtime_r(&s, &tm))
        return "?";
    size_t n = strftime(buf, 24, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(buf + n, 32 - n, ".%03dZ", (int)(wall_ms % 1000));
    return buf;
}

as_status clock_parse_utc(const char *text, int64_t *ret_ms, struct as_err *err)
{
    struct tm tm = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!end)
        return as_fail(err, AS_E_INVAL, "not a time: %.40s", text);
    int64_t ms = 0, unit = 100;
    if (*end == '.')
        for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
            ms += (*end - '0') * unit;
    if (strcmp(end, "Z") != 0 && strcmp(end, "+00:00") != 0)
        return as_fail(err, AS_E_INVAL, "not a time in UTC: %.40s", text);
    *ret_ms = (int64_t)timegm(&tm) * 1000 + ms;
    return AS_OK;
}

const char *clock_format_duration(int64_t ms, char *buf)
{
    int64_t s = ms / 1000;
    if (ms < 10000)
        (void)snprintf(buf, 32, "%.1f s", (double)ms / 1000.0);
    else if (s < 60)
        (void)snprintf(buf, 32, "%" PRId64 " s", s);
    else if (s < 3600)
        (void)snprintf(buf, 32, "%" PRId64 " m %02" PRId64 " s", s / 60, s % 60);
    else
        (void)snprintf(buf, 32, "%" PRId64 " h %02" PRId64 " m", s / 3600, s % 3600 / 60);
    return buf;
}

void clock_sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

void clock_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(c, &attr);
    (void)pthread_condattr_destroy(&attr);
}

bool clock_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t until_ns)
{
    const struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
    return pthread_cond_timedwait(c, m, &until) != ETIMEDOUT;
}
