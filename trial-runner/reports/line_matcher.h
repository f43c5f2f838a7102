/* Finds measurements in what a program prints, by the patterns of its sweep.
 *
 *   Epoch (?P<step>\d+).* loss: (?P<loss>[0-9.eE+-]+)
 *
 * Each line is tried with each pattern, and a pattern counts once for a line, at its first match.
 * The group `step` has the step; every other named group is a metric, of its own name or of the
 * name that {"groups": {group: metric}} beside the patterns gives it. A group that matched nothing,
 * or no number, is absent. A match without a step belongs to the step that was found last. If no
 * pattern names a step, each pattern counts its matches from 0.
 *
 * A line ends with a newline or a carriage return (progress bars). Escape sequences of terminals
 * are removed. Only the first LINE_MAX_BYTES of a longer line are tried. Pure: bytes in,
 * measurements out. */
#ifndef ASSAY_TRIAL_RUNNER_REPORTS_LINE_MATCHER_H
#define ASSAY_TRIAL_RUNNER_REPORTS_LINE_MATCHER_H

#include "base/pattern.h"
#include "base/str.h"
#include "trial-runner/reports/measured.h"

#define LINE_MAX_BYTES (16 << 10)
#define LINE_MAX_PATTERNS 32
#define LINE_MAX_OVERRUNS 50 /* a pattern that reached its limit of steps so often is given up */

struct line_pattern {
    struct pattern *p;    /* owned */
    const json_t *groups; /* {group: metric}; NULL: none has another name; borrowed */
    bool has_step;
    int64_t next_step;
    unsigned overruns;
};

struct line_matcher {
    struct line_pattern patterns[LINE_MAX_PATTERNS];
    size_t n;
    bool has_step; /* one of the patterns names a step */
    int64_t step;  /* the one found last */
    struct str line;
    bool cut, noted_cut; /* the line is longer than LINE_MAX_BYTES */
    size_t lines, matches;
};

/* Compile the patterns of `report`, the sources of sweep_report_parse(), into *m, which is zeroed;
 * sources without `stdout` have none. `report` is borrowed until line_matcher_done(). AS_E_INVAL,
 * AS_E_TOO_LARGE, AS_E_NOMEM; then line_matcher_done() still has to be called. */
AS_MUST_CHECK as_status line_matcher_init(struct line_matcher *m, const json_t *report,
                                          struct as_err *err);
void line_matcher_done(struct line_matcher *m);

/* Read more bytes. AS_E_NOMEM, or the status of on_item. on_bad hears of lines that were cut
 * (once), of steps that are no whole numbers, and of patterns that are given up. */
AS_MUST_CHECK as_status line_matcher_feed(struct line_matcher *m, const char *bytes, size_t len,
                                          const struct report_fns *fns, struct as_err *err);

/* The output has ended: a last line without a newline counts. */
AS_MUST_CHECK as_status line_matcher_end(struct line_matcher *m, const struct report_fns *fns,
                                         struct as_err *err);

#endif
