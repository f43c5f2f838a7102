/* One function for each kind of value. A number has fewer digits on a terminal than in a pipe,
 * where a program reads it. Times are shown as ages, which need no time zone. */
#include "cli/view/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

void format_value(struct str *b, const json_t *v, format_kind kind)
{
    char buf[40];
    double d;
    if (!v || json_is_null(v))
        return;
    if (json_is_integer(v)) {
        str_printf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    } else if (json_is_string(v)) {
        str_add(b, json_string_value(v), json_string_length(v));
    } else if (json_is_boolean(v)) {
        str_puts(b, json_is_true(v) ? "true" : "false");
    } else if (json_number_get(v, &d)) {
        if (kind == FORMAT_SHORT)
            str_printf(b, "%.6g", d);
        else
            str_puts(b, as_format_double(d, buf, sizeof buf));
    } else {
        json_format_to(b, v);
    }
}

void format_decimals(struct str *b, const json_t *v, int decimals)
{
    if (decimals >= 0 && json_is_number(v))
        str_printf(b, "%.*f", decimals, json_number_value(v));
    else
        format_value(b, v, FORMAT_SHORT);
}

void format_interval(struct str *b, const json_t *figure, int decimals)
{
    const json_t *low = json_object_get(figure, "low"), *high = json_object_get(figure, "high");
    double probability = json_number_value(json_object_get(figure, "probability"));
    if (!low || !high)
        return;
    str_printf(b, " (%.0f %% interval ", probability * 100);
    format_decimals(b, low, decimals);
    str_puts(b, " to ");
    format_decimals(b, high, decimals);
    str_putc(b, ')');
}

void format_param(struct str *b, const json_t *v, format_kind kind)
{
    if (json_is_null(v))
        str_puts(b, "null"); /* a value, unlike that of an inactive parameter */
    else
        format_value(b, v, kind);
}

void format_params(struct str *b, const json_t *params, format_kind kind)
{
    const char *name;
    json_t *v;
    bool first = true;
    json_object_foreach((json_t *)params, name, v)
    {
        str_puts(b, first ? "" : " ");
        str_puts(b, name);
        str_putc(b, '=');
        if (kind == FORMAT_SHORT && json_is_real(v))
            str_printf(b, "%.4g", json_real_value(v));
        else
            format_param(b, v, kind);
        first = false;
    }
}

void format_tags(struct str *b, const json_t *tags)
{
    size_t i;
    json_t *tag;
    json_array_foreach((json_t *)tags, i, tag)
    {
        str_puts(b, i ? ", " : "");
        format_value(b, tag, FORMAT_SHORT);
    }
}

/* "0.01" in units of the metric, or "1%". */
static void format_stop_when(struct str *b, const json_t *v)
{
    const json_t *regret = json_object_get(v, "regret");
    if (regret)
        format_value(b, regret, FORMAT_SHORT);
    else
        str_printf(b, "%.4g%%", 100 * json_number_value(json_object_get(v, "relative")));
    str_printf(b, " after %" JSON_INTEGER_FORMAT " trials",
               json_integer_value(json_object_get(v, "min_trials")));
}

void format_limit(struct str *b, const char *name, const json_t *v)
{
    static const char *const durations[] = {"trial_timeout", "wall_time", "grace"};
    if (!v || json_is_null(v)) {
        str_puts(b, "none");
        return;
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(durations); i++) {
        if (as_streq(name, durations[i]) && json_is_number(v)) {
            str_printf(b, "%.15g s", json_number_value(v));
            return;
        }
    }
    if (json_is_object(v))
        format_stop_when(b, v);
    else
        format_value(b, v, FORMAT_SHORT);
}

int64_t format_elapsed_ms(const json_t *from, const json_t *until, int64_t now_ms)
{
    int64_t a, b = now_ms;
    if (!json_is_string(from) || clock_parse_utc(json_string_value(from), &a, NULL) < 0)
        return -1;
    if (json_is_string(until) && clock_parse_utc(json_string_value(until), &b, NULL) < 0)
        return -1;
    return b > a ? b - a : 0; /* clocks of two machines may disagree a little */
}

int64_t format_ran_ms(const json_t *trial, int64_t now_ms)
{
    const json_t *ran = json_object_get(trial, "ran_ms");
    int64_t since = format_elapsed_ms(json_object_get(trial, "running_since"), NULL, now_ms);
    if (!json_is_integer(ran))
        return -1;
    return json_integer_value(ran) + (since > 0 ? since : 0);
}

const char *format_ago(const json_t *time, int64_t now_ms, char *buf)
{
    int64_t s = format_elapsed_ms(time, NULL, now_ms);
    if (s < 0)
        return "-";
    s /= 1000;
    if (s < 60)
        (void)snprintf(buf, 32, "%" PRId64 " s ago", s);
    else if (s < 3600)
        (void)snprintf(buf, 32, "%" PRId64 " min ago", s / 60);
    else if (s < 86400)
        (void)snprintf(buf, 32, "%" PRId64 " h ago", s / 3600);
    else
        (void)snprintf(buf, 32, "%" PRId64 " d ago", s / 86400);
    return buf;
}

const char *format_size(int64_t bytes, char *buf)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double v = (double)bytes;
    size_t i = 0;
    for (; v >= 1000 && i + 1 < AS_ARRAY_LEN(units); i++)
        v /= 1000;
    (void)snprintf(buf, 32, i && v < 100 ? "%.1f %s" : "%.0f %s", v, units[i]);
    return buf;
}
