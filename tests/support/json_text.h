/* JSON written in a test's source. Both return a new reference, and fail the test if the text is
 * not JSON. */
#ifndef ASSAY_TESTS_SUPPORT_JSON_TEXT_H
#define ASSAY_TESTS_SUPPORT_JSON_TEXT_H

#include <jansson.h>

/* The value of a text. */
json_t *json_plain(const char *text);

/* The value of a text with ' instead of ". */
json_t *json_of(const char *text);

#endif
