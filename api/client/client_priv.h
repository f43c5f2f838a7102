/* The inner parts of the client: one HTTP exchange, the pause between tries, problems to
 * statuses. */
#ifndef ASSAY_API_CLIENT_CLIENT_PRIV_H
#define ASSAY_API_CLIENT_CLIENT_PRIV_H

#include <curl/curl.h>
#include <stdatomic.h>

#include "api/client/client.h"

#define CLIENT_CODE_MAX 64
#define CLIENT_CONNECT_TIMEOUT_MS 5000
#define CLIENT_DEFAULT_TIMEOUT_MS 30000

struct client {
    char *base_url;      /* without a slash at its end */
    char *authorization; /* "Authorization: Bearer …", or NULL */
    char *runner_secret; /* "Assay-Runner-Secret: …", or NULL */
    char *user_agent;
    CURLM *multi; /* owns the connection between calls */
    CURL *easy;
    int wake_fd; /* readable once interrupted; never drained */
    atomic_bool interrupted;
    char problem_code[CLIENT_CODE_MAX];
    json_t *problem;        /* the problem document of the last call; NULL if there was none */
    int64_t retry_after_ms; /* of the answer to the last call; 0: none */
};

/* One exchange as its caller describes it. All pointers are borrowed. */
struct http_request {
    const char *method, *path, *query, *accept;
    const char *content_type; /* of the body */
    const char *idempotency_key, *last_event_id;
    const char *const *headers; /* with a NULL at their end; NULL: none */
    const char *body;           /* body_len bytes, or NULL */
    size_t body_len;
    int body_fd; /* used when body_size >= 0 */
    int64_t body_size;
    void (*on_sent)(void *arg, int64_t done); /* bytes of body_fd so far; may be NULL */
    void *sent_arg;
    int64_t timeout_ms; /* of the whole exchange; 0: none */
    int64_t idle_ms;    /* cut if no byte moves for this time; 0: none */
    int64_t tick_ms;
    /* Pieces of a 2xx body, in place of http_response.body; false ends the exchange. */
    bool (*on_body)(void *arg, const char *bytes, size_t len);
    /* Called when the headers of a 2xx answer have arrived. May be NULL. */
    void (*on_open)(void *arg);
    bool (*on_tick)(void *arg); /* false ends the exchange; may be NULL */
    void *arg;
};

struct http_response {
    int status;   /* 0: there was no answer */
    bool stopped; /* a callback ended it */
    struct str body;
    char content_type[80];
    int64_t retry_after_ms; /* 0: the header was absent */
};

void http_response_done(struct http_response *r);

/* Perform one exchange. AS_OK: a complete answer arrived (with any HTTP status), or a callback
 * ended it. AS_E_UNAVAILABLE. AS_E_IO: body_fd cannot be read. AS_E_NOMEM. AS_E_INTERNAL: the
 * answer is larger than CLIENT_MAX_JSON_BYTES. `r` must be zeroed; release it in every case. */
AS_MUST_CHECK as_status http_exchange(struct client *c, const struct http_request *q,
                                      struct http_response *r, struct as_err *err);

/* Convert an answer to a status. Fills c->problem_code and err unless the answer is 2xx. */
as_status problem_status(struct client *c, const struct http_request *q,
                         const struct http_response *r, struct as_err *err);

/* The state of a series of tries. Call backoff_start first. */
struct backoff {
    int64_t deadline_ns;
    unsigned tries;
};

void backoff_start(struct backoff *b, int64_t retry_ms);
/* Pause before the next try, at least at_least_ms. Returns false if there must be no next try: the
 * time has ended or the client was interrupted. */
bool backoff_pause(struct backoff *b, struct client *c, int64_t at_least_ms);

/* Repeat http_exchange and problem_status while they return AS_E_UNAVAILABLE and retry_ms has not
 * passed. `r` is the response of the last try. body_fd is rewound before each try. */
AS_MUST_CHECK as_status http_retry(struct client *c, const struct http_request *q, int64_t retry_ms,
                                   struct http_response *r, struct as_err *err);

/* What client_trust() was given; NULL: the authorities of the system. */
extern char *client_ca_file;

#endif
