#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands/fit_run.h"
#include "cli/files/running_server.h"
#include "cli/session/interrupt.h"
#include "cli/up/background.h"
#include "cli/up/up.h"
#include "cli/view/say.h"

#define MOST_RUNNERS 8 /* of an `assay up` that is started here */

/* Does the server answer, and has it runners? Asked before anything is sent. */
static as_status look_at_server(const struct fit *f, struct as_err *err)
{
    JSON_AUTO runners = NULL;
    as_status st = request_list(f->session.client, "/v1/runners", NULL, 0, &runners, err);
    size_t live = 0, i;
    json_t *r;
    json_array_foreach(runners, i, r) live +=
        as_streq(json_string_value(json_object_get(r, "state")), "live");
    if (st == AS_OK && live == 0)
        say("%s has no live runner: trials wait until one comes", f->session.url);
    return st;
}

/* The time that is given begins when the server is ready: what a start takes depends on the machine
 * and happens once, and a search that gets the rest of it would be another one each time. */
static as_status start_server(struct fit *f, struct as_err *err)
{
    size_t runners = f->wishes.cores < MOST_RUNNERS ? f->wishes.cores : MOST_RUNNERS;
    int64_t before_ns = clock_mono_ns();
    pid_t pid = 0;
    say("No server runs: starting `assay up` with %zu runner%s", runners, runners == 1 ? "" : "s");
    as_status st = background_up_start(runners, interrupt_seen, &pid, err);
    if (st == AS_OK)
        st = session_connect(&f->session, err);
    int64_t took_ns = clock_mono_ns() - before_ns;
    f->start_ns += took_ns;
    if (st == AS_OK && pid > 0)
        say("It was ready after %.1f s, which --time does not count. It goes on after this "
            "command, so that models can be served and looked at; `kill %d` ends it",
            (double)took_ns / NS_PER_S, (int)pid);
    return st;
}

static as_status connect_or_start(struct fit *f, struct as_err *err)
{
    struct session *s = &f->session;
    const char *const named[] = {s->server, s->profile, getenv("ASSAY_SERVER"),
                                 getenv("ASSAY_PROFILE")};
    as_status st = session_connect(s, err);
    for (size_t i = 0; i < AS_ARRAY_LEN(named); i++)
        if (named[i] && *named[i])
            return st;
    if (st != AS_E_UNAVAILABLE)
        return st;
    session_done(s);
    return start_server(f, err);
}

as_status fit_server_find(struct fit *f, struct as_err *err)
{
    as_status st = connect_or_start(f, err);
    return st == AS_OK ? look_at_server(f, err) : st;
}
