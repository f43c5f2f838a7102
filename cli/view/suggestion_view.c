/* Shell output is made to be evaluated: every value is in single quotes, and names become variables
 * as the runner makes them (ASSAY_PARAM_NAME). Two parameters with one variable are refused,
 * because a value under the wrong name is worse than none (decision 7004); inactive parameters are
 * unset, so that a loop does not keep the last trial's. */
#include "cli/view/suggestion_view.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/param_name.h"
#include "base/shell_text.h"
#include "cli/view/format.h"

static void put_variable(struct str *b, const char *name, const char *text)
{
    str_printf(b, "%s=", name);
    shell_quote(b, text);
    str_putc(b, '\n');
}

static void put_integer(struct str *b, const char *name, const json_t *v)
{
    if (json_is_integer(v))
        str_printf(b, "%s=%" JSON_INTEGER_FORMAT "\n", name, json_integer_value(v));
}

/* Write the parameter's variable to `ret` and add it to `taken`, which maps variables to
 * parameters. Empty: it has none. */
static as_status variable_of(const char *param, json_t *taken, struct str *ret, struct as_err *err)
{
    str_clear(ret);
    param_name_variable(param, ret);
    as_status st = str_check(ret, err);
    if (st < 0 || ret->len == 0)
        return st;
    const char *other = json_string_value(json_object_get(taken, ret->s));
    if (other)
        return as_fail(
            err, AS_E_INVAL,
            "parameters '%.60s' and '%.60s' would both be the variable %.80s; use --json", other,
            param, ret->s);
    if (json_object_set_new(taken, ret->s, json_string(param)) != 0)
        return as_fail_nomem(err);
    return AS_OK;
}

static as_status put_params(struct str *b, const json_t *params, json_t *taken, struct as_err *err)
{
    struct str name = {0}, value = {0};
    const char *param;
    json_t *v;
    as_status st = AS_OK;
    json_object_foreach((json_t *)params, param, v)
    {
        st = variable_of(param, taken, &name, err);
        if (st < 0)
            break;
        str_clear(&value);
        format_param(&value, v, FORMAT_EXACT);
        st = str_check(&value, err);
        if (st < 0)
            break;
        if (name.len)
            put_variable(b, name.s, str_cstr(&value));
    }
    str_done(&name);
    str_done(&value);
    return st;
}

static as_status put_unset(struct str *b, const json_t *inactive, json_t *taken, struct as_err *err)
{
    struct str name = {0};
    size_t i;
    json_t *param;
    as_status st = AS_OK;
    json_array_foreach((json_t *)inactive, i, param)
    {
        st = json_is_string(param) ? variable_of(json_string_value(param), taken, &name, err)
                                   : AS_OK;
        if (st < 0)
            break;
        if (name.len)
            str_printf(b, "unset %s\n", name.s);
    }
    str_done(&name);
    return st;
}

as_status suggestion_view_shell(const char *sweep, const json_t *suggestion, struct str *b,
                                struct as_err *err)
{
    JSON_AUTO taken = json_object();
    const json_t *params = json_object_get(suggestion, "params");
    const char *seed = json_string_value(json_object_get(suggestion, "seed"));
    AS_AUTO(as_freep) char *text = json_format_ordered(params);
    if (!taken || !text)
        return as_fail_nomem(err);
    put_variable(b, "ASSAY_SWEEP", sweep);
    put_integer(b, "ASSAY_NUMBER", json_object_get(suggestion, "number"));
    put_integer(b, "ASSAY_ATTEMPT", json_object_get(suggestion, "attempt"));
    put_variable(b, "ASSAY_SEED", seed ? seed : "");
    put_variable(b, "ASSAY_PARAMS", text);
    as_status st = put_params(b, params, taken, err);
    if (st < 0)
        return st;
    st = put_unset(b, json_object_get(suggestion, "inactive"), taken, err);
    if (st < 0)
        return st;
    return str_check(b, err);
}

void suggestion_view_pairs(const char *sweep, const json_t *suggestion, struct pairs *p)
{
    const char *name;
    json_t *v;
    pairs_addf(p, "trial", "%s/%" JSON_INTEGER_FORMAT, sweep,
               json_integer_value(json_object_get(suggestion, "number")));
    json_object_foreach(json_object_get(suggestion, "params"), name, v)
    {
        struct str label = {0};
        str_printf(&label, "param.%s", name);
        /* All digits, also on a terminal: people copy them into other programs. */
        struct str b = {0};
        format_param(&b, v, FORMAT_EXACT);
        pairs_add(p, str_cstr(&label), STYLE_BOLD, str_cstr(&b));
        str_done(&label);
        str_done(&b);
    }
    pairs_add_json(p, "lease until", json_object_get(suggestion, "lease_until"));
}
