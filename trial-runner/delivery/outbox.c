/* The life of an outbox; the tail of the output, the use of the machine and the end, each of which
 * is one request. The rest is in outbox_send.c, outbox_lines.c and outbox_files.c. */
#include "trial-runner/delivery/outbox_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "trial-runner/collect/collector.h"
#include "trial-runner/delivery/never_reported.h"
#include "trial-runner/rank/rank.h"

#define USAGE_AFTER_MS 5000  /* a shorter attempt sends none */
#define USAGE_LEAST_MS 10000 /* between two, at first … */
#define USAGE_MOST_MS 60000  /* … and later */
#define USAGE_PATIENCE_MS 3000
#define METRICS_POINTER "/metrics"

static const struct outbox_request complete_attempt = {"POST", "complete", true, BATCH_END};
static const struct outbox_request replace_log = {.method = "PUT", .verb = "log"};
static const struct outbox_request replace_usage = {.method = "PUT", .verb = "usage"};

void outbox_init(struct outbox *o, struct attempt *a)
{
    *o = (struct outbox){.attempt = a,
                         .files = {{.name = REPORT_NAME, .label = "ASSAY_REPORT", .fd = -1},
                                   {.name = COLLECTED_NAME, .label = "trial.report", .fd = -1}}};
}

void outbox_done(struct outbox *o)
{
    for (size_t i = 0; i < OUTBOX_FILES; i++) {
        file_closep(&o->files[i].fd);
        report_reader_done(&o->files[i].reader);
    }
    json_decref(o->items);
    json_decref(o->texts);
    json_decref(o->named);
    json_decref(o->seen);
    json_decref(o->skipped);
    fileset_done(&o->uploaded);
}

void outbox_rewind(struct outbox *o)
{
    for (size_t i = 0; i < OUTBOX_FILES; i++) {
        report_reader_done(&o->files[i].reader);
        o->files[i].reader = (struct report_reader){0};
        o->files[i].offset = 0;
    }
    json_array_clear(o->items);
    o->items_bytes = 0;
    o->rides = false;
}

static as_status put_log(struct outbox *o, const char *text, bool truncated, struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s,s:b}", "text", text, "truncated", truncated);
    if (!body)
        return as_fail_nomem(err);
    as_status st = outbox_send(o, &replace_log, body, NULL, err);
    if (outbox_is_refused(st)) {
        log_write(LOG_WARN, "the server refused a log", "%s error=\"%s\"", o->attempt->label,
                  err->msg);
        return AS_OK;
    }
    return st;
}

as_status outbox_log(struct outbox *o, struct as_err *err)
{
    struct attempt *a = o->attempt;
    AS_AUTO(str_done) struct str text = {0};
    pthread_mutex_lock(&a->lock);
    unsigned version = a->tail.version;
    bool truncated = version != o->log_version && tail_text(&a->tail, &text);
    pthread_mutex_unlock(&a->lock);
    if (version == o->log_version)
        return AS_OK;
    as_status st = str_check(&text, err);
    if (st < 0)
        return st;
    st = put_log(o, str_cstr(&text), truncated, err);
    if (st < 0)
        return st;
    o->log_version = version;
    return AS_OK;
}

/* Every ten seconds at first, later every twentieth of the time that it has run, and at least once
 * a minute. */
static int64_t usage_pause_ms(int64_t ran_ms)
{
    int64_t ms = ran_ms / 20;
    return ms < USAGE_LEAST_MS ? USAGE_LEAST_MS : ms > USAGE_MOST_MS ? USAGE_MOST_MS : ms;
}

void outbox_usage(struct outbox *o, bool last)
{
    struct attempt *a = o->attempt;
    struct as_err err = {0};
    int64_t now = clock_mono_ns();
    JSON_AUTO body = NULL;
    pthread_mutex_lock(&a->lock);
    int64_t ran_ms = (now - a->began_ns) / NS_PER_MS;
    bool is_due = a->use.n > 0 && ran_ms >= USAGE_AFTER_MS && (last || now >= o->usage_due_ns);
    if (is_due)
        body = usage_json(&a->use);
    pthread_mutex_unlock(&a->lock);
    if (!body)
        return;
    o->usage_due_ns = now + usage_pause_ms(ran_ms) * NS_PER_MS;
    int64_t was_brief = o->brief_until_ns;
    o->brief_until_ns = now + USAGE_PATIENCE_MS * NS_PER_MS; /* one try */
    if (outbox_send_alone(o, &replace_usage, outbox_known_world(a), body, NULL, &err) < 0)
        log_write(LOG_DEBUG, "the use of the machine was not sent", "%s error=\"%s\"", a->label,
                  err.msg);
    o->brief_until_ns = was_brief;
    o->code[0] = '\0';
}

