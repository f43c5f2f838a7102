/* assay runners: lists the runners. */
#include <inttypes.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/view/format.h"
#include "cli/session/list.h"
#include "cli/session/session.h"

/* "2", or "1/2" if one of two GPUs is set aside. */
static void add_gpus(struct table *t, const json_t *runner)
{
    size_t all = json_array_size(json_object_get(runner, "gpus"));
    size_t faults = json_array_size(json_object_get(runner, "gpu_faults"));
    if (faults > 0)
        table_cellf(t, "%zu/%zu", all > faults ? all - faults : 0, all);
    else
        table_cellf(t, "%zu", all);
}

/* The first GPU that is set aside, with its reason. */
static void add_fault(struct table *t, const json_t *runner)
{
    const json_t *fault = json_array_get(json_object_get(runner, "gpu_faults"), 0);
    const char *gpu = json_string_value(json_object_get(fault, "gpu"));
    const char *reason = json_string_value(json_object_get(fault, "reason"));
    if (gpu && reason)
        table_cellf(t, "%s: %s", gpu, reason);
    else
        table_cell(t, "");
}

static void add_row(const struct session *s, struct table *t, const json_t *runner, int64_t now_ms)
{
    char buf[32];
    const char *state = json_string_value(json_object_get(runner, "state"));
    const json_t *seen = json_object_get(runner, "seen_at");
    table_cell(t, json_string_value(json_object_get(runner, "name")));
    table_cell_styled(t, terminal_state_style(state), state);
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(runner, "running")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT,
                json_integer_value(json_object_get(runner, "used_slots")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(runner, "slots")));
    add_gpus(t, runner);
    table_cell(t, json_string_value(json_object_get(runner, "host")));
    table_cell(t, json_string_value(json_object_get(runner, "version")));
    table_cell(t, s->terminal.tty ? format_ago(seen, now_ms, buf) : json_string_value(seen));
    add_fault(t, runner);
}

static as_status list_runners(const struct session *s, struct as_err *err)
{
    static const struct list_column columns[] = {
        {"runner", TABLE_LEFT, 12},    {"state", TABLE_LEFT, 0},   {"running", TABLE_RIGHT, 0},
        {"used", TABLE_RIGHT, 0},      {"slots", TABLE_RIGHT, 0},  {"gpus", TABLE_RIGHT, 0},
        {"host", TABLE_LEFT, 8},       {"version", TABLE_LEFT, 0}, {"seen", TABLE_LEFT, 8},
        {"gpu fault", TABLE_LEFT, 12}, {.header = NULL},
    };
    const struct list l = {.path = "/v1/runners", .columns = columns, .add_row = add_row};
    return list_print(s, &l, err);
}

int cmd_runners(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 0, 0, &n, &code))
        code = session_end(&s, list_runners(&s, &err), &err);
    session_done(&s);
    return code;
}
