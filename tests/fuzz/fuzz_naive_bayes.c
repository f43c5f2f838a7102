/* Stored naive Bayes. What is read predicts any row as shares from 0 to 1. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/naive-bayes/naive_bayes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t kinds[] = {BAYES_NUMBER, BAYES_WORDS, 2};
    static const float rows[3][3] = {{0, 1, 2}, {-5, -0.25F, 0}, {NAN, 0, 1}};
    const struct bayes_shape shape = {3, 2, kinds};
    AS_AUTO(bayes_done) struct bayes m = {0};
    struct as_err err;
    float ret[6];
    if (bayes_read(data, size, &shape, &m, &err) != AS_OK)
        return 0;
    if (bayes_predict(&m, rows[0], 3, ret, &err) != AS_OK)
        abort();
    for (int i = 0; i < 6; i++) /* NaN where finite terms have no finite sum */
        if (!(ret[i] >= 0 && ret[i] <= 1) && !isnan(ret[i]))
            abort();
    return 0;
}
