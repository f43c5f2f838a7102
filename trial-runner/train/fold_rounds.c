#include "trial-runner/train/fold_rounds.h"

#include <math.h>

#include "base/json.h"

bool fold_rounds_chosen(const json_t *train)
{
    const json_t *model = json_object_get(train, "model");
    bool stops = json_integer_value(json_object_get(model, "early_stopping_rounds")) > 0 ||
                 json_integer_value(json_object_get(train, "patience")) > 0;
    return stops && as_streq(json_string_value(json_object_get(model, "kind")), "boosted_trees");
}

size_t fold_rounds_of(const double *best, size_t k, size_t i)
{
    double sum = 0;
    for (size_t j = 0; j < k; j++)
        sum += j == i ? 0 : best[j];
    double mean = round(sum / (double)(k - 1));
    return mean > 1 ? (size_t)mean : 1;
}
