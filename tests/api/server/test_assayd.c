/* The program itself: options, exit codes, token files, signals, the limits of an address. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "scheduler/services/tokens.h"
#include "tests/api/server/assayd_rig.h"
#include "tests/support/check_main.h"
#include "tests/support/raw_http.h"

static int port_of(const char *url)
{
    return (int)strtol(strrchr(url, ':') + 1, NULL, 10);
}

START_TEST(test_exit_codes)
{
    static const struct {
        const char *args[8];
        int code;
    } cases[] = {
        {{"--help"}, 0},
        {{"--version"}, 0},
        {{"--wrong"}, 64},
        {{"--listen", "127.0.0.1:0"}, 64}, /* no database */
        {{"--database", "x", "extra"}, 64},
        {{"--database", "postgresql:///x", "--log-level", "loud"}, 64},
        {{"--database", "postgresql:///x", "--workers", "0"}, 64},
        {{"--database", "postgresql://127.0.0.1:1/x", "--listen", "127.0.0.1:0", "--database-wait",
          "300ms"},
         69},
        {{"--database", "postgresql:///x", "--listen", "0.0.0.0:0"}, 77},
        {{"--database", "postgresql:///x", "--listen", "nonsense"}, 78},
        {{"--database", "postgresql:///x", "--listen", "127.0.0.1:99999"}, 78},
        {{"--database", "nonsense=1", "--listen", "127.0.0.1:0"}, 78},
    };
    (void)unsetenv("ASSAY_DATABASE");
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        int code = assayd_wait(assayd_start(rig_dir, cases[i].args), cases[i].code);
        ck_assert_msg(code == cases[i].code, "case %zu: exit %d, wanted %d", i, code,
                      cases[i].code);
    }
}
END_TEST

START_TEST(test_port_taken)
{
    char url[128], token[128];
    pid_t pid = rig_start(url, token);
    const char *const args[] = {"--database", rig_database, "--listen", url + strlen("http://"),
                                NULL};
    ck_ends(assayd_start(rig_dir, args), 78);
    (void)kill(pid, SIGINT);
    ck_ends(pid, 0);
}
END_TEST

START_TEST(test_token_files)
{
    char url[128], first[128], second[128];
    struct stat sb;
    pid_t pid = rig_start(url, first);
    ck_assert_int_eq(stat(rig_file("admin"), &sb), 0);
    ck_assert_int_eq(sb.st_mode & 0777, 0600);
    struct rest admin = {url, first};
    REPLY_AUTO list = rest_call(&admin, "GET", "/v1/tokens", NULL);
    ck_status(list, 200);
    rig_stop(pid);

    pid = rig_start(url, second); /* the same file, still valid */
    ck_assert_str_eq(first, second);
    rig_stop(pid);

    pg_fixture_empty_database(rig_database); /* a new database: the token of the file is imported */
    pid = rig_start(url, second);
    ck_assert_str_eq(first, second);
    struct rest again = {url, second};
    REPLY_AUTO known = rest_call(&again, "GET", "/v1/tokens", NULL);
    ck_status(known, 200);
    rig_stop(pid);

    ck_assert_int_eq(chmod(rig_file("admin"), 0644), 0);
    const char *const args[] = {"--listen",           "127.0.0.1:0",     "--database", rig_database,
                                "--admin-token-file", rig_file("admin"), NULL};
    ck_ends(assayd_start(rig_dir, args), 77);
}
END_TEST

