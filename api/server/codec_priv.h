/* Building objects field by field; a failure anywhere makes the whole NULL. */
#ifndef ASSAY_API_SERVER_CODEC_PRIV_H
#define ASSAY_API_SERVER_CODEC_PRIV_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct out {
    json_t *obj;
    bool failed;
};

struct out out_begin(void);
json_t *out_end(struct out *o); /* the object, or NULL when anything failed */

void out_child(struct out *o, const char *name, json_t *child); /* takes; NULL: failed */
void out_str(struct out *o, const char *name, const char *s);   /* NULL: null */
void out_reals(struct out *o, const char *name,
               const char *text); /* JSON whose numbers are doubles */
void out_i64(struct out *o, const char *name, int64_t v);
void out_decimal(struct out *o, const char *name, int64_t v); /* as a string */
void out_bool(struct out *o, const char *name, bool v);
void out_number(struct out *o, const char *name, double v);
void out_null(struct out *o, const char *name);
void out_time(struct out *o, const char *name, int64_t ms);       /* 0: null */
void out_json(struct out *o, const char *name, const char *text); /* NULL: null */

/* A list being built; NULL when memory ran out. `add` takes the item. */
json_t *list_add(json_t *list, json_t *item);

/* {"items": [...], "next_cursor": ...}; takes `items`. */
json_t *page_end(json_t *items, const char *next_cursor);

#endif
