/* assay: finds the verb and hands over. */
#include <stdbool.h>
#include <stdio.h>

#include "base/private_env.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/session/exit_code.h"
#include "cli/session/interrupt.h"
#include "cli/view/terminal.h"
#include "cli/commands/verbs.h"

/* Whether errors are to be JSON, also those of a command line that cannot be parsed. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 2; i < argc && !as_streq(argv[i], "--"); i++)
        if (as_streq(argv[i], "--json"))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    struct as_err err = {0};
    terminal_setup();
    log_setup("assay", LOG_INFO);
    as_status st = private_env_hide(&err);
    if (st < 0)
        return exit_with_error("", st, &err);
    interrupt_setup();
    if (wants_json(argc, argv))
        exit_with_json();
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        verbs_print_overview(stderr);
        return EXIT_USAGE;
    }
    if (as_streq(name, "--help") || as_streq(name, "-h"))
        name = "help";
    else if (as_streq(name, "--version"))
        name = "version";
    const struct verb *v = verbs_find(name);
    if (v)
        return v->run(v, argc - 1, argv + 1);
    const char *near = verbs_suggest(name);
    if (near)
        return exit_with_usage("", "there is no verb '%.60s'; did you mean `assay %s`?", name,
                               near);
    return exit_with_usage("", "there is no verb '%.60s'", name);
}
