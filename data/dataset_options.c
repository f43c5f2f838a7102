/* The options of a data set: copies, and their JSON form.
 *
 * Only what differs from the default is written, so that records from before an option existed and
 * records without it are the same. */
#include "data/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "data/formats/csv.h"
#include "data/dataset_json.h"
#include "data/names_json.h"
#include "base/json.h"

bool dataset_codes_have(const struct dataset_codes *codes, double v)
{
    for (size_t i = 0; i < codes->n; i++)
        if (codes->value[i] == v)
            return true;
    return false;
}

static void names_done(struct dataset_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
}

void dataset_options_done(struct dataset_options *o)
{
    free(o->x);
    free(o->y);
    free(o->positive);
    names_done(&o->select);
    names_done(&o->drop);
    names_done(&o->text);
    names_done(&o->numeric);
    free(o->missing.value);
    *o = (struct dataset_options){0};
}

static as_status copy_names(const struct dataset_names *names, struct dataset_names *ret,
                            struct as_err *err)
{
    *ret = (struct dataset_names){0};
    if (names->n == 0)
        return AS_OK;
    ret->name = as_calloc(names->n, sizeof *ret->name);
    for (; ret->name && ret->n < names->n; ret->n++)
        if (!(ret->name[ret->n] = as_strdup(names->name[ret->n])))
            return as_fail_nomem(err);
    return ret->name ? AS_OK : as_fail_nomem(err);
}

static as_status copy_codes(const struct dataset_codes *codes, struct dataset_codes *ret,
                            struct as_err *err)
{
    *ret = (struct dataset_codes){0};
    if (codes->n == 0)
        return AS_OK;
    ret->value = as_calloc(codes->n, sizeof *ret->value);
    if (!ret->value)
        return as_fail_nomem(err);
    memcpy(ret->value, codes->value, codes->n * sizeof *ret->value);
    ret->n = codes->n;
    return AS_OK;
}

as_status dataset_options_copy(const struct dataset_options *o, struct dataset_options *ret,
                               struct as_err *err)
{
    *ret = *o;
    ret->select = ret->drop = ret->text = ret->numeric = (struct dataset_names){0};
    ret->missing = (struct dataset_codes){0};
    ret->x = as_strdup(o->x);
    ret->y = as_strdup(o->y);
    ret->positive = as_strdup(o->positive);
    if ((o->x && !ret->x) || (o->y && !ret->y) || (o->positive && !ret->positive))
        return as_fail_nomem(err);
    as_status st = copy_names(&o->select, &ret->select, err);
    if (st == AS_OK)
        st = copy_names(&o->drop, &ret->drop, err);
    if (st == AS_OK)
        st = copy_names(&o->text, &ret->text, err);
    if (st == AS_OK)
        st = copy_names(&o->numeric, &ret->numeric, err);
    if (st == AS_OK)
        st = copy_codes(&o->missing, &ret->missing, err);
    return st;
}

/* ---- JSON ---- */

static int set_character(json_t *obj, const char *name, char c)
{
    return c ? json_object_set_new(obj, name, json_stringn(&c, 1)) : 0;
}

static int set_names(json_t *obj, const char *name, const struct dataset_names *names)
{
    return names->n ? json_object_set_new(obj, name, names_json_new(names->name, names->n)) : 0;
}

static int set_codes(json_t *obj, const char *name, const struct dataset_codes *codes)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < codes->n; i++)
        if (json_array_append_new(list, json_real(codes->value[i])) != 0)
            return -1;
    return codes->n ? json_object_set(obj, name, list) : 0;
}

json_t *dataset_options_to_json(const struct dataset_options *o)
{
    JSON_AUTO obj = json_object();
    int bad = obj == NULL;
    if (o->channels_first)
        bad |= json_object_set_new(obj, "channels_first", json_true());
    if (o->raw)
        bad |= json_object_set_new(obj, "raw", json_true());
    if (o->vocab)
        bad |= json_object_set_new(obj, "vocab", json_integer((json_int_t)o->vocab));
    if (o->x)
        bad |= json_object_set_new(obj, "x", json_string(o->x));
    if (o->y)
        bad |= json_object_set_new(obj, "y", json_string(o->y));
    if (o->positive)
        bad |= json_object_set_new(obj, "positive", json_string(o->positive));
    bad |= set_character(obj, "separator", o->separator);
    bad |= set_character(obj, "decimal", o->decimal);
    bad |= set_character(obj, "comment", o->comment);
    bad |= set_names(obj, "select", &o->select);
    bad |= set_names(obj, "drop", &o->drop);
    bad |= set_names(obj, "text", &o->text);
    bad |= set_names(obj, "numeric", &o->numeric);
    bad |= set_codes(obj, "missing", &o->missing);
    if (o->buckets)
        bad |= json_object_set_new(obj, "buckets", json_integer((json_int_t)o->buckets));
    if (o->drop_unlabelled)
        bad |= json_object_set_new(obj, "drop_unlabelled", json_true());
    return bad ? NULL : as_steal(obj);
}

/* Read a field of one character out of `allowed`; 0 if it is absent. */
static as_status read_character(struct json_fields *f, const char *name, const char *allowed,
                                char *ret, struct as_err *err)
{
    const char *s = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    as_status st = json_fields_str(f, name, JSON_OPTIONAL, &s, err);
    if (st != AS_OK || !s)
        return st;
    json_pointer_child(f->pointer, name, pointer);
    if (strlen(s) != 1 || !strchr(allowed, *s))
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found '%.20s', expected one of the characters %s%s", pointer, s,
                          strchr(allowed, '\t') ? "tab and " : "",
                          strchr(allowed, '\t') ? ", ; | : ^ ~" : allowed);
    *ret = *s;
    return AS_OK;
}

