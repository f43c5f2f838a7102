#include "base/metric_name.h"

#include <stddef.h>
#include <string.h>

#define FIRST "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define ALL FIRST "0123456789./@()-"

bool metric_name_valid(const char *name)
{
    size_t n = strspn(name, ALL);
    return n > 0 && n <= METRIC_NAME_MAX && name[n] == '\0' && strchr(FIRST, name[0]);
}

void metric_name_from(const char *name, char ret[METRIC_NAME_MAX + 1])
{
    size_t n = 0;
    if (!*name || (strchr(ALL, *name) && !strchr(FIRST, *name)))
        ret[n++] = '_';
    for (; *name && n < METRIC_NAME_MAX; name++)
        ret[n++] = strchr(ALL, *name) ? *name : '_';
    ret[n] = '\0';
}
