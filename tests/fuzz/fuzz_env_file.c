/* Files of variables: whatever the bytes are, names are names, values are texts, and what was read
 * can be written in double quotes and read again. */
#include <stdlib.h>
#include <string.h>

#include "base/env_file.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static as_status write_again(void *arg, const char *name, const char *value, struct as_err *err)
{
    if (!env_name_valid(name))
        abort();
    str_printf(arg, "%s=\"", name);
    for (; *value; value++) {
        if (strchr("\"\\$", *value))
            str_putc(arg, '\\');
        str_putc(arg, *value);
    }
    str_puts(arg, "\"\n");
    return str_check(arg, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(str_done) struct str once = {0}, twice = {0};
    if (env_file_parse((const char *)data, size, write_again, &once, NULL) < 0)
        return 0;
    if (env_file_parse(str_cstr(&once), once.len, write_again, &twice, NULL) < 0)
        abort();
    if (once.len != twice.len || memcmp(str_cstr(&once), str_cstr(&twice), once.len) != 0)
        abort();
    return 0;
}
