#include "cli/session/exit_code.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/session/interrupt.h"
#include "cli/view/text.h"

const struct exit_meaning exit_meanings[] = {
    {EXIT_OK, "done"},
    {EXIT_FAIL, "failed (also: the sweep failed, under --watch)"},
    {EXIT_CANCELLED, "cancelled (also: Ctrl-C)"},
    {EXIT_NOT_FOUND, "not found"},
    {EXIT_DENIED, "not allowed"},
    {EXIT_CONFLICT, "conflict"},
    {EXIT_TIMEOUT, "timed out"},
    {EXIT_UNAVAILABLE, "server not reachable"},
    {EXIT_DONE, "ask: the sweep is over"},
    {EXIT_USAGE, "wrong command line"},
    {.meaning = NULL},
};

int exit_code_of(as_status st)
{
    switch (st) {
    case AS_OK:
        return EXIT_OK;
    case AS_E_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case AS_E_DENIED:
        return EXIT_DENIED;
    case AS_E_CONFLICT:
    case AS_E_STALE:
        return EXIT_CONFLICT;
    case AS_E_TIMEOUT:
        return EXIT_TIMEOUT;
    case AS_E_UNAVAILABLE:
        return EXIT_UNAVAILABLE;
    default:
        return EXIT_FAIL;
    }
}

static void print_line(const char *line)
{
    struct str b = {0};
    text_escape(&b, line, strlen(line), TEXT_KEEP_LINES);
    (void)fprintf(stderr, "%s\n", str_cstr(&b));
    str_done(&b);
}

int exit_with_error(const char *verb, as_status st, const struct as_err *err)
{
    if (interrupt_seen())
        return EXIT_CANCELLED;
    char line[AS_ERR_MSG_MAX + AS_ERR_POINTER_MAX + 80];
    /* Most messages contain the name of the field. */
    bool named = !err->pointer[0] || strstr(err->msg, err->pointer);
    (void)snprintf(line, sizeof line, "assay %s: %s%s%s", verb, named ? "" : err->pointer,
                   named ? "" : ": ", err->msg[0] ? err->msg : as_status_name(st));
    print_line(line);
    return exit_code_of(st);
}

int exit_with_usage(const char *verb, const char *fmt, ...)
{
    char msg[400], line[600];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(msg, sizeof msg, fmt, args);
    va_end(args);
    (void)snprintf(line, sizeof line, "assay%s%s: %s\nSee `assay help%s%s`.", *verb ? " " : "",
                   verb, msg, *verb ? " " : "", verb);
    print_line(line);
    return EXIT_USAGE;
}

int exit_after_output(const char *verb, int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    (void)fprintf(stderr, "assay %s: cannot write the output: %s\n", verb, strerror(errno));
    return EXIT_FAIL;
}
