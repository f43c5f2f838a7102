/* Path, roles, flags, kind of body and handler of each operation of api/openapi.yaml, in the order
 * of that document. The rights of an operation are decided here and nowhere else; a handler is
 * called only after role, query and body were checked by dispatch.c. A path that is not here is
 * 404. */
#include "api/server/routes.h"

#include "api/server/handlers.h"
#include "base/mem.h"

#define READERS (ROUTE_VIEWER | ROUTE_USER | ROUTE_ADMIN)
#define WRITERS (ROUTE_USER | ROUTE_ADMIN)
#define RUNNERS (ROUTE_RUNNER | ROUTE_ADMIN)
#define ALL_ROLES (READERS | ROUTE_RUNNER)

#define SWEEP "/v1/sweeps/{sweep}"
#define TRIAL SWEEP "/trials/{number}"
#define ATTEMPT TRIAL "/attempts/{attempt}"
#define SEAT ATTEMPT "/seats/{seat}"
#define SUGGESTION SWEEP "/suggestions/{number}"
#define MODEL "/v1/models/{model}"
#define VERSION MODEL "/versions/{version}"
#define ALIAS MODEL "/aliases/{alias}"
#define RUNNER "/v1/runners/{runner}"

#define NONE ROUTE_BODY_NONE
#define JSON ROUTE_BODY_JSON
#define PATCH ROUTE_BODY_MERGE_PATCH
#define BYTES ROUTE_BODY_BYTES

