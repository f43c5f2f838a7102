/* Checking and expanding walk over the same references (template.h) with different callbacks, so
 * what is accepted is what can be expanded. An element is looked at before it is written: ${args}
 * alone in an element becomes many arguments, and an element whose only reference is inactive or
 * null is left out with its flag, because no usual flag says "none" (decision 4001). */
#include "base/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

typedef enum args_style { ARGS_LONG, ARGS_HYDRA, ARGS_SHORT, ARGS_NONE } args_style;

static args_style style_of(const char *text, size_t len)
{
    static const char *const words[] = {
        [ARGS_LONG] = "long", [ARGS_HYDRA] = "hydra", [ARGS_SHORT] = "short"};
    for (size_t i = 0; i < AS_ARRAY_LEN(words); i++)
        if (strlen(words[i]) == len && memcmp(words[i], text, len) == 0)
            return (args_style)i;
    return ARGS_NONE;
}

/* ---- checking ---- */

struct checking {
    const struct command_rules *rules;
    bool is_strict, in_list, is_argument;
};

static as_status check_args(const struct checking *c, const struct template_ref *ref,
                            struct as_err *err)
{
    int shown = (int)(ref->text_len < 40 ? ref->text_len : 40);
    if (!c->is_argument || !ref->is_alone)
        return as_fail(err, AS_E_INVAL,
                       "${%s} stands for several arguments; expected it in trial.command, as an "
                       "element of its own",
                       ref->name);
    if (ref->form == TEMPLATE_ARGS && style_of(ref->text, ref->text_len) == ARGS_NONE)
        return as_fail(err, AS_E_INVAL,
                       "${args:%.*s} has no known style; expected args, args:hydra or args:short",
                       shown, ref->text);
    return AS_OK;
}

static as_status check_inactive(const struct checking *c, const struct template_ref *ref,
                                struct as_err *err)
{
    if (!c->is_strict || c->in_list || ref->form != TEMPLATE_VALUE ||
        !c->rules->conditional(c->rules->arg, ref->name))
        return AS_OK;
    const char *name = ref->name;
    if (!c->is_argument)
        return as_fail(err, AS_E_INVAL,
                       "'%s' has a `when`, and where it is inactive ${%s} would be empty; write "
                       "${%s:-default}, or ${%s:-} if empty is meant",
                       name, name, name, name);
    return as_fail(err, AS_E_INVAL,
                   "'%s' has a `when`, and where it is inactive ${%s} would be empty; write "
                   "${%s:-default}, or a list such as [\"--%s\", \"${%s}\"], which is left out, or "
                   "${args} for all active parameters",
                   name, name, name, name, name);
}

static as_status check_ref(void *arg, const struct template_ref *ref, struct as_err *err)
{
    const struct checking *c = arg;
    const struct command_rules *r = c->rules;
    bool is_known = r->known(r->arg, ref->name);
    if (ref->form == TEMPLATE_ARGS ||
        (ref->form == TEMPLATE_VALUE && !is_known && as_streq(ref->name, "args")))
        return check_args(c, ref, err);
    if (!is_known && ref->form == TEMPLATE_FILE)
        return as_fail(err, AS_E_INVAL, "trial.files has no '%s'", template_file_path(ref->name));
    if (!is_known)
        return as_fail(err, AS_E_INVAL,
                       "there is no parameter '%s'; write $${%s} for the characters ${%s}",
                       ref->name, ref->name, ref->name);
    if (ref->form == TEMPLATE_WHEN && !r->boolean(r->arg, ref->name))
        return as_fail(err, AS_E_INVAL,
                       "${%s?…} needs a parameter that is true or false; '%s' is not of type bool",
                       ref->name, ref->name);
    return check_inactive(c, ref, err);
}

as_status command_line_check(const json_t *element, const char *pointer,
                             const struct command_rules *rules, bool is_strict, struct as_err *err)
{
    struct checking c = {.rules = rules,
                         .is_strict = is_strict,
                         .in_list = json_is_array(element),
                         .is_argument = true};
    return template_visit(element, pointer, check_ref, &c, err);
}

as_status command_text_check(const json_t *text, const char *pointer,
                             const struct command_rules *rules, bool is_strict, struct as_err *err)
{
    struct checking c = {.rules = rules, .is_strict = is_strict};
    return template_visit(text, pointer, check_ref, &c, err);
}

/* ---- expanding ---- */

struct expansion {
    const json_t *params, *inactive, *names;
    json_t *out;
};

static as_status add_argument(struct expansion *x, json_t *text, struct as_err *err)
{
    if (json_array_append_new(x->out, text) < 0)
        return as_fail_nomem(err);
    if (json_array_size(x->out) > COMMAND_LINE_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "more than %d arguments", COMMAND_LINE_MAX);
    return AS_OK;
}

