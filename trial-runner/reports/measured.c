#include "trial-runner/reports/measured.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

#define NUMBER_MAX 64 /* bytes of a number's text */

static bool read_word(const char *s, double *ret)
{
    bool minus = *s == '-';
    s += *s == '-' || *s == '+';
    if (strcasecmp(s, "nan") == 0)
        *ret = NAN;
    else if (strcasecmp(s, "inf") == 0 || strcasecmp(s, "infinity") == 0)
        *ret = minus ? -INFINITY : INFINITY;
    else
        return false;
    return true;
}

bool report_number(const char *text, size_t len, double *ret)
{
    char buf[NUMBER_MAX + 1];
    while (len && strchr(" \t\r\n", *text) && *text) {
        text++;
        len--;
    }
    while (len && text[len - 1] && strchr(" \t\r\n", text[len - 1]))
        len--;
    if (len == 0 || len > NUMBER_MAX || memchr(text, '\0', len))
        return false;
    memcpy(buf, text, len);
    buf[len] = '\0';
    return as_parse_double(buf, ret, NULL) == AS_OK || read_word(buf, ret);
}

bool report_step(const char *text, size_t len, int64_t *ret)
{
    double v;
    if (!report_number(text, len, &v) || !isfinite(v) || v != floor(v) || v < 0 ||
        v > (double)REPORT_MAX_STEP)
        return false;
    *ret = (int64_t)v;
    return true;
}

void report_note_text(const char *text, size_t len, char ret[REPORT_MAX_NOTE + 1])
{
    size_t n = len < REPORT_MAX_NOTE ? len : REPORT_MAX_NOTE;
    while (n && n < len && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--;
    memcpy(ret, text, n);
    ret[n] = '\0';
    as_utf8_repair(ret);
}

as_status report_put(json_t *metrics, const char *name, double value, struct as_err *err)
{
    return json_object_set_new(metrics, name, json_number_new(value)) < 0 ? as_fail_nomem(err)
                                                                          : AS_OK;
}