/* clang-format off */
const struct route routes[] = {
    {"getHealth", "GET", "/healthz", 0, NONE, ROUTE_LOCAL, "", h_health},
    {"getReadiness", "GET", "/readyz", 0, NONE, ROUTE_URGENT, "", h_readiness},
    {"getMetrics", "GET", "/metrics", READERS, NONE, 0, "", h_metrics},
    {"getOpenapi", "GET", "/openapi.json", 0, NONE, ROUTE_LOCAL, "", h_openapi},

    {"createSweep", "POST", "/v1/sweeps", WRITERS, JSON, ROUTE_IDEMPOTENCY | ROUTE_WAKES, "paused unique", h_sweep_create},
    {"listSweeps", "GET", "/v1/sweeps", READERS, NONE, 0, "state tag dataset include cursor page_size", h_sweep_list},
    {"previewSweep", "POST", "/v1/preview", WRITERS, JSON, ROUTE_SLOW, "suggestions", h_sweep_preview},
    {"getSweep", "GET", SWEEP, READERS | ROUTE_TRIAL, NONE, 0, "", h_sweep_get},
    {"changeSweep", "PATCH", SWEEP, WRITERS, PATCH, ROUTE_WAKES, "if_state if_max_trials", h_sweep_change},
    {"changeSweepAttrs", "PATCH", SWEEP "/user_attrs", WRITERS, PATCH, 0, "", h_sweep_attrs},
    {"listSweepChanges", "GET", SWEEP "/changes", READERS, NONE, 0, "", h_sweep_changes},
    {"retryTrials", "POST", SWEEP "/retry", WRITERS, JSON, ROUTE_WAKES | ROUTE_SLOW, "", h_sweep_retry},
    {"deleteSweep", "DELETE", SWEEP, WRITERS, NONE, ROUTE_SLOW, "", h_sweep_delete},
    {"listBestTrials", "GET", SWEEP "/best", READERS, NONE, 0, "top cursor", h_sweep_best},
    {"getEnsemble", "GET", SWEEP "/ensemble", READERS, NONE, 0, "", h_sweep_ensemble},
    {"listEnsembles", "GET", SWEEP "/ensembles", READERS, NONE, 0, "", h_ensemble_list},
    {"askEnsemble", "POST", SWEEP "/ensembles", WRITERS, JSON, 0, "", h_ensemble_ask},
    {"getAskedEnsemble", "GET", SWEEP "/ensembles/{ensemble}", READERS, NONE, 0, "", h_ensemble_get},
    {"listParetoTrials", "GET", SWEEP "/pareto", READERS, NONE, ROUTE_SLOW, "cursor", h_sweep_pareto},
    {"getImportance", "GET", SWEEP "/importance", READERS, NONE, ROUTE_SLOW, "metric max_age", h_sweep_importance},
    {"getSurface", "GET", SWEEP "/surface", READERS, NONE, ROUTE_SLOW, "x y metric n max_age", h_sweep_surface},
    {"getRegret", "GET", SWEEP "/regret", READERS, NONE, ROUTE_SLOW, "", h_sweep_regret},
    {"listRegretChecks", "GET", SWEEP "/regret/checks", READERS, NONE, 0, "", h_sweep_regret_checks},
    {"getTable", "GET", SWEEP "/table", READERS, NONE, ROUTE_VIEW, "columns precision layout since", h_sweep_table},
    {"getPoints", "GET", SWEEP "/points", READERS, NONE, ROUTE_VIEW, "metric max_points precision layout since", h_sweep_points},
    {"getAttempts", "GET", SWEEP "/attempts", READERS, NONE, ROUTE_VIEW, "layout since", h_sweep_attempts},
    {"streamSweepEvents", "GET", SWEEP "/events", READERS, NONE, 0, "after", h_events_sweep},
    {"streamEvents", "GET", "/v1/events", READERS, NONE, 0, "after", h_events_all},

    {"listTrials", "GET", SWEEP "/trials", READERS, NONE, 0, "state group sort order include cursor page_size", h_trial_list},
    {"addTrial", "POST", SWEEP "/trials", WRITERS, JSON, ROUTE_IDEMPOTENCY | ROUTE_WAKES, "", h_trial_add},
    {"tagTrials", "POST", SWEEP "/tags", WRITERS, JSON, 0, "", h_trial_tag},
    {"getTrial", "GET", TRIAL, READERS | ROUTE_TRIAL, NONE, 0, "", h_trial_get},
    {"changeTrialAttrs", "PATCH", TRIAL "/user_attrs", WRITERS, PATCH, 0, "", h_trial_attrs},
    {"cancelTrial", "POST", TRIAL "/cancel", WRITERS, NONE, ROUTE_WAKES, "", h_trial_cancel},
    {"retryTrial", "POST", TRIAL "/retry", WRITERS, NONE, ROUTE_WAKES, "", h_trial_retry},
    {"listMeasurements", "GET", TRIAL "/measurements", READERS | ROUTE_TRIAL, NONE, 0, "metric cursor", h_trial_series},
    {"getTrialLog", "GET", TRIAL "/log", READERS, NONE, 0, "attempt", h_trial_log},
    {"getTrialUsage", "GET", TRIAL "/usage", READERS, NONE, 0, "attempt", h_trial_usage},
    {"listArtifacts", "GET", TRIAL "/artifacts", ALL_ROLES, NONE, 0, "kind", h_trial_artifacts},

    {"askSuggestions", "POST", SWEEP "/suggestions", WRITERS, JSON, ROUTE_URGENT, "", h_suggestion_ask},
    {"measureSuggestion", "POST", SUGGESTION "/measurements", WRITERS, JSON, 0, "", h_suggestion_measure},
    {"completeSuggestion", "POST", SUGGESTION "/complete", WRITERS, JSON, ROUTE_WAKES | ROUTE_REFERS, "", h_suggestion_complete},
    {"heartbeatSuggestion", "POST", SUGGESTION "/heartbeat", WRITERS, JSON, ROUTE_BEAT, "", h_suggestion_heartbeat},

    {"putBlob", "PUT", "/v1/blobs/{sha256}", WRITERS | RUNNERS, BYTES, ROUTE_SLOW, "", h_blob_put},
    {"putBlobParts", "PUT", "/v1/blobs/{sha256}/parts", WRITERS | RUNNERS, JSON, ROUTE_SLOW, "", h_blob_parts},
    {"getBlob", "GET", "/v1/blobs/{sha256}", ALL_ROLES, NONE, ROUTE_SLOW, "", h_blob_get},
    {"hasBlob", "HEAD", "/v1/blobs/{sha256}", ALL_ROLES, NONE, 0, "", h_blob_has},

    {"listDatasets", "GET", "/v1/datasets", ALL_ROLES, NONE, 0, "cursor page_size", h_dataset_list},
    {"createDataset", "POST", "/v1/datasets", WRITERS, JSON, ROUTE_IDEMPOTENCY | ROUTE_SLOW | ROUTE_REFERS, "", h_dataset_create},
    {"getDataset", "GET", "/v1/datasets/{dataset}", ALL_ROLES, NONE, 0, "", h_dataset_get},
    {"getDatasetPreview", "GET", "/v1/datasets/{dataset}/preview", READERS, NONE, ROUTE_SLOW, "", h_dataset_preview},
    {"listDatasetModels", "GET", "/v1/datasets/{dataset}/models", READERS, NONE, 0, "cursor page_size", h_dataset_models},
    {"deleteDataset", "DELETE", "/v1/datasets/{dataset}", WRITERS, NONE, 0, "", h_dataset_delete},

    {"listModels", "GET", "/v1/models", READERS, NONE, 0, "cursor page_size", h_model_list},
    {"getModel", "GET", MODEL, READERS, NONE, 0, "", h_model_get},
    {"deleteModel", "DELETE", MODEL, WRITERS, NONE, 0, "", h_model_delete},
    {"listModelVersions", "GET", MODEL "/versions", READERS, NONE, 0, "cursor page_size", h_model_version_list},
    {"addModelVersion", "POST", MODEL "/versions", WRITERS, JSON, ROUTE_IDEMPOTENCY | ROUTE_SLOW | ROUTE_REFERS, "", h_model_version_add},
    {"getModelVersion", "GET", VERSION, READERS, NONE, 0, "", h_model_version_get},
    {"deleteModelVersion", "DELETE", VERSION, WRITERS, NONE, 0, "", h_model_version_delete},
    {"getModelContent", "GET", VERSION "/content", READERS, NONE, ROUTE_SLOW, "", h_model_content},
    {"setModelAlias", "PUT", ALIAS, WRITERS, JSON, 0, "", h_model_alias_set},
    {"deleteModelAlias", "DELETE", ALIAS, WRITERS, NONE, 0, "", h_model_alias_delete},

    {"getDemand", "GET", "/v1/demand", READERS, NONE, 0, "", h_demand},
    {"listRunners", "GET", "/v1/runners", READERS, NONE, 0, "cursor page_size", h_runner_list},
    {"registerRunner", "POST", "/v1/runners", RUNNERS, JSON, ROUTE_EPOCH | ROUTE_WAKES | ROUTE_URGENT, "", h_runner_register},
    {"claimTrials", "POST", RUNNER "/claim", RUNNERS, JSON, ROUTE_EPOCH | ROUTE_URGENT, "", h_runner_claim},
    {"sendBatch", "POST", RUNNER "/batch", RUNNERS, JSON, ROUTE_PARTS, "", h_batch},
    {"heartbeat", "POST", RUNNER "/heartbeat", RUNNERS, JSON, ROUTE_EPOCH | ROUTE_BEAT, "", h_runner_heartbeat},
    {"leaveRunner", "POST", RUNNER "/leave", RUNNERS, JSON, ROUTE_EPOCH | ROUTE_WAKES | ROUTE_URGENT, "", h_runner_leave},
    {"removeRunner", "DELETE", RUNNER, ROUTE_ADMIN, NONE, ROUTE_WAKES, "", h_runner_remove},
    {"drainRunner", "POST", RUNNER "/drain", ROUTE_ADMIN, JSON, 0, "", h_runner_drain},

    {"addMeasurements", "POST", ATTEMPT "/measurements", RUNNERS | ROUTE_TRIAL, JSON, ROUTE_REFERS, "", h_attempt_measure},
    {"putLog", "PUT", ATTEMPT "/log", RUNNERS, JSON, ROUTE_REFERS, "", h_attempt_log},
    {"putUsage", "PUT", ATTEMPT "/usage", RUNNERS, JSON, ROUTE_REFERS, "", h_attempt_usage},
    {"putFiles", "PUT", ATTEMPT "/files", RUNNERS, JSON, ROUTE_REFERS, "", h_attempt_files},
    {"completeAttempt", "POST", ATTEMPT "/complete", RUNNERS, JSON, ROUTE_WAKES | ROUTE_REFERS, "", h_attempt_complete},

    {"putSeat", "PUT", SEAT, RUNNERS, JSON, ROUTE_WAKES | ROUTE_URGENT, "", h_seat_put},
    {"joinWorld", "POST", SEAT "/joined", RUNNERS, JSON, ROUTE_URGENT, "", h_seat_join},
    {"endSeat", "POST", SEAT "/end", RUNNERS, JSON, ROUTE_WAKES | ROUTE_REFERS | ROUTE_URGENT, "", h_seat_end},
    {"getWorld", "GET", ATTEMPT "/world", ALL_ROLES, NONE, ROUTE_URGENT, "after wait_ms", h_world_get},
    {"changeWorld", "POST", ATTEMPT "/world", RUNNERS, JSON, ROUTE_WAKES | ROUTE_URGENT, "", h_world_change},
    {"getGang", "GET", ATTEMPT "/gang", READERS, NONE, 0, "", h_gang_get},

    {"listTokens", "GET", "/v1/tokens", ROUTE_ADMIN, NONE, 0, "cursor page_size", h_token_list},
    {"createToken", "POST", "/v1/tokens", ROUTE_ADMIN, JSON, 0, "", h_token_create},
    {"revokeToken", "DELETE", "/v1/tokens/{token}", ROUTE_ADMIN, NONE, 0, "", h_token_revoke},
};
/* clang-format on */
const size_t n_routes = AS_ARRAY_LEN(routes);
