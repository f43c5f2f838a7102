/* The data, as a network sees it. */
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
    size_t numeric;        /* table: columns of numbers, indicators of missing values counted */
    size_t n_categories;   /* table: columns of categories */
    size_t category_slots; /* table: inputs that these are one-hot (dataset.h) */
    size_t height, width, channels; /* images */
    size_t
        pixel_bytes; /* images, of a value on the device: 1 where the format has bytes only, else 4,
                      * which is the most that it may be: what is in a file is not known here */
    size_t vocab;    /* tokens */
    size_t outputs;  /* classes; targets of regression; tokens: vocab. Of each row, or token */
};

/* From what the data set's record says. */
struct net_data net_data_of(const struct dataset_info *info);

/* Do the trial's batches go through augmentation, if only with strengths of 0? */
static inline bool net_augments(const struct train_spec *spec, net_input input)
{
    return input == NET_IMAGES && spec->augment.given;
}

#endif
