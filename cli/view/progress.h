/* The live display of a sweep: its counts, its rate of trials, and its rendering. Pure: the caller
 * passes the clock and the sweep. */
#ifndef ASSAY_CLI_VIEW_PROGRESS_H
#define ASSAY_CLI_VIEW_PROGRESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "cli/view/terminal.h"

#define PROGRESS_SAMPLES 32

struct progress {
    json_t *sweep;   /* the latest answer of GET /v1/sweeps/{sweep}; owned, NULL before the first */
    char note[200];  /* a line about a problem, such as a lost connection; "": none */
    int64_t now_ms;  /* wall clock of the latest update */
    int64_t ends_ms; /* wall clock when the sweep ends at the latest; 0: unknown */
    /* The newest samples of (time, number of ended trials), a ring; the times are those at which
     * this program saw the change. */
    struct progress_sample {
        int64_t mono_ns;
        int64_t ended;
    } samples[PROGRESS_SAMPLES];
    size_t n_samples;
};

void progress_done(struct progress *p);

/* Show a new answer of the API, received at these times. Takes `sweep`. */
void progress_update(struct progress *p, json_t *sweep, int64_t mono_ns, int64_t wall_ms);

/* The state as text ("" before the first update), and whether the sweep has ended. */
const char *progress_state(const struct progress *p);
bool progress_ended(const struct progress *p);

struct progress_counts {
    int64_t planned, ended, queued, running, paused, completed, pruned, failed, cancelled;
};
/* `queued` includes planned trials that do not exist yet. */
struct progress_counts progress_counts(const struct progress *p);

/* Trials that end per second, computed from the newest samples, or over the whole sweep while there
 * are too few samples; 0 when no trial has ended yet. */
double progress_rate(const struct progress *p);

/* Milliseconds until all planned trials have ended at this rate, or until ends_ms if that is
 * earlier; -1: unknown, 0: all have ended. */
int64_t progress_left_ms(const struct progress *p);

/* Append the display for a terminal: whole lines, none wider than terminal->width. */
void progress_render(const struct progress *p, const struct terminal *terminal, struct str *b);

/* Append the same as one line without escapes, for a log. */
void progress_line(const struct progress *p, struct str *b);

/* The same as one JSON object; new reference, NULL when memory is out. */
json_t *progress_json(const struct progress *p);

#endif
