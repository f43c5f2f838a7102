/* A parameter's value is read as YAML, so that lr=0.1 is a number, name=adam a text and widths=[64,
 * 32] a list, as in a document; an object is refused. A name that stands twice is an error: the
 * last one would win in silence. */
#include "cli/files/param_args.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/yaml_reader.h"

bool param_args_number(const char *text, double *ret)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {
        {"nan", NAN},
        {"inf", INFINITY},
        {"infinity", INFINITY},
        {"+inf", INFINITY},
        {"+infinity", INFINITY},
        {"-inf", -INFINITY},
        {"-infinity", -INFINITY},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(words); i++) {
        if (strcasecmp(text, words[i].text) == 0) {
            *ret = words[i].value;
            return true;
        }
    }
    return as_parse_double(text, ret, NULL) == AS_OK;
}

/* Split NAME=VALUE. *ret_name is a copy, owned by the caller; *ret_value is a view of text. */
static as_status split_assignment(const char *text, const char *example, char **ret_name,
                                  const char **ret_value, struct as_err *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return as_fail(err, AS_E_USAGE, "expected NAME=VALUE, such as %s, found '%.80s'", example,
                       text);
    struct str name = {0};
    str_add(&name, text, (size_t)(equals - text));
    *ret_name = str_take(&name);
    *ret_value = equals + 1;
    return *ret_name ? AS_OK : as_fail_nomem(err);
}

static as_status add_member(json_t *object, const char *name, json_t *value, struct as_err *err)
{
    JSON_AUTO owned = value;
    if (json_object_get(object, name))
        return as_fail(err, AS_E_USAGE, "%.60s is given twice", name);
    if (json_object_set(object, name, owned) != 0)
        return as_fail_nomem(err);
    return AS_OK;
}

as_status param_args_add_metric(json_t *metrics, const char *text, struct as_err *err)
{
    AS_AUTO(as_freep) char *name = NULL;
    const char *value = NULL;
    double v;
    as_status st = split_assignment(text, "val_error=0.031", &name, &value, err);
    if (st < 0)
        return st;
    if (!param_args_number(value, &v))
        return as_fail(err, AS_E_USAGE, "%.60s: expected a number (or NaN), found '%.60s'", name,
                       value);
    return add_member(metrics, name, json_number_new(v), err);
}

as_status param_args_add_param(json_t *params, const char *text, struct as_err *err)
{
    AS_AUTO(as_freep) char *name = NULL;
    JSON_AUTO v = NULL;
    const char *value = NULL;
    as_status st = split_assignment(text, "lr=0.1", &name, &value, err);
    if (st < 0)
        return st;
    if (!*value)
        return as_fail(err, AS_E_USAGE, "%.60s: expected a value, such as null or ''", name);
    st = yaml_parse(value, strlen(value), &v, err);
    if (st < 0)
        return as_err_prefix(err, st == AS_E_INVAL ? AS_E_USAGE : st, "%.60s", name);
    if (json_is_object(v))
        return as_fail(err, AS_E_USAGE,
                       "%.60s: expected a number, a text, true, false, null or a list, found %s",
                       name, json_type_name(v));
    return add_member(params, name, as_steal(v), err);
}

static as_status check_limit_name(const char *name, struct as_err *err)
{
    static const char *const names[] = {
        "max_trials", "max_concurrent_trials", "max_failed_trials", "max_restarts", "target",
        "stop_when",  "trial_timeout",         "on_timeout",        "wall_time",    "max_steps",
        "grace"};
    AS_AUTO(str_done) struct str list = {0};
    struct as_nearest near = {.given = name};
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
        if (as_streq(name, names[i]))
            return AS_OK;
        as_nearest_offer(&near, names[i]);
        str_printf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    if (near.name)
        return as_fail(err, AS_E_USAGE, "'%.60s' is no limit; did you mean %s?", name, near.name);
    return as_fail(err, AS_E_USAGE, "'%.60s' is no limit; expected one of %s", name,
                   str_cstr(&list));
}

/* 0.01 is in units of the metric, 1% is relative, and an object stands for itself. */
static as_status stop_when_of(const char *value, json_t **ret, struct as_err *err)
{
    size_t len = strlen(value);
    double number;
    AS_AUTO(as_freep) char *bare = as_strdup(value);
    if (!bare)
        return as_fail_nomem(err);
    bool is_share = len > 0 && value[len - 1] == '%';
    if (is_share)
        bare[len - 1] = '\0';
    if (as_parse_double(bare, &number, NULL) == AS_OK) {
        *ret = is_share ? json_pack("{s:f}", "relative", number / 100)
                        : json_pack("{s:f}", "regret", number);
        return *ret ? AS_OK : as_fail_nomem(err);
    }
    if (*value != '{')
        return as_fail(err, AS_E_USAGE,
                       "stop_when: expected a number in units of the metric, a share such as 1%%, "
                       "{relative: 0.01, min_trials: 50}, or none; found '%.60s'",
                       value);
    as_status st = yaml_parse(value, len, ret, err);
    return st < 0 ? as_err_prefix(err, st == AS_E_INVAL ? AS_E_USAGE : st, "stop_when") : st;
}

as_status param_args_add_limit(json_t *limits, const char *text, struct as_err *err)
{
    AS_AUTO(as_freep) char *name = NULL;
    const char *value = NULL;
    double number;
    int64_t whole;
    const char *bare = as_starts_with(text, "limits.") ? text + strlen("limits.") : text;
    as_status st = split_assignment(bare, "max_trials=200", &name, &value, err);
    if (st < 0)
        return st;
    if ((st = check_limit_name(name, err)) < 0)
        return st;
    if (as_streq(name, "stop_when") && !as_streq(value, "none")) {
        json_t *limit = NULL;
        st = stop_when_of(value, &limit, err);
        return st < 0 ? st : add_member(limits, name, limit, err);
    }
    json_t *v = as_streq(value, "none")                          ? json_null()
                : as_parse_i64(value, &whole, NULL) == AS_OK     ? json_integer(whole)
                : as_parse_double(value, &number, NULL) == AS_OK ? json_real(number)
                                                                 : json_string(value);
    return add_member(limits, name, v, err);
}

as_status param_args_read(const char *name, const char *const *texts, size_t n, param_args_fn add,
                          json_t **ret, struct as_err *err)
{
    JSON_AUTO object = json_object();
    if (!object)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        as_status st = add(object, texts[i], err);
        if (st < 0)
            return as_err_prefix(err, st, "%s", name);
    }
    *ret = as_steal(object);
    return AS_OK;
}
