/* assay export SWEEP --csv | --json: all trials. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/view/export_csv.h"
#include "cli/commands/sweep_record.h"
#include "cli/session/session.h"
#include "cli/view/say.h"

/* Append {"sweep": the sweep, "items": its trials}. */
static as_status format_json(const json_t *sweep, const json_t *items, struct str *b,
                             struct as_err *err)
{
    JSON_AUTO tree = json_pack("{s:O, s:O}", "sweep", sweep, "items", items);
    AS_AUTO(as_freep) char *text = tree ? json_format_pretty(tree) : NULL;
    if (!text)
        return as_fail_nomem(err);
    str_puts(b, text);
    str_putc(b, '\n');
    return str_check(b, err);
}

static as_status export_sweep(const struct session *s, const char *name, const char *output,
                              struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    JSON_AUTO items = NULL;
    AS_AUTO(str_done) struct str b = {0};
    as_status st = sweep_record_fetch(s->client, name, &sweep, &items, err);
    if (st < 0)
        return st;
    st = s->json ? format_json(sweep, items, &b, err) : export_csv(sweep, items, &b, err);
    if (st < 0)
        return st;
    if (!output || as_streq(output, "-"))
        return fwrite(b.s, 1, b.len, stdout) == b.len
                   ? AS_OK
                   : as_fail(err, AS_E_IO, "cannot write the output");
    st = file_write_output(output, b.s, b.len, 0644, err);
    if (st < 0)
        return st;
    say("%zu trials are in %s", json_array_size(items), output);
    return AS_OK;
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
