/* Lines out of bytes, and patterns over lines.
 *
 * The number that a group matched is often followed by the end of a sentence ("loss: 0.3."),
 * because [0-9.eE+-]+ takes that too. So what stands behind a number is dropped until a number
 * remains.
 *
 * A match costs at most PATTERN_MAX_STEPS steps, which is short for one line and long for a million
 * lines. So a pattern that reaches the limit LINE_MAX_OVERRUNS times is given up, with a
 * warning. */
#include "trial-runner/reports/line_matcher.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define ESC '\x1b'

static as_status add_pattern(struct line_matcher *m, const json_t *pattern, const json_t *groups,
                             struct as_err *err)
{
    const char *text = json_string_value(pattern);
    struct line_pattern *lp = &m->patterns[m->n];
    if (m->n == LINE_MAX_PATTERNS)
        return as_fail(err, AS_E_TOO_LARGE, "more than %d patterns", LINE_MAX_PATTERNS);
    if (!text)
        return as_fail(err, AS_E_INVAL, "pattern %zu is no text", m->n);
    as_status st = pattern_compile(text, &lp->p, NULL, err);
    if (st < 0)
        return as_err_prefix(err, st, "pattern %zu", m->n);
    m->n++;
    lp->groups = groups;
    for (size_t k = 0; k < pattern_n_names(lp->p); k++)
        lp->has_step |= strcmp(pattern_name(lp->p, k), "step") == 0;
    m->has_step |= lp->has_step;
    return AS_OK;
}

as_status line_matcher_init(struct line_matcher *m, const json_t *report, struct as_err *err)
{
    for (size_t i = 0; i < json_array_size(report); i++) {
        const json_t *source = json_array_get(report, i), *list = json_object_get(source, "stdout");
        for (size_t k = 0; k < json_array_size(list); k++) {
            as_status st =
                add_pattern(m, json_array_get(list, k), json_object_get(source, "groups"), err);
            if (st < 0)
                return st;
        }
    }
    return AS_OK;
}

void line_matcher_done(struct line_matcher *m)
{
    for (size_t i = 0; i < m->n; i++)
        pattern_free(m->patterns[i].p);
    str_done(&m->line);
    *m = (struct line_matcher){0};
}

/* ---- one line ---- */

/* Remove escape sequences: ESC [ … letter, and ESC with one character. */
static void remove_escapes(struct str *line)
{
    if (line->len == 0 || !memchr(line->s, ESC, line->len))
        return;
    size_t to = 0;
    for (size_t i = 0; i < line->len; i++) {
        if (line->s[i] != ESC) {
            line->s[to++] = line->s[i];
            continue;
        }
        if (i + 1 < line->len && line->s[i + 1] == '[')
            for (i += 2; i < line->len && (line->s[i] < '@' || line->s[i] > '~');)
                i++;
        else
            i++;
    }
    line->len = to;
    line->s[to] = '\0';
}

static bool number_of(const char *text, size_t len, double *ret)
{
    while (len && !report_number(text, len, ret)) {
        if (!strchr(".,;:+-eE%)]", text[len - 1]))
            return false;
        len--;
    }
    return len > 0;
}

static void note_bad_step(const struct line_matcher *m, const char *found, size_t len,
                          const struct report_fns *fns)
{
    char why[160];
    (void)snprintf(why, sizeof why, "the step must be a whole number >= 0, found '%.*s'",
                   (int)(len < 80 ? len : 80), found);
    fns->on_bad(fns->arg, m->lines, why);
}

/* The metric of a group: as `groups` says, or its own name. */
static const char *metric_of(const struct line_pattern *lp, const char *group)
{
    const char *metric = json_string_value(json_object_get(lp->groups, group));
    return metric ? metric : group;
}

