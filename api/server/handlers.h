/* The handlers, one for each row of the route table. Their operations in api/openapi.yaml document
 * them. One file per resource: h_sweeps.c, h_trials.c, … */
#ifndef ASSAY_API_SERVER_HANDLERS_H
#define ASSAY_API_SERVER_HANDLERS_H

#include "api/server/route.h"

route_fn h_health, h_readiness, h_metrics, h_openapi;
route_fn h_sweep_create, h_sweep_list, h_sweep_get, h_sweep_change, h_sweep_delete, h_sweep_best,
    h_sweep_ensemble, h_ensemble_ask, h_ensemble_list, h_ensemble_get, h_sweep_pareto,
    h_sweep_importance, h_sweep_regret, h_sweep_regret_checks, h_sweep_table, h_sweep_points,
    h_sweep_surface, h_sweep_attempts, h_sweep_preview, h_sweep_changes, h_sweep_retry,
    h_sweep_attrs, h_trial_tag;
route_fn h_events_sweep, h_events_all;
route_fn h_trial_list, h_trial_get, h_trial_attrs, h_trial_cancel, h_trial_retry, h_trial_series,
    h_trial_log, h_trial_usage, h_trial_artifacts, h_trial_add;
route_fn h_suggestion_ask, h_suggestion_measure, h_suggestion_complete, h_suggestion_heartbeat;
route_fn h_blob_parts, h_blob_put, h_blob_get, h_blob_has;
route_fn h_dataset_list, h_dataset_create, h_dataset_get, h_dataset_delete;
route_fn h_dataset_preview, h_dataset_models;
route_fn h_model_list, h_model_get, h_model_delete, h_model_version_add, h_model_version_list,
    h_model_version_get, h_model_content, h_model_version_delete, h_model_alias_set,
    h_model_alias_delete;
route_fn h_demand, h_runner_list, h_runner_register, h_runner_claim, h_runner_heartbeat,
    h_runner_leave, h_runner_remove, h_runner_drain, h_batch;
route_fn h_attempt_measure, h_attempt_log, h_attempt_usage, h_attempt_files, h_attempt_complete;
route_fn h_seat_put, h_seat_join, h_seat_end, h_world_get, h_world_change, h_gang_get;
route_fn h_token_list, h_token_create, h_token_revoke;

#endif
