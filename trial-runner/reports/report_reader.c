/* Reads ASSAY_REPORT as it grows.
 *
 * Bytes come in pieces of any size, so an incomplete line is kept until its end comes. A line that
 * is too long is not kept but skipped up to its newline, so a trial cannot fill the memory.
 *
 * Python's json writes NaN and Infinity without quotes, which is not JSON. These words are put
 * between quotes before the line is parsed; the value then has the same form as the text "NaN". */
#include "trial-runner/reports/report_reader.h"

#include <math.h>
#include <stdio.h>
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
    char found[32];
    if (!json_is_number(j) || v != floor(v) || v < 0 || v > (double)REPORT_MAX_STEP)
        return as_fail(err, AS_E_INVAL, "step: found %s, expected a whole number from 0 to %lld",
                       json_is_number(j) ? as_format_double(v, found, sizeof found)
                                         : json_type_name(j),
                       (long long)REPORT_MAX_STEP);
    *ret = json_is_integer(j) ? json_integer_value(j) : (int64_t)v;
    return AS_OK;
}

/* What a line holds. */
struct line {
    const struct report_reader *reader;
    const struct report_fns *fns;
    int64_t step;
    json_t *metrics; /* owned */
    bool has_note;
};

/* A text, a list, an object or a truth beside the numbers. */
static as_status take_note(struct line *l, const char *name, const json_t *j, struct as_err *err)
{
    char text[REPORT_MAX_NOTE + 1];
    AS_AUTO(as_freep) char *written = json_is_string(j) ? NULL : json_format_ordered(j);
    const char *whole = json_is_string(j) ? json_string_value(j) : written;
    l->has_note = true;
    if (!whole)
        return as_fail_nomem(err);
    if (!l->fns->on_note)
        return AS_OK;
    report_note_text(whole, strlen(whole), text);
    return l->fns->on_note(l->fns->arg, name, text, err);
}

static void skip(struct line *l, const char *name, const char *why)
{
    l->fns->on_bad(l->fns->arg, l->reader->line, why);
    if (l->fns->on_skip)
        l->fns->on_skip(l->fns->arg, name);
}

static as_status take_field(struct line *l, const char *name, const json_t *j, struct as_err *err)
{
    char plain[METRIC_NAME_MAX + 1], why[AS_ERR_MSG_MAX];
    double v;
    if (json_is_null(j))
        return AS_OK;
    if (!metric_name_valid(name) && !l->reader->of_others) {
        (void)snprintf(why, sizeof why,
                       "'%.80s' is skipped, the name of a metric is " METRIC_NAME_RULE, name);
        skip(l, name, why);
        return AS_OK;
    }
    metric_name_from(name, plain);
    if (!json_number_get(j, &v))
        return take_note(l, plain, j, err);
    if (json_object_size(l->metrics) < REPORT_MAX_METRICS)
        return report_put(l->metrics, plain, v, err);
    (void)snprintf(why, sizeof why, "%s is skipped: more than %d metrics", plain,
                   REPORT_MAX_METRICS);
    skip(l, plain, why);
    return AS_OK;
}

static as_status parse_line(const char *text, struct line *l, struct as_err *err)
{
    AS_AUTO(str_done) struct str quoted = {0};
    JSON_AUTO j = NULL;
    const char *step = l->reader->step_name ? l->reader->step_name : "step", *name;
    json_t *value;
    quote_bare(text, &quoted);
    as_status st = str_check(&quoted, err);
    if (st < 0 || (st = json_parse(str_cstr(&quoted), quoted.len, &j, err)) < 0)
        return st;
    if (!json_is_object(j))
        return as_fail(err, AS_E_INVAL, "expected an object, found %s", json_type_name(j));
    value = json_object_get(j, step);
    if (value && !json_is_null(value) && (st = take_step(value, &l->step, err)) < 0)
        return st;
    json_object_foreach(j, name, value)
    {
        st = strcmp(name, step) == 0 ? AS_OK : take_field(l, name, value, err);
        if (st < 0)
            return st;
    }
    if (json_object_size(l->metrics) == 0 && !l->has_note)
        return as_fail(err, AS_E_INVAL, "the line has no metric");
    return AS_OK;
}

/* Read the line in r->partial. */
static as_status read_line(struct report_reader *r, struct line *l, struct as_err *err)
{
    const char *text = str_cstr(&r->partial);
    if (r->skipping)
        return as_fail(err, AS_E_TOO_LARGE, "longer than %d bytes", REPORT_MAX_LINE);
    if (strlen(text) < r->partial.len)
        return as_fail(err, AS_E_INVAL, "the line has a NUL byte");
    if (!text[strspn(text, " \t\r")])
        return AS_OK;
    return parse_line(text, l, err);
}

/* Handle the line in r->partial, which has ended. */
static as_status take_line(struct report_reader *r, const struct report_fns *fns,
                           struct as_err *err)
{
    struct as_err why = {0};
    JSON_AUTO metrics = json_object();
    struct line l = {.reader = r, .fns = fns, .step = r->next_step, .metrics = metrics};
    if (!metrics)
        return as_fail_nomem(err);
    r->line++;
    as_status st = read_line(r, &l, &why);
    r->skipping = false;
    str_clear(&r->partial);
    if (st < 0 && st != AS_E_INVAL && st != AS_E_TOO_LARGE)
        return as_fail(err, st, "%s", why.msg);
    if (st < 0) {
        fns->on_bad(fns->arg, r->line, why.msg);
        return AS_OK;
    }
    if (json_object_size(metrics) == 0)
        return AS_OK;
    r->next_step = l.step < REPORT_MAX_STEP ? l.step + 1 : l.step;
    return fns->on_item(fns->arg, l.step, as_steal(metrics), err);
}

as_status report_reader_feed(struct report_reader *r, const char *bytes, size_t len,
                             const struct report_fns *fns, struct as_err *err)
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

as_status report_reader_end(struct report_reader *r, const struct report_fns *fns,
                            struct as_err *err)
{
    if (r->partial.len == 0 && !r->skipping)
        return AS_OK;
    as_status st = take_line(r, fns, err);
    str_clear(&r->partial);
    return st;
}
