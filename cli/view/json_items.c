#include "cli/view/json_items.h"

#include "base/json.h"

/* A value whose lines after the first begin with `indent` more blanks. No text of JSON has a raw
 * line feed in it. */
static void add_indented(struct str *b, const json_t *v, int indent)
{
    AS_AUTO(as_freep) char *text = json_format_pretty(v);
    b->failed = b->failed || !text;
    for (const char *s = text; s && *s; s++) {
        str_putc(b, *s);
        if (*s == '\n')
            str_printf(b, "%*s", indent, "");
    }
}

void json_items_begin(struct str *b, const char *name, const json_t *first)
{
    str_puts(b, "{\n");
    if (name) {
        str_printf(b, "  \"%s\": ", name);
        add_indented(b, first, 2);
        str_puts(b, ",\n");
    }
    str_puts(b, "  \"items\": [");
}

void json_items_add(struct str *b, const json_t *items, size_t *n)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)items, i, item)
    {
        str_puts(b, *n > 0 ? ",\n    " : "\n    ");
        add_indented(b, item, 4);
        ++*n;
    }
}

void json_items_end(struct str *b, size_t n)
{
    str_puts(b, n > 0 ? "\n  ]\n}\n" : "]\n}\n");
}
