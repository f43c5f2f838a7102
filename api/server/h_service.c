/* Handlers about this process: health, readiness, the API's document, metrics. Health answers while
 * the database is away; metrics add figures of the database to those of the process. Readiness
 * hides the database's address and error from requests without a known token, and finds that out
 * without a query (decision 6001). */
#include "api/server/handlers.h"

#include <string.h>

#include "api/codec/wire_priv.h"
#include "api/server/openapi_json.h"
#include "api/server/server_priv.h"
#include "base/prometheus.h"
#include "base/str.h"
#include "scheduler/services/service_metrics.h"

static json_t *health_encode(const char *status)
{
    struct out o = out_begin();
    out_str(&o, "status", status);
    out_str(&o, "version", ASSAY_VERSION);
    return out_end(&o);
}

as_status h_health(struct call *c, struct as_err *err)
{
    return call_ok(c, health_encode("ok"), err);
}

/* Did the request come with a token that was in use lately? Makes no query: it is asked where the
 * database is away. */
static bool is_known(const struct call *c)
{
    const char *token = auth_bearer(c->x->head.authorization);
    return token && auth_knew(c->server->auth, token);
}

as_status h_readiness(struct call *c, struct as_err *err)
{
    if (c->is_draining)
        return as_fail(err, AS_E_UNAVAILABLE, "the server is stopping");
    const char *reason = NULL;
    as_status st = readiness_check(c->server->readiness, &reason, err);
    if (st == AS_OK)
        return call_ok(c, health_encode("ready"), err);
    return is_known(c) ? st : as_fail(err, st, "%s", reason);
}

as_status h_openapi(struct call *c, struct as_err *err)
{
    (void)err;
    return call_bytes(c, "application/json", (const char *)openapi_json, openapi_json_len);
}

/* The metrics of the search threads. */
static void write_search(struct server *s, struct str *out)
{
    struct suggester_figures f;
    suggester_figures_get(s->suggester, &f);
    prometheus_head(out, "assay_suggestion_seconds", "summary",
                    "Time spent computing suggestions.");
    str_printf(out, "assay_suggestion_seconds_sum %.6f\nassay_suggestion_seconds_count %lld\n",
               f.seconds, (long long)f.computed);
    prometheus_counter(out, "assay_suggestions_taken_total",
                       "Computed suggestions that became trials; the others were stale.", f.taken);
    prometheus_counter(out, "assay_suggestions_failed_total",
                       "Suggestions that could not be computed.", f.failed);
    prometheus_gauge(out, "assay_search_waiting_sweeps", "Sweeps that wait for a search thread.",
                     f.waiting);
    prometheus_gauge(out, "assay_search_cached_sweeps", "Sweeps whose history is in memory.",
                     f.sweeps);
    prometheus_gauge(out, "assay_search_cache_bytes", "Memory of those histories and models.",
                     f.bytes);
}

static void write_commits(struct server *s, struct str *out)
{
    struct committer_figures f;
    committer_figures_get(s->committer, &f);
    prometheus_counter(out, "assay_commit_batches_total",
                       "Transactions that committed operations together.", f.batches);
    prometheus_counter(out, "assay_commit_members_total", "Operations that these committed.",
                       f.members);
    prometheus_counter(out, "assay_commit_syncs_total", "Waits of these for the disk.", f.syncs);
    prometheus_counter(out, "assay_commit_alone_total", "Operations that were committed alone.",
                       f.alone);
    prometheus_counter(out, "assay_commit_fallbacks_total",
                       "Batches that failed: each operation was committed alone.", f.fallbacks);
    prometheus_counter(
        out, "assay_commit_postponed_total",
        "Operations that came to a later batch, because another transaction held a row.",
        f.postponed);
    prometheus_counter(out, "assay_commit_refused_total", "Operations that found the queue full.",
                       f.refused);
    prometheus_gauge(out, "assay_commit_queued", "Operations that wait for their commit.",
                     f.queued);
}

static void write_beats(struct server *s, struct str *out)
{
    struct beats_figures f;
    beats_figures_get(s->beats, &f);
    prometheus_counter(out, "assay_heartbeat_sets_total",
                       "Transactions that wrote heartbeats together.", f.sets);
    prometheus_counter(out, "assay_heartbeats_total", "Heartbeats in them.", f.members);
    prometheus_counter(out, "assay_heartbeats_settled_total",
                       "Of these, those that needed no decision.", f.plain);
}

static void write_waiting(struct server *s, struct str *out)
{
    struct waiting_counts n = waiting_count(s->waiting);
    prometheus_head(out, "assay_waiting_requests", "gauge",
                    "Requests that wait: for a trial of any sweep, or for something of one sweep.");
    str_printf(out,
               "assay_waiting_requests{for=\"any_trial\"} %zu\n"
               "assay_waiting_requests{for=\"one_sweep\"} %zu\n"
               "assay_waiting_requests{for=\"one_world\"} %zu\n",
               n.any_trial, n.one_sweep, n.one_world);
}

/* The metrics of this process. */
static void write_process(struct server *s, struct str *out)
{
    prometheus_head(out, "assay_build_info", "gauge", "The version that runs.");
    str_printf(out, "assay_build_info{version=\"%s\"} 1\n", ASSAY_VERSION);
    prometheus_gauge(out, "assay_event_streams", "Open event streams.",
                     (int64_t)event_streams_count(s->streams));
    prometheus_counter(out, "assay_event_queries_total", "Queries for new events.",
                       event_streams_queries(s->streams));
    prometheus_counter(out, "assay_lease_expirations_total", "Runners whose lease ran out.",
                       atomic_load(&s->lease_expirations));
    prometheus_counter(out, "assay_client_lease_expirations_total", "Clients whose lease ran out.",
                       atomic_load(&s->client_expirations));
    prometheus_counter(out, "assay_requests_over_rate_total",
                       "Requests of tokens that made too many.", token_rates_refused(s->rates));
    write_waiting(s, out);
    write_search(s, out);
    write_commits(s, out);
    write_beats(s, out);
    http_metrics_write(s->metrics, out);
}

as_status h_metrics(struct call *c, struct as_err *err)
{
    AS_AUTO(str_done) struct str out = {0};
    write_process(c->server, &out);
    as_status st = metrics_write(c->db, &out, err);
    if (st < 0)
        return st;
    st = str_check(&out, err);
    if (st < 0)
        return st;
    const char *kept = arena_strdup(c->arena, str_cstr(&out));
    if (!kept)
        return as_fail(err, AS_E_NOMEM, "out of memory for the metrics");
    return call_bytes(c, "text/plain; version=0.0.4; charset=utf-8", kept, out.len);
}
