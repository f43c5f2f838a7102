#include "bench/scheduler/trial_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind the first `key` from `at` on; NULL if there is none. */
static const char *number_behind(const char *at, const char *key, int64_t *ret)
{
    const char *found = at ? strstr(at, key) : NULL;
    if (!found)
        return NULL;
    *ret = strtoll(found + strlen(key), NULL, 10);
    return found;
}

bool trial_name_next(const char **at, struct trial_name *ret)
{
    static const char key[] = "{\"sweep\":\"";
    const char *begin = strstr(*at, key);
    if (!begin)
        return false;
    begin += sizeof key - 1;
    size_t len = strcspn(begin, "\"");
    if (len >= sizeof ret->sweep || !number_behind(begin, "\"number\":", &ret->number))
        return false;
    memcpy(ret->sweep, begin, len);
    ret->sweep[len] = '\0';
    *at = number_behind(begin, "\"attempt\":", &ret->attempt);
    return *at != NULL;
}

void trial_path(const struct trial_name *t, const char *route, char *ret, size_t size)
{
    (void)snprintf(ret, size, "/v1/sweeps/%s/trials/%lld/attempts/%lld/%s", t->sweep,
                   (long long)t->number, (long long)t->attempt, route);
}
