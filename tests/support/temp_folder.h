/* A folder for one test, with a name of its own below /tmp. Both functions fail the test if they
 * fail. */
#ifndef ASSAY_TESTS_SUPPORT_TEMP_FOLDER_H
#define ASSAY_TESTS_SUPPORT_TEMP_FOLDER_H

#define TEMP_FOLDER_SIZE sizeof "/tmp/assay-test-XXXXXX"

/* Make it; ret is its path. */
void temp_folder_make(char ret[TEMP_FOLDER_SIZE]);

/* Remove it with everything in it. */
void temp_folder_remove(const char *folder);

#endif
