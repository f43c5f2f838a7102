#include "trial-runner/train/buckets_file.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "data/dataset_view.h"

static as_status list_values(const struct dataset_cells *cells, const struct dataset_info *info,
                             const char *column, const int32_t *rows, size_t n, json_t *list,
                             struct as_err *err)
{
    size_t at = info->columns ? dataset_find_column(info, column) : SIZE_MAX;
    const struct dataset_column *c = at == SIZE_MAX ? NULL : &info->columns[at];
    char buf[DATASET_VALUE_TEXT];
    for (size_t i = 0; i < n; i++) {
        size_t row = rows ? (size_t)rows[i] : i;
        json_t *value = json_string(dataset_value_text(c, dataset_cell(cells, row), buf));
        if (!value)
            return as_fail(err, AS_E_INVAL, "column '%.60s', row %zu: the text is no UTF-8", column,
                           row + 1);
        if (json_array_append_new(list, value) != 0)
            return as_fail_nomem(err);
    }
    return AS_OK;
}

as_status buckets_file_write(const char *path, const struct dataset_paths *paths,
                             const struct dataset_info *info, const char *column,
                             const int32_t *rows, size_t n, struct as_err *err)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    JSON_AUTO list = json_array();
    as_status st = list ? dataset_read_cells(paths, info, column, &cells, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = list_values(&cells, info, column, rows, rows ? n : cells.n, list, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO all = json_pack("{s:s, s:O}", "column", column, "values", list);
    AS_AUTO(as_freep) char *text = all ? json_format(all) : NULL;
    return text ? file_replace(path, text, strlen(text), 0644, err) : as_fail_nomem(err);
}
