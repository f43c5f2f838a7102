/* Stored nearest neighbours. What is read predicts any row within its outputs. */
#include <stdlib.h>

#include "base/mem.h"
#include "model/neighbours/neighbours.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const float rows[2][3] = {{0, 1, 2}, {-5, 1e30F, 0}};
    for (int classes = 0; classes < 2; classes++) {
        const struct neighbours_shape shape = {.inputs = 3, .outputs = 2, .classes = classes == 1};
        AS_AUTO(neighbours_done) struct neighbours m = {0};
        struct as_err err;
        const struct neighbours_opts opts = {3, classes == 1, 1};
        float ret[4];
        if (neighbours_read(data, size, &shape, &m, &err) != AS_OK)
            continue;
        if (neighbours_predict(&m, &opts, rows[0], 2, ret, &err) != AS_OK)
            abort();
        for (int i = 0; classes && i < 4; i++)
            if (!(ret[i] >= 0 && ret[i] <= 1))
                abort();
    }
    return 0;
}
