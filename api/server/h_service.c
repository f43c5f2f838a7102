/* Handlers about this process: health, readiness, the API's document, metrics. Health answers while
 * the database is away; metrics add figures of the database to those of the process. Readiness
 * hides the database's address and error from requests without a known token, and finds that out
 * without a query (decision 6001). */
#include "api/server/handlers.h"

#include <string.h>

#include "api/codec/wire_priv.h"
#include "api/server/openapi_json.h"
#include "api/server/server_priv.h"
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
    str_printf(out,
               "# HELP assay_suggestion_seconds Time spent computing suggestions.\n"
               "# TYPE assay_suggestion_seconds summary\n"
               "assay_suggestion_seconds_sum %.6f\n"
               "assay_suggestion_seconds_count %lld\n"
               "# HELP assay_suggestions_taken_total Computed suggestions that became trials; the "
               "others were stale.\n"
               "# TYPE assay_suggestions_taken_total counter\n"
               "assay_suggestions_taken_total %lld\n"
               "# HELP assay_suggestions_failed_total Suggestions that could not be computed.\n"
               "# TYPE assay_suggestions_failed_total counter\n"
               "assay_suggestions_failed_total %lld\n",
               f.seconds, (long long)f.computed, (long long)f.taken, (long long)f.failed);
    str_printf(out,
               "# HELP assay_search_waiting_sweeps Sweeps that wait for a search thread.\n"
               "# TYPE assay_search_waiting_sweeps gauge\nassay_search_waiting_sweeps %lld\n"
               "# HELP assay_search_cached_sweeps Sweeps whose history is in memory.\n"
               "# TYPE assay_search_cached_sweeps gauge\nassay_search_cached_sweeps %lld\n"
               "# HELP assay_search_cache_bytes Memory of those histories and models.\n"
               "# TYPE assay_search_cache_bytes gauge\nassay_search_cache_bytes %lld\n",
               (long long)f.waiting, (long long)f.sweeps, (long long)f.bytes);
}

static void write_commits(struct server *s, struct str *out)
{
    struct committer_figures f;
    committer_figures_get(s->committer, &f);
    str_printf(
        out,
        "# HELP assay_commit_batches_total Transactions that committed operations together.\n"
        "# TYPE assay_commit_batches_total counter\n"
        "assay_commit_batches_total %lld\n"
        "# HELP assay_commit_members_total Operations that these committed.\n"
        "# TYPE assay_commit_members_total counter\n"
        "assay_commit_members_total %lld\n"
        "# HELP assay_commit_syncs_total Waits of these for the disk.\n"
        "# TYPE assay_commit_syncs_total counter\n"
        "assay_commit_syncs_total %lld\n",
        (long long)f.batches, (long long)f.members, (long long)f.syncs);
    str_printf(out,
               "# HELP assay_commit_alone_total Operations that were committed alone.\n"
               "# TYPE assay_commit_alone_total counter\n"
               "assay_commit_alone_total %lld\n"
               "# HELP assay_commit_fallbacks_total Batches that failed: each operation was "
               "committed alone.\n"
               "# TYPE assay_commit_fallbacks_total counter\n"
               "assay_commit_fallbacks_total %lld\n"
               "# HELP assay_commit_postponed_total Operations that came to a later batch, because "
               "another transaction held a row.\n"
               "# TYPE assay_commit_postponed_total counter\n"
               "assay_commit_postponed_total %lld\n"
               "# HELP assay_commit_refused_total Operations that found the queue full.\n"
               "# TYPE assay_commit_refused_total counter\n"
               "assay_commit_refused_total %lld\n"
               "# HELP assay_commit_queued Operations that wait for their commit.\n"
               "# TYPE assay_commit_queued gauge\nassay_commit_queued %lld\n",
               (long long)f.alone, (long long)f.fallbacks, (long long)f.postponed,
               (long long)f.refused, (long long)f.queued);
}

static void write_beats(struct server *s, struct str *out)
{
    struct beats_figures f;
    beats_figures_get(s->beats, &f);
    str_printf(out,
               "# HELP assay_heartbeat_sets_total Transactions that wrote heartbeats together.\n"
               "# TYPE assay_heartbeat_sets_total counter\n"
               "assay_heartbeat_sets_total %lld\n"
               "# HELP assay_heartbeats_total Heartbeats in them.\n"
               "# TYPE assay_heartbeats_total counter\n"
               "assay_heartbeats_total %lld\n"
               "# HELP assay_heartbeats_settled_total Of these, those that needed no decision.\n"
               "# TYPE assay_heartbeats_settled_total counter\n"
               "assay_heartbeats_settled_total %lld\n",
               (long long)f.sets, (long long)f.members, (long long)f.plain);
}

static void write_waiting(struct server *s, struct str *out)
{
    struct waiting_counts n = waiting_count(s->waiting);
    str_printf(out,
               "# HELP assay_waiting_requests Requests that wait: for a trial of any sweep, or for "
               "something of one sweep.\n"
               "# TYPE assay_waiting_requests gauge\n"
               "assay_waiting_requests{for=\"any_trial\"} %zu\n"
               "assay_waiting_requests{for=\"one_sweep\"} %zu\n"
               "assay_waiting_requests{for=\"one_world\"} %zu\n",
               n.any_trial, n.one_sweep, n.one_world);
}

/* The metrics of this process. */
static void write_process(struct server *s, struct str *out)
{
    str_printf(out,
               "# HELP assay_build_info The version that runs.\n# TYPE assay_build_info gauge\n"
               "assay_build_info{version=\"%s\"} 1\n"
               "# HELP assay_event_streams Open event streams.\n# TYPE assay_event_streams gauge\n"
               "assay_event_streams %zu\n"
               "# HELP assay_event_queries_total Queries for new events.\n"
               "# TYPE assay_event_queries_total counter\n"
               "assay_event_queries_total %ld\n"
               "# HELP assay_lease_expirations_total Runners whose lease ran out.\n"
               "# TYPE assay_lease_expirations_total counter\n"
               "assay_lease_expirations_total %ld\n"
               "# HELP assay_client_lease_expirations_total Clients whose lease ran out.\n"
               "# TYPE assay_client_lease_expirations_total counter\n"
               "assay_client_lease_expirations_total %ld\n",
               ASSAY_VERSION, event_streams_count(s->streams), event_streams_queries(s->streams),
               atomic_load(&s->lease_expirations), atomic_load(&s->client_expirations));
    str_printf(out,
               "# HELP assay_requests_over_rate_total Requests of tokens that made too many.\n"
               "# TYPE assay_requests_over_rate_total counter\n"
               "assay_requests_over_rate_total %lld\n",
               (long long)token_rates_refused(s->rates));
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