/* The value as ${name} is in a text. */
static as_status value_text(const json_t *v, char **ret, struct as_err *err)
{
    JSON_AUTO one = json_pack("{s:O}", "v", v);
    return one ? template_apply_text("${v}", one, ret, err) : as_fail_nomem(err);
}

static as_status add_parameter(struct expansion *x, args_style style, const char *name,
                               const json_t *value, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    as_status st = value_text(value, &text, err);
    if (st < 0)
        return st;
    const char *dashes = style == ARGS_HYDRA ? "" : "--";
    if (style != ARGS_SHORT)
        return add_argument(x, json_sprintf("%s%s=%s", dashes, name, text), err);
    st = add_argument(x, json_sprintf("%s%s", dashes, name), err);
    return st < 0 ? st : add_argument(x, json_string(text), err);
}

static as_status add_parameters(struct expansion *x, args_style style, struct as_err *err)
{
    const char *name;
    json_t *value;
    as_status st = AS_OK;
    json_object_foreach((json_t *)x->params, name, value)
    {
        /* no flag says null but its absence; Hydra has a word for it */
        bool is_said = !json_is_null(value) || style == ARGS_HYDRA;
        if (st == AS_OK && is_said)
            st = add_parameter(x, style, name, value, err);
    }
    return st;
}

static bool is_parameter(const struct expansion *x, const char *name)
{
    if (json_object_get(x->params, name))
        return true;
    for (size_t i = 0; i < json_array_size(x->inactive); i++)
        if (as_streq(json_string_value(json_array_get(x->inactive, i)), name))
            return true;
    return false;
}

/* What an element is besides text. */
struct sight {
    const struct expansion *x;
    args_style style; /* it is ${args} */
    bool lacks;       /* a name without a default is inactive or null */
    bool is_left_out; /* it is ${name?text}, and the parameter is not true */
};

static as_status look(void *arg, const struct template_ref *ref, struct as_err *err)
{
    struct sight *s = arg;
    const json_t *value = json_object_get(s->x->names, ref->name);
    (void)err;
    if (ref->is_alone && ref->form == TEMPLATE_ARGS)
        s->style = style_of(ref->text, ref->text_len);
    else if (ref->is_alone && ref->form == TEMPLATE_VALUE && as_streq(ref->name, "args") &&
             !is_parameter(s->x, "args"))
        s->style = ARGS_LONG;
    else if ((!value || json_is_null(value)) && ref->form != TEMPLATE_DEFAULT)
        s->lacks = true;
    if (ref->is_alone && ref->form == TEMPLATE_WHEN)
        s->is_left_out = !json_is_true(value);
    return AS_OK;
}

static as_status add_element(struct expansion *x, const json_t *j, struct as_err *err)
{
    struct sight s = {.x = x, .style = ARGS_NONE};
    AS_AUTO(as_freep) char *text = NULL;
    if (json_is_number(j)) {
        as_status st = value_text(j, &text, err);
        return st < 0 ? st : add_argument(x, json_string(text), err);
    }
    if (!json_is_string(j))
        return as_fail(err, AS_E_INVAL, "found %s, expected a string or a number",
                       json_type_name(j));
    as_status st = template_visit(j, "", look, &s, err);
    if (st < 0 || s.is_left_out)
        return st;
    if (s.style != ARGS_NONE)
        return add_parameters(x, s.style, err);
    if ((st = template_apply_text(json_string_value(j), x->names, &text, err)) < 0)
        return st;
    return add_argument(x, json_string(text), err);
}

static as_status add_list(struct expansion *x, const json_t *list, struct as_err *err)
{
    struct sight s = {.x = x, .style = ARGS_NONE};
    as_status st = template_visit(list, "", look, &s, err);
    for (size_t i = 0; st == AS_OK && !s.lacks && i < json_array_size(list); i++)
        st = add_element(x, json_array_get(list, i), err);
    return st;
}

as_status command_line_expand(const json_t *command, const json_t *params, const json_t *inactive,
                              const json_t *names, json_t **ret, struct as_err *err)
{
    JSON_AUTO out = json_array();
    struct expansion x = {.params = params, .inactive = inactive, .names = names, .out = out};
    if (!out)
        return as_fail_nomem(err);
    for (size_t i = 0; i < json_array_size(command); i++) {
        const json_t *j = json_array_get(command, i);
        as_status st = json_is_array(j) ? add_list(&x, j, err) : add_element(&x, j, err);
        if (st < 0)
            return as_err_prefix(err, st, "trial.command[%zu]", i);
    }
    *ret = as_steal(out);
    return AS_OK;
}
