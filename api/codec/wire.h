/* Encoders: from rows of the scheduler to the JSON of api/openapi.yaml. Decoders: from JSON
 * requests to structs.
 *
 * Encoders return a new reference, or NULL when memory is out. 64-bit seeds and event ids are
 * decimal strings, because doubles cannot hold them. Numbers that JSON cannot hold are the strings
 * of base/json.h. Times are RFC 3339 in UTC. Decoders borrow the document: strings in their output
 * are views of it, and lists are in the arena. They refuse an unknown field with AS_E_INVAL and the
 * pointer of the field. */
#ifndef ASSAY_API_CODEC_WIRE_H
#define ASSAY_API_CODEC_WIRE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/assign/asks.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/lifecycle/ensemble_requests.h"
#include "scheduler/lifecycle/gangs.h"
#include "scheduler/assign/claims.h"
#include "scheduler/rows/dataset_row.h"
#include "scheduler/rows/event_row.h"
#include "scheduler/rows/file_row.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/rows/token_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/rows/model_row.h"
#include "scheduler/services/models.h"
#include "scheduler/services/demand_plan.h"
#include "scheduler/services/runners.h"
#include "scheduler/services/sweep_change.h"
#include "scheduler/services/sweep_importance.h"
#include "scheduler/services/sweep_regret.h"
#include "scheduler/services/sweep_pareto.h"
#include "scheduler/services/sweep_surface.h"
#include "scheduler/services/sweep_preview.h"
#include "scheduler/services/trial_retry.h"
#include "scheduler/services/trials.h"

json_t *sweep_encode(const struct sweep_row *r);
/* The same with what early stopping has done, and what was learned (JSON; NULL: nothing). */
json_t *sweep_detail_encode(const struct sweep_row *r, const struct stopping_report *stopping,
                            const char *learned);
/* The sweep, with `notes` if there are any. */
json_t *sweep_changed_encode(const struct sweep_changed *r);
json_t *sweep_changes_encode(const struct sweep_change_list *l);
/* The body of retryTrials. AS_E_INVAL with the pointer of the field. */
AS_MUST_CHECK as_status retry_request_decode(const json_t *body, struct retry_request *ret,
                                             struct as_err *err);
json_t *retried_encode(const struct retried *r);
json_t *ensemble_asked_encode(const struct ensemble_asked *r);
json_t *ensemble_asked_list_encode(const struct ensemble_asked_list *l);
/* `faults` are those of a document that is not valid. */
json_t *preview_encode(const struct preview_row *r, const struct faults *faults);
json_t *sweep_page_encode(const struct sweep_page *p);
json_t *pareto_encode(const struct pareto_row *r);
json_t *importance_encode(const struct importance_row *r);
json_t *surface_encode(const struct surface_row *r);
json_t *regret_encode(const struct regret_row *r);
json_t *regret_checks_encode(const struct regret_check_list *l);

/* The object with `user_attrs`, which the text is; takes the object. */
json_t *with_user_attrs(json_t *object, const char *text);

json_t *trial_encode(const struct trial_row *r);
json_t *tagged_encode(int64_t changed);
json_t *trials_added_encode(const struct trials_added *r);
json_t *trial_page_encode(const struct trial_page *p);
json_t *best_page_encode(const struct trial_page *p); /* of trial_best() */
json_t *trial_detail_encode(const struct trial_detail *d);
json_t *series_encode(const struct series_list *l);
json_t *log_encode(const struct log_row *r);
json_t *usage_encode(const struct usage_list *l);
json_t *file_list_encode(const struct file_list *l);

json_t *dataset_encode(const struct dataset_row *r);
json_t *dataset_preview_encode(const char *preview); /* JSON */
json_t *dataset_page_encode(const struct dataset_page *p);

json_t *model_encode(const struct model_row *r);
json_t *model_page_encode(const struct model_page *p);
json_t *model_version_encode(const struct model_version_row *r);
json_t *model_version_page_encode(const struct model_version_page *p);
/* The caller sets ret->by. */
AS_MUST_CHECK as_status model_request_decode(const json_t *doc, struct model_request *ret,
                                             struct as_err *err);
