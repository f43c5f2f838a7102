#include "cli/files/shell_environment.h"

#include <string.h>

#include "base/host_id.h"
#include "base/mem.h"
#include "base/json.h"
#include "base/str.h"

bool shell_environment_is_local(const char *url)
{
    static const char *const hosts[] = {"127.", "[::1]", "localhost"};
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    for (size_t i = 0; i < AS_ARRAY_LEN(hosts); i++) {
        size_t n = strlen(hosts[i]);
        if (strncmp(host, hosts[i], n) != 0)
            continue;
        n += i == 0 ? strspn(host + n, "0123456789.") : 0;
        if (strchr(":/", host[n])) /* which also finds the end of the text */
            return true;
    }
    return false;
}

static const char *value_of(const char *name, char *const *base)
{
    size_t n = strlen(name);
    for (; *base; base++)
        if (strncmp(*base, name, n) == 0 && (*base)[n] == '=')
            return *base + n + 1;
    return NULL;
}

static as_status add_variables(json_t *variables, char *const *base, struct as_err *err)
{
    static const char *const names[] = {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX"};
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
        const char *value = value_of(names[i], base);
        if (!value || !*value)
            continue;
        if (!as_utf8_valid(value, strlen(value)))
            return as_fail(err, AS_E_INVAL,
                           "%s of this shell is not UTF-8 and cannot be passed to trials; "
                           "--no-env leaves it out",
                           names[i]);
        if (json_object_set_new(variables, names[i], json_string(value)) < 0)
            return as_fail_nomem(err);
    }
    return AS_OK;
}

as_status shell_environment_set(json_t *document, char *const *base, struct as_err *err)
{
    json_t *trial = json_object_get(document, "trial");
    char host[HOST_ID_SIZE];
    if (!json_object_get(trial, "command") || json_object_get(trial, "environment") ||
        json_object_get(trial, "container"))
        return AS_OK;
    as_status st = host_id_read(host, err);
    if (st == AS_E_UNSUPPORTED)
        return AS_OK;
    if (st < 0)
        return st;
    JSON_AUTO variables = json_object();
    if (!variables)
        return as_fail_nomem(err);
    if ((st = add_variables(variables, base, err)) < 0)
        return st;
    return json_object_set_new(trial, "environment",
                               json_pack("{s:s, s:O}", "host", host, "variables", variables)) < 0
               ? as_fail_nomem(err)
               : AS_OK;
}
