/* assay demand: the slots that wait for runners, by what each of them needs. */
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/session/session.h"
#include "cli/view/format.h"
#include "cli/view/say.h"

static json_int_t number_of(const json_t *j, const char *name)
{
    return json_integer_value(json_object_get(j, name));
}

/* "" for 0: the sweep does not say that it needs any. */
static void add_count(struct table *t, json_int_t n)
{
    if (n > 0)
        table_cellf(t, "%" JSON_INTEGER_FORMAT, n);
    else
        table_cell(t, "");
}

static void add_row(const struct session *s, struct table *t, const json_t *kind, int64_t now_ms)
{
    char buf[32];
    const json_t *since = json_object_get(kind, "since");
    json_int_t memory = number_of(kind, "memory_bytes");
    table_cellf(t, "%" JSON_INTEGER_FORMAT, number_of(kind, "slots"));
    table_cellf(t, "%" JSON_INTEGER_FORMAT, number_of(kind, "ranks"));
    add_count(t, number_of(kind, "gpus"));
    add_count(t, number_of(kind, "cpus"));
    table_cell(t, memory > 0 ? format_size(memory, buf) : "");
    table_cell(t, json_is_true(json_object_get(kind, "exclusive")) ? "whole" : "");
    table_cellf(t, "%" JSON_INTEGER_FORMAT, number_of(kind, "sweeps"));
    table_cell(t, s->terminal.tty ? format_ago(since, now_ms, buf) : json_string_value(since));
}

static as_status print_demand(const struct session *s, const json_t *demand, struct as_err *err)
{
    AS_AUTO(table_freep) struct table *t = table_create();
    int64_t now_ms = clock_wall_ms();
    size_t i;
    const json_t *kind;
    if (!t)
        return as_fail_nomem(err);
    table_column(t, "slots", TABLE_RIGHT, 0);
    table_column(t, "ranks", TABLE_RIGHT, 0);
    table_column(t, "gpus", TABLE_RIGHT, 0);
    table_column(t, "cpus", TABLE_RIGHT, 0);
    table_column(t, "memory", TABLE_RIGHT, 0);
    table_column(t, "machine", TABLE_LEFT, 0);
    table_column(t, "sweeps", TABLE_RIGHT, 0);
    table_column(t, "since", TABLE_LEFT, 8);
    json_array_foreach(json_object_get(demand, "kinds"), i, kind) add_row(s, t, kind, now_ms);
    as_status st = session_print_table(s, t, err);
    if (st == AS_OK)
        say("%" JSON_INTEGER_FORMAT " slots wait; of %" JSON_INTEGER_FORMAT
            " live runners %" JSON_INTEGER_FORMAT " slots are free for something else.",
            number_of(demand, "slots"), number_of(demand, "runners"),
            number_of(demand, "free_slots"));
    return st;
}

int cmd_demand(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 0, 0, &n, &code)) {
        JSON_AUTO demand = NULL;
        as_status st =
            client_call(s.client, "GET", "/v1/demand", NULL, NULL, NULL, &demand, NULL, &err);
        if (st == AS_OK)
            st = s.json ? session_print_json(demand, &err) : print_demand(&s, demand, &err);
        code = session_end(&s, st, &err);
    }
    session_done(&s);
    return code;
}
