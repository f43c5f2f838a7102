/* The words for roles. */
#include "scheduler/rows/token_row.h"

#include "base/str.h"

static const char *const role_words[TOKEN_ROLES] = {[ROLE_VIEWER] = "viewer",
                                                    [ROLE_USER] = "user",
                                                    [ROLE_RUNNER] = "runner",
                                                    [ROLE_ADMIN] = "admin"};

const char *token_role_format(token_role r)
{
    return role_words[r];
}

as_status token_role_parse(const char *s, token_role *ret, struct as_err *err)
{
    for (int i = 0; i < TOKEN_ROLES; i++) {
        if (as_streq(s, role_words[i])) {
            *ret = (token_role)i;
            return AS_OK;
        }
    }
    return as_fail(err, AS_E_INVAL, "'%.40s' is not a role; expected viewer, user, runner or admin",
                   s);
}
