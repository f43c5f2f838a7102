#include "cli/view/learned_view.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/view/format.h"

static void add_where(const json_t *pair, struct str *b)
{
    const char *choice;
    json_t *value;
    json_object_foreach(json_object_get(pair, "where"), choice, value)
    {
        str_printf(b, "%s is ", choice);
        format_value(b, value, FORMAT_SHORT);
    }
    str_printf(b, " (%" JSON_INTEGER_FORMAT " trials)",
               json_integer_value(json_object_get(pair, "trials")));
}

void learned_view_pairs(const json_t *learned, struct pairs *p)
{
    size_t i, k;
    json_t *entry, *pair;
    json_array_foreach((json_t *)learned, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "parameter"));
        const json_t *when = json_object_get(entry, "when");
        struct str b = {0};
        str_printf(&b, "%s has no effect where ", name ? name : "?");
        json_array_foreach(json_object_get(entry, "no_effect"), k, pair)
        {
            str_puts(&b, k ? ", nor where " : "");
            add_where(pair, &b);
        }
        pairs_add(p, "learned", STYLE_PLAIN, str_cstr(&b));
        str_done(&b);
        AS_AUTO(as_freep) char *text = when ? json_dumps(when, 0) : NULL;
        if (text)
            pairs_addf(p, "  to declare it", "%s: {..., when: %s}", name ? name : "?", text);
    }
}
