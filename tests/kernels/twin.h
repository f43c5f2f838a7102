/* The same data on two back ends: the oracle ("reference") and the one under test.
 *
 * The back end under test is named by ASSAY_TEST_BACKEND (Meson sets it; "cpu" when absent).
 * Buffers are filled with seeded random numbers, and compared *whole*: the elements between
 * members and past the end must be unchanged too. */
#ifndef ASSAY_TESTS_KERNELS_TWIN_H
#define ASSAY_TESTS_KERNELS_TWIN_H

#include <stdbool.h>

#include "kernels/ops.h"
#include "tests/support/check_main.h"

#define SIDES 2 /* 0: the oracle, 1: under test */

struct twin {
    struct buf *side[SIDES];
    size_t n;
    size_t offset, stride; /* of the members */
};

/* Open both, or end the program: exit 77 with the reason if cuda is absent, failure otherwise.
 * twin_probe does so once before the tests, where an exit ends the whole program. */
void twin_probe(void);
void twin_open(void);
void twin_close(void);

/* Whether the device is emulated on the host (ASSAY_TEST_EMULATED). There a call takes
 * milliseconds, and the emulated libraries can be set to fail. */
bool twin_is_emulated(void);

#define FOR_SIDES(s) for (int s = 0; s < SIDES; s++)
struct backend *twin_backend(int side);

/* Set the layout of later twins, until twin_open: members begin at element `offset`, with `gap`
 * elements between them. Multiples of 4 give an alignment that the odd values of twin_open
 * prevent. */
void twin_lay(size_t offset, size_t gap);

/* A tensor for `members` of n elements with an odd offset and a gap after each member; one copy
 * (stride 0) when `shared`. Floats in [lo, hi), or integers in [lo, hi). Freed by twin_close. */
struct twin twin_f32(size_t members, size_t n, bool shared, float lo, float hi);
struct twin twin_i32(size_t members, size_t n, bool shared, int32_t lo, int32_t hi);

/* The tensor on one side. */
struct tensor twin_at(const struct twin *t, int side);

/* Set element i of member k on both sides. */
void twin_set_f32(const struct twin *t, size_t k, size_t i, float value);
void twin_set_i32(const struct twin *t, size_t k, size_t i, int32_t value);

/* Element i of member k on one side. */
float twin_get_f32(const struct twin *t, int side, size_t k, size_t i);
int32_t twin_get_i32(const struct twin *t, int side, size_t k, size_t i);

/* Whole buffers: |a - b| <= atol + rtol |a|, a the oracle's. NaN fails. Integers must be equal. */
void twin_same(const struct twin *t, const char *what, float atol, float rtol);

/* As twin_same, but NaN equals NaN. */
void twin_same_or_nan(const struct twin *t, const char *what, float atol, float rtol);

#endif
