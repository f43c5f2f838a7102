/* JSON on jansson: strict reading with limits, and getters for the fields of an object, with errors
 * that name the field. JSON has no NaN and no infinities: they are stored as the strings "NaN",
 * "Infinity", "-Infinity".
 *
 * Reading an object:
 *   struct json_fields f;
 *   st = json_fields_init(&f, obj, "/limits", err);     the JSON pointer of obj
 *   st = json_fields_i64(&f, "max_trials", JSON_REQUIRED, 1, 1000000, &limits->max_trials, err);
 *   …
 *   st = json_fields_end(&f, err);                      refuses fields that no getter asked for
 *
 * With a list of faults (f.faults = list, after json_fields_init) a getter that finds a fault notes
 * it there and returns AS_OK with *ret untouched, as for an absent field, and json_fields_end
 * returns the first fault of the object. So every field is read before the object is refused, and
 * what the fields mean together is checked after json_fields_end. */
#ifndef ASSAY_BASE_JSON_H
#define ASSAY_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/faults.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/str.h"

#define JSON_MAX_DEPTH 32
#define JSON_MAX_NODES 200000
#define JSON_MAX_FILE_NODES 50000000

/* cleanup for owned references */
static inline void json_decrefp_(json_t **j)
{
    json_decref(*j);
    *j = NULL;
}
#define JSON_AUTO AS_AUTO(json_decrefp_) json_t *

/* A copy of j with all that is in it; of an object or a list alone, whose values are shared. New
 * references; NULL if memory is out or j is NULL. (json_copy() and json_deep_copy() leave out what
 * they have no memory for, and return the rest.) */
json_t *json_clone(const json_t *j);
json_t *json_clone_flat(const json_t *j);

/* Tests only: from now on the allocations of jansson count for as_mem_fail_nth(), too. */
void json_fail_with_mem(void);

/* Parse one JSON text: valid UTF-8, no duplicate keys, at most JSON_MAX_DEPTH deep and
 * JSON_MAX_NODES values, nothing after it. An integer past 64 bits becomes a real, so that a getter
 * of integers refuses it by the name of its field. AS_E_INVAL with line and column, also for a
 * number past the range of doubles; AS_E_TOO_LARGE. Owned by the caller. */
AS_MUST_CHECK as_status json_parse(const char *text, size_t len, json_t **ret, struct as_err *err);
/* The same, but texts may have a NUL: for a document of parts of which each has its own error. The
 * caller checks each part with json_check_nul() before it reads it. */
AS_MUST_CHECK as_status json_parse_parts(const char *text, size_t len, json_t **ret,
                                         struct as_err *err);
/* Refuse texts with a NUL in j: they would end there for all code that reads them as C strings.
 * `at` is the pointer of j in the messages. AS_E_INVAL. */
AS_MUST_CHECK as_status json_check_nul(const json_t *j, const char *at, struct as_err *err);
/* json_parse() with JSON_MAX_FILE_NODES: for files that people name on a command line, such as an
 * exported sweep. It takes about 100 bytes of memory for each value. */
AS_MUST_CHECK as_status json_parse_file(const char *text, size_t len, json_t **ret,
                                        struct as_err *err);
/* json_parse(), but every number becomes a real. For texts whose numbers are doubles that were
 * written without a point or exponent: a jsonb column returns 1e300 as a 1 with 300 zeros, which is
 * no 64-bit integer. */
AS_MUST_CHECK as_status json_parse_reals(const char *text, size_t len, json_t **ret,
                                         struct as_err *err);

/* Compact text with sorted keys and shortest round-trip numbers; owned by the caller (free). NULL
 * when memory is out. Equal trees give equal bytes, so a digest of it is a digest of the value. */
char *json_format(const json_t *j);
char *json_format_ordered(const json_t *j); /* compact, keys in insertion order */
char *json_format_pretty(const json_t *j);  /* two-space indent, keys in insertion order */
void json_format_to(struct str *b, const json_t *j);

/* A number, or the strings "NaN", "Infinity", "-Infinity" where JSON has none. New reference. */
json_t *json_number_new(double v);
/* Reads what json_number_new writes; false when j is neither. */
bool json_number_get(const json_t *j, double *ret);

typedef enum json_need { JSON_OPTIONAL, JSON_REQUIRED } json_need;

