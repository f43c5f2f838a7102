/* Renders the live display of a sweep from the latest answer of the server.
 *
 * The rate is measured over the newest PROGRESS_SAMPLES changes of the number of ended trials,
 * because the rate of the whole sweep is wrong after a pause or after runners were added. A sample
 * is taken only when that number changes, so that polling more often does not shorten the window.
 *
 * Every line is cut to the width of the terminal: a wrapped line would break the cursor movement
 * with which the caller replaces the display. */
#include "cli/view/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/view/format.h"
#include "cli/view/objectives.h"
#include "cli/view/text.h"

/* Fewer samples than this give no reliable rate; the rate over the whole sweep is used instead. */
#define MIN_SAMPLES 4

void progress_done(struct progress *p)
{
    json_decref(p->sweep);
    p->sweep = NULL;
}

static int64_t count_of(const struct progress *p, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(p->sweep, "counts"), name));
}

static const struct progress_sample *sample_at(const struct progress *p, size_t i)
{
    return &p->samples[i % PROGRESS_SAMPLES];
}

void progress_update(struct progress *p, json_t *sweep, int64_t mono_ns, int64_t wall_ms)
{
    json_decref(p->sweep);
    p->sweep = sweep;
    p->now_ms = wall_ms;
    p->note[0] = 0;
    int64_t ended = progress_counts(p).ended;
    if (p->n_samples > 0 && sample_at(p, p->n_samples - 1)->ended == ended)
        return;
    p->samples[p->n_samples++ % PROGRESS_SAMPLES] =
        (struct progress_sample){.mono_ns = mono_ns, .ended = ended};
}

const char *progress_state(const struct progress *p)
{
    const char *state = json_string_value(json_object_get(p->sweep, "state"));
    return state ? state : "";
}

bool progress_ended(const struct progress *p)
{
    const char *s = progress_state(p);
    return as_streq(s, "completed") || as_streq(s, "failed") || as_streq(s, "cancelled");
}

struct progress_counts progress_counts(const struct progress *p)
{
    struct progress_counts n = {
        .planned = json_integer_value(json_object_get(p->sweep, "planned_trials")),
        .running = count_of(p, "running"),
        .paused = count_of(p, "paused"),
        .completed = count_of(p, "completed"),
        .pruned = count_of(p, "pruned"),
        .failed = count_of(p, "failed"),
        .cancelled = count_of(p, "cancelled"),
    };
    n.ended = n.completed + n.pruned + n.failed + n.cancelled;
    n.queued = n.planned - n.ended - n.running - n.paused;
    if (n.queued < 0 || progress_ended(p))
        n.queued = count_of(p, "queued");
    return n;
}

static int64_t elapsed_ms(const struct progress *p)
{
    const json_t *from = json_object_get(p->sweep, "started_at");
    if (!json_is_string(from))
        from = json_object_get(p->sweep, "created_at");
    int64_t ms = format_elapsed_ms(from, json_object_get(p->sweep, "finished_at"), p->now_ms);
    return ms < 0 ? 0 : ms;
}

double progress_rate(const struct progress *p)
{
    size_t kept = p->n_samples < PROGRESS_SAMPLES ? p->n_samples : PROGRESS_SAMPLES;
    /* The very first sample has the time at which the display started, not the end of a trial;
     * hence >, not >=. */
    if (kept > MIN_SAMPLES && !progress_ended(p)) {
        const struct progress_sample *a = sample_at(p, p->n_samples - kept);
        const struct progress_sample *b = sample_at(p, p->n_samples - 1);
        if (b->mono_ns > a->mono_ns)
            return (double)(b->ended - a->ended) * 1e9 / (double)(b->mono_ns - a->mono_ns);
    }
    int64_t ms = elapsed_ms(p);
    return ms > 0 ? (double)progress_counts(p).ended * 1e3 / (double)ms : 0;
}

int64_t progress_left_ms(const struct progress *p)
{
    struct progress_counts n = progress_counts(p);
    double rate = progress_rate(p);
    if (n.planned <= n.ended || progress_ended(p))
        return 0;
    int64_t until = p->ends_ms <= 0          ? INT64_MAX
                    : p->ends_ms > p->now_ms ? p->ends_ms - p->now_ms
                                             : 0;
    if (rate <= 0 || as_streq(progress_state(p), "paused"))
        return p->ends_ms > 0 ? until : -1;
    double ms = (double)(n.planned - n.ended) / rate * 1e3;
    if (ms > 1e15)
        return p->ends_ms > 0 ? until : -1;
    return (int64_t)ms < until ? (int64_t)ms : until;
}

