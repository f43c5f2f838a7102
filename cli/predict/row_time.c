#include "cli/predict/row_time.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "model/predict/predictor.h"

#define MOST_ROWS 200
#define LEAST_ROWS 11 /* beside busy programs a few times say nothing */
#define WHOLE_NS (NS_PER_S / 5)
#define LONGEST_NS NS_PER_S

/* Of this process: what other programs take of the core is no property of the model. */
static int64_t processor_ns(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static int compare_times(const void *a, const void *b)
{
    return as_compare_i64(*(const int64_t *)a, *(const int64_t *)b);
}

as_status predict_row_time(const struct model_file *f, double *ret_ms, struct as_err *err)
{
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    int64_t times[MOST_ROWS], start = clock_mono_ns();
    size_t n = 0;
    as_status st = predictor_create(f, 1, &p, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) float *row = as_calloc(predictor_inputs(p), sizeof *row);
    AS_AUTO(as_freep) float *outputs = as_calloc(predictor_outputs(p), sizeof *outputs);
    if (!row || !outputs)
        return as_fail_nomem(err);
    while (n < MOST_ROWS &&
           (n == 0 || clock_mono_ns() - start < (n < LEAST_ROWS ? LONGEST_NS : WHOLE_NS))) {
        int64_t before = processor_ns();
        st = predictor_run(p, row, 1, outputs, err);
        if (st != AS_OK)
            return st;
        times[n++] = processor_ns() - before;
    }
    qsort(times, n, sizeof *times, compare_times);
    const int64_t median = times[n / 2];
    *ret_ms = (double)median / (double)NS_PER_MS;
    return AS_OK;
}
