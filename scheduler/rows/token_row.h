/* Tokens and the roles that they give. Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_TOKEN_ROW_H
#define ASSAY_SCHEDULER_ROWS_TOKEN_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum token_role {
    ROLE_VIEWER,
    ROLE_USER,
    ROLE_RUNNER,
    ROLE_ADMIN,
    ROLE_TRIAL /* of attempt_tokens.h: no row has it, and nobody can ask for one */
} token_role;
#define TOKEN_ROLES 4 /* those that rows have */

const char *token_role_format(token_role r); /* of the first TOKEN_ROLES */
/* AS_E_INVAL: the message lists the roles. */
AS_MUST_CHECK as_status token_role_parse(const char *s, token_role *ret, struct as_err *err);

struct token_row {
    const char *id;
    token_role role;
    const char *name;
    int64_t created_ms, expires_ms, last_used_ms;
};

struct token_page {
    struct token_row *rows;
    size_t n;
    const char *next_cursor;
};

#endif
