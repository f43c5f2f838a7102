#include "model/plan/net_data.h"

#include "data/dataset_view.h"

/* The inputs of a feature that is no category. */
static size_t inputs_of_number(const struct dataset_column *c, size_t bins)
{
    return (bins > 0 && dataset_column_is_number(c) ? bins : 1) + (c->n_missing > 0);
}

static size_t numeric_inputs(const struct dataset_info *info, size_t bins)
{
    if (info->input != DATASET_TABLE)
        return 0;
    return dataset_numeric_inputs(info) + (bins ? (bins - 1) * dataset_number_columns(info) : 0);
}

struct net_data net_data_of(const struct dataset_info *info, const struct train_spec *spec)
{
    static const net_input kinds[] = {[DATASET_TABLE] = NET_TABLE,
                                      [DATASET_IMAGE] = NET_IMAGES,
                                      [DATASET_TOKEN_TEXT] = NET_TOKENS};
    return (struct net_data){
        .kind = kinds[info->input],
        .task = info->task,
        .rows = info->n_rows,
        .numeric = numeric_inputs(info, spec ? train_spec_bins(spec) : 0),
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

size_t spec_columns(const struct dataset_info *info, const struct train_spec *spec,
                    size_t ret[SPEC_MAX_COLUMNS])
{
    const char *const names[SPEC_MAX_COLUMNS] = {spec->holdout_column, spec->weights};
    size_t n = 0;
    for (size_t i = 0; i < SPEC_MAX_COLUMNS; i++) {
        size_t column = names[i] ? dataset_find_column(info, names[i]) : SIZE_MAX;
        if (column != SIZE_MAX && (n == 0 || ret[0] != column))
            ret[n++] = column;
    }
    return n;
}

struct net_data net_data_for(const struct dataset_info *info, const struct train_spec *spec)
{
    struct net_data d = net_data_of(info, spec);
    size_t columns[SPEC_MAX_COLUMNS], n = spec_columns(info, spec, columns);
    for (size_t i = 0; i < n; i++) {
        const struct dataset_column *c = &info->columns[columns[i]];
        for (size_t k = dataset_column_width(c); k > 0; k--, c++) {
            d.n_categories -= c->categorical;
            d.category_slots -= c->categorical ? dataset_column_slots(c) : 0;
            d.numeric -= c->categorical ? 0 : inputs_of_number(c, train_spec_bins(spec));
        }
    }
    return d;
}
