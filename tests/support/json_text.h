/* JSON written in a test's source. Both fail the test when the text is not JSON; new references. */
#ifndef ASSAY_TESTS_SUPPORT_JSON_TEXT_H
#define ASSAY_TESTS_SUPPORT_JSON_TEXT_H

#include <jansson.h>

/* The value of a text. */
json_t *json_plain(const char *text);

/* The value of a text that has ' in place of ". */
json_t *json_of(const char *text);

#endif
