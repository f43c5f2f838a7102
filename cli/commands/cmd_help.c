/* assay help [VERB]; assay version. */
#include <stdio.h>

#include "base/opt.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/commands/verbs.h"

/* Parse the command line of a verb without a session, which takes --help and at most `max`
 * arguments. True: *ret_n are left. False: the verb ends with *ret_code. */
static bool begin(const struct verb *v, int argc, char **argv, int max, int *ret_n, int *ret_code)
{
    struct as_err err = {0};
    bool help = false;
    const struct opt table[] = {
        {"help", 'h', OPT_FLAG, &help, NULL, NULL, "show this help"},
        {.name = NULL},
    };
    if (opt_parse(table, argc, argv, ret_n, &err) < 0) {
        *ret_code = exit_with_usage(v->name, "%s", err.msg);
    } else if (help) {
        verb_print_help(v, table, stdout);
        *ret_code = exit_after_output(v->name, EXIT_OK);
    } else if (*ret_n > max) {
        *ret_code =
            exit_with_usage(v->name, "too many arguments, the first is '%.60s'; expected: assay %s",
                            argv[1 + max], v->synopsis);
    } else {
        return true;
    }
    return false;
}

static int help_of(const char *name)
{
    const struct verb *other = verbs_find(name);
    const char *near = other ? NULL : verbs_suggest(name);
    if (near)
        return exit_with_usage("", "there is no verb '%.60s'; did you mean %s?", name, near);
    if (!other)
        return exit_with_usage("", "there is no verb '%.60s'", name);
    char verb[40], option[] = "--help", *args[] = {verb, option, NULL};
    (void)snprintf(verb, sizeof verb, "%s", other->name);
    return other->run(other, 2, args); /* only the verb itself has its option table */
}

int cmd_help(const struct verb *v, int argc, char **argv)
{
    int n, code;
    if (!begin(v, argc, argv, 1, &n, &code))
        return code;
    if (n == 1)
        return help_of(argv[1]);
    verbs_print_overview(stdout);
    return exit_after_output(v->name, EXIT_OK);
}

int cmd_version(const struct verb *v, int argc, char **argv)
{
    int n, code;
    if (!begin(v, argc, argv, 0, &n, &code))
        return code;
    (void)puts("assay " ASSAY_VERSION);
    return exit_after_output(v->name, EXIT_OK);
}