static void add_bar(const struct progress_counts *n, const struct terminal *terminal, size_t width,
                    struct str *b)
{
    size_t done = 0, failed = 0;
    if (n->planned > 0) {
        done = (size_t)((double)n->ended / (double)n->planned * (double)width + 1e-9);
        failed = (size_t)((double)n->failed / (double)n->planned * (double)width + 0.999);
    }
    done = done > width ? width : done;
    failed = failed > done ? done : failed;
    const char *full = terminal->unicode ? "█" : "#", *rest = terminal->unicode ? "░" : "-";
    const struct {
        style style;
        size_t cells;
        const char *glyph;
    } parts[] = {{STYLE_GOOD, done - failed, full},
                 {STYLE_BAD, failed, full},
                 {STYLE_DIM, width - done, rest}};
    for (size_t i = 0; i < AS_ARRAY_LEN(parts); i++) {
        if (parts[i].cells == 0)
            continue;
        terminal_style_on(terminal, parts[i].style, b);
        for (size_t k = 0; k < parts[i].cells; k++)
            str_puts(b, parts[i].glyph);
        terminal_style_off(terminal, parts[i].style, b);
    }
}

static void render_head(const struct progress *p, const struct terminal *terminal, struct str *b)
{
    struct progress_counts n = progress_counts(p);
    struct str id = {0};
    const char *raw = json_string_value(json_object_get(p->sweep, "id"));
    text_escape(&id, raw ? raw : "", raw ? strlen(raw) : 0, TEXT_ONE_LINE);
    char tail[80];
    int percent = n.planned > 0 ? (int)((double)n.ended * 100 / (double)n.planned) : 0;
    (void)snprintf(tail, sizeof tail, "%" PRId64 "/%" PRId64 "  %d %%", n.ended, n.planned,
                   percent);
    const char *state = progress_state(p);
    /* "id  state  BAR  tail": the bar takes the remaining columns, 10 to 50. When fewer than 10
     * remain, the id is cut. */
    size_t fixed = strlen(state) + strlen(tail) + 6;
    size_t room = terminal->width > fixed + 10 ? terminal->width - fixed - 10 : 1;
    size_t id_width = text_width(str_cstr(&id));
    id_width = id_width > room ? room : id_width;
    size_t bar = terminal->width > fixed + id_width ? terminal->width - fixed - id_width : 0;
    bar = bar > 50 ? 50 : bar;
    terminal_style_on(terminal, STYLE_BOLD, b);
    text_cut(b, str_cstr(&id), id_width, terminal_ellipsis(terminal));
    terminal_style_off(terminal, STYLE_BOLD, b);
    str_puts(b, "  ");
    terminal_style_on(terminal, terminal_state_style(state), b);
    str_puts(b, state);
    terminal_style_off(terminal, terminal_state_style(state), b);
    str_puts(b, "  ");
    add_bar(&n, terminal, bar, b);
    str_printf(b, "  %s\n", tail);
    str_done(&id);
}

/* Append one line, cut to the width of the terminal. */
static void render_cut(const struct terminal *terminal, style s, const char *line, struct str *b)
{
    terminal_style_on(terminal, s, b);
    text_cut(b, line, terminal->width, terminal_ellipsis(terminal));
    terminal_style_off(terminal, s, b);
    str_putc(b, '\n');
}

static void add_counts(const struct progress *p, const char *gap, struct str *b)
{
    struct progress_counts n = progress_counts(p);
    str_printf(b, "queued %" PRId64 "%srunning %" PRId64 "%scompleted %" PRId64 "%sfailed %" PRId64,
               n.queued, gap, n.running, gap, n.completed, gap, n.failed);
    const struct {
        const char *name;
        int64_t n;
    } rare[] = {{"paused", n.paused}, {"pruned", n.pruned}, {"cancelled", n.cancelled}};
    for (size_t i = 0; i < AS_ARRAY_LEN(rare); i++)
        if (rare[i].n > 0)
            str_printf(b, "%s%s %" PRId64, gap, rare[i].name, rare[i].n);
}

