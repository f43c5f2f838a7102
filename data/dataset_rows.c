#include "data/dataset_rows.h"

#include "data/dataset_arrays.h"
#include "data/dataset_csv.h"

as_status dataset_rows_read(const struct dataset_paths *paths, const struct dataset_info *info,
                            dataset_row_fn *visit, void *ctx, struct as_err *err)
{
    if (info->input == DATASET_TOKEN_TEXT)
        return as_fail(err, AS_E_UNSUPPORTED, "a %s data set has no rows",
                       dataset_format_name(info->format));
    return info->format == DATASET_CSV ? dataset_csv_rows(paths, info, visit, ctx, err)
                                       : dataset_arrays_rows(paths, info, visit, ctx, err);
}
