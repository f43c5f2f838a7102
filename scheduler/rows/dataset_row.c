/* Converts a row of a data set to the struct that the readers of data sets use. */
#include "scheduler/rows/dataset_row.h"

#include <jansson.h>

#include "base/json.h"
#include "data/dataset_json.h"

static int set_text(json_t *obj, const char *name, const char *text)
{
    json_t *j = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    return text ? json_object_set_new(obj, name, j) : 0;
}

as_status dataset_row_info(const struct dataset_row *d, struct dataset_info *ret,
                           struct as_err *err)
{
    JSON_AUTO obj = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "format", d->format, "task",
                              d->task, "input", d->input, "rows", (json_int_t)d->n_rows, "features",
                              (json_int_t)d->n_features, "outputs", (json_int_t)d->n_outputs);
    int bad = !obj;
    bad |= set_text(obj, "target", d->target) | set_text(obj, "classes", d->classes) |
           set_text(obj, "options", d->options) | set_text(obj, "image", d->image) |
           set_text(obj, "columns", d->columns);
    if (bad)
        return as_fail_nomem(err);
    return dataset_info_from_json(obj, "", ret, err);
}
