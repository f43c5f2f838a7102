/* The program itself: options, exit codes, token files, signals, and a database that starts late,
 * stops and returns. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/file.h"
#include "scheduler/services/tokens.h"
#include "tests/api/server/assayd_process.h"
#include "tests/support/raw_http.h"
#include "tests/api/server/rest.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"
#include "tests/support/pg_fixture.h"

static char dir[TEMP_FOLDER_SIZE], database[PG_URL_SIZE];

static const char *in_dir(const char *name)
{
    static char paths[32][128];
    static unsigned next;
    char *path = paths[next++ % 32];
    (void)snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

/* Wait for its end, and check its exit status. */
#define ck_ends(pid, want) ck_assert_int_eq(assayd_wait(pid, want), want)

static char *read_line(const char *path)
{
    static char line[256];
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    if (file_read(path, sizeof line - 1, &text, &len, NULL) < 0)
        return NULL;
    (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    return line;
}

/* Wait for its address file. */
static void wait_ready(pid_t pid, const char *path, char url[128])
{
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    const char *line = NULL;
    while (!(line = read_line(path)) && assayd_runs(pid) && clock_mono_ns() < until)
        clock_sleep_ms(20);
    ck_assert_msg(line != NULL, "assayd did not get ready");
    (void)snprintf(url, 128, "%s", line);
}

/* Start it with this name for its address file. */
static pid_t start_as(const char *name, char url[128], char token[128])
{
    const char *const args[] = {"--listen",
                                "127.0.0.1:0",
                                "--database",
                                database,
                                "--address-file",
                                in_dir(name),
                                "--admin-token-file",
                                in_dir("admin"),
                                "--runner-token-file",
                                in_dir("runner"),
                                "--web",
                                dir,
                                "--die-with-parent",
                                NULL};
    (void)unlink(in_dir(name));
    pid_t pid = assayd_start(dir, args);
    wait_ready(pid, in_dir(name), url);
    (void)snprintf(token, 128, "%s", read_line(in_dir("admin")));
    return pid;
}

static pid_t start_ready(char url[128], char token[128])
{
    return start_as("url", url, token);
}

static int port_of(const char *url)
{
    return (int)strtol(strrchr(url, ':') + 1, NULL, 10);
}

/* A sweep called asked, for clients. */
static void make_asked(const struct rest *to, const char *path, const char *method, int max_trials)
{
    char doc[400];
    (void)snprintf(doc, sizeof doc,
                   "{\"name\":\"asked\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},"
                   "\"parameters\":{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1}},"
                   "\"search\":{\"method\":\"%s\"},\"limits\":{\"max_trials\":%d}}",
                   method, max_trials);
    REPLY_AUTO made = rest_call(to, "POST", path, doc);
    ck_status(made, 201);
}

static void setup(void)
{
    temp_folder_make(dir);
    pg_fixture_empty_database(database);
}

static void teardown(void)
{
    assayd_end_all();
    temp_folder_remove(dir);
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
        int code = assayd_wait(assayd_start(dir, cases[i].args), cases[i].code);
        ck_assert_msg(code == cases[i].code, "case %zu: exit %d, wanted %d", i, code,
                      cases[i].code);
    }
}
END_TEST

START_TEST(test_port_taken)
{
    char url[128], token[128];
    pid_t pid = start_ready(url, token);
    const char *const args[] = {"--database", database, "--listen", url + strlen("http://"), NULL};
    ck_ends(assayd_start(dir, args), 78);
    (void)kill(pid, SIGINT);
    ck_ends(pid, 0);
}
END_TEST

