/* Templates: what the check accepts can be applied, to a tree and to text, with and without values.
 */
#include <stdlib.h>
#include <string.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO tree = NULL;
    JSON_AUTO names = NULL;
    JSON_AUTO none = json_object();
    JSON_AUTO some = json_pack("{s:f, s:i, s:s, s:b}", "lr", 0.1, "n", 3, "s", "${lr}", "on", 1);
    /* a text that is no JSON is one string */
    if (json_parse((const char *)data, size, &tree, NULL) < 0)
        tree = json_stringn((const char *)data, size);
    if (!tree || template_check(tree, "", any_name, NULL, NULL) < 0)
        return 0;
    if (template_names(tree, &names, NULL) < 0)
        abort();
    apply(tree, json_string_value(tree), none);
    apply(tree, json_string_value(tree), some);
    return 0;
}
