/* The list of all statements, for the test that prepares each one on a migrated database. */
#include "scheduler/store/sets_priv.h"

const struct stmt_set *const store_stmt_sets[] = {
    &addition_stmts,  &batch_stmts,      &claims_stmts,  &attempt_stmts,     &attempt_token_stmts,
    &attr_stmts,      &blob_stmts,       &chunk_stmts,   &client_stmts,      &dataset_stmts,
    &ensemble_stmts,  &event_stmts,      &file_stmts,    &fork_stmts,        &gang_stmts,
    &gathering_stmts, &assignment_stmts, &history_stmts, &idempotency_stmts, &measurement_stmts,
    &metrics_stmts,   &migration_stmts,  &model_stmts,   &note_stmts,        &capacity_stmts,
    &regret_stmts,    &rung_stmts,       &runner_stmts,  &seat_stmts,        &sweep_stmts,
    &order_stmts,     &table_stmts,      &tag_stmts,     &token_stmts,       &trial_stmts,
    &turn_stmts,      &demand_stmts,     &usage_stmts,   &beat_stmts,        NULL};