/* How far the rank came that leads a gang: its last heartbeat was before its end. */
static bool add_progress(struct attempt *a, json_t *body)
{
    if (!a->rank)
        return true;
    json_t *rank = json_object();
    pthread_mutex_lock(&a->lock);
    bool ok = rank && a->rank_fns->add_progress_locked(a->rank, true, rank);
    pthread_mutex_unlock(&a->lock);
    if (ok && json_object_size(rank) > 0)
        return json_object_set_new(body, "rank", rank) == 0;
    json_decref(rank);
    return ok;
}

/* The measurement that goes with the end. */
static bool add_last_item(const struct outbox *o, json_t *body)
{
    json_t *item = json_array_get(o->items, 0);
    return json_object_set(body, "metrics", json_object_get(item, "metrics")) == 0 &&
           json_object_set(body, "step", json_object_get(item, "step")) == 0;
}

/* Send the end of the attempt. */
static as_status post_end(struct outbox *o, struct as_err *err)
{
    const struct trial_end *r = &o->attempt->end;
    JSON_AUTO body =
        json_pack("{s:s,s:s?}", "outcome", outcome_name(r->outcome), "reason", r->reason);
    bool ok = body != NULL;
    if (ok && r->has_exit_code)
        ok = json_object_set_new(body, "exit_code", json_integer(r->exit_code)) == 0;
    if (ok && r->has_ran)
        ok = json_object_set_new(body, "ran_ms", json_integer(r->ran_ms)) == 0;
    if (ok && r->waited_ms)
        ok = json_object_set_new(body, "waited_ms", json_integer(r->waited_ms)) == 0;
    ok = ok && add_progress(o->attempt, body) && (!o->rides || add_last_item(o, body));
    o->end_sent = true;
    return ok ? outbox_send(o, &complete_attempt, body, NULL, err) : as_fail_nomem(err);
}

/* The process exited with 0 and never reported a metric that its sweep requires: the server refuses
 * to complete the trial, and names the metric in the pointer. Only the server knows which metrics
 * those are. So the trial has failed. */
static as_status post_failure(struct outbox *o, struct as_err *err)
{
    AS_AUTO(str_done) struct str reason = {0};
    const char *at = err->pointer + strlen(METRICS_POINTER);
    char metric[METRIC_NAME_MAX + 1] = "";
    (void)json_pointer_next(&at, metric, sizeof metric);
    never_reported(o->attempt, metric, o->seen, o->skipped, &reason);
    as_status st = str_check(&reason, err);
    if (st < 0)
        return st;
    free(o->attempt->end.reason);
    o->attempt->end.reason = str_take(&reason);
    o->attempt->end.outcome = OUTCOME_FAILED;
    return post_end(o, err);
}

as_status outbox_end_again(struct outbox *o, struct as_err *err)
{
    struct trial_end *r = &o->attempt->end;
    as_status st = post_end(o, err);
    if (st == AS_E_INVAL && as_streq(err->pointer, "/waited_ms")) { /* the server is older */
        r->waited_ms = 0;
        st = post_end(o, err);
    }
    if (st == AS_E_INVAL && r->outcome == OUTCOME_COMPLETED && !o->rides &&
        as_starts_with(err->pointer, METRICS_POINTER "/"))
        st = post_failure(o, err);
    return st;
}

/* The server refuses the end with its measurement, and has stored neither. So it gets the
 * measurement alone, which shows what of the two it refuses, and the log with that, and the end. */
static as_status send_apart(struct outbox *o, struct as_err *err)
{
    as_status st = outbox_flush_items(o, err);
    if (st == AS_OK)
        st = outbox_log(o, err);
    return st < 0 ? st : outbox_end_again(o, err);
}

as_status outbox_result(struct outbox *o, struct as_err *err)
{
    const struct trial_end *r = &o->attempt->end;
    as_status st = r->log && *r->log ? put_log(o, r->log, r->truncated, err) : AS_OK;
    if (st == AS_OK)
        st = outbox_end_again(o, err);
    bool apart = o->rides && outbox_is_refused(st);
    o->rides = false;
    return apart ? send_apart(o, err) : st;
}
