/* Reads ASSAY_REPORT as it grows.
 *
 * Bytes come in pieces of any size, so an incomplete line is kept until its end comes. A line that
 * is too long is not kept but skipped up to its newline, so a trial cannot fill the memory.
 *
 * Python's json writes NaN and Infinity without quotes, which is not JSON. These words are put
 * between quotes before the line is parsed; the value then has the same form as the text "NaN". */
#include "trial-runner/agent/report_reader.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

void report_reader_done(struct report_reader *r)
{
    str_done(&r->partial);
}

void report_reader_restart(struct report_reader *r)
{
    str_clear(&r->partial);
    r->skipping = false;
}

static bool ends_word(char c)
{
    return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'));
}

/* Copy the line and put bare NaN, Infinity and -Infinity between quotes, outside strings only. */
static void quote_bare(const char *s, struct str *out)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    bool in_string = false;
    while (*s) {
        size_t n = 0;
        for (size_t i = 0; !in_string && i < AS_ARRAY_LEN(words); i++)
            if (as_starts_with(s, words[i]) && ends_word(s[strlen(words[i])]))
                n = strlen(words[i]);
        if (n) {
            str_putc(out, '"');
            str_add(out, s, n);
            str_putc(out, '"');
            s += n;
            continue;
        }
        if (in_string && *s == '\\' && s[1])
            str_putc(out, *s++);
        else if (*s == '"')
            in_string = !in_string;
        str_putc(out, *s++);
    }
}

static as_status take_step(const json_t *j, int64_t *ret, struct as_err *err)
{
    double v = json_number_value(j);
    if (!json_is_number(j) || v != floor(v) || v < 0 || v > (double)REPORT_MAX_STEP)
        return as_fail(err, AS_E_INVAL, "step must be a whole number >= 0, found %s",
                       json_is_number(j) ? "another number" : json_type_name(j));
    *ret = json_is_integer(j) ? json_integer_value(j) : (int64_t)v;
    return AS_OK;
}

/* The server accepts the same names. */
static bool name_ok(const char *name)
{
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.-";
    size_t n = strlen(name);
    return n > 0 && n <= REPORT_MAX_NAME && strspn(name, more) == n &&
           !strchr("0123456789.-", name[0]);
}

static as_status take_metric(json_t *metrics, const char *name, const json_t *j, struct as_err *err)
{
    double v;
    if (!name_ok(name))
        return as_fail(err, AS_E_INVAL,
                       "the metric '%.80s' must be named [A-Za-z_][A-Za-z0-9_.-]{0,62}", name);
    if (!json_number_get(j, &v))
        return as_fail(err, AS_E_INVAL, "%.80s must be a number, found %s", name,
                       json_type_name(j));
    if (json_object_size(metrics) == REPORT_MAX_METRICS)
        return as_fail(err, AS_E_INVAL, "more than %d metrics", REPORT_MAX_METRICS);
    if (json_object_set_new(metrics, name, json_number_new(v)) < 0)
        return as_fail_nomem(err);
    return AS_OK;
}

static as_status parse_line(const char *line, int64_t *step, json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str quoted = {0};
    JSON_AUTO j = NULL;
    JSON_AUTO metrics = json_object();
    const char *name;
    json_t *value;
    quote_bare(line, &quoted);
    as_status st = metrics ? str_check(&quoted, err) : as_fail_nomem(err);
    if (st < 0 || (st = json_parse(str_cstr(&quoted), quoted.len, &j, err)) < 0)
        return st;
    if (!json_is_object(j))
        return as_fail(err, AS_E_INVAL, "expected an object, found %s", json_type_name(j));
    json_object_foreach(j, name, value)
    {
        if (strcmp(name, "step") == 0)
            st = take_step(value, step, err);
        else
            st = take_metric(metrics, name, value, err);
        if (st < 0)
            return st;
    }
    if (json_object_size(metrics) == 0)
        return as_fail(err, AS_E_INVAL, "the line has no metric");
    *ret = as_steal(metrics);
    return AS_OK;
}

/* Handle the line in r->partial, which has ended. */
static as_status take_line(struct report_reader *r, const struct report_reader_fns *fns,
                           struct as_err *err)
{
    struct as_err why = {0};
    json_t *metrics = NULL;
    int64_t step = r->next_step;
    as_status st;
    r->line++;
    if (r->skipping) {
        r->skipping = false;
        st = as_fail(&why, AS_E_TOO_LARGE, "longer than %d bytes", REPORT_MAX_LINE);
    } else {
        const char *line = str_cstr(&r->partial);
        if (strlen(line) < r->partial.len)
            st = as_fail(&why, AS_E_INVAL, "the line has a NUL byte");
        else if (!line[strspn(line, " \t\r")])
            return AS_OK;
        else
            st = parse_line(line, &step, &metrics, &why);
    }
    str_clear(&r->partial);
    if (st == AS_E_NOMEM)
        return as_fail(err, st, "%s", why.msg);
    if (st < 0) {
        fns->on_bad(fns->arg, r->line, why.msg);
        return AS_OK;
    }
    r->next_step = step < REPORT_MAX_STEP ? step + 1 : step;
    return fns->on_item(fns->arg, step, metrics, err);
}

as_status report_reader_feed(struct report_reader *r, const char *bytes, size_t len,
                             const struct report_reader_fns *fns, struct as_err *err)
{
    while (len) {
        const char *nl = memchr(bytes, '\n', len);
        size_t n = nl ? (size_t)(nl - bytes) : len; /* bytes of this line in this piece */
        if (r->partial.len + n > REPORT_MAX_LINE)
            r->skipping = true;
        if (r->skipping)
            str_clear(&r->partial);
        else
            str_add(&r->partial, bytes, n);
        as_status st = str_check(&r->partial, err);
        if (st < 0)
            return st;
        if (nl)
            st = take_line(r, fns, err);
        if (st < 0)
            return st;
        if (nl)
            str_clear(&r->partial);
        n += nl != NULL;
        bytes += n;
        len -= n;
    }
    return AS_OK;
}

as_status report_reader_end(struct report_reader *r, const struct report_reader_fns *fns,
                            struct as_err *err)
{
    if (r->partial.len == 0 && !r->skipping)
        return AS_OK;
    as_status st = take_line(r, fns, err);
    str_clear(&r->partial);
    return st;
}
