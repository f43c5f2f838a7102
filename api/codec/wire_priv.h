/* Builds JSON objects field by field. After a failure of any field, the object is NULL. */
#ifndef ASSAY_API_CODEC_WIRE_PRIV_H
#define ASSAY_API_CODEC_WIRE_PRIV_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/codec/wire.h"
#include "base/json.h"

#define REASON_MAX 2000 /* characters */

struct out {
    json_t *obj;
    bool failed;
};

struct out out_begin(void);
json_t *out_end(struct out *o); /* the object, or NULL if a field failed */

void out_child(struct out *o, const char *name, json_t *child); /* takes; NULL: failed */
void out_str(struct out *o, const char *name, const char *s);   /* NULL: null */
/* `text` is JSON whose numbers are read as doubles. */
void out_reals(struct out *o, const char *name, const char *text);
void out_i64(struct out *o, const char *name, int64_t v);
void out_i64_or_null(struct out *o, const char *name, bool is_known, int64_t v);
void out_decimal(struct out *o, const char *name, int64_t v); /* as a string */
void out_bool(struct out *o, const char *name, bool v);
void out_number(struct out *o, const char *name, double v);
void out_real_or_null(struct out *o, const char *name, double v); /* NaN: null */
void out_null(struct out *o, const char *name);
void out_time(struct out *o, const char *name, int64_t ms);       /* 0: null */
void out_json(struct out *o, const char *name, const char *text); /* NULL: null */

/* Append an item to a list that is being built; takes the item. Returns the list, or NULL if memory
 * ran out (then the list is released). */
json_t *list_add(json_t *list, json_t *item);

/* {"items": [...], "next_cursor": ...}; takes `items`. */
json_t *page_end(json_t *items, const char *next_cursor);

/* Read the field `items` of a batch of measurements. The rows of ret are in the arena. */
AS_MUST_CHECK as_status measurement_items_read(struct json_fields *f, struct arena *a,
                                               struct measurement_list *ret, struct as_err *err);
/* Read {name: number} at `pointer`, and append them with this `step` to ret. Its rows must have
 * room for them. */
AS_MUST_CHECK as_status metric_values_read(json_t *values, const char *pointer, int64_t step,
                                           struct measurement_list *ret, struct as_err *err);
/* Read the fields of a batch of measurements, and those of a completion. The object may have others
 * beside them. Pointers of errors are those of a document of its own: "/items/3/step". */
AS_MUST_CHECK as_status measurement_batch_read(struct json_fields *f, struct arena *a,
                                               struct measurement_batch *ret, struct as_err *err);
AS_MUST_CHECK as_status completion_read(struct json_fields *f, struct arena *a,
                                        struct completion *ret, struct as_err *err);
/* Read `metrics` and `step` of a completion; both may be missing. The values are in the arena. */
AS_MUST_CHECK as_status final_metrics_read(struct json_fields *f, struct arena *a,
                                           struct completion *c, struct as_err *err);

#endif
