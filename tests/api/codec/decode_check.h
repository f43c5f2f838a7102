/* Decoders against a table of texts: what they take, and what they refuse and where. */
#ifndef ASSAY_TESTS_API_CODEC_DECODE_CHECK_H
#define ASSAY_TESTS_API_CODEC_DECODE_CHECK_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"

typedef as_status decode_fn(const json_t *doc, struct arena *a, struct as_err *err);

struct decode_case {
    decode_fn *decode;
    const char *text, *pointer; /* pointer NULL: it is fine */
};

/* The tree of a text that is JSON. New reference. */
json_t *decode_parse(const char *text);

/* ck_assert that the text is taken, or is refused at the pointer with a message. says_where: which
 * begins with the pointer, because programs print the message and nothing else. */
void decode_check(const struct decode_case *c, bool says_where);

#endif
