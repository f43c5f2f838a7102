/* How an epoch is cut: the training rows into micro-steps of at most `micro_rows` rows, and the
 * micro-steps into batches. The last batch and the last micro-step may be smaller. */
#ifndef ASSAY_MODEL_NETWORK_EPOCH_LAYOUT_H
#define ASSAY_MODEL_NETWORK_EPOCH_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/document/train_spec.h"

struct epoch_layout {
    size_t n_train;          /* rows of the epoch */
    size_t micro_rows;       /* rows of a micro-step */
    size_t micro_steps;      /* of the epoch */
    size_t per_batch;        /* micro-steps of a batch */
    int64_t steps_per_epoch; /* optimizer steps: batches */
    size_t parts; /* partitions: each batch has a micro-step of each; 0: there are none */
};

/* The layout for n_train >= 1 rows; micro_rows >= 1 is max_rows of the network's plan. A batch size
 * above n_train means one batch of all rows. */
struct epoch_layout epoch_layout_of(const struct train_spec *spec, size_t micro_rows,
                                    size_t n_train);

/* The layout where training rows are dealt to partitions (data/preprocess/row_parts.h), which give
 * n_train / parts rows each: all batches have a micro-step of each partition, in their order, and
 * only those of the last batch may be smaller. */
struct epoch_layout epoch_layout_of_parts(size_t parts, size_t micro_rows, size_t n_train);

/* The rows of micro-step `at`, and of all micro-steps before it. */
size_t epoch_layout_rows(const struct epoch_layout *l, size_t at);
size_t epoch_layout_before(const struct epoch_layout *l, size_t at);

/* Is micro-step `at` of the epoch the last of its batch, after which the weights change? */
bool epoch_layout_due(const struct epoch_layout *l, size_t at);

/* Does a batch begin at micro-step `at`? Checkpoints are written only there. */
bool epoch_layout_between_batches(const struct epoch_layout *l, size_t at);

/* The share of micro-step `at` in the rows of its batch, in (0, 1]. */
double epoch_layout_share(const struct epoch_layout *l, size_t at);

#endif
