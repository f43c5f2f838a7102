#include "cli/files/table_options.h"

#include <string.h>

#include "base/str.h"

as_status table_options_parse(const char *separator, const char *decimal, const char *comment,
                              struct csv_dialect *ret, struct as_err *err)
{
    bool tab = as_streq(separator, "tab") || as_streq(separator, "\\t");
    const char *s = tab ? "\t" : separator, *d = decimal, *c = comment;
    if (s && (strlen(s) != 1 || !strchr(CSV_SEPARATORS, *s)))
        return as_fail(err, AS_E_USAGE,
                       "--separator: found '%.20s', expected tab or one of , ; | : ^ ~", separator);
    if (d && !as_streq(d, ".") && !as_streq(d, ","))
        return as_fail(err, AS_E_USAGE, "--decimal: found '%.20s', expected a point or a comma", d);
    if (c && strlen(c) != 1)
        return as_fail(err, AS_E_USAGE, "--comment: found '%.20s', expected one character", c);
    *ret = (struct csv_dialect){
        .separator = s ? *s : '\0', .decimal = d ? *d : '\0', .comment = c ? *c : '\0'};
    return AS_OK;
}

as_status table_codes_parse(const char *list, size_t most, double *ret, size_t *ret_n,
                            struct as_err *err)
{
    size_t n = 0;
    for (const char *at = list; at; at = *at ? at + 1 : NULL) {
        char item[64];
        size_t len = strcspn(at, ",");
        bool whole = len < sizeof item;
        if (whole) {
            memcpy(item, at, len);
            item[len] = '\0';
        }
        if (n == most)
            return as_fail(err, AS_E_USAGE, "--missing: found more than %zu numbers", most);
        if (!whole || as_parse_double(item, &ret[n++], NULL) != AS_OK)
            return as_fail(err, AS_E_USAGE,
                           "--missing: found '%.40s', expected a number, or several with commas "
                           "between them",
                           at);
        at += len;
    }
    *ret_n = n;
    return AS_OK;
}
