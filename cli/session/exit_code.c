/* A status becomes an exit code here and nowhere else; `assay help` and the man page print the
 * table of meanings. After Ctrl-C every failure is "cancelled", because the failure follows from
 * it. Under --json an error is one problem document on standard error and nothing else is
 * printed there. Output that could not be written (a full disk, a closed pipe) makes a success a
 * failure. */
#include "cli/session/exit_code.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/session/interrupt.h"
#include "cli/view/say.h"
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
    case AS_E_USAGE:
        return EXIT_USAGE;
    default:
        return EXIT_FAIL;
    }
}

static bool is_json;

void exit_with_json(void)
{
    is_json = true;
    say_set_quiet(true);
}

static void print_line(const char *line)
{
    struct str b = {0};
    text_escape(&b, line, strlen(line), TEXT_KEEP_LINES);
    (void)fprintf(stderr, "%s\n", str_cstr(&b));
    str_done(&b);
}

/* Print a problem document. Without memory for it only the exit code says what happened. */
static void print_problem(const char *verb, const char *title, const char *code,
                          const char *pointer, const char *detail, int exit_code)
{
    JSON_AUTO j =
        json_pack("{s:s, s:s, s:s}", "type", "about:blank", "title", title, "detail", detail);
    int bad = j ? 0 : 1;
    if (!bad && *code)
        bad |= json_object_set_new(j, "code", json_string(code));
    if (!bad && *pointer)
        bad |= json_object_set_new(j, "errors",
                                   json_pack("[{s:s, s:s}]", "pointer", pointer, "detail", detail));
    if (!bad && *verb)
        bad |= json_object_set_new(j, "verb", json_string(verb));
    if (!bad)
        bad |= json_object_set_new(j, "exit_code", json_integer(exit_code));
    AS_AUTO(as_freep) char *text = bad ? NULL : json_format_ordered(j);
    if (text)
        (void)fprintf(stderr, "%s\n", text);
}

int exit_with_problem(const char *verb, as_status st, const char *code, const struct as_err *err)
{
    if (interrupt_seen())
        return EXIT_CANCELLED;
    const char *msg = err->msg[0] ? err->msg : as_status_name(st);
    if (is_json) {
        print_problem(verb, as_status_name(st), code, err->pointer, msg, exit_code_of(st));
        return exit_code_of(st);
    }
    char line[AS_ERR_MSG_MAX + AS_ERR_POINTER_MAX + 80];
    /* Most messages contain the name of the field. */
    bool named = !err->pointer[0] || strstr(err->msg, err->pointer);
    (void)snprintf(line, sizeof line, "assay %s: %s%s%s", verb, named ? "" : err->pointer,
                   named ? "" : ": ", msg);
    print_line(line);
    return exit_code_of(st);
}

int exit_with_error(const char *verb, as_status st, const struct as_err *err)
{
    return exit_with_problem(verb, st, "", err);
}

int exit_with_usage(const char *verb, const char *fmt, ...)
{
    char msg[400], line[600];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(msg, sizeof msg, fmt, args);
    va_end(args);
    if (is_json) {
        as_utf8_repair(msg);
        print_problem(verb, "usage", "", "", msg, EXIT_USAGE);
        return EXIT_USAGE;
    }
    (void)snprintf(line, sizeof line, "assay%s%s: %s\nSee `assay help%s%s`.", *verb ? " " : "",
                   verb, msg, *verb ? " " : "", verb);
    print_line(line);
    return EXIT_USAGE;
}

int exit_after_output(const char *verb, int code)
{
    struct as_err err;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    as_fail(&err, AS_E_IO, "cannot write the output: %s", strerror(errno));
    return exit_with_error(verb, AS_E_IO, &err);
}
