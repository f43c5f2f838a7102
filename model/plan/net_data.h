/* The data as a network sees it. */
#ifndef ASSAY_MODEL_PLAN_NET_DATA_H
#define ASSAY_MODEL_PLAN_NET_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include "data/dataset.h"
#include "model/document/train_spec.h"

typedef enum net_input { NET_TABLE, NET_IMAGES, NET_TOKENS } net_input;

struct net_data {
    net_input kind;
    dataset_task task;
    size_t rows;           /* of the whole data set; 0: not known (batches are not clipped) */
    size_t numeric;        /* table: numeric inputs, with the indicators of missing values and with
                            * the bins of numbers */
    size_t n_categories;   /* table: columns of categories */
    size_t category_slots; /* table: inputs of these columns, one-hot (dataset.h) */
    size_t height, width, channels; /* images */
    size_t
        pixel_bytes; /* images: bytes of a value on the device: 1 if the format has only bytes, else
                      * 4, the most, because only the file shows whether its values are bytes */
    size_t vocab;    /* tokens */
    size_t outputs;  /* of each row or token: classes; targets of regression; tokens: vocab */
};

/* From the record of the data set, encoded for `spec`; NULL: without bins. */
struct net_data net_data_of(const struct dataset_info *info, const struct train_spec *spec);

/* From the record, without the columns that the document uses for something else (spec_columns). */
struct net_data net_data_for(const struct dataset_info *info, const struct train_spec *spec);

#define SPEC_MAX_COLUMNS 2

/* The columns of a table that are no inputs of the model, because the document uses them for
 * something else: `weights`, and `validation` by a column. Names that the record does not have are
 * left out (train_spec_check() refuses them). ret [SPEC_MAX_COLUMNS] indices of info->columns;
 * returns how many. */
size_t spec_columns(const struct dataset_info *info, const struct train_spec *spec,
                    size_t ret[SPEC_MAX_COLUMNS]);

/* Do the trial's batches go through augmentation, perhaps with strengths of 0? */
static inline bool net_augments(const struct train_spec *spec, net_input input)
{
    return input == NET_IMAGES && spec->augment.given;
}

#endif