START_TEST(test_token_files)
{
    char url[128], first[128], second[128];
    struct stat sb;
    pid_t pid = start_ready(url, first);
    ck_assert_int_eq(stat(in_dir("admin"), &sb), 0);
    ck_assert_int_eq(sb.st_mode & 0777, 0600);
    struct rest admin = {url, first};
    REPLY_AUTO list = rest_call(&admin, "GET", "/v1/tokens", NULL);
    ck_status(list, 200);
    (void)kill(pid, SIGTERM);
    ck_ends(pid, 0);

    pid = start_ready(url, second); /* the same file, still valid */
    ck_assert_str_eq(first, second);
    (void)kill(pid, SIGTERM);
    ck_ends(pid, 0);

    pg_fixture_empty_database(database); /* a new database: the token of the file is imported */
    pid = start_ready(url, second);
    ck_assert_str_eq(first, second);
    struct rest again = {url, second};
    REPLY_AUTO known = rest_call(&again, "GET", "/v1/tokens", NULL);
    ck_status(known, 200);
    (void)kill(pid, SIGTERM);
    ck_ends(pid, 0);

    ck_assert_int_eq(chmod(in_dir("admin"), 0644), 0);
    const char *const args[] = {"--listen",           "127.0.0.1:0",   "--database", database,
                                "--admin-token-file", in_dir("admin"), NULL};
    ck_ends(assayd_start(dir, args), 77);
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
    pid_t pid = start_ready(url, token);
    struct rest admin = {url, token};
    REPLY_AUTO made =
        rest_call(&admin, "POST", "/v1/runners", "{\"name\":\"drained\",\"slots\":1}");
    ck_status(made, 200);
    make_asked(&admin, "/v1/sweeps?paused=true", "random", 5);
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
    pid_t pid = start_ready(url, token);
    struct rest admin = {url, token};
    make_asked(&admin, "/v1/sweeps", "gp", 200);
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

/* Status 0 when there is no answer: threads use this, and they must not leave through Check. */
static struct reply post_body(const struct rest *to, const char *path, const char *body)
{
    const struct rest_options opts = {
        .body = body, .len = strlen(body), .type = "application/json", .may_fail = true};
    return rest_call_with(to, "POST", path, &opts);
}

static struct reply ask_trial(const struct rest *to, const char *client, int lease_ms, int wait_ms)
{
    char body[160];
    (void)snprintf(body, sizeof body, "{\"client\":\"%s\",\"lease_ms\":%d,\"wait_ms\":%d}", client,
                   lease_ms, wait_ms);
    return post_body(to, "/v1/sweeps/asked/suggestions", body);
}

static struct reply tell_result(const struct rest *to, const char *client, long long number)
{
    char path[120], body[120];
    (void)snprintf(path, sizeof path, "/v1/sweeps/asked/suggestions/%lld/complete", number);
    (void)snprintf(body, sizeof body, "{\"client\":\"%s\",\"metrics\":{\"loss\":0.5}}", client);
    return post_body(to, path, body);
}

/* Wait until the trial is in this state. */
static void wait_trial(const struct rest *to, long long number, const char *state)
{
    char path[80];
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    (void)snprintf(path, sizeof path, "/v1/sweeps/asked/trials/%lld", number);
    for (bool is_there = false; !is_there; clock_sleep_ms(20)) {
        REPLY_AUTO r = rest_call(to, "GET", path, NULL);
        ck_status(r, 200);
        is_there = strcmp(reply_str(&r, "state"), state) == 0;
        ck_assert_msg(is_there || clock_mono_ns() < until, "%s", str_cstr(&r.body));
    }
}

/* When a lease ends, a waiting client gets the trial. A late result counts only if no other client
 * has begun the trial. Heartbeats extend the lease. */
START_TEST(test_client_lease)
{
    char url[128], token[128];
    pid_t pid = start_ready(url, token);
    struct rest admin = {url, token};
    make_asked(&admin, "/v1/sweeps", "sobol", 1);
    REPLY_AUTO first = ask_trial(&admin, "a", 1000, 60000);
    ck_assert_int_eq(reply_int(&first, "items.0.number"), 0);
    REPLY_AUTO second = ask_trial(&admin, "b", 1000, 60000); /* all trials run: it waits */
    ck_assert_int_eq(reply_int(&second, "items.0.number"), 0);
    ck_assert_int_eq(reply_int(&second, "items.0.attempt"), 2);
    ck_assert(
        json_equal(reply_get(&first, "items.0.params"), reply_get(&second, "items.0.params")));
    REPLY_AUTO stale = tell_result(&admin, "a", 0);
    ck_status(stale, 409);
    ck_assert_str_eq(reply_str(&stale, "code"), "stale_attempt");
    wait_trial(&admin, 0, "queued"); /* b is silent too */
    REPLY_AUTO late = tell_result(&admin, "b", 0);
    ck_status(late, 200);
    ck_assert_str_eq(reply_str(&late, "state"), "completed");
    REPLY_AUTO over = ask_trial(&admin, "c", 1000, 60000);
    ck_assert(json_is_true(reply_get(&over, "done")));
    (void)kill(pid, SIGTERM);
    ck_ends(pid, 0);
}
END_TEST

/* A client of one of two servers over one database. */
#define CROWD_TRIALS 30
struct crowd {
    pthread_t thread;
    struct rest to;
    char client[16];
    int held[CROWD_TRIALS];
    char wrong[400]; /* the error, or "" */
};

static bool is_ok(struct crowd *c, const struct reply *r)
{
    if (r->status != 200)
        (void)snprintf(c->wrong, sizeof c->wrong, "%s: got %d: %s", c->client, r->status,
                       str_cstr(&r->body));
    return r->status == 200;
}

static void *run_crowd(void *arg)
{
    struct crowd *c = arg;
    for (;;) {
        REPLY_AUTO r = ask_trial(&c->to, c->client, 60000, 5000);
        if (!is_ok(c, &r) || json_is_true(reply_get(&r, "done")))
            return NULL;
        if (json_array_size(reply_get(&r, "items")) == 0)
            continue;
        long long number = reply_int(&r, "items.0.number");
        if (number < 0 || number >= CROWD_TRIALS) {
            (void)snprintf(c->wrong, sizeof c->wrong, "%s: trial %lld", c->client, number);
            return NULL;
        }
        c->held[number]++;
        REPLY_AUTO told = tell_result(&c->to, c->client, number);
        if (!is_ok(c, &told))
            return NULL;
    }
}

START_TEST(test_two_servers)
{
    static const char *const methods[] = {"random", "gp"};
    char urls[2][128], token[128];
    struct crowd crowd[6] = {0};
    pid_t pids[] = {start_as("url-1", urls[0], token), start_as("url-2", urls[1], token)};
    struct rest admin = {urls[0], token};
    make_asked(&admin, "/v1/sweeps", methods[_i], CROWD_TRIALS);
    for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++) {
        crowd[i].to = (struct rest){urls[i % 2], token};
        (void)snprintf(crowd[i].client, sizeof crowd[i].client, "c%zu", i);
        ck_assert_int_eq(pthread_create(&crowd[i].thread, NULL, run_crowd, &crowd[i]), 0);
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++)
        ck_assert_int_eq(pthread_join(crowd[i].thread, NULL), 0);
    for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++)
        ck_assert_msg(!*crowd[i].wrong, "%s", crowd[i].wrong);
    for (size_t n = 0; n < CROWD_TRIALS; n++) {
        int held = 0;
        for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++)
            held += crowd[i].held[n];
        ck_assert_int_eq(held, 1); /* by one client, once */
    }
    REPLY_AUTO sweep = rest_call(&admin, "GET", "/v1/sweeps/asked", NULL);
    ck_assert_int_eq(reply_int(&sweep, "counts.completed"), CROWD_TRIALS);
    ck_assert_int_eq(reply_int(&sweep, "counts.total"), CROWD_TRIALS);
    for (size_t i = 0; i < AS_ARRAY_LEN(pids); i++) {
        (void)kill(pids[i], SIGTERM);
        ck_ends(pids[i], 0);
    }
}
END_TEST

