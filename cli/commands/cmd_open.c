/* assay open [SWEEP | SWEEP/NUMBER]: prints the address of the dashboard, and opens a browser where
 * there is a display. The address has no token: other users could read it in the list of
 * processes. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/say.h"

extern char **environ;

static bool has_display(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x && *x) || (wayland && *wayland);
}

/* Start the user's browser in a session of its own, so that Ctrl-C does not reach it. */
static void start_browser(const char *address)
{
    char program[] = "xdg-open";
    AS_AUTO(as_freep) char *copy = as_strdup(address);
    char *argv[] = {program, copy, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    pid_t pid;
    if (!copy || posix_spawn_file_actions_init(&files) != 0)
        return;
    int failed = posix_spawnattr_init(&attributes);
    if (failed == 0) {
        failed = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
        for (int fd = 0; fd < 3 && !failed; fd++)
            failed = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
        if (!failed)
            failed = posix_spawnp(&pid, program, &files, &attributes, argv, environ);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    if (failed)
        say("No browser was opened (xdg-open: %s).", strerror(failed));
}

/* Append the address. The request shows that the server answers, and that the sweep exists. */
static as_status find_address(const struct session *s, const char *name, struct str *b,
                              struct as_err *err)
{
    struct trial_ref ref = {.number = -1};
    JSON_AUTO answer = NULL;
    as_status st = name ? request_parse_ref(name, true, &ref, err) : AS_OK;
    if (st < 0)
        return st;
    st = name ? request_get(s->client, &ref, NULL, NULL, &answer, err)
              : client_call(s->client, "GET", "/healthz", NULL, NULL, NULL, &answer, NULL, err);
    if (st < 0)
        return st;
    str_printf(b, "%s/", s->url);
    if (name)
        str_printf(b, "#/sweeps/%s", ref.sweep);
    if (ref.number >= 0)
        str_printf(b, "/trials/%lld", (long long)ref.number);
    return str_check(b, err);
}

static as_status open_dashboard(const struct session *s, const char *name, bool no_browser,
                                struct as_err *err)
{
    AS_AUTO(str_done) struct str address = {0};
    as_status st = find_address(s, name, &address, err);
    if (st < 0)
        return st;
    if (s->json) {
        JSON_AUTO j = json_pack("{s:s}", "url", address.s);
        st = session_print_json(j, err);
    } else if (printf("%s\n", address.s) < 0) {
        st = as_fail(err, AS_E_IO, "cannot write the output");
    }
    (void)fflush(stdout);
    if (st == AS_OK && !no_browser && has_display())
        start_browser(address.s);
    return st;
}

int cmd_open(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    bool no_browser = false;
    int n, code;
    const struct opt table[] = {
        {"no-browser", 0, OPT_FLAG, &no_browser, NULL, NULL, "only print the address"},
        SESSION_OPTS(&s),
    };
    if (session_begin(&s, v, table, argc, argv, 0, 1, &n, &code))
        code = session_end(&s, open_dashboard(&s, n > 0 ? argv[1] : NULL, no_browser, &err), &err);
    session_done(&s);
    return code;
}
