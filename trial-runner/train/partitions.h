/* The rows of a rank with `distributed: {partitions: lineage}`: those that are held out, and the
 * training rows of some partitions. All others stay in the decoded copy of the data set.
 *
 * There is a partition for each shard of a batch, and a shard has rows of its partition alone
 * (data/preprocess/row_parts.h). So a rank holds the partitions of the shards that it computes.
 * One that it does not hold yet is made from its lineage: the rows of the data set that are in it,
 * which every rank knows, and what preprocessing has learnt, which every rank has learnt from the
 * same rows. No partition is ever sent or checkpointed. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_PARTITIONS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_PARTITIONS_H

#include "data/preprocess/train_data.h"
#include "model/network/device_data.h"

struct partitions;

/* Split the rows, learn how they are encoded, and load those that are held out.
 *   info, ret_data  borrowed until partitions_free(); ret_data: the caller's, train_data_done()
 *   parts           n and micro
 * Errors as dataset_map_open() and train_data_prepare_held(). */
AS_MUST_CHECK as_status partitions_open(const struct dataset_paths *paths,
                                        const struct dataset_info *info,
                                        const struct preprocess_opts *opts, struct row_parts parts,
                                        struct train_data *ret_data, struct partitions **ret,
                                        struct as_err *err);
void partitions_free(struct partitions *p); /* prints what was held and read */
AS_DEFINE_FREEP(struct partitions, partitions_free)

/* Rows go to `device`, which was made of ret_data; borrowed. */
void partitions_place(struct partitions *p, struct device_data *device);

/* Partitions [first, first + count) and `also` (UINT32_MAX: no other) are to be here. Those that
 * are missing are read from the data set and encoded. When first or count change, all others are
 * dropped.
 *   ret_moved  the rows have other places: the order of the epoch is to be made anew AS_E_NOMEM. */
AS_MUST_CHECK as_status partitions_hold(struct partitions *p, uint32_t first, uint32_t count,
                                        uint32_t also, bool *ret_moved, struct as_err *err);

#endif
