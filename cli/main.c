/* assay: finds the verb and hands over. */
#include <stdbool.h>
#include <stdio.h>

#include "base/private_env.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/session/exit_code.h"
#include "cli/session/interrupt.h"
#include "cli/session/session.h"
#include "cli/view/terminal.h"
#include "cli/commands/verbs.h"

/* Whether errors are to be JSON, also those of a command line that cannot be parsed. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && !as_streq(argv[i], "--"); i++)
        if (as_streq(argv[i], "--json"))
            return true;
    return false;
}

static int fail_no_verb(const char *name)
{
    const char *near = verbs_suggest(name);
    if (near)
        return exit_with_usage("", "there is no verb '%.60s'; did you mean `assay %s`?", name,
                               near);
    return exit_with_usage("", "there is no verb '%.60s'", name);
}

/* `assay --help` and `assay --version` are verbs too. */
static const char *name_of(const char *arg)
{
    if (as_streq(arg, "--help") || as_streq(arg, "-h"))
        return "help";
    return as_streq(arg, "--version") ? "version" : arg;
}

int main(int argc, char **argv)
{
    struct as_err err = {0};
    terminal_setup();
    log_setup("assay", LOG_INFO);
    if (private_env_hide(&err) < 0)
        return exit_with_error("", err.code, &err);
    interrupt_setup();
    if (wants_json(argc, argv))
        exit_with_json();
    const struct verb *v = argc > 1 ? verbs_find(name_of(argv[1])) : NULL;
    if (!v && session_verb_first(argc, argv, &err) < 0)
        return exit_with_usage("", "%s", err.msg);
    if (!v && (argc < 2 || argv[1][0] == '-')) {
        verbs_print_overview(stderr);
        return EXIT_USAGE;
    }
    v = v ? v : verbs_find(argv[1]);
    return v ? v->run(v, argc - 1, argv + 1) : fail_no_verb(argv[1]);
}
