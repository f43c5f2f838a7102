/* assay token create | list | revoke. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/view/format.h"
#include "cli/session/deletion.h"
#include "cli/session/list.h"
#include "cli/session/session.h"
#include "cli/view/say.h"

struct token {
    struct session session;
    const char *name;
    const char *ttl;
    const char *output;
    bool yes;
};

static as_status make_body(const struct token *t, const char *role, json_t **ret,
                           struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s}", "role", role);
    int bad = body ? 0 : 1;
    if (body && t->name)
        bad |= json_object_set_new(body, "name", json_string(t->name));
    if (body && t->ttl)
        bad |= json_object_set_new(body, "ttl", json_string(t->ttl));
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(body);
    return AS_OK;
}

static as_status write_token(const struct token *t, const char *text, struct as_err *err)
{
    AS_AUTO(str_done) struct str line = {0};
    str_printf(&line, "%s\n", text);
    as_status st = str_check(&line, err);
    if (st < 0)
        return st;
    st = file_write_output(t->output, line.s, line.len, 0600, err);
    if (st < 0)
        return st;
    say("The token is in %s", t->output);
    return AS_OK;
}

static as_status create_token(const struct token *t, const char *role, struct as_err *err)
{
    JSON_AUTO body = NULL;
    JSON_AUTO answer = NULL;
    as_status st = make_body(t, role, &body, err);
    if (st < 0)
        return st;
    st = client_call(t->session.client, "POST", "/v1/tokens", NULL, body, NULL, &answer, NULL, err);
    if (st < 0)
        return st;
    const char *text = json_string_value(json_object_get(answer, "token"));
    const char *id = json_string_value(json_object_get(answer, "id"));
    if (!text || !id)
        return as_fail(err, AS_E_INTERNAL, "the server returned no token");
    if (t->output)
        return write_token(t, text, err);
    if (t->session.json)
        return session_print_json(answer, err);
    say("Token %s with the role %s; it is shown only now:", id, role);
    return printf("%s\n", text) < 0 ? as_fail(err, AS_E_IO, "cannot write the output") : AS_OK;
}

static void add_row(const struct session *s, struct table *t, const json_t *token, int64_t now_ms)
{
    char buf[32];
    static const char *const texts[] = {"id", "role", "name"};
    static const char *const times[] = {"created_at", "last_used_at"};
    for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++)
        table_cell(t, json_string_value(json_object_get(token, texts[i])));
    for (size_t i = 0; i < AS_ARRAY_LEN(times); i++) {
        const json_t *time = json_object_get(token, times[i]);
        table_cell(t, s->terminal.tty ? format_ago(time, now_ms, buf) : json_string_value(time));
    }
    table_cell(t, json_string_value(json_object_get(token, "expires_at")));
}

static as_status list_tokens(const struct session *s, struct as_err *err)
{
    static const struct list_column columns[] = {
        {"token", TABLE_LEFT, 0},   {"role", TABLE_LEFT, 0}, {"name", TABLE_LEFT, 8},
        {"created", TABLE_LEFT, 8}, {"used", TABLE_LEFT, 8}, {"expires", TABLE_LEFT, 10},
        {.header = NULL},
    };
    const struct list l = {.path = "/v1/tokens", .columns = columns, .add_row = add_row};
    return list_print(s, &l, err);
}

static bool ask_token(const json_t *token, const char *id, struct str *b)
{
    const char *role = json_string_value(json_object_get(token, "role"));
    const char *name = json_string_value(json_object_get(token, "name"));
    str_printf(b, "Revoke the %s token %s%s%s%s? Programs that use it are refused from now on.",
               role ? role : "", id, name ? " (" : "", name ? name : "", name ? ")" : "");
    return true;
}

static int revoke_token(const struct token *t, const char *id)
{
    const struct deletion d = {.path = "/v1/tokens",
                               .id = id,
                               .done = "revoked",
                               .yes = t->yes,
                               .is_in_list = true,
                               .ask = ask_token};
    return deletion_run(&t->session, &d);
}

static bool is_role(const char *word)
{
    static const char *const roles[] = {"viewer", "user", "runner", "admin"};
    for (size_t i = 0; i < AS_ARRAY_LEN(roles); i++)
        if (as_streq(word, roles[i]))
            return true;
    return false;
}

int cmd_token(const struct verb *v, int argc, char **argv)
{
    struct token t = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {
        {"name", 0, OPT_STRING, &t.name, "NAME", NULL, "what it is for"},
        {"ttl", 0, OPT_STRING, &t.ttl, "DURATION", NULL, "how long it is valid, such as 30d"},
        {"output", 'o', OPT_STRING, &t.output, "FILE", NULL,
         "write the token into this file, mode 0600"},
        DELETION_OPT(&t.yes),
        SESSION_OPTS(&t.session),
    };
    if (session_begin(&t.session, v, table, argc, argv, 1, 2, &n, &code)) {
        if (as_streq(argv[1], "create") && n == 2 && !is_role(argv[2]))
            code = exit_with_usage(v->name,
                                   "ROLE: found '%.40s', expected viewer, user, runner or "
                                   "admin",
                                   argv[2]);
        else if (as_streq(argv[1], "create") && n == 2)
            code = session_end(&t.session, create_token(&t, argv[2], &err), &err);
        else if (as_streq(argv[1], "list") && n == 1)
            code = session_end(&t.session, list_tokens(&t.session, &err), &err);
        else if (as_streq(argv[1], "revoke") && n == 2)
            code = revoke_token(&t, argv[2]);
        else
            code = exit_with_usage(v->name, "expected `create ROLE`, `list` or `revoke ID`");
    }
    session_done(&t.session);
    return code;
}
