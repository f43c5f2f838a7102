/* assay ask SWEEP: hands out the next trial to a program or person that runs trials itself.
 *
 * The server waits at most MAX_POLL_MS in one request, so a longer --wait is a loop of requests. A
 * request can be repeated safely: the server hands out the trials that the client already holds
 * before new ones. */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands/client_name.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/session/interrupt.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/say.h"
#include "cli/view/suggestion_view.h"

#define MAX_COUNT 64
#define MAX_LEASE_MS (7LL * 24 * 3600 * 1000)
#define MAX_POLL_MS 60000 /* the longest wait of the server in one request */
#define ANSWER_MS 30000   /* time for the answer after the wait */
#define RETRY_MS 60000    /* a repeated request returns the same trials */

struct ask {
    struct session session;
    struct trial_ref ref;
    const char *client;
    int64_t count, lease_ms, wait_ms;
    bool shell;
};

static as_status ask_once(const struct ask *a, int64_t wait_ms, json_t **ret, struct as_err *err)
{
    char name[CLIENT_NAME_SIZE];
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO body =
        json_pack("{s:s, s:I, s:I, s:I}", "client",
                  a->client ? a->client : client_name_default(name), "count", (json_int_t)a->count,
                  "lease_ms", (json_int_t)a->lease_ms, "wait_ms", (json_int_t)wait_ms);
    const struct client_opts opts = {.timeout_ms = wait_ms + ANSWER_MS, .retry_ms = RETRY_MS};
    request_path(&path, &a->ref, "suggestions");
    as_status st = body ? str_check(&path, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    st = client_call(a->session.client, "POST", path.s, NULL, body, &opts, ret, NULL, err);
    if (st < 0)
        return st;
    if (!json_is_array(json_object_get(*ret, "items"))) {
        json_decref(*ret);
        *ret = NULL;
        return as_fail(err, AS_E_INTERNAL, "the server returned suggestions without items");
    }
    return AS_OK;
}

static bool is_over(const json_t *answer)
{
    return json_array_size(json_object_get(answer, "items")) > 0 ||
           json_is_true(json_object_get(answer, "done"));
}

/* Ask until the server hands out a trial, the sweep has ended, or the time is over. *ret is the
 * last answer. */
static as_status ask_until_over(const struct ask *a, json_t **ret, struct as_err *err)
{
    int64_t end_ns = clock_mono_ns() + a->wait_ms * NS_PER_MS;
    JSON_AUTO answer = NULL;
    int64_t left_ms = a->wait_ms;
    do {
        json_decref(answer);
        answer = NULL;
        as_status st = ask_once(a, left_ms < MAX_POLL_MS ? left_ms : MAX_POLL_MS, &answer, err);
        if (st < 0)
            return st;
        left_ms = (end_ns - clock_mono_ns()) / NS_PER_MS;
    } while (!is_over(answer) && left_ms > 0 && !interrupt_seen());
    *ret = as_steal(answer);
    return AS_OK;
}

static as_status print_shell(const struct ask *a, const json_t *items, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    as_status st = json_array_size(items) == 0
                       ? AS_OK
                       : suggestion_view_shell(a->ref.sweep, json_array_get(items, 0), &b, err);
    if (st < 0)
        return st;
    return session_print_text(&b, err);
}

static as_status print_pairs(const struct ask *a, const json_t *items, struct as_err *err)
{
    struct pairs p = {.terminal = a->session.terminal, .name_width = 20};
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)items, i, item)
    {
        if (i > 0)
            str_putc(&p.text, '\n');
        suggestion_view_pairs(a->ref.sweep, item, &p);
    }
    as_status st = pairs_print(&p, err);
    if (st < 0)
        return st;
    if (p.terminal.tty && i > 0)
        say("Send its result with: assay tell %s %" JSON_INTEGER_FORMAT " METRIC=VALUE",
            a->ref.sweep, json_integer_value(json_object_get(json_array_get(items, 0), "number")));
    return AS_OK;
}

/* Explain an answer without trials: the sweep has ended, or there is none at the moment. */
static int say_why_not(const struct ask *a, const json_t *answer)
{
    const char *state = json_string_value(json_object_get(answer, "state"));
    bool done = json_is_true(json_object_get(answer, "done"));
    if (done)
        say("%s is %s: nothing is left to ask for", a->ref.sweep, state ? state : "?");
    else
        say("%s is %s and has nothing to hand out yet; try again, or --wait longer", a->ref.sweep,
            state ? state : "?");
    return exit_after_output(a->session.verb->name, done ? EXIT_DONE : EXIT_TIMEOUT);
}

/* *ret is the server's answer, owned by the caller, also on failure. */
static as_status ask_and_print(struct ask *a, const char *sweep, json_t **ret, struct as_err *err)
{
    as_status st = request_parse_sweep(sweep, &a->ref, err);
    if (st < 0)
        return st;
    st = ask_until_over(a, ret, err);
    if (st < 0)
        return st;
    const json_t *items = json_object_get(*ret, "items");
    return a->session.json ? session_print_json(*ret, err)
           : a->shell      ? print_shell(a, items, err)
                           : print_pairs(a, items, err);
}

static int run_ask(struct ask *a, const char *sweep)
{
    struct as_err err = {0};
    JSON_AUTO answer = NULL;
    as_status st = ask_and_print(a, sweep, &answer, &err);
    bool is_empty = json_array_size(json_object_get(answer, "items")) == 0;
    if (st < 0 || interrupt_seen() || !is_empty)
        return session_end(&a->session, st, &err);
    return say_why_not(a, answer);
}

static int check_options(const struct ask *a)
{
    if (a->count < 1 || a->count > MAX_COUNT)
        return exit_with_usage("ask", "--count takes 1 to %d", MAX_COUNT);
    if (a->lease_ms < 1000 || a->lease_ms > MAX_LEASE_MS)
        return exit_with_usage("ask", "--lease takes 1s to 7d");
    if (a->wait_ms < 0)
        return exit_with_usage("ask", "--wait takes 0 or more");
    if (a->shell && (a->session.json || a->count > 1))
        return exit_with_usage("ask", "--shell prints one trial: not with --json or --count");
    return EXIT_OK;
}

int cmd_ask(const struct verb *v, int argc, char **argv)
{
    struct ask a = {.count = 1, .lease_ms = 600000, .wait_ms = 30000};
    int n, code;
    const struct opt table[] = {
        {"client", 0, OPT_STRING, &a.client, "NAME", "ASSAY_CLIENT",
         "the name of the client; two parallel loops need two names (the name of this shell)"},
        {"count", 'n', OPT_I64, &a.count, "N", NULL, "number of trials to hold in all (1)"},
        {"lease", 0, OPT_DURATION, &a.lease_ms, "TIME", NULL,
         "time until the server takes a trial back, unless extended (10m)"},
        {"wait", 0, OPT_DURATION, &a.wait_ms, "TIME", NULL,
         "how long to wait for something to try (30s)"},
        {"shell", 0, OPT_FLAG, &a.shell, NULL, NULL, "print lines for eval"},
        SESSION_OPTS(&a.session),
    };
    if (session_begin(&a.session, v, table, argc, argv, 1, 1, &n, &code)) {
        code = check_options(&a);
        if (code == EXIT_OK)
            code = run_ask(&a, argv[1]);
    }
    session_done(&a.session);
    return code;
}
