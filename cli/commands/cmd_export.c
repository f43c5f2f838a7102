/* assay export SWEEP --csv | --json: all trials. */
#include "cli/commands/cmd.h"
#include "cli/commands/trials_print.h"
#include "cli/session/exit_code.h"
#include "cli/session/request.h"
#include "cli/session/session.h"

static as_status export_sweep(const struct session *s, const char *name, const char *output,
                              struct as_err *err)
{
    struct trial_ref ref;
    as_status st = request_parse_sweep(name, &ref, err);
    return st < 0 ? st : trials_export(s, &ref, output, err);
}

int cmd_export(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    bool csv = false;
    const char *output = NULL;
    int n, code;
    const struct opt table[] = {
        {"csv", 0, OPT_FLAG, &csv, NULL, NULL, "comma-separated values, RFC 4180"},
        {"output", 'o', OPT_STRING, &output, "FILE", NULL, "write here, not on standard output"},
        SESSION_OPTS(&s),
    };
    if (session_begin(&s, v, table, argc, argv, 1, 1, &n, &code)) {
        if (csv == s.json)
            code = exit_with_usage(v->name, "choose one of --csv and --json");
        else
            code = session_end(&s, export_sweep(&s, argv[1], output, &err), &err);
    }
    session_done(&s);
    return code;
}
