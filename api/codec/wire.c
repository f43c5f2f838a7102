/* The builder of JSON objects that all encoders use. Every out_…() call may fail for want of
 * memory; the object then becomes NULL and the later calls do nothing, so an encoder checks once,
 * at out_end(). A real that JSON cannot hold is written as base/json.h says, an unknown one as
 * null. */
#include "api/codec/wire_priv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

struct out out_begin(void)
{
    struct out o = {.obj = json_object()};
    o.failed = !o.obj;
    return o;
}

json_t *out_end(struct out *o)
{
    if (o->failed) {
        json_decref(o->obj);
        o->obj = NULL;
    }
    return o->obj;
}

void out_child(struct out *o, const char *name, json_t *child)
{
    if (o->failed)
        json_decref(child);
    else
        o->failed = json_object_set_new(o->obj, name, child) < 0;
}

void out_str(struct out *o, const char *name, const char *s)
{
    out_child(o, name, s ? json_string(s) : json_null());
}

void out_i64(struct out *o, const char *name, int64_t v)
{
    out_child(o, name, json_integer(v));
}

void out_i64_or_null(struct out *o, const char *name, bool is_known, int64_t v)
{
    out_child(o, name, is_known ? json_integer(v) : json_null());
}

void out_decimal(struct out *o, const char *name, int64_t v)
{
    char buf[24];
    (void)snprintf(buf, sizeof buf, "%" PRId64, v);
    out_child(o, name, json_string(buf));
}

void out_bool(struct out *o, const char *name, bool v)
{
    out_child(o, name, json_boolean(v));
}

void out_number(struct out *o, const char *name, double v)
{
    out_child(o, name, json_number_new(v));
}

void out_real_or_null(struct out *o, const char *name, double v)
{
    out_child(o, name, isnan(v) ? json_null() : json_number_new(v));
}

void out_null(struct out *o, const char *name)
{
    out_child(o, name, json_null());
}

void out_time(struct out *o, const char *name, int64_t ms)
{
    char buf[32];
    out_child(o, name, ms ? json_string(clock_format_utc(ms, buf)) : json_null());
}

void out_json(struct out *o, const char *name, const char *text)
{
    json_t *j = NULL;
    if (!text)
        j = json_null();
    else if (json_parse(text, strlen(text), &j, NULL) < 0)
        j = NULL;
    out_child(o, name, j);
}

void out_reals(struct out *o, const char *name, const char *text)
{
    json_t *j = NULL;
    if (json_parse_reals(text, strlen(text), &j, NULL) < 0)
        j = NULL;
    out_child(o, name, j);
}

json_t *list_add(json_t *list, json_t *item)
{
    if (list && json_array_append_new(list, item) == 0)
        return list;
    if (!list)
        json_decref(item);
    json_decref(list);
    return NULL;
}

json_t *page_end(json_t *items, const char *next_cursor)
{
    struct out o = out_begin();
    out_child(&o, "items", items);
    out_str(&o, "next_cursor", next_cursor);
    return out_end(&o);
}
