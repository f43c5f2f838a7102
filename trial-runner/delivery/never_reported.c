#include "trial-runner/delivery/never_reported.h"

#include <string.h>

#include "base/json.h"
#include "base/metric_name.h"
#include "base/pattern.h"
#include "trial-runner/collect/collector.h"
#include "trial-runner/reports/near_lines.h"

#define SEEN_MAX 8
#define NEAR_TEXTS 33 /* the metric, and the beginnings of 32 patterns */
#define PAGE "docs/trials.md#reporting"

static void add_names(const char *what, const char *quote, const json_t *names, struct str *b)
{
    size_t n = 0;
    for (void *it = json_object_iter((json_t *)names); it && n < SEEN_MAX;
         it = json_object_iter_next((json_t *)names, it))
        str_printf(b, "%s%s%.80s%s", n++ ? ", " : what, quote, json_object_iter_key(it), quote);
    if (json_object_size(names) > SEEN_MAX)
        str_printf(b, " and %zu more", json_object_size(names) - SEEN_MAX);
}

/* How the patterns begin: lines that begin so were meant. Owned by the caller. */
static json_t *beginnings(const struct attempt *a)
{
    json_t *all = json_array(), *report = json_object_get(a->claimed.trial, "report");
    for (size_t i = 0; i < json_array_size(report); i++) {
        const json_t *list = json_object_get(json_array_get(report, i), "stdout");
        for (size_t k = 0; k < json_array_size(list); k++) {
            AS_AUTO(pattern_freep) struct pattern *p = NULL;
            const char *text = json_string_value(json_array_get(list, k));
            if (text && pattern_compile(text, &p, NULL, NULL) == AS_OK)
                (void)json_array_append_new(all, json_string(pattern_literal(p)));
        }
    }
    return all;
}

static void add_near(const struct attempt *a, const char *metric, struct str *b)
{
    JSON_AUTO begins = beginnings(a);
    const char *texts[NEAR_TEXTS];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(begins) && n < NEAR_TEXTS; i++)
        texts[n++] = json_string_value(json_array_get(begins, i));
    if (a->end.log)
        near_lines(a->end.log, metric, texts, n, b);
}

void never_reported(const struct attempt *a, const char *metric, const json_t *seen,
                    const json_t *skipped, struct str *b)
{
    AS_AUTO(str_done) struct str why = {0}, near = {0};
    str_printf(b, "exit 0, but the metric '%s' was never reported", metric);
    add_names("; reported were ", "", seen, b);
    add_names("; skipped were ", "'", skipped, b);
    if (json_object_size(skipped) > 0)
        str_puts(b,
                 " (the name of a metric is " METRIC_NAME_RULE "; a line has at most 100 metrics)");
    if (a->launch.collector)
        collector_explain(a->launch.collector, &why);
    if (why.len)
        str_printf(b, "; %.600s", why.s);
    add_near(a, metric, &near);
    if (near.len)
        str_printf(b, "; lines that came near: %s", near.s);
    str_puts(b, " (" PAGE ")");
    if (b->len > VERDICT_REASON_MAX)
        b->s[b->len = VERDICT_REASON_MAX] = '\0';
    if (b->len)
        as_utf8_repair(b->s); /* a cut may have left half a character */
}
