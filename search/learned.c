#include "search/learned.h"

#include "base/json.h"
#include "base/str.h"

/* The values of a choice in a document, a new reference; null: it is none. */
static json_t *values_of(const json_t *parameters, const char *choice)
{
    const json_t *spec = json_object_get(parameters, choice);
    const json_t *values = json_object_get(spec, "values");
    if (as_streq(json_string_value(json_object_get(spec, "type")), "bool"))
        return json_pack("[b, b]", 0, 1);
    return json_is_array(values) ? json_copy((json_t *)values) : json_null();
}

/* Take `value` out of the list when[choice], which begins with all values of the choice. */
static int leave_out(json_t *when, const json_t *parameters, const char *choice,
                     const json_t *value)
{
    json_t *list = json_object_get(when, choice);
    if (!list) {
        list = values_of(parameters, choice);
        if (json_object_set_new(when, choice, list) < 0)
            return -1;
    }
    for (size_t i = json_array_size(list); i-- > 0;)
        if (json_equal(json_array_get(list, i), (json_t *)value))
            (void)json_array_remove(list, i);
    return 0;
}

static json_t *find_entry(json_t *list, const char *parameter)
{
    size_t i;
    json_t *entry;
    json_array_foreach(list, i, entry)
    {
        if (as_streq(json_string_value(json_object_get(entry, "parameter")), parameter))
            return entry;
    }
    entry = json_pack("{s:s, s:[], s:{}}", "parameter", parameter, "no_effect", "when");
    return json_array_append_new(list, entry) < 0 ? NULL : entry;
}

static int add_pair(json_t *list, const json_t *pair, const json_t *parameters)
{
    const char *name = json_string_value(json_object_get(pair, "parameter")), *choice;
    json_t *where = json_object_get(pair, "where"), *value;
    if (!name || !json_is_object(where))
        return 0;
    json_t *entry = find_entry(list, name);
    if (!entry)
        return -1;
    int rc = json_array_append_new(
        json_object_get(entry, "no_effect"),
        json_pack("{s:O, s:O}", "where", where, "trials", json_object_get(pair, "trials")));
    json_object_foreach(where, choice, value)
    {
        if (rc == 0)
            rc = leave_out(json_object_get(entry, "when"), parameters, choice, value);
    }
    return rc;
}

/* A condition that no value meets cannot be declared. */
static int drop_impossible(json_t *entry)
{
    const char *choice;
    json_t *values;
    json_object_foreach(json_object_get(entry, "when"), choice, values)
    {
        if (json_array_size(values) == 0)
            return json_object_del(entry, "when");
    }
    return 0;
}

json_t *learned_of_reason(const json_t *reason, const json_t *parameters)
{
    size_t i;
    json_t *item;
    int rc = 0;
    JSON_AUTO list = json_array();
    json_array_foreach(json_object_get(reason, "no_effect"), i, item)
    {
        if (rc == 0)
            rc = add_pair(list, item, parameters);
    }
    json_array_foreach(list, i, item)
    {
        if (rc == 0)
            rc = drop_impossible(item);
    }
    return rc < 0 || !list ? NULL : as_steal(list);
}
