/* UBJSON (Universal Binary JSON, draft 12), as XGBoost writes it: a reader that copies nothing of
 * the arrays of numbers. */
#ifndef ASSAY_MODEL_TREES_UBJSON_H
#define ASSAY_MODEL_TREES_UBJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define UBJSON_MAX_DEPTH 64

typedef enum ubjson_kind {
    UBJSON_NULL,
    UBJSON_NUMBER, /* also true (1) and false (0) */
    UBJSON_TEXT,
    UBJSON_LIST,
    UBJSON_NUMBERS, /* a list of numbers of one type */
    UBJSON_OBJECT
} ubjson_kind;

struct ubjson {
    ubjson_kind kind;
    double number;
    const char *text; /* TEXT: NUL-terminated; of a member of an object: see `key` */
    const char *key;  /* the name within its object; else NULL */
    size_t n;         /* values of a list, members of an object */
    struct ubjson *items;
    char type; /* NUMBERS: of its values, which lie at `bytes`, the first byte the highest */
    const unsigned char *bytes;
};

/* Read the value that `bytes` is. The result lies in `memory`; `bytes` must live as long.
 * AS_E_INVAL: it is no UBJSON, or something follows it; AS_E_NOMEM. */
AS_MUST_CHECK as_status ubjson_parse(struct arena *memory, const void *bytes, size_t len,
                                     const struct ubjson **ret, struct as_err *err);

/* A member of an object; NULL if there is none, or v is NULL or no object. */
const struct ubjson *ubjson_get(const struct ubjson *v, const char *key);

/* Values of a list; 0 if v is NULL or no list. */
size_t ubjson_count(const struct ubjson *v);

/* Number i < ubjson_count(v) of a list; NaN if it is no number. */
double ubjson_number(const struct ubjson *v, size_t i);

#endif
