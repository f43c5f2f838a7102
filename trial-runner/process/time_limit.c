#include "trial-runner/process/time_limit.h"

#include "base/clock.h"
#include "base/str.h"

#define YEAR_MS (INT64_C(366) * 86400 * 1000)

static as_status parse_at(const char *text, int64_t *ret_wall_ms, struct as_err *err)
{
    int64_t seconds = 0;
    if (text[0] != '@')
        return clock_parse_utc(text, ret_wall_ms, err);
    as_status st = as_parse_i64(text + 1, &seconds, err);
    if (st == AS_OK && (seconds < 0 || seconds > INT64_MAX / 1000))
        return as_fail(err, AS_E_INVAL, "%.40s is no time", text);
    if (st == AS_OK)
        *ret_wall_ms = seconds * 1000;
    return st;
}

as_status time_limit_parse(const char *text, int64_t now_wall_ms, int64_t *ret_left_ms,
                           struct as_err *err)
{
    int64_t left_ms = 0, at_ms = 0;
    if (as_parse_duration_ms(text, &left_ms, NULL) < 0) {
        if (parse_at(text, &at_ms, NULL) < 0)
            return as_fail(err, AS_E_INVAL,
                           "'%.40s' is no time: expected a duration such as 230m, a time such as "
                           "2026-11-27T23:00:00Z, or @ and Unix seconds",
                           text);
        left_ms = at_ms > now_wall_ms ? at_ms - now_wall_ms : 0;
    }
    *ret_left_ms = left_ms < 0 ? 0 : left_ms > 100 * YEAR_MS ? 100 * YEAR_MS : left_ms;
    return AS_OK;
}

int64_t time_limit_notice_ms(int64_t whole_ms, int64_t grace_ms)
{
    int64_t most = whole_ms / 2;
    if (grace_ms > most || grace_ms + TIME_LIMIT_DELIVERY_MS > most)
        return most;
    return grace_ms + TIME_LIMIT_DELIVERY_MS;
}
