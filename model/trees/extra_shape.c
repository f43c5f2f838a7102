#include "model/trees/extra_shape.h"

#include "base/mem.h"
#include "model/trees/tree_inputs.h"

as_status extra_shape_of(const struct dataset_info *info, size_t outputs, struct extra_shape *ret,
                         uint32_t **ret_codes, struct as_err *err)
{
    size_t n = tree_inputs_count(info);
    AS_AUTO(as_freep) uint32_t *codes = as_calloc(n, sizeof *codes);
    if (!codes)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (tree_inputs_is_category(info, i)) /* its values, and the others together */
            codes[i] = (uint32_t)info->columns[tree_inputs_column(info, i)].n_values + 1;
    *ret = (struct extra_shape){.inputs = n, .outputs = outputs, .codes = codes};
    *ret_codes = as_steal(codes);
    return AS_OK;
}
