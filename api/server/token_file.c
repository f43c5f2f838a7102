#include "api/server/token_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/services/tokens.h"

/* Read the token from the file; "" if there is no file. */
static as_status read_token(const char *path, char text[TOKEN_TEXT_SIZE], struct as_err *err)
{
    AS_AUTO(as_freep) char *content = NULL;
    size_t len = 0;
    struct stat sb;
    text[0] = '\0';
    as_status st = file_read(path, 4096, &content, &len, err);
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st < 0)
        return st;
    if (stat(path, &sb) == 0 && (sb.st_mode & 077))
        return as_fail(err, AS_E_DENIED,
                       "%.200s may be read by others (mode %03o): chmod 600 it, or remove it", path,
                       (unsigned)sb.st_mode & 0777);
    size_t n = strcspn(content, "\r\n \t");
    if (n < TOKEN_TEXT_SIZE)
        (void)snprintf(text, TOKEN_TEXT_SIZE, "%.*s", (int)n, content);
    return AS_OK;
}

/* AS_OK: the database knows this token with this role. AS_E_DENIED: it does not. */
static as_status verify_role(struct store *db, const char *text, token_role role,
                             struct as_err *err)
{
    struct principal who;
    as_status st = token_verify(db, text, &who, err);
    if (st < 0)
        return st;
    return who.role == role ? AS_OK : AS_E_DENIED;
}

static as_status import_token(struct store *db, const char *text, token_role role,
                              struct as_err *err)
{
    as_status st = token_import(db, text, token_role_format(role), err);
    return st < 0 ? st : verify_role(db, text, role, err);
}

/* Accept the token: verify it, or import it if the database does not know it. AS_E_DENIED: it
 * cannot be used. */
static as_status accept_token(struct store *db, const char *text, token_role role,
                              struct as_err *err)
{
    struct principal who;
    if (!text[0])
        return AS_E_DENIED;
    as_status st = token_verify(db, text, &who, err);
    if (st == AS_OK)
        return who.role == role ? AS_OK : AS_E_DENIED;
    if (st != AS_E_DENIED)
        return st;
    st = import_token(db, text, role, err);
    return st == AS_E_INVAL || st == AS_E_CONFLICT ? AS_E_DENIED : st;
}

static as_status write_token(const char *path, const char *text, struct as_err *err)
{
    char line[TOKEN_TEXT_SIZE + 1];
    int n = snprintf(line, sizeof line, "%s\n", text);
    return file_replace(path, line, (size_t)n, 0600, err);
}

as_status token_file_ensure(struct store *db, const char *path, token_role role, struct as_err *err)
{
    char text[TOKEN_TEXT_SIZE];
    as_status st = read_token(path, text, err);
    if (st < 0)
        return st;
    st = accept_token(db, text, role, err);
    if (st != AS_E_DENIED)
        return st;
    AS_AUTO(arena_done) struct arena a = {0};
    struct token_row row;
    st = token_create(db, &a, role, token_role_format(role), 0, &row, text, err);
    if (st < 0)
        return st;
    st = write_token(path, text, err);
    if (st < 0)
        return st;
    log_write(LOG_INFO, "token file written", "path=%s role=%s id=%s", path,
              token_role_format(role), row.id);
    return AS_OK;
}