/* Read the groups of a match. *has_step: *step was set. False: the step is wrong. */
static as_status read_groups(const struct line_matcher *m, const struct line_pattern *lp,
                             json_t *metrics, int64_t *step, bool *has_step, bool *ok,
                             const struct report_fns *fns, struct as_err *err)
{
    for (size_t k = 0; k < pattern_n_names(lp->p); k++) {
        const char *text, *name = pattern_name(lp->p, k);
        size_t len;
        double v;
        as_status st = AS_OK;
        if (!pattern_group(lp->p, k, &text, &len) || len == 0)
            continue;
        if (strcmp(name, "step") == 0) {
            *has_step = report_step(text, len, step);
            *ok = *has_step;
            if (!*ok)
                note_bad_step(m, text, len, fns);
        } else if (number_of(text, len, &v) && json_object_size(metrics) < REPORT_MAX_METRICS) {
            st = report_put(metrics, metric_of(lp, name), v, err);
        }
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status take_match(struct line_matcher *m, struct line_pattern *lp,
                            const struct report_fns *fns, struct as_err *err)
{
    JSON_AUTO metrics = json_object();
    int64_t step = m->has_step ? m->step : lp->next_step;
    bool has_step = false, ok = true;
    if (!metrics)
        return as_fail_nomem(err);
    as_status st = read_groups(m, lp, metrics, &step, &has_step, &ok, fns, err);
    if (st < 0 || !ok)
        return st;
    if (has_step)
        m->step = step;
    if (json_object_size(metrics) == 0)
        return AS_OK;
    m->matches++;
    lp->next_step++;
    return fns->on_item(fns->arg, step, as_steal(metrics), err);
}

static void note_overrun(const struct line_matcher *m, size_t i, const char *why,
                         const struct report_fns *fns)
{
    char text[300];
    unsigned n = m->patterns[i].overruns;
    if (n != 1 && n != LINE_MAX_OVERRUNS)
        return;
    (void)snprintf(text, sizeof text, "pattern %zu needs too many steps (%.120s): %s", i, why,
                   n == 1 ? "it counts as no match of this line"
                          : "it is not tried any more; write it without nested repetitions");
    fns->on_bad(fns->arg, m->lines, text);
}

static as_status try_line(struct line_matcher *m, const struct report_fns *fns, struct as_err *err)
{
    m->lines++;
    remove_escapes(&m->line);
    for (size_t i = 0; i < m->n; i++) {
        struct line_pattern *lp = &m->patterns[i];
        struct as_err why = {0};
        bool found = false;
        if (lp->overruns >= LINE_MAX_OVERRUNS)
            continue;
        if (pattern_match(lp->p, str_cstr(&m->line), m->line.len, &found, &why) < 0) {
            lp->overruns++;
            note_overrun(m, i, why.msg, fns);
        }
        as_status st = found ? take_match(m, lp, fns, err) : AS_OK;
        if (st < 0)
            return st;
    }
    return AS_OK;
}

/* ---- lines ---- */

static as_status end_line(struct line_matcher *m, const struct report_fns *fns, struct as_err *err)
{
    char why[120];
    as_status st = AS_OK;
    if (m->cut && !m->noted_cut) {
        (void)snprintf(why, sizeof why,
                       "a line is longer than %d bytes: only its beginning is looked at",
                       LINE_MAX_BYTES);
        fns->on_bad(fns->arg, m->lines + 1, why);
        m->noted_cut = true;
    }
    if (m->line.len)
        st = try_line(m, fns, err);
    else
        m->lines++;
    m->cut = false;
    str_clear(&m->line);
    return st;
}

/* The bytes before the first newline or carriage return. */
static size_t line_length(const char *bytes, size_t len)
{
    const char *nl = memchr(bytes, '\n', len);
    size_t n = nl ? (size_t)(nl - bytes) : len;
    const char *cr = memchr(bytes, '\r', n);
    return cr ? (size_t)(cr - bytes) : n;
}

as_status line_matcher_feed(struct line_matcher *m, const char *bytes, size_t len,
                            const struct report_fns *fns, struct as_err *err)
{
    while (len) {
        size_t n = line_length(bytes, len), room = LINE_MAX_BYTES - m->line.len;
        m->cut |= n > room;
        str_add(&m->line, bytes, n < room ? n : room);
        as_status st = str_check(&m->line, err);
        if (st == AS_OK && n < len)
            st = end_line(m, fns, err);
        if (st < 0)
            return st;
        n += n < len;
        bytes += n;
        len -= n;
    }
    return AS_OK;
}

as_status line_matcher_end(struct line_matcher *m, const struct report_fns *fns, struct as_err *err)
{
    return m->line.len ? end_line(m, fns, err) : AS_OK;
}
