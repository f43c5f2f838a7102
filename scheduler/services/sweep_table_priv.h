/* How a table of trials is laid out, for the two files of sweep_table. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_TABLE_PRIV_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_TABLE_PRIV_H

#include "data/formats/columnar.h"
#include "scheduler/services/column_words.h"
#include "scheduler/services/sweep_table.h"

#define PARAM "param:"
#define METRIC "metric:"
#define PREDICTED "predicted:"
#define DEVIATION "deviation:"

struct table_column {
    char *name; /* owned */
    columnar_type type;
    bool is_exact; /* stays as it is when numbers are written as f32 */
    void *values;  /* owned: `cap` of the table; NULL: no trial has had one, and no file has it */
    struct column_words words;
};

struct sweep_table {
    struct table_column *columns; /* owned */
    size_t n_columns, cap_columns;
    size_t n_params;
    size_t n_predicted; /* columns of predictions, which follow those of parameters: the mean and
                           the deviation of each objective */
    size_t n, cap;
    int64_t *changed; /* owned: of each row */
};

#endif
