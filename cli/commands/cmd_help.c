/* assay help [VERB]; assay version. */
#include <stdio.h>

#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/commands/verbs.h"

int cmd_help(const struct verb *v, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name || as_streq(name, "--help") || as_streq(name, "-h")) {
        verbs_print_overview(stdout);
        return exit_after_output(v->name, EXIT_OK);
    }
    const struct verb *other = verbs_find(name);
    const char *near = other ? NULL : verbs_suggest(name);
    if (near)
        return exit_with_usage("", "there is no verb '%.60s'; did you mean %s?", name, near);
    if (!other)
        return exit_with_usage("", "there is no verb '%.60s'", name);
    if (other->run == cmd_help || other->run == cmd_version) {
        verb_print_help(other, NULL, stdout);
        return exit_after_output(v->name, EXIT_OK);
    }
    char option[] = "--help", *args[] = {argv[1], option, NULL};
    return other->run(other, 2, args); /* only the verb itself has its option table */
}

int cmd_version(const struct verb *v, int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return exit_with_usage(v->name, "takes no arguments");
    (void)puts("assay " ASSAY_VERSION);
    return exit_after_output(v->name, EXIT_OK);
}
