#include "base/proc_stat.h"

#include <stdlib.h>
#include <string.h>

/* Places behind the name, from 0. */
enum {
    STATE,
    PARENT,
    SESSION = 3,
    USER = 11,
    SYSTEM,
    USER_WAITED,
    SYSTEM_WAITED,
    START = 19,
    PAGES = 21,
    FIELDS
};

/* The name of the program, in parentheses, may hold anything: the fields begin after the last
 * one. */
bool proc_stat_parse(const char *text, struct proc_stat *ret)
{
    long long fields[FIELDS] = {0};
    const char *rest = strrchr(text, ')');
    if (!rest || rest[1] != ' ' || rest[2] == '\0')
        return false;
    const char state = rest[2];
    rest += 3;
    for (int i = PARENT; i < FIELDS; i++) {
        char *end;
        fields[i] = strtoll(rest, &end, 10);
        if (end == rest)
            return false;
        rest = end;
    }
    *ret = (struct proc_stat){.state = state,
                              .parent = (int)fields[PARENT],
                              .session = (int)fields[SESSION],
                              .user = (unsigned long long)fields[USER],
                              .system = (unsigned long long)fields[SYSTEM],
                              .user_waited = (unsigned long long)fields[USER_WAITED],
                              .system_waited = (unsigned long long)fields[SYSTEM_WAITED],
                              .start = (unsigned long long)fields[START],
                              .pages = fields[PAGES]};
    return true;
}
