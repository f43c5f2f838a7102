#include "trial-runner/train/buckets_file.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "data/dataset_view.h"

as_status buckets_file_write(const char *path, const struct dataset_paths *paths,
                             const struct dataset_info *info, const char *column,
                             const int32_t *rows, size_t n, struct as_err *err)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    JSON_AUTO list = json_array();
    as_status st = list ? dataset_read_cells(paths, info, column, &cells, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = dataset_list_values(info, column, &cells, rows, rows ? n : cells.n, list, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO all = json_pack("{s:s, s:O}", "column", column, "values", list);
    AS_AUTO(as_freep) char *text = all ? json_format(all) : NULL;
    return text ? file_replace(path, text, strlen(text), 0644, err) : as_fail_nomem(err);
}
