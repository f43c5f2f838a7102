#include "model/plan/net_data.h"

struct net_data net_data_of(const struct dataset_info *info)
{
    static const net_input kinds[] = {[DATASET_TABLE] = NET_TABLE,
                                      [DATASET_IMAGE] = NET_IMAGES,
                                      [DATASET_TOKEN_TEXT] = NET_TOKENS};
    return (struct net_data){
        .kind = kinds[info->input],
        .task = info->task,
        .rows = info->n_rows,
        .numeric = info->input == DATASET_TABLE ? dataset_numeric_inputs(info) : 0,
        .n_categories = dataset_categorical_columns(info),
        .category_slots = dataset_category_slots(info),
        .height = info->height,
        .width = info->width,
        .channels = info->channels,
        .pixel_bytes = info->format == DATASET_CIFAR ? 1 : 4,
        .vocab = info->input == DATASET_TOKEN_TEXT ? info->n_outputs : 0,
        .outputs = info->n_outputs,
    };
}
