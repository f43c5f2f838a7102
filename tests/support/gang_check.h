/* What a large trial of gang.h has written, compared with an undisturbed run. */
#ifndef ASSAY_TESTS_SUPPORT_GANG_CHECK_H
#define ASSAY_TESTS_SUPPORT_GANG_CHECK_H

#include "tests/support/gang.h"

/* 600 pictures of 8 x 8 with two channels become the rig's data set; the class is where the bright
 * half is. */
void gang_pictures(struct rig *rig);
/* 40,000 rows of six numbers without clusters: some hundred iterations of k-means. */
void gang_cloud(struct rig *rig);
/* 1,200 rows of two columns of 300 categories each, whose sum of numbers decides the class. */
void gang_categories(struct rig *rig);

/* DIR/TAG/FOLDER/NAME, owned by the caller; the test fails if it is missing. */
char *gang_read(const struct rig *rig, const char *tag, const char *folder, const char *name,
                size_t *ret_len);
void gang_same_file(const struct rig *rig, const char *a, const char *b, const char *folder,
                    const char *name);
/* The model and its predictions are the same bytes. */
void gang_same_results(const struct rig *rig, const char *a, const char *b);
/* Every line that any rank has reported is a line of the report of `calm`. */
void gang_same_reports(const char *calm, const struct gang *g);

/* Every rank ended with 0 or by one of these signals (0: by none), and at least one with 0; prints
 * what the ranks wrote otherwise. */
void gang_ended_well(const struct gang *g, int signal);

/* Runs the trial to its end with n ranks. */
void gang_run_calm(struct rig *rig, const char *tag, const struct trial *t, size_t n);

#endif
