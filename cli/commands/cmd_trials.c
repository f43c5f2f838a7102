/* assay trials SWEEP, assay trials add SWEEP, assay best SWEEP.
 *
 * `trials add` shares the option table of `trials`, because an option table belongs to a verb.
 * Options of `add` without the word `add` are an error, not a list that ignores them. */
#include <string.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/commands/pareto_report.h"
#include "cli/view/objectives.h"
#include "cli/session/list.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/trial_table.h"
#include "cli/commands/trials_add.h"
#include "cli/commands/trials_print.h"
#include "cli/view/say.h"

/* The fields of a trial that a list may be sorted by. */
#define SORT_FIELDS "number|value|started_at|finished_at|duration|created_at|state"

static bool is_field(const char *sort)
{
    size_t len = strlen(sort);
    for (const char *c = SORT_FIELDS; c; c = strchr(c, '|'), c = c ? c + 1 : NULL)
        if (strcspn(c, "|") == len && memcmp(c, sort, len) == 0)
            return true;
    return false;
}

/* Has any trial of the sweep this metric? `order`: the key of the server's list. */
static as_status has_metric(const struct session *s, const struct trial_ref *sweep,
                            const char *name, const char *order, bool *ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str query = {0};
    JSON_AUTO page = NULL;
    client_query_add(&query, "sort", order);
    client_query_add(&query, "page_size", "1");
    as_status st = str_check(&query, err);
    if (st == AS_OK)
        st = request_get(s->client, sweep, "trials", str_cstr(&query), &page, err);
    if (st != AS_OK)
        return st;
    const json_t *first = json_array_get(json_object_get(page, "items"), 0);
    *ret = json_object_get(json_object_get(first, "metrics"), name) != NULL;
    return AS_OK;
}

/* The key of the server's list: a name alone is a parameter's, else a metric's. AS_E_USAGE: the
 * sweep has neither. */
static as_status find_order(const struct session *s, const struct trial_ref *sweep,
                            const char *sort, struct str *ret, struct as_err *err)
{
    JSON_AUTO found = NULL;
    bool is_known = is_field(sort) || strchr(sort, ':');
    if (is_known) {
        str_puts(ret, sort);
        return str_check(ret, err);
    }
    as_status st = request_get(s->client, sweep, NULL, NULL, &found, err);
    if (st != AS_OK)
        return st;
    const json_t *document = json_object_get(found, "document");
    is_known = json_object_get(json_object_get(document, "parameters"), sort) != NULL;
    str_printf(ret, "%s:%s", is_known ? "param" : "metric", sort);
    if ((st = str_check(ret, err)) == AS_OK && !is_known)
        st = has_metric(s, sweep, sort, str_cstr(ret), &is_known, err);
    if (st == AS_OK && !is_known)
        return as_fail(err, AS_E_USAGE,
                       "--sort: '%.80s' is no field, parameter or metric of the trials of '%.80s'",
                       sort, sweep->sweep);
    return st;
}

static as_status list_trials(const struct session *s, const char *id, const char *sort,
                             struct str *query, int64_t limit, struct as_err *err)
{
    AS_AUTO(str_done) struct str order = {0};
    struct trial_ref sweep;
    as_status st = request_parse_ref(id, true, &sweep, err);
    if (st < 0)
        return st;
    if (sweep.number >= 0)
        return as_fail(err, AS_E_USAGE, "expected SWEEP, found '%.80s'; see assay trial", id);
    if (sort && (st = find_order(s, &sweep, sort, &order, err)) < 0)
        return st;
    if (sort)
        client_query_add(query, "sort", str_cstr(&order));
    st = str_check(query, err);
    return st < 0 ? st : trials_print(s, &sweep, query->s, limit, err);
}

/* Whether any option of `trials add` is given. */
static bool is_add(const struct trials_add *a)
{
    return a->params.n > 0 || a->metrics.n > 0 || a->file || a->failed || a->reason;
}

static int run_add(const struct session *s, const struct trials_add *a, int n, char **argv)
{
    struct as_err err = {0};
    bool single = a->params.n > 0 || a->metrics.n > 0 || a->failed || a->reason;
    if (n != 2 || !as_streq(argv[1], "add"))
        return exit_with_usage("trials", "expected `assay trials SWEEP` or `assay trials add SWEEP "
                                         "--param NAME=VALUE…`");
    if (single ? a->file != NULL : a->file == NULL)
        return exit_with_usage("trials",
                               "add takes --param NAME=VALUE… (and --metric or --failed), or "
                               "--file FILE");
    if (a->failed && a->metrics.n > 0)
        return exit_with_usage("trials", "choose one of --metric and --failed");
    return session_end(s, trials_add(s, argv[2], a, &err), &err);
}