/* The status of /readyz, until it is `want`. */
static void wait_readyz(const char *url, int want)
{
    struct rest nobody = {url, NULL};
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    int status = 0;
    while (status != want && clock_mono_ns() < until) {
        REPLY_AUTO r = rest_call(&nobody, "GET", "/readyz", NULL);
        status = r.status;
        clock_sleep_ms(20);
    }
    ck_assert_int_eq(status, want);
}

START_TEST(test_database_restart)
{
    char url[128], token[128], buf[80];
    pid_t pid = start_ready(url, token);
    struct rest admin = {url, token}, nobody = {url, NULL};
    wait_readyz(url, 200);
    pg_fixture_stop();
    wait_readyz(url, 503);
    REPLY_AUTO alive = rest_call(&nobody, "GET", "/healthz", NULL);
    ck_status(alive, 200);
    REPLY_AUTO away = rest_call(&admin, "GET", "/v1/sweeps", NULL);
    ck_status(away, 503);
    ck_assert_str_eq(reply_str(&away, "code"), "unavailable");
    ck_assert_str_ne(reply_header(&away, "Retry-After", buf, sizeof buf), "");
    pg_fixture_continue();
    wait_readyz(url, 200);
    REPLY_AUTO back = rest_call(&admin, "GET", "/v1/sweeps", NULL);
    ck_status(back, 200);
    (void)kill(pid, SIGTERM);
    ck_ends(pid, 0);
}

END_TEST

/* A database that takes no writes: not ready, and why is nobody's business without a token. */
START_TEST(test_database_is_read_only)
{
    char url[128], token[128], name[64], sql[300];
    pid_t pid = start_ready(url, token);
    char *last = token + strlen(token) - 1;
    *last = *last == 'a' ? 'b' : 'a'; /* a guess that has the form of a token */
    struct rest nobody = {url, NULL}, guesser = {url, token};
    wait_readyz(url, 200);
    pg_fixture_text(database, "select current_database()", name, sizeof name);
    (void)snprintf(sql, sizeof sql, "alter database %s set default_transaction_read_only = on",
                   name);
    pg_fixture_exec(database, sql);
    pg_fixture_kill_backends(database);
    wait_readyz(url, 503);
    REPLY_AUTO hidden = rest_call(&nobody, "GET", "/readyz", NULL);
    ck_status(hidden, 503);
    ck_assert_str_eq(reply_str(&hidden, "detail"), "the database does not take writes");
    assayd_await_log(pid, "read-only transaction");
    (void)snprintf(
        sql, sizeof sql,
        "begin read write; alter database %s reset default_transaction_read_only; commit", name);
    pg_fixture_exec(database, sql);
    pg_fixture_kill_backends(database);
    wait_readyz(url, 200);

    pg_fixture_stop(); /* its address is in the error of a connection that fails */
    wait_readyz(url, 503);
    REPLY_AUTO away = rest_call(&nobody, "GET", "/readyz", NULL);
    ck_assert_str_eq(reply_str(&away, "detail"), "the database cannot be reached");
    REPLY_AUTO guessed = rest_call(&guesser, "GET", "/v1/sweeps", NULL);
    ck_status(guessed, 503);
    ck_assert_str_eq(reply_str(&guessed, "detail"), "the token cannot be checked now");
    pg_fixture_continue();
    wait_readyz(url, 200);
    (void)kill(pid, SIGTERM);
    ck_ends(pid, 0);
}
END_TEST

