/* What a reader said, as one text: `STEP{metrics} `, `badLINE(why) `, `name=text `. */
#ifndef ASSAY_TESTS_TRIAL_RUNNER_REPORTS_SEEN_H
#define ASSAY_TESTS_TRIAL_RUNNER_REPORTS_SEEN_H

#include "base/json.h"
#include "base/str.h"
#include "trial-runner/reports/measured.h"

struct seen {
    struct str text;
    size_t items, bad;
};

static inline as_status seen_item(void *arg, int64_t step, json_t *metrics, struct as_err *err)
{
    struct seen *s = arg;
    (void)err;
    s->items++;
    str_printf(&s->text, "%lld", (long long)step);
    json_format_to(&s->text, metrics);
    str_putc(&s->text, ' ');
    json_decref(metrics);
    return AS_OK;
}

static inline void seen_bad(void *arg, size_t line, const char *why)
{
    struct seen *s = arg;
    s->bad++;
    str_printf(&s->text, "bad%zu(%.30s) ", line, why);
}

static inline as_status seen_note(void *arg, const char *name, const char *text, struct as_err *err)
{
    struct seen *s = arg;
    (void)err;
    str_printf(&s->text, "%s=%.60s ", name, text);
    return AS_OK;
}

static inline struct report_fns seen_fns(struct seen *s)
{
    return (struct report_fns){
        .on_item = seen_item, .on_bad = seen_bad, .on_note = seen_note, .arg = s};
}

#endif
