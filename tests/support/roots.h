/* Where the source tree and the build folder are: ASSAY_SOURCE_ROOT and ASSAY_BUILD_ROOT, which
 * Meson sets. For a program that is run by hand they are the current folder and its build/.
 * Absolute paths, views until the thread's next call of the same function. They fail the test if
 * the folder does not exist. */
#ifndef ASSAY_TESTS_SUPPORT_ROOTS_H
#define ASSAY_TESTS_SUPPORT_ROOTS_H

const char *source_root(void);
const char *build_root(void);

#endif
