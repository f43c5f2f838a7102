/* assay tag SWEEP TAG…: adds tags to a sweep, or removes them.
 * assay remark SWEEP TEXT: sets its remarks. */
#include "base/json.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/say.h"

static bool has_tag(const json_t *tags, const char *tag)
{
    size_t i;
    json_t *there;
    json_array_foreach((json_t *)tags, i, there)
    {
        if (as_streq(json_string_value(there), tag))
            return true;
    }
    return false;
}

/* The tags that the sweep will have; NULL when memory is out. */
static json_t *change_tags(const json_t *tags, const char *const *given, size_t n, bool remove)
{
    JSON_AUTO after = json_array();
    JSON_AUTO wanted = json_array();
    size_t i;
    json_t *tag;
    int bad = after && wanted ? 0 : -1;
    for (i = 0; i < n; i++)
        bad |= json_array_append_new(wanted, json_string(given[i]));
    json_array_foreach((json_t *)tags, i, tag)
    {
        if (!remove || !has_tag(wanted, json_string_value(tag)))
            bad |= json_array_append(after, tag);
    }
    json_array_foreach(wanted, i, tag)
    {
        if (!remove && !has_tag(after, json_string_value(tag)))
            bad |= json_array_append(after, tag);
    }
    return bad ? NULL : as_steal(after);
}

static as_status print_tags(const struct session *s, const char *name, const json_t *sweep,
                            struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    size_t i;
    json_t *tag;
    if (s->json)
        return session_print_json(sweep, err);
    json_array_foreach(json_object_get(sweep, "tags"), i, tag)
        str_printf(&b, "%s%s", i ? ", " : "", json_string_value(tag));
    if (b.len)
        say("%s has the tags %s", name, str_cstr(&b));
    else
        say("%s has no tags", name);
    return str_check(&b, err);
}

static as_status tag_sweep(const struct session *s, const char *name, const char *const *given,
                           size_t n, bool remove, struct as_err *err)
{
    struct trial_ref ref;
    JSON_AUTO before = NULL;
    JSON_AUTO answer = NULL;
    as_status st = request_parse_sweep(name, &ref, err);
    if (st == AS_OK)
        st = request_get(s->client, &ref, NULL, NULL, &before, err);
    if (st < 0)
        return st;
    JSON_AUTO tags = change_tags(json_object_get(before, "tags"), given, n, remove);
    JSON_AUTO body = json_pack("{s:O*}", "tags", tags);
    if (!tags)
        return as_fail_nomem(err);
    st = request_patch(s->client, &ref, body, &answer, err);
    return st < 0 ? st : print_tags(s, ref.sweep, answer, err);
}

static as_status remark_sweep(const struct session *s, const char *name, const char *text,
                              struct as_err *err)
{
    struct trial_ref ref;
    JSON_AUTO answer = NULL;
    as_status st = request_parse_sweep(name, &ref, err);
    if (st < 0)
        return st;
    JSON_AUTO body = json_pack("{s:s}", "remarks", text);
    if (!body)
        return as_fail(err, AS_E_USAGE, "TEXT is not UTF-8");
    if ((st = request_patch(s->client, &ref, body, &answer, err)) < 0)
        return st;
    if (s->json)
        return session_print_json(answer, err);
    say(*text ? "%s has other remarks" : "%s has no remarks", ref.sweep);
    return AS_OK;
}

int cmd_tag(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    bool remove = false;
    int n, code;
    const struct opt table[] = {{"remove", 0, OPT_FLAG, &remove, NULL, NULL, "remove these tags"},
                                SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 2, 33, &n, &code))
        code = session_end(
            &s, tag_sweep(&s, argv[1], (const char *const *)argv + 2, (size_t)n - 1, remove, &err),
            &err);
    session_done(&s);
    return code;
}

int cmd_remark(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 2, 2, &n, &code))
        code = session_end(&s, remark_sweep(&s, argv[1], argv[2], &err), &err);
    session_done(&s);
    return code;
}
