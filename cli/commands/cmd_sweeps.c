/* assay sweeps: lists the sweeps. */
#include <inttypes.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/view/format.h"
#include "cli/session/list.h"
#include "cli/view/objectives.h"
#include "cli/session/session.h"

static void add_row(const struct session *s, struct table *t, const json_t *sweep, int64_t now_ms)
{
    char buf[32];
    struct str b = {0};
    const json_t *counts = json_object_get(sweep, "counts");
    const json_t *best = json_object_get(sweep, "best");
    const json_t *created = json_object_get(sweep, "created_at");
    const char *state = json_string_value(json_object_get(sweep, "state"));
    int64_t ended = 0;
    static const char *const ends[] = {"completed", "pruned", "failed", "cancelled"};
    for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++)
        ended += json_integer_value(json_object_get(counts, ends[i]));
    table_cell(t, json_string_value(json_object_get(sweep, "id")));
    table_cell_styled(t, terminal_state_style(state), state);
    table_cell(t, json_string_value(json_object_get(sweep, "method")));
    table_cellf(t, "%" PRId64 "/%" JSON_INTEGER_FORMAT, ended,
                json_integer_value(json_object_get(sweep, "planned_trials")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(counts, "failed")));
    format_value(&b, json_object_get(best, "value"), s->terminal.tty ? FORMAT_SHORT : FORMAT_EXACT);
    table_cell(t, b.len ? b.s : NULL);
    str_clear(&b);
    for (size_t i = 0; i < objectives_count(sweep); i++) {
        const char *name = json_string_value(json_object_get(objectives_at(sweep, i), "name"));
        str_printf(&b, "%s%s", i ? ", " : "", name ? name : "?");
    }
    table_cell(t, str_cstr(&b));
    table_cell(t, s->terminal.tty ? format_ago(created, now_ms, buf) : json_string_value(created));
    str_clear(&b);
    format_tags(&b, json_object_get(sweep, "tags"));
    table_cell(t, b.len ? b.s : NULL);
    str_done(&b);
}

static as_status list_sweeps(const struct session *s, const char *state, const char *tag,
                             int64_t limit, struct as_err *err)
{
    static const struct list_column columns[] = {
        {"sweep", TABLE_LEFT, 12}, {"state", TABLE_LEFT, 9},    {"method", TABLE_LEFT, 0},
        {"ended", TABLE_RIGHT, 0}, {"failed", TABLE_RIGHT, 0},  {"best", TABLE_RIGHT, 9},
        {"metric", TABLE_LEFT, 8}, {"created", TABLE_LEFT, 10}, {"tags", TABLE_LEFT, 6},
        {.header = NULL},
    };
    AS_AUTO(str_done) struct str query = {0};
    if (state)
        client_query_add(&query, "state", state);
    if (tag)
        client_query_add(&query, "tag", tag);
    const struct list l = {.path = "/v1/sweeps",
                           .query = query.s,
                           .limit = limit,
                           .columns = columns,
                           .add_row = add_row,
                           .none = state || tag
                                       ? "There are no such sweeps."
                                       : "There are no sweeps yet; `assay run FILE` makes one."};
    as_status st = str_check(&query, err);
    if (st < 0)
        return st;
    return list_print(s, &l, err);
}

int cmd_sweeps(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    const char *state = NULL, *tag = NULL;
    int64_t limit = 0;
    int n, code;
    const struct opt table[] = {
        {"state", 0, OPT_STRING, &state, "STATE", NULL, "only sweeps in this state",
         "running|paused|finishing|completed|failed|cancelled"},
        {"tag", 0, OPT_STRING, &tag, "TAG", NULL, "only sweeps that have this tag"},
        {"limit", 'n', OPT_I64, &limit, "N", NULL, "at most so many (all)"},
        SESSION_OPTS(&s),
    };
    if (!session_begin(&s, v, table, argc, argv, 0, 0, &n, &code)) {
        session_done(&s);
        return code;
    }
    code = session_end(&s, list_sweeps(&s, state, tag, limit, &err), &err);
    session_done(&s);
    return code;
}
