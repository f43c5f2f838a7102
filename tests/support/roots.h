/* Where the source tree and the build folder are: ASSAY_SOURCE_ROOT and ASSAY_BUILD_ROOT, which
 * Meson sets; for a program run by hand, the current folder and build/ in it. Absolute paths, views
 * until the thread's next call of the same function. They fail the test when there is none. */
#ifndef ASSAY_TESTS_SUPPORT_ROOTS_H
#define ASSAY_TESTS_SUPPORT_ROOTS_H

const char *source_root(void);
const char *build_root(void);

#endif
