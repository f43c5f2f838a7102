/* The built-in trainer as a program, started as the runner starts it. `./dev bench train`
 * times it.
 *
 * A case is a model, a data set of random numbers for it, and the same model for PyTorch. */
#ifndef ASSAY_BENCH_TRAIN_TRAINER_H
#define ASSAY_BENCH_TRAIN_TRAINER_H

#include "data/dataset.h"
#include "model/plan/net.h"

struct bench_case {
    const char *name;
    const char *backend; /* "cpu" or "cuda" */
    const char *train;   /* fields of the train document, without dataset, epochs, batch_size */
    const char *torch;   /* the peer's case, without batch (peer_torch.py) */
    size_t batch, members;
    size_t steps;                   /* of an epoch */
    size_t height, width, channels; /* of a row; a table: 1, 1, columns; text: 0 */
    size_t classes;                 /* 0: 10; 1: a number instead of classes; of text unused */
};

/* How fast one trial trains. */
struct lab_speed {
    double rows_per_s;
    double cpu_us; /* processor time of a row, of all threads, in microseconds */
};

struct lab {
    char dir[64]; /* folder of data, jobs and outputs; lab_done() removes it */
    const struct bench_case *c;
    size_t rows, train_rows; /* rows; rows for training */
    struct dataset_info info;
    struct net_plan *plan;
};

/* Write the case's data set into a new folder of /tmp. `c` is borrowed until lab_done(). lab_done()
 * accepts a zeroed lab too. AS_E_IO, AS_E_NOMEM, AS_E_INVAL. */
AS_MUST_CHECK as_status lab_create(const struct bench_case *c, struct lab *ret, struct as_err *err);
void lab_done(struct lab *l);

/* One running trial: medians over its epochs except the first, from the times between its output
 * lines. AS_E_IO: the trainer failed; its message. */
AS_MUST_CHECK as_status lab_speed(const struct lab *l, int epochs, struct lab_speed *ret,
                                  struct as_err *err);

/* Seconds of whole processes, from start to end: `n` trials one after another, or as one group of n
 * members. */
AS_MUST_CHECK as_status lab_alone(const struct lab *l, size_t n, int epochs, double *ret,
                                  struct as_err *err);
AS_MUST_CHECK as_status lab_group(const struct lab *l, size_t n, int epochs, double *ret,
                                  struct as_err *err);

#endif
