/* assay help [VERB]; assay version. */
#include <stdio.h>

#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/commands/verbs.h"

int cmd_help(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name || as_streq(name, "--help") || as_streq(name, "-h")) {
        verbs_print_overview(stdout);
        return exit_after_output("help", EXIT_OK);
    }
    const struct verb *v = verbs_find(name);
    const char *near = v ? NULL : verbs_suggest(name);
    if (!v && near)
        return exit_with_usage("", "there is no verb '%.60s'; did you mean %s?", name, near);
    if (!v)
        return exit_with_usage("", "there is no verb '%.60s'", name);
    if (v->run == cmd_help || v->run == cmd_version) {
        verbs_print_help(name, NULL, stdout);
        return exit_after_output("help", EXIT_OK);
    }
    char option[] = "--help", *args[] = {argv[1], option, NULL};
    return v->run(2, args); /* its options are its own */
}

int cmd_version(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return exit_with_usage("version", "takes no arguments");
    (void)puts("assay " ASSAY_VERSION);
    return exit_after_output("version", EXIT_OK);
}