/* POST a body on a connection of its own, without waiting for the answer. */
static int open_post(const char *url, const char *token, const char *path, const char *body)
{
    char head[600];
    int fd = raw_connect(port_of(url));
    (void)snprintf(head, sizeof head,
                   "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                   "Assay-Runner-Secret: " REST_SECRET "\r\n"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                   path, token, strlen(body), body);
    raw_puts(fd, head);
    return fd;
}

/* Wait until that many requests of this kind wait in the server. */
static void await_waiting(const struct rest *to, const char *kind, int n)
{
    char line[100];
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    (void)snprintf(line, sizeof line, "\nassay_waiting_requests{for=\"%s\"} %d\n", kind, n);
    for (bool is_there = false; !is_there; clock_sleep_ms(5)) {
        REPLY_AUTO r = rest_call(to, "GET", "/metrics", NULL);
        ck_status(r, 200);
        is_there = strstr(str_cstr(&r.body), line) != NULL;
        ck_assert_msg(is_there || clock_mono_ns() < until, "no %s in %s", line, str_cstr(&r.body));
    }
}

/* SIGTERM while a claim and an ask wait and a stream is open: the waiting requests are answered,
 * the stream ends, and the exit code is 0. */
START_TEST(test_drain)
{
    char url[128], token[128], head[600];
    struct str waited = {0}, streamed = {0}, asked = {0};
    pid_t pid = rig_start(url, token);
    struct rest admin = {url, token};
    REPLY_AUTO made =
        rest_call(&admin, "POST", "/v1/runners", "{\"name\":\"drained\",\"slots\":1}");
    ck_status(made, 200);
    rig_make_asked(&admin, "/v1/sweeps?paused=true", "random", 5);
    int64_t begin = clock_mono_ns();
    int claim = open_post(url, token, "/v1/runners/drained/claim",
                          "{\"epoch\":1,\"claim_id\":\"c\",\"wait_ms\":60000}");
    int ask = open_post(url, token, "/v1/sweeps/asked/suggestions",
                        "{\"client\":\"me\",\"wait_ms\":60000}");
    int events = raw_connect(port_of(url));
    (void)snprintf(head, sizeof head,
                   "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n",
                   token);
    raw_puts(events, head);
    ck_assert(!raw_read(events, &streamed, "retry: ", PATIENCE_MS));
    await_waiting(&admin, "any_trial", 1);
    await_waiting(&admin, "one_sweep", 1);
    (void)kill(pid, SIGTERM);
    ck_assert(raw_read(claim, &waited, NULL, PATIENCE_MS));
    ck_assert(raw_read(ask, &asked, NULL, PATIENCE_MS));
    ck_assert(raw_read(events, &streamed, NULL, PATIENCE_MS));
    ck_assert_int_eq(raw_status(&waited), 200);
    ck_assert_int_eq(raw_status(&asked), 200);
    ck_assert_ptr_nonnull(strstr(str_cstr(&asked), "{\"items\":[],\"state\":\"paused\","));
    ck_assert_ptr_nonnull(strstr(str_cstr(&waited), "{\"trials\":[],"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&streamed), "\r\n0\r\n"));
    ck_assert_int_lt((clock_mono_ns() - begin) / NS_PER_S,
                     60); /* before their wait_ms had passed */
    ck_ends(pid, 0);
    (void)close(claim);
    (void)close(ask);
    (void)close(events);
    str_done(&asked);
    str_done(&waited);
    str_done(&streamed);
}
END_TEST

/* SIGTERM while a suggestion is computed for waiting requests: all of them are answered. */
START_TEST(test_drain_while_preparing)
{
    char url[128], token[128], path[80], body[80];
    int asks[8];
    pid_t pid = rig_start(url, token);
    struct rest admin = {url, token};
    rig_make_asked(&admin, "/v1/sweeps", "gp", 200);
    for (int i = 0; i < 30; i++) { /* data for the model */
        (void)snprintf(body, sizeof body, "{\"params\":{\"x\":%g},\"metrics\":{\"loss\":%g}}",
                       i / 30.0, (i - 12) * (i - 12) / 900.0);
        REPLY_AUTO known = rest_call(&admin, "POST", "/v1/sweeps/asked/trials", body);
        ck_status(known, 201);
    }
    (void)snprintf(path, sizeof path, "/v1/sweeps/asked/suggestions");
    for (size_t i = 0; i < AS_ARRAY_LEN(asks); i++) {
        (void)snprintf(body, sizeof body, "{\"client\":\"c%zu\",\"count\":8}", i);
        asks[i] = open_post(url, token, path, body);
    }
    (void)kill(pid, SIGTERM);
    for (size_t i = 0; i < AS_ARRAY_LEN(asks); i++) {
        struct str out = {0};
        ck_assert(raw_read(asks[i], &out, NULL, PATIENCE_MS)); /* it ends */
        ck_assert_msg(out.len == 0 || raw_status(&out) == 200 || raw_status(&out) == 503, "%s",
                      str_cstr(&out));
        str_done(&out);
        (void)close(asks[i]);
    }
    ck_ends(pid, 0);
}
END_TEST

/* The limits for one client address are options. Silent connections of an address keep none of its
 * requests out. */
