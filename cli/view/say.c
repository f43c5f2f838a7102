#include "cli/view/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/view/text.h"

static bool is_quiet;

void say_set_quiet(bool quiet)
{
    is_quiet = quiet;
}

bool say_is_quiet(void)
{
    return is_quiet;
}

void say(const char *fmt, ...)
{
    if (is_quiet)
        return;
    char line[1000];
    struct str b = {0};
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    text_escape(&b, line, strlen(line), TEXT_KEEP_LINES);
    (void)fprintf(stderr, "%s\n", str_cstr(&b));
    str_done(&b);
}
