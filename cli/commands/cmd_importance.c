/* assay importance SWEEP: which parameters matter. */
#include "api/client/client.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/view/importance_view.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/say.h"

/* Name the conditional parameters: their shares hold only where they are active. */
static void say_conditional(const json_t *importance)
{
    AS_AUTO(str_done) struct str names = {0};
    size_t i;
    json_t *p;
    json_array_foreach(json_object_get(importance, "parameters"), i, p)
    {
        const char *name = json_string_value(json_object_get(p, "name"));
        if (name && json_is_true(json_object_get(p, "conditional")))
            str_printf(&names, "%s%s", names.len ? ", " : "", name);
    }
    if (names.len)
        say("Shares of the variance where they are active: %s.", str_cstr(&names));
}

static as_status print_importance(const struct session *s, const json_t *importance,
                                  struct as_err *err)
{
    AS_AUTO(table_freep) struct table *t = NULL;
    const char *metric = json_string_value(json_object_get(importance, "metric"));
    const char *reason = json_string_value(json_object_get(importance, "reason"));
    const json_t *r2 = json_object_get(importance, "r2");
    as_status st = importance_view_table(importance, &s->terminal, &t, err);
    if (st < 0)
        return st;
    if (table_rows(t) > 0 || !s->terminal.tty)
        st = session_print_table(s, t, err);
    if (st < 0)
        return st;
    if (table_rows(t) == 0)
        say("No figures: %s", reason ? reason : "too few trials");
    else
        say("Shares of the variance of %s: `total` is what a parameter explains together with "
            "others, `alone` by itself; `top` is its share of the difference between the best "
            "tenth of the trials and all trials.",
            metric ? metric : "the metric");
    say_conditional(importance);
    if (json_is_number(r2))
        say("From %lld trials; the model's R² on trials that it did not see is %.2f.",
            (long long)json_integer_value(json_object_get(importance, "trials")),
            json_number_value(r2));
    return AS_OK;
}

static as_status show_importance(const struct session *s, const char *name, const char *metric,
                                 struct as_err *err)
{
    AS_AUTO(str_done) struct str query = {0};
    struct trial_ref ref;
    JSON_AUTO importance = NULL;
    as_status st = request_parse_sweep(name, &ref, err);
    if (st < 0)
        return st;
    if (metric) {
        client_query_add(&query, "metric", metric);
        st = str_check(&query, err);
    }
    if (st < 0)
        return st;
    st = request_get(s->client, &ref, "importance", query.s, &importance, err);
    if (st < 0)
        return st;
    return s->json ? session_print_json(importance, err) : print_importance(s, importance, err);
}

int cmd_importance(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    const char *metric = NULL;
    int n, code;
    const struct opt table[] = {
        {"metric", 'm', OPT_STRING, &metric, "NAME", NULL,
         "an objective of the sweep; the first one when it is not given"},
        SESSION_OPTS(&s),
    };
    if (session_begin(&s, v, table, argc, argv, 1, 1, &n, &code))
        code = session_end(&s, show_importance(&s, argv[1], metric, &err), &err);
    session_done(&s);
    return code;
}
