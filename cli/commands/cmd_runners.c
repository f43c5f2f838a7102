/* assay runners: lists the runners, tells one to leave, or removes one whose machine or folder is
 * lost. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/session/deletion.h"
#include "cli/session/exit_code.h"
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

/* "3/8": what is free, and what there is; "" if it did not say. */
static void add_cores(struct table *t, const json_t *runner)
{
    json_int_t all = json_integer_value(json_object_get(runner, "cpus"));
    json_int_t used = json_integer_value(json_object_get(runner, "used_cpus"));
    if (all > 0)
        table_cellf(t, "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
                    all > used ? all - used : 0, all);
    else
        table_cell(t, "");
}

static void add_memory(struct table *t, const json_t *runner)
{
    char left[32], whole[32];
    json_int_t all = json_integer_value(json_object_get(runner, "memory_bytes"));
    json_int_t used = json_integer_value(json_object_get(runner, "used_memory_bytes"));
    if (all > 0)
        table_cellf(t, "%s/%s", format_size(all > used ? all - used : 0, left),
                    format_size(all, whole));
    else
        table_cell(t, "");
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
    if (json_is_true(json_object_get(runner, "draining")) && as_streq(state, "live"))
        table_cell_styled(t, STYLE_WARN, "draining");
    else
        table_cell_styled(t, terminal_state_style(state), state);
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(runner, "running")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT,
                json_integer_value(json_object_get(runner, "used_slots")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(runner, "slots")));
    add_gpus(t, runner);
    add_cores(t, runner);
    add_memory(t, runner);
    table_cell(t, json_string_value(json_object_get(runner, "host")));
    table_cell(t, json_string_value(json_object_get(runner, "job")));
    table_cell(t, json_string_value(json_object_get(runner, "version")));
    table_cell(t, s->terminal.tty ? format_ago(seen, now_ms, buf) : json_string_value(seen));
    add_fault(t, runner);
}

static as_status list_runners(const struct session *s, struct as_err *err)
{
    static const struct list_column columns[] = {
        {"runner", TABLE_LEFT, 12},    {"state", TABLE_LEFT, 0},
        {"running", TABLE_RIGHT, 0},   {"used", TABLE_RIGHT, 0},
        {"slots", TABLE_RIGHT, 0},     {"gpus", TABLE_RIGHT, 0},
        {"free cpus", TABLE_RIGHT, 0}, {"free memory", TABLE_RIGHT, 0},
        {"host", TABLE_LEFT, 8},       {"job", TABLE_LEFT, 8},
        {"version", TABLE_LEFT, 0},    {"seen", TABLE_LEFT, 8},
        {"gpu fault", TABLE_LEFT, 12}, {.header = NULL},
    };
    const struct list l = {.path = "/v1/runners", .columns = columns, .add_row = add_row};
    return list_print(s, &l, err);
}

static bool ask_runner(const json_t *runner, const char *name, struct str *b)
{
    json_int_t n = json_integer_value(json_object_get(runner, "running"));
    const char *state = json_string_value(json_object_get(runner, "state"));
    str_printf(b, "Forget the %s runner %s?", state ? state : "", name);
    if (n > 0)
        str_printf(b, " Its %" JSON_INTEGER_FORMAT " trial%s return%s to the queue.", n,
                   n == 1 ? "" : "s", n == 1 ? "s" : "");
    return true;
}

static int remove_runner(const struct session *s, const char *name, bool yes)
{
    const struct deletion d = {.path = "/v1/runners",
                               .id = name,
                               .done = "removed",
                               .yes = yes,
                               .is_in_list = true,
                               .ask = ask_runner};
    return deletion_run(s, &d);
}

static as_status drain_runner(const struct session *s, const char *name, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO body = json_object();
    str_puts(&path, "/v1/runners");
    client_path_add(&path, name);
    str_puts(&path, "/drain");
    as_status st = body ? str_check(&path, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = client_call(s->client, "POST", path.s, NULL, body, NULL, NULL, NULL, err);
    if (st == AS_OK)
        printf("%s hands its trials back and leaves, once it hears it with its next heartbeat\n",
               name);
    return st;
}

int cmd_runners(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    bool yes = false;
    const struct opt table[] = {DELETION_OPT(&yes), SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 0, 2, &n, &code)) {
        if (n == 0)
            code = session_end(&s, list_runners(&s, &err), &err);
        else if (as_streq(argv[1], "drain") && n == 2)
            code = session_end(&s, drain_runner(&s, argv[2], &err), &err);
        else if (as_streq(argv[1], "remove") && n == 2)
            code = remove_runner(&s, argv[2], yes);
        else
            code = exit_with_usage(v->name, "expected nothing, `drain NAME` or `remove NAME`");
    }
    session_done(&s);
    return code;
}
