/* Where the values of naive Bayes lie. For model/naive-bayes/ alone. */
#ifndef ASSAY_MODEL_BAYES_LAYOUT_H
#define ASSAY_MODEL_BAYES_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define BAYES_MAGIC "assaynb1"
#define BAYES_COUNTS_END ((size_t)24) /* bytes: the magic and four numbers */

/* Doubles of an input. */
size_t bayes_input_values(uint32_t kind, size_t classes);

/* Bytes before the doubles. */
size_t bayes_header(size_t inputs);

#endif
