#include "cli/fit/fit_defaults.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/fit/fit_learned.h"

static json_t *value_new(const char *text)
{
    char *end;
    long long whole = strtoll(text, &end, 10);
    if (end != text && *end == '\0')
        return json_integer(whole);
    double number = strtod(text, &end);
    return end != text && *end == '\0' ? json_real(number) : json_string(text);
}

/* The configuration as a trial has it. */
static json_t *params_new(const char *learned)
{
    JSON_AUTO params = json_object();
    char name[32], value[32];
    int n = 0;
    for (const char *at = learned; params && *at; at += n + (at[n] == ' ')) {
        if (sscanf(at, "%31[^= ]=%31[^ ]%n", name, value, &n) != 2 ||
            json_object_set_new(params, name, value_new(value)) != 0)
            return NULL;
    }
    return as_steal(params);
}

json_t *fit_defaults(void)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; list && i < fit_n_learned; i++)
        if (json_array_append_new(list, params_new(fit_learned[i])) != 0)
            return NULL;
    return as_steal(list);
}
