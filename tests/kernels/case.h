/* An operation as a list of places and a call, so that each is tested in the same three ways: the
 * back end under test agrees with the oracle, a member has the same bits alone as in a group, and
 * gradients agree with finite differences. */
#ifndef ASSAY_TESTS_KERNELS_CASE_H
#define ASSAY_TESTS_KERNELS_CASE_H

#include "tests/kernels/twin.h"

#define CASE_PLACES 16

enum {
    CASE_SHARED = 1,  /* may be shared by all members */
    CASE_ABSENT = 2,  /* tensor_none() */
    CASE_SCRATCH = 4, /* its contents afterwards mean nothing */
};

struct case_place {
    const char *name;
    buf_kind kind;
    size_t n;     /* elements of one member */
    float lo, hi; /* of its random values before the call */
    unsigned flags;
};

/* t holds one tensor per place; shape is the test's own. */
typedef as_status case_call(struct backend *be, size_t members, const struct tensor *t,
                            const void *shape, struct as_err *err);

struct case_op {
    case_call *call;
    const void *shape;
    struct case_place places[CASE_PLACES];
    size_t n_places;
    float atol, rtol;
};

/* The tensors of the places of one run. */
struct case_run {
    const struct case_op *op;
    size_t members;
    struct twin at[CASE_PLACES];
};

struct case_run case_make(const struct case_op *op, size_t members, bool shared);

/* Run the operation (or another call over the same places) on both sides; it must succeed. */
void case_do(const struct case_run *r, case_call *call);

/* Set a float place of member 0 on both sides; compare it with expected values on each side. */
void case_put(const struct case_run *r, size_t place, const float *values);
void case_expect(const struct case_run *r, size_t place, const float *want, float tolerance);

/* Compare every place, outputs and inputs, between both sides; NaN equals NaN. */
void case_same(const struct case_run *r);

/* K = 0 to 3 members (0 and 3 on an emulated device), inputs shared or not, on both sides; whole
 * buffers must be equal within the bounds. */
void case_twin(const struct case_op *op);

/* Five members in one call against each alone, in buffers of their own: equal bits on each side. */
void case_slots(const struct case_op *op);

/* d (sum of `out` times c) / d `in`, by central differences of op->call, compared with the gradient
 * that `backward` writes to `grad`, on each side. c lies in `dout`, or is 1 when dout is
 * CASE_PLACES. `bound` is the largest allowed difference. On an emulated device
 * (ASSAY_TEST_EMULATED) only the oracle is tested: these are thousands of calls, and case_twin
 * compares the two. */
struct case_gradient {
    case_call *backward;
    size_t in, grad, out, dout;
    float step, bound;
};
void case_differences(const struct case_op *op, const struct case_gradient *g);

#endif