static as_status read_names(struct json_fields *f, const char *name, struct dataset_names *ret,
                            struct as_err *err)
{
    json_t *list = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    as_status st = json_fields_array(f, name, JSON_OPTIONAL, &list, err);
    if (st != AS_OK || !list)
        return st;
    json_pointer_child(f->pointer, name, pointer);
    if (json_array_size(list) == 0 || json_array_size(list) > DATASET_MAX_PATTERNS)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %zu names, expected 1 to %zu",
                          pointer, json_array_size(list), DATASET_MAX_PATTERNS);
    st = names_json_read(list, pointer, &ret->name, &ret->n, err);
    for (size_t i = 0; st == AS_OK && i < ret->n; i++)
        if (strlen(ret->name[i]) > DATASET_MAX_PATTERN)
            st = as_fail_at(err, AS_E_INVAL, pointer, "%s/%zu: %zu bytes, expected at most %zu",
                            pointer, i, strlen(ret->name[i]), DATASET_MAX_PATTERN);
    return st;
}

/* jansson reads no number that is not finite. */
static as_status read_codes(struct json_fields *f, const char *name, struct dataset_codes *ret,
                            struct as_err *err)
{
    json_t *list = NULL, *code;
    size_t i;
    char pointer[AS_ERR_POINTER_MAX];
    as_status st = json_fields_array(f, name, JSON_OPTIONAL, &list, err);
    if (st != AS_OK || !list)
        return st;
    json_pointer_child(f->pointer, name, pointer);
    if (json_array_size(list) == 0 || json_array_size(list) > DATASET_MAX_CODES)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %zu numbers, expected 1 to %zu",
                          pointer, json_array_size(list), DATASET_MAX_CODES);
    ret->value = as_calloc(json_array_size(list), sizeof *ret->value);
    if (!ret->value)
        return as_fail_nomem(err);
    json_array_foreach(list, i, code)
    {
        if (!json_is_number(code))
            return as_fail_at(err, AS_E_INVAL, pointer, "%s/%zu: found %s, expected a number",
                              pointer, i, json_type_name(code));
        ret->value[ret->n++] = json_number_value(code);
    }
    return AS_OK;
}

static as_status read_csv_options(struct json_fields *f, struct dataset_options *ret,
                                  struct as_err *err)
{
    int64_t buckets = 0;
    as_status st = read_character(f, "separator", CSV_SEPARATORS, &ret->separator, err);
    if (st != AS_OK)
        return st;
    st = read_character(f, "decimal", ".,", &ret->decimal, err);
    if (st != AS_OK)
        return st;
    st = read_character(f, "comment", "#%;!/*'$@&>", &ret->comment, err);
    if (st != AS_OK)
        return st;
    st = read_names(f, "select", &ret->select, err);
    if (st != AS_OK)
        return st;
    st = read_names(f, "drop", &ret->drop, err);
    if (st != AS_OK)
        return st;
    st = read_names(f, "text", &ret->text, err);
    if (st != AS_OK)
        return st;
    st = read_names(f, "numeric", &ret->numeric, err);
    if (st != AS_OK)
        return st;
    st = read_codes(f, "missing", &ret->missing, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "buckets", JSON_OPTIONAL, (int64_t)DATASET_MIN_BUCKETS,
                         (int64_t)DATASET_MAX_BUCKETS, &buckets, err);
    ret->buckets = (size_t)buckets;
    if (st != AS_OK)
        return st;
    return json_fields_bool(f, "drop_unlabelled", JSON_OPTIONAL, &ret->drop_unlabelled, err);
}

static as_status check_characters(const struct dataset_options *o, const char *pointer,
                                  struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, o->decimal == ',' ? "decimal" : "comment", at);
    if (o->decimal == ',' && o->separator == ',')
        return as_fail_at(err, AS_E_INVAL, at, "%s: found ',', which separates the cells", at);
    if (o->comment && o->comment == o->separator)
        return as_fail_at(err, AS_E_INVAL, at, "%s: found '%c', which separates the cells", at,
                          o->comment);
    return AS_OK;
}

as_status dataset_options_from_json(const json_t *obj, const char *pointer,
                                    struct dataset_options *ret, struct as_err *err)
{
    struct json_fields f;
    const char *x = NULL, *y = NULL, *positive = NULL;
    int64_t vocab = 0;
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    st = json_fields_bool(&f, "channels_first", JSON_OPTIONAL, &ret->channels_first, err);
    if (st != AS_OK)
        return st;
    st = json_fields_bool(&f, "raw", JSON_OPTIONAL, &ret->raw, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(&f, "vocab", JSON_OPTIONAL, 2, (int64_t)DATASET_MAX_VOCAB, &vocab, err);
    if (st != AS_OK)
        return st;
    st = json_fields_text(&f, "x", JSON_OPTIONAL, 1, DATASET_MAX_ARRAY_NAME, &x, err);
    if (st != AS_OK)
        return st;
    st = json_fields_text(&f, "y", JSON_OPTIONAL, 1, DATASET_MAX_ARRAY_NAME, &y, err);
    if (st != AS_OK)
        return st;
    st = json_fields_text(&f, "positive", JSON_OPTIONAL, 1, DATASET_MAX_CLASS_NAME, &positive, err);
    if (st != AS_OK)
        return st;
    st = read_csv_options(&f, ret, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    ret->vocab = (size_t)vocab;
    ret->x = as_strdup(x);
    ret->y = as_strdup(y);
    ret->positive = as_strdup(positive);
    if ((x && !ret->x) || (y && !ret->y) || (positive && !ret->positive))
        return as_fail_nomem(err);
    return check_characters(ret, f.pointer, err);
}
