/* Checks decoders with a table of texts: which ones they accept, and which they refuse at which
 * field. */
#ifndef ASSAY_TESTS_API_CODEC_DECODE_CHECK_H
#define ASSAY_TESTS_API_CODEC_DECODE_CHECK_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"

typedef as_status decode_fn(const json_t *doc, struct arena *a, struct as_err *err);

struct decode_case {
    decode_fn *decode;
    const char *text, *pointer; /* pointer NULL: the text is valid */
};

/* The tree of a text that is JSON. New reference. */
json_t *decode_parse(const char *text);

/* Assert that the text is accepted, or is refused at the pointer with a message. says_where: the
 * message must begin with the pointer, because programs print only the message. */
void decode_check(const struct decode_case *c, bool says_where);

#endif
