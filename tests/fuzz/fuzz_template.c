/* Templates: what the check accepts can be applied, to a tree, to text and to the arguments of a
 * program, with and without values. */
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "base/json.h"
#include "base/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool any_name(const void *arg, const char *name)
{
    (void)arg;
    return name[0] != 0;
}

static void apply(const json_t *tree, const char *text, const json_t *params)
{
    JSON_AUTO out = NULL;
    AS_AUTO(as_freep) char *line = NULL;
    if (template_apply(tree, params, &out, NULL) < 0 || !out)
        abort();
    if (text && template_apply_text(text, params, &line, NULL) < 0)
        abort();
}

/* The tree as the only element of a command after the program. */
static void expand(json_t *tree, const json_t *params)
{
    static const struct command_rules rules = {any_name, any_name, any_name, NULL};
    JSON_AUTO command = json_pack("[s, O]", "run", tree);
    JSON_AUTO out = NULL;
    struct as_err err = {0};
    if (!command || command_line_check(tree, "/1", &rules, true, &err) < 0)
        return;
    as_status st = command_line_expand(command, params, NULL, params, &out, &err);
    if (st == AS_OK ? !json_is_array(out) : out != NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO tree = NULL;
    JSON_AUTO names = NULL;
    JSON_AUTO none = json_object();
    JSON_AUTO some = json_pack("{s:f, s:i, s:s, s:b, s:n, s:[i, [s]]}", "lr", 0.1, "n", 3, "s",
                               "${lr}", "on", 1, "none", "layers", 64, "a");
    if (!some || json_object_set_new(some, "opt/lr [β]", json_true()) < 0)
        return 0;
    /* a text that is no JSON is one string */
    if (json_parse((const char *)data, size, &tree, NULL) < 0)
        tree = json_stringn((const char *)data, size);
    if (tree) {
        expand(tree, none);
        expand(tree, some);
    }
    if (!tree || template_check(tree, "", any_name, NULL, NULL) < 0)
        return 0;
    if (template_names(tree, &names, NULL) < 0)
        abort();
    apply(tree, json_string_value(tree), none);
    apply(tree, json_string_value(tree), some);
    return 0;
}
