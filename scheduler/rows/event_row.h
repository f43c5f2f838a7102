/* Events. Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_EVENT_ROW_H
#define ASSAY_SCHEDULER_ROWS_EVENT_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_row {
    int64_t id;
    const char *type; /* sweep.created, sweep.changed, trial.changed, trial.measured,
                         trial.rung, ensemble.ready, runner.changed, gang.changed, model.changed,
                         dataset.changed */
    int64_t time_ms;
    const char *sweep; /* id, or NULL */
    bool has_number;
    int64_t number;
    const char *state;
    int64_t attempt; /* 0: none */
    bool has_value;
    double value;
    const char *reason;
    const char *runner;
    bool has_epoch, has_seat; /* of gang.changed */
    int64_t epoch, seat;
    const char *model;   /* of model.changed: its name */
    const char *dataset; /* of dataset.changed: its name */
};

struct event_list {
    struct event_row *rows;
    size_t n;
    int64_t last_id; /* pass it as `after` next; unchanged if nothing is new */
};

#endif
