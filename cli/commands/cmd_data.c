/* assay data add | list | show | preview | delete: data sets of the built-in trainer. */
#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/commands/data_add.h"
#include "cli/commands/data_preview.h"
#include "cli/commands/data_show.h"
#include "cli/session/exit_code.h"
#include "cli/view/format.h"
#include "cli/session/deletion.h"
#include "cli/session/list.h"
#include "cli/session/session.h"

static void add_row(const struct session *s, struct table *t, const json_t *data, int64_t now_ms)
{
    char buf[32];
    const json_t *created = json_object_get(data, "created_at");
    static const char *const texts[] = {"name", "format", "task"};
    static const char *const numbers[] = {"rows", "features", "outputs"};
    for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++)
        table_cell(t, json_string_value(json_object_get(data, texts[i])));
    for (size_t i = 0; i < AS_ARRAY_LEN(numbers); i++)
        table_cellf(t, "%" JSON_INTEGER_FORMAT,
                    json_integer_value(json_object_get(data, numbers[i])));
    struct str target = {0};
    format_value(&target, json_object_get(data, "target"), FORMAT_EXACT);
    table_cell(t, target.len ? target.s : NULL);
    str_done(&target);
    table_cell(t, s->terminal.tty ? format_ago(created, now_ms, buf) : json_string_value(created));
}

static as_status list_data_sets(const struct session *s, struct as_err *err)
{
    static const struct list_column columns[] = {
        {"data set", TABLE_LEFT, 12}, {"format", TABLE_LEFT, 0},    {"task", TABLE_LEFT, 0},
        {"rows", TABLE_RIGHT, 0},     {"features", TABLE_RIGHT, 0}, {"outputs", TABLE_RIGHT, 0},
        {"target", TABLE_LEFT, 0},    {"created", TABLE_LEFT, 8},   {.header = NULL},
    };
    const struct list l = {.path = "/v1/datasets", .columns = columns, .add_row = add_row};
    return list_print(s, &l, err);
}

static bool ask_data_set(const json_t *data, const char *id, struct str *b)
{
    str_printf(b,
               "Delete the data set %s? Its %" JSON_INTEGER_FORMAT
               " rows will be lost; sweeps that used it keep their results.",
               id, json_integer_value(json_object_get(data, "rows")));
    return true;
}

static int delete_data_set(const struct session *s, const char *name, bool yes)
{
    const struct deletion d = {
        .path = "/v1/datasets", .id = name, .done = "deleted", .yes = yes, .ask = ask_data_set};
    return deletion_run(s, &d);
}

/* Run the action argv[1] with the arguments after it. */
static int run_action(struct session *session, struct data_add *d, bool yes, bool first_rows, int n,
                      char **argv)
{
    struct as_err err = {0};
    const char *action = argv[1];
    as_status st = AS_OK;
    if (as_streq(action, "list") && n == 1) {
        st = list_data_sets(session, &err);
    } else if (as_streq(action, "show") && n == 2) {
        st = data_show(session, argv[2], &err);
    } else if (as_streq(action, "preview") && n == 2) {
        st = data_preview(session, argv[2], first_rows, &err);
    } else if (as_streq(action, "add") && (n == 2 || n == 3)) {
        d->name = argv[2];
        d->file = n == 3 ? argv[3] : NULL;
        st = data_add_check(d, &err);
        if (st < 0)
            return exit_with_usage("data", "%s", err.msg);
        st = data_add(d, &err);
    } else if (as_streq(action, "delete") && n == 2) {
        return delete_data_set(session, argv[2], yes);
    } else {
        return exit_with_usage("data",
                               "expected `add NAME FILE`, `list`, `show NAME`, `preview NAME` or "
                               "`delete NAME`, "
                               "found '%.60s' with %d more",
                               action, n - 1);
    }
    return session_end(session, st, &err);
}

int cmd_data(const struct verb *v, int argc, char **argv)
{
    struct session session = {0};
    struct data_add d = {.session = &session};
    bool yes = false, first_rows = false;
    int n, code;
    const struct opt table[] = {
        {"format", 0, OPT_STRING, &d.format, "FORMAT", NULL, "instead of that of the file's name",
         "csv|npy|npz|idx|cifar|safetensors|text|tokens"},
        {"target", 0, OPT_STRING, &d.target, "COLUMN", NULL,
         "what a table's rows are to predict; several with commas between"},
        {"features", 0, OPT_STRING, &d.features, "FILE", NULL, "the same as FILE"},
        {"targets", 0, OPT_STRING, &d.targets, "FILE", NULL, "what npy or idx features predict"},
        DATA_TABLE_OPTS(&d),
        {"channels-first", 0, OPT_FLAG, &d.channels_first, NULL, NULL,
         "images are (rows, channels, height, width)"},
        {"x", 0, OPT_STRING, &d.x, "NAME", NULL, "the features in an npz or safetensors file (x)"},
        {"y", 0, OPT_STRING, &d.y, "NAME", NULL, "the targets in it (y)"},
        {"raw", 0, OPT_FLAG, &d.raw, NULL, NULL, "tokens: a file of uint16 without a header"},
        {"vocab", 0, OPT_I64, &d.vocab, "N", NULL, "tokens: how many there are (largest + 1)"},
        {"select", 0, OPT_STRING, &d.select, "COLUMNS", NULL, "csv: no other columns are inputs"},
        {"buckets", 0, OPT_I64, &d.buckets, "N", NULL, "numbers that a text becomes (256)"},
        {"size", 0, OPT_STRING, &d.size, "HxW", NULL,
         "a folder of images: height and width to resize them to"},
        {"grey", 0, OPT_FLAG, &d.grey, NULL, NULL, "a folder of images: without colours"},
        {"test", 0, OPT_STRING, &d.test, "FILE", NULL,
         "rows for the final figure, which no search sees; a file like FILE"},
        {"test-column", 0, OPT_STRING, &d.test_column, "COLUMN", NULL,
         "csv: instead of --test, the column that says test or train of each row"},
        {"test-targets", 0, OPT_STRING, &d.test_targets, "FILE", NULL,
         "with --targets: what the rows of --test are to predict"},
        {"rows", 0, OPT_FLAG, &first_rows, NULL, NULL,
         "preview: the first rows instead of the distributions"},
        {"description", 0, OPT_STRING, &d.description, "TEXT", NULL, "for people"},
        DELETION_OPT(&yes),
        SESSION_OPTS(&session),
    };
    if (session_begin(&session, v, table, argc, argv, 1, 3, &n, &code))
        code = run_action(&session, &d, yes, first_rows, n, argv);
    session_done(&session);
    return code;
}
