/* The list of all statements, for the test that prepares each one on a migrated database. */
#include "scheduler/store/sets_priv.h"

const struct stmt_set *const store_stmt_sets[] = {
    &addition_stmts,      &assignment_stmts,   &attempt_stmts,
    &attempt_token_stmts, &attr_stmts,         &batch_begin_stmts,
    &batch_find_stmts,    &batch_look_stmts,   &batch_read_stmts,
    &batch_take_stmts,    &beat_stmts,         &blob_stmts,
    &capacity_stmts,      &chunk_stmts,        &client_stmts,
    &dataset_stmts,       &demand_stmts,       &ensemble_stmts,
    &event_stmts,         &file_stmts,         &fork_stmts,
    &gang_stmts,          &gathering_stmts,    &history_stmts,
    &idempotency_stmts,   &measurement_stmts,  &metrics_stmts,
    &migration_stmts,     &model_stmts,        &note_stmts,
    &order_stmts,         &regret_stmts,       &rung_board_stmts,
    &rung_report_stmts,   &rung_stmts,         &runner_stmts,
    &seat_stmts,          &sweep_change_stmts, &sweep_head_stmts,
    &sweep_row_stmts,     &sweep_stmts,        &table_stmts,
    &tag_stmts,           &token_stmts,        &trial_held_stmts,
    &trial_move_stmts,    &trial_row_stmts,    &trial_stmts,
    &turn_stmts,          &usage_stmts,        NULL,
};
