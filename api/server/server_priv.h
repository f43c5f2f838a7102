/* The parts of a server, for the files of this folder that use them. */
#ifndef ASSAY_API_SERVER_SERVER_PRIV_H
#define ASSAY_API_SERVER_SERVER_PRIV_H

#include <stdatomic.h>

#include "api/http/http.h"
#include "api/server/auth.h"
#include "api/server/call.h"
#include "api/server/dispatch_parts.h"
#include "api/server/event_streams.h"
#include "api/server/http_metrics.h"
#include "api/server/pool.h"
#include "api/server/readiness.h"
#include "api/server/server.h"
#include "api/server/token_rates.h"
#include "api/server/waiting.h"
#include "api/server/web_files.h"
#include "scheduler/commit/beats.h"
#include "scheduler/commit/committer.h"
#include "scheduler/services/sweep_fronts.h"
#include "scheduler/services/table_export.h"
#include "scheduler/services/trial_orders.h"
#include "scheduler/suggester/result_cache.h"
#include "scheduler/suggester/suggester.h"

struct server {
    struct server_options opts;
    struct store *store;
    struct suggester *suggester;
    struct committer *committer;
    struct beats *beats;
    struct result_cache results;  /* values computed from the results of sweeps */
    struct table_cache *tables;   /* all trials of sweeps that somebody looks at */
    struct trial_orders *orders;  /* of lists that somebody sorts */
    struct sweep_fronts *fronts;  /* of sweeps whose front somebody looked at */
    struct attempt_key *attempts; /* of the tokens of attempts */
    struct auth *auth;
    struct token_rates *rates;
    struct pool *pool, *slow_pool, *view_pool, *urgent_pool, *beat_pool;
    struct waiting_list *waiting;
    struct event_streams *streams;
    struct web_files *web;
    struct http_metrics *metrics;
    struct readiness *readiness;
    struct http_server *http;
    struct dispatch dispatch;       /* gives requests access to the parts above */
    atomic_long lease_expirations;  /* of runners, found by this process */
    atomic_long client_expirations; /* of clients that ask */
};

#endif
