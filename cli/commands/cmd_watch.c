/* assay watch SWEEP: follows a sweep to its end. */
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/session/session.h"
#include "cli/commands/watch.h"

int cmd_watch(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct watch_opts opts = {.top = 5};
    int n, code;
    const struct opt table[] = {
        {"timeout", 0, OPT_DURATION, &opts.timeout_ms, "TIME", NULL,
         "give up after so long, with exit code 6"},
        {"top", 'n', OPT_I64, &opts.top, "N", NULL, "rows of the table at the end (5)"},
        SESSION_OPTS(&s),
    };
    if (session_begin(&s, v, table, argc, argv, 1, 1, &n, &code))
        code = opts.top < 1 || opts.top > 1000 ? exit_with_usage(v->name, "--top takes 1 to 1000")
                                               : watch_sweep(&s, argv[1], &opts);
    session_done(&s);
    return code;
}