AS_MUST_CHECK as_status alias_request_decode(const json_t *doc, int64_t *ret_version,
                                             struct as_err *err);

json_t *runner_page_encode(const struct runner_page *p);
json_t *demand_encode(const struct demand *d);
/* `secret`: the one that the server made for it; NULL: it showed its own. */
json_t *registration_encode(const char *name, const char *secret, const struct registration *r);
json_t *directives_encode(const struct directive_list *l);
json_t *claims_encode(const struct claim_list *l);
json_t *heartbeat_encode(int64_t lease_ms, const struct directive_list *l);
/* The answer to measurements, of runners and of clients. directive: what is asked of the attempt;
 * NULL: that it goes on. */
json_t *report_encode(int64_t recorded, const struct directive_row *directive);

/* The world as its ranks see it, and the gang as people see it. */
json_t *world_encode(const struct gang_detail *d);
json_t *gang_encode(const struct gang_detail *d);
/* null for an attempt without a gang. */
json_t *gang_summary_encode(const struct gang_summary *g);

json_t *event_encode(const struct event_row *r);
json_t *token_encode(const struct token_row *r);
json_t *token_page_encode(const struct token_page *p);

AS_MUST_CHECK as_status runner_register_decode(const json_t *doc, struct arena *a,
                                               struct runner_register *ret, struct as_err *err);
/* The caller sets ret->runner. */
AS_MUST_CHECK as_status claim_decode(const json_t *doc, struct arena *a, struct claim_request *ret,
                                     int64_t *ret_wait_ms, struct as_err *err);
AS_MUST_CHECK as_status heartbeat_decode(const json_t *doc, struct arena *a, struct heartbeat *ret,
                                         struct as_err *err);
AS_MUST_CHECK as_status drain_decode(const json_t *doc, bool *ret, struct as_err *err);
AS_MUST_CHECK as_status leave_decode(const json_t *doc, int64_t *ret_epoch, struct as_err *err);

struct measurement_list {
    struct measurement *rows;
    size_t n;
};
struct measurement_batch {
    struct measurement_list points;
    struct trial_note *notes; /* views of the document */
    size_t n_notes;
};
AS_MUST_CHECK as_status measurements_decode(const json_t *doc, struct arena *a,
                                            struct measurement_batch *ret, struct as_err *err);
struct log_request {
    const char *text;
    bool truncated;
};
AS_MUST_CHECK as_status log_decode(const json_t *doc, struct log_request *ret, struct as_err *err);
/* *ret: the document again, as it is stored (usage_row.h); in `a`. */
AS_MUST_CHECK as_status usage_decode(const json_t *doc, struct arena *a, const char **ret,
                                     struct as_err *err);
struct files_request {
    file_kind kind;
    const char *lost; /* why a checkpoint cannot be used; NULL: that is not said */
    int64_t step;     /* of kind kept */
    struct file_list files;
};
AS_MUST_CHECK as_status files_decode(const json_t *doc, struct arena *a, struct files_request *ret,
                                     struct as_err *err);
/* Content in parts: its size and the digests of the parts. At most PARTS_MAX. */
#define PARTS_MAX 15000
struct parts_request {
    int64_t size;
    const char **sha256; /* views of the document; not checked */
    size_t n;
};
AS_MUST_CHECK as_status parts_decode(const json_t *doc, struct arena *a, struct parts_request *ret,
                                     struct as_err *err);
json_t *parts_missing_encode(const int64_t *missing, size_t n); /* {"missing": [2, 5]} */
AS_MUST_CHECK as_status completion_decode(const json_t *doc, struct arena *a,
                                          struct completion *ret, struct as_err *err);

/* ---- many in one request (POST /v1/runners/{runner}/batch) ---- */

#define BATCH_PARTS_MAX 256 /* ends and measurements of one request together */

