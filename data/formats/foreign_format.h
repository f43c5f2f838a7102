/* Files of other formats that people give as a CSV table by mistake, known by how they begin. */
#ifndef ASSAY_DATA_FORMATS_FOREIGN_FORMAT_H
#define ASSAY_DATA_FORMATS_FOREIGN_FORMAT_H

#include <stddef.h>

/* What a file is that begins with these bytes ("a Parquet file"), and in *ret_advice how it becomes
 * a CSV table. NULL: nothing that is known. Static texts. */
const char *foreign_format(const char *bytes, size_t len, const char **ret_advice);

#endif
