/* The statements of every aggregate of this folder. */
#ifndef ASSAY_SCHEDULER_STORE_SETS_PRIV_H
#define ASSAY_SCHEDULER_STORE_SETS_PRIV_H

#include "scheduler/store/pg_priv.h"

extern const struct stmt_set addition_stmts, attempt_stmts, attr_stmts, batch_find_stmts,
    batch_read_stmts, batch_look_stmts, batch_take_stmts, batch_begin_stmts, blob_stmts,
    chunk_stmts, client_stmts, dataset_stmts, ensemble_stmts, event_stmts, file_stmts, fork_stmts,
    assignment_stmts, history_stmts, idempotency_stmts, measurement_stmts, metrics_stmts,
    migration_stmts, model_stmts, note_stmts, order_stmts, capacity_stmts, regret_stmts, rung_stmts,
    rung_board_stmts, rung_report_stmts, runner_stmts, sweep_stmts, sweep_change_stmts,
    sweep_head_stmts, sweep_row_stmts, table_stmts, tag_stmts, token_stmts, trial_stmts,
    trial_held_stmts, trial_move_stmts, trial_row_stmts, turn_stmts, gang_stmts, gathering_stmts,
    seat_stmts, demand_stmts, usage_stmts, attempt_token_stmts, beat_stmts;

/* What an attempt that begins sets of trial t, ended by a comma. The values of a trial are those of
 * one attempt: only one that goes on from a checkpoint keeps what the attempt before it had
 * measured, as after a retry (TRIAL_RETRY). With `limit 1` no plan hashes the whole table. */
#define SQL_HAS_CHECKPOINT                                                                         \
    "(select true from trial_file f where f.sweep_key = t.sweep_key and f.number = t.number and "  \
    "f.kind = 'checkpoint' limit 1)"
#define SQL_OWN_VALUES                                                                             \
    "value = case when " SQL_HAS_CHECKPOINT                                                        \
    " then t.value end, step = case when " SQL_HAS_CHECKPOINT                                      \
    " then t.step end, metrics = case when " SQL_HAS_CHECKPOINT " then t.metrics else '{}' end, "

#endif