/* Which attempt a part is about, and which rank of its gang writes it. */
struct batched_part {
    const struct as_err *fault; /* the part is malformed, and its other fields mean nothing; in the
                                   arena; NULL: it is not. Its pointer begins with batch_part_at() */
    struct attempt_ref ref;
    bool has_seat;
    int64_t seat, epoch;
};
struct batched_end {
    struct batched_part part;
    struct completion end;
};
struct batched_report {
    struct batched_part part;
    struct measurement_batch report;
};
struct batched_claim {
    bool is_asked;              /* the request has this part */
    const struct as_err *fault; /* as batched_part.fault */
    struct claim_request claim; /* the caller sets its runner */
    int64_t wait_ms;
};
struct batch_request {
    struct batched_end *ends;
    size_t n_ends;
    struct batched_report *reports; /* of `measurements` */
    size_t n_reports;
    struct batched_claim claim;
};
/* A part that is malformed is noted in itself. AS_E_INVAL: the document is no object with lists of
 * parts; AS_E_TOO_LARGE: more than BATCH_PARTS_MAX parts. AS_E_NOMEM. */
AS_MUST_CHECK as_status batch_decode(const json_t *doc, struct arena *a, struct batch_request *ret,
                                     struct as_err *err);

/* The place of a part in the request: "/ends/3", "/measurements/0", "/claim". */
#define BATCH_AT_SIZE 40
typedef enum batch_kind { BATCH_END, BATCH_MEASUREMENTS, BATCH_CLAIM } batch_kind;
void batch_part_at(batch_kind kind, size_t index, char ret[BATCH_AT_SIZE]);
/* An error about a part alone becomes one about the request: `at` comes before its pointer, also
 * where the message begins with that. */
void batch_pointer_add(const char *at, struct as_err *err);

/* The answers to parts. `problem` is taken; NULL: the encoder had no memory. */
json_t *batch_end_encode(trial_state state); /* of its trial, afterwards */
json_t *batch_report_encode(int64_t recorded, const struct directive_row *directive);
json_t *batch_claim_encode(const struct claim_list *l);
json_t *batch_problem_encode(int status, json_t *problem);
/* The whole answer; takes all three. `claim` is json_null() if none was asked for. */
json_t *batch_encode(json_t *ends, json_t *reports, json_t *claim);

AS_MUST_CHECK as_status seat_listening_decode(const json_t *doc, struct seat_address *ret,
                                              struct as_err *err);
AS_MUST_CHECK as_status seat_joined_decode(const json_t *doc, struct seat_joined *ret,
                                           struct as_err *err);
AS_MUST_CHECK as_status seat_end_decode(const json_t *doc, struct seat_end *ret,
                                        struct as_err *err);
AS_MUST_CHECK as_status world_change_decode(const json_t *doc, struct arena *a,
                                            struct world_change *ret, struct as_err *err);

/* The caller sets ret->sweep, arrived_ns and is_last. ret->params is a view of doc. */
AS_MUST_CHECK as_status ask_decode(const json_t *doc, struct ask_request *ret, int64_t *ret_wait_ms,
                                   struct as_err *err);
/* These set the client and the attempt of a reference. The caller has set its sweep and trial. */
AS_MUST_CHECK as_status tell_measurements_decode(const json_t *doc, struct arena *a,
                                                 struct ask_ref *ret_ref,
                                                 struct measurement_list *ret, struct as_err *err);
AS_MUST_CHECK as_status tell_complete_decode(const json_t *doc, struct arena *a,
                                             struct ask_ref *ret_ref, struct completion *ret,
                                             struct as_err *err);
/* *ret_lease_ms is 0 if the request has none. */
AS_MUST_CHECK as_status tell_heartbeat_decode(const json_t *doc, struct ask_ref *ret_ref,
                                              int64_t *ret_lease_ms, struct as_err *err);
json_t *suggestions_encode(const char *sweep, const struct suggestion_list *l);
json_t *tell_lease_encode(int64_t lease_until_ms);

struct token_request {
    token_role role;
    const char *name; /* NULL: none */
    int64_t ttl_ms;   /* 0: for ever */
};
AS_MUST_CHECK as_status token_decode(const json_t *doc, struct token_request *ret,
                                     struct as_err *err);

#endif
