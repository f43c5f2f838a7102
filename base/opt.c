/* Command-line option tables: parsing, checking and help from one table.
 *
 * Arguments are parsed in their order, so that a later option wins. A value is checked where it is
 * set, and the error begins with the option or the variable that it came from. An unknown option
 * gets the nearest name of the table as a suggestion. */
#include "base/opt.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static as_status list_add(struct opt_list *l, const char *value, struct as_err *err)
{
    if (l->n == OPT_LIST_MAX)
        return as_fail(err, AS_E_INVAL, "may be given at most %d times", OPT_LIST_MAX);
    l->values[l->n++] = value;
    return AS_OK;
}

as_status opt_check_ranges(const struct opt_range *ranges, size_t n, struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct opt_range *r = &ranges[i];
        if (r->value >= r->min && r->value <= r->max)
            continue;
        if (r->max == INT64_MAX)
            return as_fail(err, AS_E_INVAL, "--%s is %lld, expected %lld or more", r->name,
                           (long long)r->value, (long long)r->min);
        return as_fail(err, AS_E_INVAL, "--%s is %lld, expected %lld to %lld", r->name,
                       (long long)r->value, (long long)r->min, (long long)r->max);
    }
    return AS_OK;
}

void opt_choices(const struct opt *o, struct str *b)
{
    for (const char *c = o->choices; *c && !as_streq(c, OPT_OR_ANOTHER); c++) {
        if (*c == '|')
            str_puts(b, ", ");
        else
            str_putc(b, *c);
    }
}

static as_status set_string(const struct opt *o, const char *value, struct as_err *err)
{
    size_t len = strlen(value);
    const char *others = o->choices ? strstr(o->choices, OPT_OR_ANOTHER) : NULL;
    bool found = !o->choices || (others && as_streq(others, OPT_OR_ANOTHER));
    for (const char *c = o->choices; c && !found; c = strchr(c, '|'), c = c ? c + 1 : NULL)
        found = strcspn(c, "|") == len && memcmp(c, value, len) == 0;
    if (found) {
        *(const char **)o->ret = value;
        return AS_OK;
    }
    AS_AUTO(str_done) struct str b = {0};
    opt_choices(o, &b);
    return as_fail(err, AS_E_INVAL, "found '%.60s', expected one of %s", value, str_cstr(&b));
}

static as_status set_value(const struct opt *o, const char *value, const char *from,
                           struct as_err *err)
{
    as_status st = AS_OK;
    switch (o->kind) {
    case OPT_FLAG:
        *(bool *)o->ret = !as_streq(value, "0") && !as_streq(value, "false") && *value;
        break;
    case OPT_STRING:
        st = set_string(o, value, err);
        break;
    case OPT_I64:
        st = as_parse_i64(value, o->ret, err);
        break;
    case OPT_DOUBLE:
        st = as_parse_double(value, o->ret, err);
        break;
    case OPT_DURATION:
        st = as_parse_duration_ms(value, o->ret, err);
        break;
    case OPT_LIST:
        st = list_add(o->ret, value, err);
        break;
    }
    return st < 0 ? as_err_prefix(err, st, "%s", from) : AS_OK;
}

static const struct opt *find_option(const struct opt *table, const char *arg, size_t len,
                                     bool is_letter)
{
    for (const struct opt *o = table; o->name; o++)
        if (is_letter ? o->letter && o->letter == arg[0]
                      : strlen(o->name) == len && memcmp(o->name, arg, len) == 0)
            return o;
    return NULL;
}

static as_status fail_unknown(const struct opt *table, const char *arg, struct as_err *err)
{
    const char *given = as_starts_with(arg, "--") ? arg + 2 : "";
    char name[64]; /* what is longer is near to nothing */
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(given, "="), given);
    struct as_nearest near = {.given = name};
    for (const struct opt *o = table; o->name; o++)
        as_nearest_offer(&near, o->name);
    if (near.name)
        return as_fail(err, AS_E_INVAL, "unknown option %.60s; did you mean --%s?", arg, near.name);
    return as_fail(err, AS_E_INVAL, "unknown option %.60s", arg);
}

/* The option and the value of the argument argv[*i], which starts with '-'; *i advances past a
 * separate value. A flag without one has the value "1". */
