/* assay ensemble SWEEP: prints its members on stdout, and its metrics in words on stderr. */
#include <stdio.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/view/ensemble_view.h"
#include "cli/session/request.h"
#include "cli/session/session.h"

static as_status print_ensemble(const struct session *s, const json_t *ensemble, struct as_err *err)
{
    AS_AUTO(table_freep) struct table *t = NULL;
    AS_AUTO(str_done) struct str summary = {0};
    const struct terminal talk = terminal_of(stderr);
    as_status st;
    if (json_array_size(json_object_get(ensemble, "members")) > 0) {
        st = ensemble_view_members(ensemble, &s->terminal, &t, err);
        if (st < 0)
            return st;
        st = session_print_table(s, t, err);
        if (st < 0)
            return st;
    }
    ensemble_view_summary(ensemble, &talk, &summary);
    st = str_check(&summary, err);
    if (st < 0)
        return st;
    if (fflush(stdout) == 0)
        (void)fputs(str_cstr(&summary), stderr);
    return AS_OK;
}

static as_status show_ensemble(const struct session *s, const char *name, struct as_err *err)
{
    struct trial_ref ref;
    JSON_AUTO ensemble = NULL;
    as_status st = request_parse_sweep(name, &ref, err);
    if (st < 0)
        return st;
    st = request_get(s->client, &ref, "ensemble", NULL, &ensemble, err);
    if (st < 0)
        return st;
    return s->json ? session_print_json(ensemble, err) : print_ensemble(s, ensemble, err);
}

int cmd_ensemble(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 1, 1, &n, &code))
        code = session_end(&s, show_ensemble(&s, argv[1], &err), &err);
    session_done(&s);
    return code;
}