static bool add_best(const struct progress *p, struct str *b)
{
    const json_t *best = json_object_get(p->sweep, "best");
    const char *metric =
        json_string_value(json_object_get(json_object_get(p->sweep, "metric"), "name"));
    if (!json_is_object(best)) {
        if (progress_counts(p).completed == 0 || !objectives_has_constraints(p->sweep))
            return false;
        str_puts(b, "best: none keeps the constraints yet");
        return true;
    }
    struct str raw = {0};
    str_printf(&raw, "best %s ", metric ? metric : "value");
    format_value(&raw, json_object_get(best, "value"), FORMAT_SHORT);
    str_printf(&raw, " (trial %" JSON_INTEGER_FORMAT "%s)  ",
               json_integer_value(json_object_get(best, "number")),
               objectives_count(p->sweep) > 1 ? ", by the first metric" : "");
    format_params(&raw, json_object_get(best, "params"), FORMAT_SHORT);
    text_escape(b, str_cstr(&raw), raw.len, TEXT_ONE_LINE);
    str_done(&raw);
    return true;
}

static void add_times(const struct progress *p, const char *gap, struct str *b)
{
    char buf[32];
    int64_t left = progress_left_ms(p);
    double rate = progress_rate(p);
    str_printf(b, "elapsed %s", clock_format_duration(elapsed_ms(p), buf));
    if (!progress_ended(p)) {
        if (left >= 0)
            str_printf(b, "%sleft about %s", gap, clock_format_duration(left, buf));
        else
            str_printf(b, "%sleft unknown", gap);
    }
    if (rate >= 0.1)
        str_printf(b, "%s%.3g trials/s", gap, rate);
    else if (rate > 0)
        str_printf(b, "%s%.3g trials/min", gap, rate * 60);
}

void progress_render(const struct progress *p, const struct terminal *terminal, struct str *b)
{
    struct str line = {0};
    if (p->sweep) {
        render_head(p, terminal, b);
        str_puts(&line, "  ");
        add_counts(p, "   ", &line);
        render_cut(terminal, STYLE_PLAIN, str_cstr(&line), b);
        str_clear(&line);
        str_puts(&line, "  ");
        if (!add_best(p, &line))
            str_puts(&line, "best: none yet");
        render_cut(terminal, STYLE_PLAIN, str_cstr(&line), b);
        str_clear(&line);
        str_puts(&line, "  ");
        add_times(p, "   ", &line);
        render_cut(terminal, STYLE_DIM, str_cstr(&line), b);
    }
    if (p->note[0]) {
        str_clear(&line);
        str_puts(&line, "  ");
        text_escape(&line, p->note, strlen(p->note), TEXT_ONE_LINE);
        render_cut(terminal, STYLE_WARN, str_cstr(&line), b);
    }
    b->failed = b->failed || line.failed;
    str_done(&line);
}

void progress_line(const struct progress *p, struct str *b)
{
    if (p->sweep) {
        struct progress_counts n = progress_counts(p);
        const char *id = json_string_value(json_object_get(p->sweep, "id"));
        text_escape(b, id ? id : "", id ? strlen(id) : 0, TEXT_ONE_LINE);
        str_printf(b, " %s %" PRId64 "/%" PRId64 "  ", progress_state(p), n.ended, n.planned);
        add_counts(p, " ", b);
        str_puts(b, "  ");
        add_times(p, ", ", b);
        str_puts(b, "  ");
        if (!add_best(p, b))
            str_puts(b, "best: none yet");
    }
    if (p->note[0]) {
        str_puts(b, p->sweep ? "  " : "");
        text_escape(b, p->note, strlen(p->note), TEXT_ONE_LINE);
    }
    str_putc(b, '\n');
}

json_t *progress_json(const struct progress *p)
{
    const json_t *best = json_object_get(p->sweep, "best");
    return json_pack("{s:O?, s:O?, s:O?, s:O?, s:O?, s:I, s:I, s:f}", "id",
                     json_object_get(p->sweep, "id"), "state", json_object_get(p->sweep, "state"),
                     "planned_trials", json_object_get(p->sweep, "planned_trials"), "counts",
                     json_object_get(p->sweep, "counts"), "best", best, "elapsed_ms",
                     (json_int_t)elapsed_ms(p), "left_ms", (json_int_t)progress_left_ms(p),
                     "trials_per_second", progress_rate(p));
}
