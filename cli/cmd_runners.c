/* assay runners: the list. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "cli/format.h"
#include "cli/request.h"
#include "cli/session.h"

static void add_row(const struct session *s, struct table *t, const json_t *runner, int64_t now_ms)
{
    char buf[32];
    const char *state = json_string_value(json_object_get(runner, "state"));
    const json_t *seen = json_object_get(runner, "seen_at");
    table_cell(t, json_string_value(json_object_get(runner, "name")));
    table_cell_styled(t, look_of_state(state), state);
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(runner, "running")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(runner, "slots")));
    table_cellf(t, "%zu", json_array_size(json_object_get(runner, "gpus")));
    table_cell(t, json_string_value(json_object_get(runner, "host")));
    table_cell(t, json_string_value(json_object_get(runner, "version")));
    table_cell(t, s->look.tty ? format_ago(seen, now_ms, buf) : json_string_value(seen));
}

static as_status list(const struct session *s, struct as_err *err)
{
    JSON_AUTO items = NULL;
    as_status st = request_list(s->client, "/v1/runners", NULL, 0, &items, err);
    if (st < 0)
        return st;
    if (s->json) {
        JSON_AUTO answer = json_pack("{s:O}", "items", items);
        return session_print_json(answer, err);
    }
    AS_AUTO(table_freep) struct table *t = table_create();
    if (!t)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    table_column(t, "runner", TABLE_LEFT, 12);
    table_column(t, "state", TABLE_LEFT, 0);
    table_column(t, "running", TABLE_RIGHT, 0);
    table_column(t, "slots", TABLE_RIGHT, 0);
    table_column(t, "gpus", TABLE_RIGHT, 0);
    table_column(t, "host", TABLE_LEFT, 8);
    table_column(t, "version", TABLE_LEFT, 0);
    table_column(t, "seen", TABLE_LEFT, 8);
    size_t i;
    json_t *runner;
    json_array_foreach(items, i, runner) add_row(s, t, runner, clock_wall_ms());
    return session_print_table(s, t, err);
}

int cmd_runners(int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, "runners", table, argc, argv, 0, 0, &n, &code))
        code = session_end(&s, list(&s, &err), &err);
    session_done(&s);
    return code;
}
