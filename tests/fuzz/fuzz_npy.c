/* NPY headers: what parses has a shape whose bytes do not overflow, and lies inside what was given.
 */
#include <stdlib.h>

#include "data/formats/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_err err;
    struct npy_header h;
    if (npy_parse_header(data, size, &h, &err) < 0)
        return 0;
    size_t n = 1, bytes;
    for (size_t i = 0; i < h.n_dims; i++)
        if (__builtin_mul_overflow(n, h.shape[i], &n))
            abort();
    if (n != h.n_values || __builtin_mul_overflow(n, npy_type_size(h.type), &bytes) ||
        h.data_offset > size || h.n_dims > NPY_MAX_DIMS)
        abort();
    return 0;
}
