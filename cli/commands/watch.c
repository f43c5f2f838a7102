/* Follows a sweep to its end.
 *
 * Server-sent events only decide when to fetch again; the display shows the answer of
 * GET /v1/sweeps/{sweep}. So a lost event delays the display by at most POLL_MS and never makes it
 * wrong. The stream and the requests have separate clients, because the callbacks of the stream
 * send the requests. */
#include "cli/commands/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/session/exit_code.h"
#include "cli/session/interrupt.h"
#include "cli/view/progress.h"
#include "cli/commands/sweep_summary.h"
#include "cli/session/request.h"
#include "cli/view/say.h"

#define TICK_MS 200
#define POLL_MS 2000 /* longest time between two fetches */
#define DIRTY_MS 250 /* shortest time between two fetches */
#define LINE_MS 3000 /* between lines when stderr is not a terminal */
#define PATIENCE_MS (10 * 60 * 1000)
#define CALL_TIMEOUT_MS 3000

struct watch {
    struct session *session;
    const struct watch_opts *opts;
    struct trial_ref ref;
    struct progress progress;
    struct terminal terminal; /* of stderr */
    int64_t start_ns, fetched_ns, printed_ns;
    int64_t away_since_ns; /* 0: the server answers */
    bool dirty, urgent;
    bool looks;       /* `look_ms` is over */
    struct str frame; /* the text on the terminal now */
    struct str shown; /* the state at the last line (has_changed) */
    as_status status;
    struct as_err err;
};

static int64_t ms_since(int64_t ns)
{
    return (clock_mono_ns() - ns) / NS_PER_MS;
}

static size_t count_lines(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += *s == '\n';
    return n;
}

/* Replace the lines of the display by the new ones, if they differ. */
static void draw_frame(struct watch *w)
{
    struct str next = {0}, out = {0};
    w->terminal = terminal_of(stderr); /* the window may have changed */
    progress_render(&w->progress, &w->terminal, &next);
    if (!next.failed && !as_streq(str_cstr(&next), str_cstr(&w->frame))) {
        if (w->frame.len)
            str_printf(&out, "\x1b[%zuA\r\x1b[J", count_lines(str_cstr(&w->frame)));
        str_puts(&out, str_cstr(&next));
        (void)fputs(str_cstr(&out), stderr);
        (void)fflush(stderr);
        str_clear(&w->frame);
        str_puts(&w->frame, str_cstr(&next));
    }
    str_done(&next);
    str_done(&out);
}

/* Whether anything but the time has changed since the last line. */
static bool has_changed(struct watch *w)
{
    struct str now = {0};
    const json_t *sweep = w->progress.sweep;
    json_format_to(&now, json_object_get(sweep, "counts"));
    json_format_to(&now, json_object_get(sweep, "best"));
    str_printf(&now, "%s %d", progress_state(&w->progress), w->progress.note[0] != 0);
    bool is_new = !as_streq(str_cstr(&now), str_cstr(&w->shown));
    if (is_new) {
        str_clear(&w->shown);
        str_puts(&w->shown, str_cstr(&now));
    }
    str_done(&now);
    return is_new;
}

static void print_line(struct watch *w)
{
    struct str line = {0};
    bool due = !w->printed_ns || ms_since(w->printed_ns) >= LINE_MS || progress_ended(&w->progress);
    if (!due || !has_changed(w))
        return;
    w->printed_ns = clock_mono_ns();
    progress_line(&w->progress, &line);
    (void)fputs(str_cstr(&line), stderr);
    str_done(&line);
}

static void print_json(struct watch *w)
{
    if (!w->progress.sweep || !has_changed(w))
        return;
    JSON_AUTO line = progress_json(&w->progress);
    w->status = session_print_json_line(line, &w->err);
}

static void show_progress(struct watch *w)
{
    if (w->session->json)
        print_json(w);
    else if (w->terminal.tty)
        draw_frame(w);
    else
        print_line(w);
}

/* Show for how long the server has been unreachable; give up after PATIENCE_MS. */
static void note_absence(struct watch *w)
{
    char buf[32];
    int64_t ms = ms_since(w->away_since_ns);
    (void)snprintf(w->progress.note, sizeof w->progress.note,
                   "The server does not answer (for %s); trying again",
                   clock_format_duration(ms / 1000 * 1000, buf));
    if (ms > PATIENCE_MS)
        w->status = as_fail(&w->err, AS_E_UNAVAILABLE, "the server did not come back");
}

