/* Checks in processes that a test has started: assertions of Check would leave the wrong one. */
#ifndef ASSAY_TESTS_SUPPORT_EXPECT_H
#define ASSAY_TESTS_SUPPORT_EXPECT_H

#include <stdio.h>

/* In a function with variables `rank` and `err` whose result is the exit status of its process: if
 * the condition does not hold, it is printed, and the function returns 1. */
#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: rank %d: %s (%s)\n", __FILE__, __LINE__, (int)rank,      \
                          #cond, err.msg);                                                         \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

#endif