int cmd_trials(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    struct trials_add add = {0};
    const char *state = NULL, *group = NULL, *sort = NULL;
    bool desc = false;
    int64_t limit = 0;
    int n, code;
    const struct opt table[] = {
        {"state", 0, OPT_STRING, &state, "STATE", NULL, "only trials in this state",
         "queued|running|paused|completed|pruned|failed|cancelled"},
        {"group", 0, OPT_STRING, &group, "GROUP", NULL, "only trials that ran in this group last"},
        {"sort", 0, OPT_STRING, &sort, "KEY", NULL, "order by a metric, a parameter or",
         SORT_FIELDS OPT_OR_ANOTHER},
        {"desc", 0, OPT_FLAG, &desc, NULL, NULL, "the largest first"},
        {"limit", 'n', OPT_I64, &limit, "N", NULL, "at most so many (all)"},
        {"param", 'p', OPT_LIST, &add.params, "NAME=VALUE", NULL,
         "add: a parameter; may stand several times"},
        {"metric", 'm', OPT_LIST, &add.metrics, "NAME=NUMBER", NULL,
         "add: a result; without any the trial is enqueued"},
        {"failed", 0, OPT_FLAG, &add.failed, NULL, NULL, "add: it is known not to work"},
        {"reason", 0, OPT_STRING, &add.reason, "TEXT", NULL, "add: why it failed, for people"},
        {"file", 'f', OPT_STRING, &add.file, "FILE", NULL,
         "add: many, from a file of CSV or JSON (.json)"},
        SESSION_OPTS(&s),
    };
    if (session_begin(&s, v, table, argc, argv, 1, 2, &n, &code)) {
        if (n == 2 || is_add(&add)) {
            code = run_add(&s, &add, n, argv);
            session_done(&s);
            return code;
        }
        struct str query = {0};
        if (state)
            client_query_add(&query, "state", state);
        if (group)
            client_query_add(&query, "group", group);
        if (desc)
            client_query_add(&query, "order", "desc");
        code = session_end(&s, list_trials(&s, argv[1], sort, &query, limit, &err), &err);
        str_done(&query);
    }
    session_done(&s);
    return code;
}

/* Of noisy values the first row need not be the one of the best value. */
static void say_expected(const json_t *best)
{
    const json_t *first = json_array_get(json_object_get(best, "items"), 0);
    const json_t *x = json_object_get(best, "expected");
    double mean, low, high;
    if (json_number_get(json_object_get(x, "mean"), &mean) &&
        json_number_get(json_object_get(x, "low"), &low) &&
        json_number_get(json_object_get(x, "high"), &high))
        say("Values are noisy: trial %lld is the best by what a model expects of it, %.4g (95%% "
            "within %.4g and %.4g); the others are in the order of their values.",
            (long long)json_integer_value(json_object_get(first, "number")), mean, low, high);
}

/* The sweep names the columns of the table, which do not change; all that does is in the answer. */
static as_status print_best(const struct session *s, const struct trial_ref *ref,
                            const json_t *answer, struct as_err *err)
{
    const json_t *items = json_object_get(answer, "items");
    if (s->json)
        return list_print_json(items, err);
    JSON_AUTO sweep = NULL;
    AS_AUTO(table_freep) struct table *t = NULL;
    as_status st = request_get(s->client, ref, NULL, NULL, &sweep, err);
    if (st < 0)
        return st;
    st = trial_table_create(items, TRIAL_TABLE_BEST, sweep, &s->terminal, &t, err);
    if (st < 0)
        return st;
    st = session_print_table(s, t, err);
    if (st < 0)
        return st;
    say_expected(answer);
    if (objectives_count(sweep) > 1)
        say("By the first of %zu metrics; `assay best %s --pareto` shows the front.",
            objectives_count(sweep), ref->sweep);
    return AS_OK;
}

static as_status show_best(const struct session *s, const char *id, int64_t top, bool pareto,
                           struct as_err *err)
{
    struct trial_ref sweep;
    AS_AUTO(str_done) struct str query = {0};
    JSON_AUTO answer = NULL;
    as_status st = request_parse_sweep(id, &sweep, err);
    if (st < 0)
        return st;
    if (pareto)
        return pareto_report_print(s, &sweep, err);
    client_query_add_i64(&query, "top", top);
    st = str_check(&query, err);
    if (st < 0)
        return st;
    st = request_items(s->client, &sweep, "best", query.s, top, &answer, err);
    if (st < 0)
        return st;
    st = print_best(s, &sweep, answer, err);
    if (st == AS_OK && json_array_size(json_object_get(answer, "items")) == 0)
        return as_fail(err, AS_E_NOT_FOUND, "no trial of %s has completed yet", sweep.sweep);
    return st;
}

int cmd_best(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int64_t top = 10;
    bool pareto = false;
    int n, code;
    const struct opt table[] = {
        {"top", 'n', OPT_I64, &top, "N", NULL, "how many (10)"},
        {"pareto", 0, OPT_FLAG, &pareto, NULL, NULL,
         "those that no other beats in every objective"},
        SESSION_OPTS(&s),
    };
    if (session_begin(&s, v, table, argc, argv, 1, 1, &n, &code))
        code = session_end(&s, show_best(&s, argv[1], top, pareto, &err), &err);
    session_done(&s);
    return code;
}