static void fetch_sweep(struct watch *w)
{
    json_t *sweep = NULL;
    struct as_err err = {0};
    AS_AUTO(str_done) struct str path = {0};
    int64_t asked_ns = clock_mono_ns();
    const struct client_opts opts = {.timeout_ms = CALL_TIMEOUT_MS};
    request_path(&path, &w->ref, NULL);
    w->dirty = w->urgent = false;
    as_status st = str_check(&path, &err);
    if (st == AS_OK)
        st = client_call(w->session->client, "GET", path.s, NULL, NULL, &opts, &sweep, NULL, &err);
    w->fetched_ns = clock_mono_ns();
    if (st == AS_E_UNAVAILABLE && w->progress.sweep) {
        w->away_since_ns = w->away_since_ns ? w->away_since_ns : asked_ns;
    } else if (st < 0) {
        w->status = st;
        w->err = err;
    } else {
        w->away_since_ns = 0;
        progress_update(&w->progress, sweep, w->fetched_ns, clock_wall_ms());
    }
}

/* One step of the loop: fetch if due, and show. False when the loop must end. */
static bool watch_step(struct watch *w)
{
    int64_t age_ms = ms_since(w->fetched_ns);
    if (interrupt_seen())
        return false;
    if (age_ms >= POLL_MS || (w->dirty && (w->urgent || age_ms >= DIRTY_MS)))
        fetch_sweep(w);
    if (interrupt_seen())
        return false;
    w->progress.now_ms = clock_wall_ms();
    if (w->away_since_ns)
        note_absence(w);
    show_progress(w);
    if (w->status == AS_OK && w->opts->timeout_ms > 0 && !progress_ended(&w->progress) &&
        ms_since(w->start_ns) >= w->opts->timeout_ms)
        w->status = as_fail(&w->err, AS_E_TIMEOUT, "the sweep has not ended in the time allowed");
    w->looks = w->opts->look_ms > 0 && ms_since(w->start_ns) >= w->opts->look_ms;
    return w->status == AS_OK && !w->looks && !progress_ended(&w->progress);
}

static bool on_event(void *arg, const char *id, const char *type, const json_t *data)
{
    (void)id;
    (void)data;
    struct watch *w = arg;
    w->dirty = w->dirty || (!as_streq(type, "trial.measured") && !as_streq(type, "trial.rung"));
    w->urgent =
        w->urgent ||
        as_streq(type, "sweep.changed"); /* rare, and maybe the end of the sweep: fetch at once */
    return watch_step(w);
}

static bool on_tick(void *arg)
{
    return watch_step(arg);
}

/* A new connection may have missed events. */
static void on_connection(void *arg, bool connected, const char *why)
{
    (void)why;
    ((struct watch *)arg)->dirty = connected;
}

static void follow_events(struct watch *w)
{
    AS_AUTO(client_freep) struct client *stream = NULL;
    struct str path = {0};
    const struct client_stream_fns fns = {on_event, on_tick, on_connection, w, TICK_MS};
    const struct client_opts opts = {.retry_ms = CLIENT_RETRY_FOREVER};
    if (session_client(w->session, &stream, NULL) == AS_OK) {
        interrupt_watch(stream);
        request_path(&path, &w->ref, "events");
        if (str_check(&path, NULL) == AS_OK)
            (void)!client_stream_events(stream, path.s, NULL, &fns, &opts, NULL);
        interrupt_unwatch(stream);
        str_done(&path);
    }
    /* Without a stream, or when it was refused, poll. */
    while (w->status == AS_OK && !w->looks && !progress_ended(&w->progress) && watch_step(w))
        if (!interrupt_sleep_ms(TICK_MS))
            break;
}

static int exit_of_state(const struct progress *p)
{
    const char *state = progress_state(p);
    return as_streq(state, "completed")   ? EXIT_OK
           : as_streq(state, "cancelled") ? EXIT_CANCELLED
                                          : EXIT_FAIL;
}

static int finish_watch(struct watch *w)
{
    if (interrupt_seen()) {
        say("\nThe sweep goes on. `assay watch %s` shows it again, `assay cancel %s` stops it.",
            w->ref.sweep, w->ref.sweep);
        return EXIT_CANCELLED;
    }
    if (w->status == AS_OK && w->looks && !progress_ended(&w->progress))
        return EXIT_TIMEOUT;
    if (w->status == AS_OK && w->opts->top >= 0)
        w->status =
            sweep_summary_print(w->session, &w->ref, w->progress.sweep, w->opts->top, &w->err);
    if (w->status < 0)
        return session_end(w->session, w->status, &w->err);
    return exit_after_output(w->session->verb->name, exit_of_state(&w->progress));
}

int watch_sweep(struct session *s, const char *id, const struct watch_opts *opts)
{
    struct watch w = {
        .session = s, .opts = opts, .terminal = terminal_of(stderr), .start_ns = clock_mono_ns()};
    w.progress.ends_ms = opts->ends_ms;
    w.status = request_parse_sweep(id, &w.ref, &w.err);
    if (w.status == AS_OK) {
        fetch_sweep(&w);
        if (w.status == AS_OK && watch_step(&w))
            follow_events(&w);
    }
    int code = finish_watch(&w);
    progress_done(&w.progress);
    str_done(&w.frame);
    str_done(&w.shown);
    return code;
}