static as_status read_option(const struct opt *table, int argc, char **argv, int *i,
                             const struct opt **ret, const char **ret_value, struct as_err *err)
{
    const char *arg = argv[*i];
    bool is_letter = arg[1] != '-';
    const char *name = arg + (is_letter ? 1 : 2);
    const char *equals = is_letter ? NULL : strchr(name, '=');
    *ret =
        is_letter && arg[2]
            ? NULL
            : find_option(table, name, equals ? (size_t)(equals - name) : strlen(name), is_letter);
    if (!*ret)
        return fail_unknown(table, arg, err);
    if (equals)
        *ret_value = equals + 1;
    else if ((*ret)->kind == OPT_FLAG)
        *ret_value = "1";
    else if (*i + 1 >= argc)
        return as_fail(err, AS_E_INVAL, "%s needs a value (%s)", arg, (*ret)->value);
    else
        *ret_value = argv[++*i];
    return AS_OK;
}

static bool is_option(const char *arg)
{
    return arg[0] == '-' && arg[1];
}

as_status opt_skip(const struct opt *table, int argc, char **argv, int *ret, struct as_err *err)
{
    int i = 1;
    for (; i < argc && is_option(argv[i]) && strcmp(argv[i], "--") != 0; i++) {
        const struct opt *o;
        const char *value;
        as_status st = read_option(table, argc, argv, &i, &o, &value, err);
        if (st < 0)
            return st;
    }
    *ret = i;
    return AS_OK;
}

as_status opt_parse(const struct opt *table, int argc, char **argv, int *ret_n_args,
                    struct as_err *err)
{
    for (const struct opt *o = table; o->name; o++) {
        const char *value = o->env ? getenv(o->env) : NULL;
        as_status st = value && *value ? set_value(o, value, o->env, err) : AS_OK;
        if (st < 0)
            return st;
    }
    int n = 0;
    bool options = true;
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && is_option(argv[i])) {
            const char *arg = argv[i], *value;
            const struct opt *o;
            as_status st = read_option(table, argc, argv, &i, &o, &value, err);
            if (st == AS_OK)
                st = set_value(o, value, arg, err);
            if (st < 0)
                return st;
        } else {
            argv[1 + n++] = argv[i];
        }
    }
    *ret_n_args = n;
    return AS_OK;
}

/* Append the value of element `i` of a list; of another kind there is one. False: there is none. */
static bool add_value(const struct opt *o, size_t i, struct str *b)
{
    char number[32];
    const struct opt_list *list = o->kind == OPT_LIST ? o->ret : NULL;
    const char *text = list ? (i < list->n ? list->values[i] : NULL) : NULL;
    if (!list && i > 0)
        return false;
    switch (o->kind) {
    case OPT_FLAG:
        return *(const bool *)o->ret;
    case OPT_STRING:
        text = *(const char *const *)o->ret;
        break;
    case OPT_I64:
        str_printf(b, "=%lld", (long long)*(const int64_t *)o->ret);
        return true;
    case OPT_DURATION:
        str_printf(b, "=%lldms", (long long)*(const int64_t *)o->ret);
        return true;
    case OPT_DOUBLE:
        text = as_format_double(*(const double *)o->ret, number, sizeof number);
        break;
    case OPT_LIST:
        break;
    }
    str_printf(b, "=%s", text ? text : "");
    return text != NULL;
}

as_status opt_arguments(const struct opt *table, opt_argument_fn *fn, void *arg, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    for (const struct opt *o = table; o->name; o++) {
        for (size_t i = 0;; i++) {
            str_clear(&b);
            str_printf(&b, "--%s", o->name);
            if (!add_value(o, i, &b))
                break;
            as_status st = str_check(&b, err);
            if (st == AS_OK)
                st = fn(arg, b.s, err);
            if (st < 0)
                return st;
        }
    }
    return AS_OK;
}

void opt_help(const struct opt *table, FILE *out)
{
    for (const struct opt *o = table; o->name; o++) {
        char left[64], letter[8] = "    ";
        if (o->letter)
            (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
        (void)snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value ? " " : "",
                       o->value ? o->value : "");
        struct str choices = {0};
        if (o->choices) {
            str_puts(&choices, ": ");
            opt_choices(o, &choices);
        }
        (void)fprintf(out, "  %-30s %s%s", left, o->help, str_cstr(&choices));
        str_done(&choices);
        (void)fprintf(out, o->env ? " [%s]\n" : "\n", o->env);
    }
}