START_TEST(test_limits_of_an_address)
{
    enum { CONNECTIONS = 6, BAD = 5 };
    char url[128], token[128], buf[80];
    int fds[3 * CONNECTIONS];
    const char *const args[] = {"--listen",
                                "127.0.0.1:0",
                                "--database",
                                rig_database,
                                "--address-file",
                                rig_file("url"),
                                "--admin-token-file",
                                rig_file("admin"),
                                "--max-connections-per-address",
                                "6",
                                "--bad-tokens-per-minute",
                                "5",
                                "--die-with-parent",
                                NULL};
    (void)unlink(rig_file("url"));
    pid_t pid = assayd_start(rig_dir, args);
    rig_await_ready(pid, url, token);
    for (size_t i = 0; i < AS_ARRAY_LEN(fds); i++)
        fds[i] = raw_connect(port_of(url));
    for (size_t i = 0; i + CONNECTIONS < AS_ARRAY_LEN(fds); i++) {
        AS_AUTO(str_done) struct str out = {0};
        ck_assert(raw_read(fds[i], &out, NULL, PATIENCE_MS)); /* closed for a newer one */
        ck_assert_uint_eq(out.len, 0);
    }

    struct rest admin = {url, token}, guesser = {url, "as_guess"};
    REPLY_AUTO before = rest_call(&admin, "GET", "/v1/sweeps", NULL);
    ck_status(before, 200);
    for (int i = 0; i < BAD; i++) {
        REPLY_AUTO bad = rest_call(&guesser, "GET", "/v1/sweeps", NULL);
        ck_status(bad, 401);
    }
    REPLY_AUTO many = rest_call(&guesser, "GET", "/v1/sweeps", NULL);
    ck_status(many, 429);
    ck_assert_str_eq(reply_header(&many, "Retry-After", buf, sizeof buf), "60");
    char known[TOKEN_TEXT_SIZE], *secret;
    (void)snprintf(known, sizeof known, "%s", token); /* the id of a token, and another secret */
    secret = strrchr(known, '_') + 1;
    *secret = *secret == 'a' ? 'b' : 'a';
    struct rest forger = {url, known};
    REPLY_AUTO forged = rest_call(&forger, "GET", "/v1/sweeps", NULL);
    ck_assert_msg(forged.status == 429 || forged.status == 401, "%s", str_cstr(&forged.body));
    for (size_t i = 0; i < AS_ARRAY_LEN(fds); i++)
        (void)close(fds[i]);
    rig_stop(pid);
}
END_TEST

/* Send bad tokens: some with the id of a good one. Returns how many were answered 429. */
static int send_guesses(const char *url, const char *good, int n)
{
    int n_too_many = 0;
    for (int i = 0; i < n; i++) {
        char guess[TOKEN_TEXT_SIZE];
        (void)snprintf(guess, sizeof guess, "%s", good);
        if (i % 3 == 0)
            (void)snprintf(guess, sizeof guess, "assay_admin_%012d_%043d", i, i);
        else
            (void)snprintf(strrchr(guess, '_') + 1, 44, "%043d", i);
        struct rest guesser = {url, guess};
        REPLY_AUTO r = rest_call(&guesser, "GET", "/v1/sweeps", NULL);
        ck_assert_msg(r.status == 401 || r.status == 429, "%s", str_cstr(&r.body));
        n_too_many += r.status == 429;
    }
    return n_too_many;
}

static void expect_all_served(const char *url, const char *admin_token, const char *viewer_token,
                              const char *runner_token)
{
    struct rest admin = {url, admin_token}, viewer = {url, viewer_token},
                runner = {url, runner_token};
    REPLY_AUTO by_viewer = rest_call(&viewer, "GET", "/v1/sweeps", NULL);
    ck_status(by_viewer, 200);
    REPLY_AUTO by_runner =
        rest_call(&runner, "POST", "/v1/runners", "{\"name\":\"r\",\"slots\":1}");
    ck_status(by_runner, 200);
    REPLY_AUTO by_admin = rest_call(&admin, "GET", "/v1/tokens", NULL);
    ck_status(by_admin, 200);
}

static void make_token(const struct rest *admin, const char *role, char ret[TOKEN_TEXT_SIZE])
{
    char body[40];
    (void)snprintf(body, sizeof body, "{\"role\":\"%s\"}", role);
    REPLY_AUTO made = rest_call(admin, "POST", "/v1/tokens", body);
    ck_status(made, 201);
    (void)snprintf(ret, TOKEN_TEXT_SIZE, "%s", reply_str(&made, "token"));
}

/* A thousand guesses from an address, as behind a proxy: tokens that are good are served from
 * there, those that are new, and all of them after a start, when no token is remembered. */
START_TEST(test_guesses_refuse_no_good_token)
{
    char url[128], token[128], viewer[TOKEN_TEXT_SIZE], runner[TOKEN_TEXT_SIZE];
    pid_t pid = rig_start(url, token);
    struct rest admin = {url, token};
    ck_assert_int_gt(send_guesses(url, token, 1000), 0);
    make_token(&admin, "viewer", viewer);
    make_token(&admin, "runner", runner);
    expect_all_served(url, token, viewer, runner);
    rig_stop(pid);
    pid = rig_start(url, token);
    ck_assert_int_gt(send_guesses(url, token, 200), 0);
    expect_all_served(url, token, viewer, runner);
    rig_stop(pid);
}
END_TEST

TEST_SUITE()
{
    TCase *tc;
    Suite *s = rig_suite("api_assayd", &tc);
    tcase_add_test(tc, test_exit_codes);
    tcase_add_test(tc, test_port_taken);
    tcase_add_test(tc, test_token_files);
    tcase_add_test(tc, test_drain);
    tcase_add_test(tc, test_drain_while_preparing);
    tcase_add_test(tc, test_limits_of_an_address);
    tcase_add_test(tc, test_guesses_refuse_no_good_token);
    return s;
}
