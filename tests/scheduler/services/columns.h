/* Files of columns in tests. Every function fails the test if there is no such file, column or
 * row. */
#ifndef ASSAY_TESTS_SCHEDULER_SERVICES_COLUMNS_H
#define ASSAY_TESTS_SCHEDULER_SERVICES_COLUMNS_H

#include "base/arena.h"
#include "data/formats/columnar.h"

/* Read a file; what it returns is in the arena. */
struct columnar parse_columns(struct arena *a, const char *bytes, size_t len);

const struct columnar_column *column(const struct columnar *f, const char *name);
double number(const struct columnar *f, const char *name, size_t row);
const char *word(const struct columnar *f, const char *name, size_t row); /* NULL: none */

#endif
