/* buckets.json of an ensemble: what is accepted has a bucket for each row, and a value for each
 * bucket. */
#include <stdint.h>
#include <stdlib.h>

#include "scheduler/lifecycle/ensemble_data.h"
#include "search/ensemble/ensemble_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t rows = 1; rows < 5; rows++) {
        struct ensemble_data d = {.rows = rows};
        struct as_err err;
        if (ensemble_data_parse_buckets((const char *)data, size, &d, &err) == AS_OK) {
            if (!d.bucket_column || d.n_buckets == 0 || d.n_buckets > ENSEMBLE_MAX_BUCKETS ||
                json_array_size(d.bucket_values) != d.n_buckets)
                abort();
            for (size_t i = 0; i < rows; i++)
                if (d.buckets[i] >= d.n_buckets)
                    abort();
        } else if (d.buckets) {
            abort();
        }
        ensemble_data_done(&d);
    }
    return 0;
}
