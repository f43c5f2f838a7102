/* assay completion SHELL: prints a completion script. `assay completion words -- WORD…` is what the
 * scripts call; it prints the candidates for the last word. */
#include <stdio.h>

#include "cli/commands/cmd.h"
#include "cli/commands/completion.h"
#include "cli/session/exit_code.h"

int cmd_completion(const struct verb *v, int argc, char **argv)
{
    bool help = false;
    int n;
    struct as_err err;
    const struct opt table[] = {
        {"help", 'h', OPT_FLAG, &help, NULL, NULL, "show this help"},
        {.name = NULL},
    };
    if (opt_parse(table, argc, argv, &n, &err) < 0)
        return exit_with_usage(v->name, "%s", err.msg);
    if (help) {
        verb_print_help(v, table, stdout);
        return exit_after_output(v->name, EXIT_OK);
    }
    const char *script = n == 1 ? completion_script(argv[1]) : NULL;
    AS_AUTO(str_done) struct str b = {0};
    if (n >= 2 && as_streq(argv[1], "words"))
        completion_words((const char *const *)argv + 2, (size_t)n - 1, &b);
    else if (!script)
        return exit_with_usage(v->name, "expected bash, zsh or fish");
    (void)fputs(script ? script : str_cstr(&b), stdout);
    return exit_after_output(v->name, EXIT_OK);
}
