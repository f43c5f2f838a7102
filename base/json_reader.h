/* Reads a JSON text from front to back without a tree, for texts that are large or many: a tree of
 * jansson takes a hundred bytes for each number.
 *
 * It is strict (RFC 8259): valid UTF-8, no NaN, no comments, at most JSON_READER_MAX_DEPTH deep.
 * The first fault is kept: every later call does nothing and returns false, so that a caller of
 * many reads checks json_reader_end() once. Pure; fuzzed (fuzz_infer). */
#ifndef ASSAY_BASE_JSON_READER_H
#define ASSAY_BASE_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"

#define JSON_READER_MAX_DEPTH 16

struct json_reader {
    const char *begin, *at, *end; /* borrowed */
    struct arena *arena;          /* borrowed; strings are kept there */
    int depth;
    as_status st; /* of the first fault */
    struct as_err err;
};

/* A view of a string: UTF-8 and without escapes; it may hold NUL bytes (\u0000). */
struct json_text {
    const char *s;
    size_t len;
};

void json_reader_init(struct json_reader *r, const char *text, size_t len, struct arena *arena);

/* The first character of the next value: '{', '[', '"', 't', 'f', 'n', '-' or '0' for any number;
 * '\0' for a fault. Nothing is consumed but white space. */
char json_reader_peek(struct json_reader *r);

/* Enter an object or array. False: something else is there (a fault that says what was
 * expected). */
bool json_reader_enter(struct json_reader *r, char open, const char *what);
/* The next key of the object; false at its end, which is consumed. *is_first starts true. */
bool json_reader_key(struct json_reader *r, bool *is_first, struct json_text *ret);
/* Is there another element? False at the end of the array, which is consumed. */
bool json_reader_more(struct json_reader *r, bool *is_first);

/* A value of one kind; `what` names it in the message of a fault. */
bool json_reader_text(struct json_reader *r, const char *what, struct json_text *ret);
bool json_reader_number(struct json_reader *r, const char *what, double *ret);
bool json_reader_bool(struct json_reader *r, const char *what, bool *ret);
/* An integer of at most 2^53, or a fault. */
bool json_reader_count(struct json_reader *r, const char *what, size_t *ret);
/* Consume "null" if it is there. */
bool json_reader_null(struct json_reader *r);
/* Check and pass over any value. */
bool json_reader_skip(struct json_reader *r);

/* Note a fault with a place ("line 1 column 7"). Returns false. */
bool json_reader_fail(struct json_reader *r, as_status st, const char *fmt, ...) AS_PRINTF(3, 4);
/* Nothing but white space may follow. The status of the first fault, or AS_OK. */
AS_MUST_CHECK as_status json_reader_end(struct json_reader *r, struct as_err *err);

#endif
