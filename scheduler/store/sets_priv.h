/* The statements of every aggregate of this folder. */
#ifndef ASSAY_SCHEDULER_STORE_SETS_PRIV_H
#define ASSAY_SCHEDULER_STORE_SETS_PRIV_H

#include "scheduler/store/pg_priv.h"

extern const struct stmt_set addition_stmts, attempt_stmts, batch_stmts, claims_stmts, blob_stmts,
    client_stmts, dataset_stmts, ensemble_stmts, event_stmts, file_stmts, assignment_stmts,
    history_stmts, idempotency_stmts, measurement_stmts, metrics_stmts, migration_stmts,
    model_stmts, note_stmts, capacity_stmts, rung_stmts, runner_stmts, sweep_stmts, table_stmts,
    tag_stmts, token_stmts, trial_stmts, turn_stmts, gang_stmts, gathering_stmts, seat_stmts;

#endif
