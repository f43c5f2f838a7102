/* trial.train and the description of a data set: what is accepted is within its stated bounds. */
#include <stdlib.h>

#include "base/json.h"
#include "base/spec/train_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_spec(const struct train_spec *s)
{
    if (s->epochs < 1 || s->batch_size < 1 || s->report_every < 1 || !s->dataset[0])
        abort();
    if (s->model.n_layers > TRAIN_MAX_LAYERS || !(s->optimizer.lr > 0) ||
        !(s->model.dropout >= 0 && s->model.dropout < 1))
        abort();
    for (size_t i = 0; i < s->model.n_layers; i++)
        if (s->model.layers[i] < 1 || s->model.layers[i] > TRAIN_MAX_WIDTH)
            abort();
    size_t held = train_spec_validation_rows(s, 10);
    if (held < 1 || held > 9)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_err err;
    struct train_spec spec;
    struct dataset_info info;
    JSON_AUTO doc = NULL;
    if (json_parse((const char *)data, size, &doc, &err) < 0)
        return 0;
    if (train_spec_parse(doc, "", &spec, &err) == AS_OK)
        check_spec(&spec);
    if (dataset_info_from_json(doc, "", &info, &err) == AS_OK) {
        JSON_AUTO back = dataset_info_to_json(&info);
        if (!back)
            abort();
        if (train_spec_check(&(struct train_spec){0}, &info, "", &err) == AS_OK && info.n_rows < 2)
            abort();
        dataset_info_done(&info);
    }
    return 0;
}