/* Reads the fields of one object and remembers which names the getters asked for. */
struct json_fields {
    const json_t *obj; /* borrowed */
    char pointer[AS_ERR_POINTER_MAX];
    const char *seen[48];
    size_t n_seen;
    struct faults *faults; /* borrowed; NULL: a fault is returned */
    bool is_faulty;        /* a fault of this object was noted: the `first`th of the list */
    size_t first;
};

/* AS_E_INVAL when obj is not an object. `pointer` is copied. */
AS_MUST_CHECK as_status json_fields_init(struct json_fields *f, const json_t *obj,
                                         const char *pointer, struct as_err *err);

/* Each getter returns AS_OK and sets *ret if the field is there and valid; returns AS_OK and leaves
 * *ret untouched if the field is optional and absent (or null); else AS_E_INVAL, with the field,
 * what was found and what was expected. Strings are views of obj. */
AS_MUST_CHECK as_status json_fields_str(struct json_fields *f, const char *name, json_need need,
                                        const char **ret, struct as_err *err);
/* A string of `min` to `max` characters. */
AS_MUST_CHECK as_status json_fields_text(struct json_fields *f, const char *name, json_need need,
                                         size_t min, size_t max, const char **ret,
                                         struct as_err *err);
AS_MUST_CHECK as_status json_fields_i64(struct json_fields *f, const char *name, json_need need,
                                        int64_t min, int64_t max, int64_t *ret, struct as_err *err);
AS_MUST_CHECK as_status json_fields_double(struct json_fields *f, const char *name, json_need need,
                                           double min, double max, double *ret, struct as_err *err);
AS_MUST_CHECK as_status json_fields_bool(struct json_fields *f, const char *name, json_need need,
                                         bool *ret, struct as_err *err);
AS_MUST_CHECK as_status json_fields_object(struct json_fields *f, const char *name, json_need need,
                                           json_t **ret, struct as_err *err); /* borrowed */
AS_MUST_CHECK as_status json_fields_array(struct json_fields *f, const char *name, json_need need,
                                          json_t **ret, struct as_err *err); /* borrowed */
AS_MUST_CHECK as_status json_fields_any(struct json_fields *f, const char *name, json_need need,
                                        json_t **ret, struct as_err *err); /* borrowed */
/* One of the NULL-terminated `words`; *ret is its index. */
AS_MUST_CHECK as_status json_fields_word(struct json_fields *f, const char *name, json_need need,
                                         const char *const *words, int *ret, struct as_err *err);
/* A duration: a number of seconds, or text such as "30s", "5m", "4h". */
AS_MUST_CHECK as_status json_fields_duration(struct json_fields *f, const char *name,
                                             json_need need, int64_t *ret_ms, struct as_err *err);

/* As json_fields_init for an object below `parent`, whose list of faults it shares. */
AS_MUST_CHECK as_status json_fields_under(struct json_fields *f, const struct json_fields *parent,
                                          const json_t *obj, const char *pointer,
                                          struct as_err *err);

/* Note `st`, which was found after the fields were read, so that json_fields_end returns it.
 * Returns it unchanged if there is no list of faults, and as faults_note does. */
AS_MUST_CHECK as_status json_fields_note(struct json_fields *f, as_status st, struct as_err *err);

/* Is the field absent or null? Unlike a getter's NULL, false for one that is at fault. */
bool json_fields_lack(const struct json_fields *f, const char *name);

/* AS_E_INVAL if there is a field that no getter asked for, with the nearest known name. */
AS_MUST_CHECK as_status json_fields_end(struct json_fields *f, struct as_err *err);

/* Write the JSON pointer of a child: parent + "/" + name with ~ and / escaped. */
void json_pointer_child(const char *parent, const char *name, char ret[AS_ERR_POINTER_MAX]);
void json_pointer_index(const char *parent, size_t index, char ret[AS_ERR_POINTER_MAX]);
/* The next part of a JSON pointer without its escapes ("/val~1acc" is val/acc), cut to `size`;
 * advances *p. False at the end. */
bool json_pointer_next(const char **p, char *buf, size_t size);

/* The type of a value for messages: "a string", "a number", … Never NULL. */
const char *json_type_name(const json_t *j);

#endif