/* The limits for one client address are options. */
START_TEST(test_limits_of_an_address)
{
    enum { CONNECTIONS = 6, BAD = 5 };
    char url[128], token[128], buf[80];
    int fds[CONNECTIONS];
    struct str out = {0};
    const char *const args[] = {"--listen",
                                "127.0.0.1:0",
                                "--database",
                                database,
                                "--address-file",
                                in_dir("url"),
                                "--admin-token-file",
                                in_dir("admin"),
                                "--max-connections-per-address",
                                "6",
                                "--bad-tokens-per-minute",
                                "5",
                                "--die-with-parent",
                                NULL};
    (void)unlink(in_dir("url"));
    pid_t pid = assayd_start(dir, args);
    wait_ready(pid, in_dir("url"), url);
    (void)snprintf(token, sizeof token, "%s", read_line(in_dir("admin")));
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = raw_connect(port_of(url));
    int over = raw_connect(port_of(url));
    ck_assert(raw_read(over, &out, NULL, PATIENCE_MS));
    ck_assert_uint_eq(out.len, 0);
    (void)close(over);
    for (int i = 0; i < CONNECTIONS; i++)
        raw_leave(fds[i]);

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
    REPLY_AUTO made = rest_call(&admin, "POST", "/v1/tokens", "{\"role\":\"viewer\"}");
    ck_status(made, 201);
    (void)snprintf(buf, sizeof buf, "/v1/tokens/%s", reply_str(&made, "id"));
    REPLY_AUTO revoked = rest_call(&admin, "DELETE", buf, NULL);
    ck_status(revoked, 204);
    REPLY_AUTO looked_up = rest_call(&admin, "GET", "/v1/sweeps", NULL);
    ck_status(looked_up, 200);
    clock_sleep_ms(3100); /* past the cache of tokens: it must be looked up again, and may be */
    REPLY_AUTO after = rest_call(&admin, "GET", "/v1/sweeps", NULL);
    ck_status(after, 200);
    (void)kill(pid, SIGTERM);
    ck_ends(pid, 0);
    str_done(&out);
}
END_TEST

START_TEST(test_database_comes_late)
{
    char url[128], token[128];
    (void)unlink(in_dir("url"));
    pg_fixture_stop();
    const char *const args[] = {
        "--listen",    "127.0.0.1:0",        "--database",    database, "--address-file",
        in_dir("url"), "--admin-token-file", in_dir("admin"), NULL};
    pid_t pid = assayd_start(dir, args);
    assayd_await_log(pid, "waiting for the database");
    ck_assert_int_ne(access(in_dir("url"), F_OK), 0);
    pg_fixture_continue();
    wait_ready(pid, in_dir("url"), url);
    (void)snprintf(token, sizeof token, "%s", read_line(in_dir("admin")));
    struct rest admin = {url, token};
    REPLY_AUTO r = rest_call(&admin, "GET", "/v1/sweeps", NULL);
    ck_status(r, 200);
    (void)kill(pid, SIGTERM);
    ck_ends(pid, 0);
}

END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("api_assayd");
    TCase *tc = tcase_create("program");
    (void)curl_global_init(CURL_GLOBAL_ALL);
    (void)setenv("CK_FORK", "no", 1); /* only the process that started the cluster may stop it */
    pg_fixture_start();
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_exit_codes);
    tcase_add_test(tc, test_port_taken);
    tcase_add_test(tc, test_token_files);
    tcase_add_test(tc, test_drain);
    tcase_add_test(tc, test_drain_while_preparing);
    tcase_add_test(tc, test_client_lease);
    tcase_add_loop_test(tc, test_two_servers, 0, 2);
    tcase_add_test(tc, test_database_restart);
    tcase_add_test(tc, test_database_is_read_only);
    tcase_add_test(tc, test_limits_of_an_address);
    tcase_add_test(tc, test_database_comes_late);
    suite_add_tcase(s, tc);
    return s;
}
