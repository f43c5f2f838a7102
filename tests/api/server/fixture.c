/* The fixture starts the server's parts in the test process and not the program assayd, so that a
 * test can reach the store directly and sanitizers see both sides. It has its own PostgreSQL
 * cluster (pg_fixture), a token of each role, a small dashboard folder, and a limit of 8 MiB for
 * blobs.
 *
 * Tests wait for a state of the server through its metrics (await_figure). */
#include "tests/api/server/fixture.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/http/listen.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"
#include "tests/support/pg_fixture.h"
#include "tests/support/raw_http.h"

struct fixture fix;

static void write_web(void)
{
    struct as_err err;
    char path[128];
    static const struct {
        const char *name, *text;
    } files[] = {{"index.html", "<!doctype html><title>dashboard</title>"},
                 {"assets/index-0a1b.js", "console.log(1)"},
                 {"assets/style.css", "body{}"}};
    temp_folder_make(fix.web_dir);
    (void)snprintf(path, sizeof path, "%s/assets", fix.web_dir);
    ck_ok(file_mkdirs(path, 0755, &err), err);
    for (size_t i = 0; i < AS_ARRAY_LEN(files); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", fix.web_dir, files[i].name);
        ck_ok(file_replace(path, files[i].text, strlen(files[i].text), 0644, &err), err);
    }
    (void)snprintf(path, sizeof path, "%s/secret", fix.web_dir);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
}

static void make_tokens(void)
{
    struct arena a = {0};
    struct as_err err;
    for (int r = 0; r < TOKEN_ROLES; r++) {
        struct token_row row;
        ck_ok(token_create(fix.db, &a, (token_role)r, "test", 0, &row, fix.tokens[r], &err), err);
    }
    arena_done(&a);
}

void fixture_start(void)
{
    struct as_err err;
    struct listener_address address;
    struct store_opts store = {.url = fix.database};
    struct server_options opts = {.max_blob_bytes = 8 << 20};
    (void)curl_global_init(CURL_GLOBAL_ALL);
    pg_fixture_start();
    pg_fixture_database(fix.database);
    ck_ok(store_open(&store, &fix.db, &err), err);
    make_tokens();
    write_web();
    ck_ok(listen_open("127.0.0.1:0", false, &opts.listen_fd, &address, &err), err);
    (void)snprintf(fix.url, sizeof fix.url, "%s", address.url);
    fix.port = (int)strtol(strrchr(fix.url, ':') + 1, NULL, 10);
    opts.store = fix.db;
    opts.web_dir = fix.web_dir;
    ck_ok(server_start(&opts, &fix.server, &err), err);
}

void fixture_stop(void)
{
    ck_assert(server_drain(fix.server, PATIENCE_MS));
    server_free(fix.server);
    store_close(fix.db);
    temp_folder_remove(fix.web_dir);
}

static struct rest as_role(token_role role)
{
    return (struct rest){fix.url, fix.tokens[role]};
}

struct rest as_admin(void)
{
    return as_role(ROLE_ADMIN);
}

struct rest as_user(void)
{
    return as_role(ROLE_USER);
}

struct rest as_runner(void)
{
    return as_role(ROLE_RUNNER);
}

struct rest as_viewer(void)
{
    return as_role(ROLE_VIEWER);
}

struct rest as_nobody(void)
{
    return (struct rest){fix.url, NULL};
}

const char *sweep_json(const char *name, int max_trials)
{
    static char text[1024];
    (void)snprintf(text, sizeof text,
                   "{\"name\":\"%s\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},"
                   "\"parameters\":{\"lr\":{\"type\":\"float\",\"min\":0.001,\"max\":1.0,"
                   "\"scale\":\"log\"},\"act\":{\"type\":\"categorical\",\"values\":[\"relu\","
                   "\"tanh\"]}},\"search\":{\"method\":\"random\",\"seed\":7},"
                   "\"limits\":{\"max_trials\":%d},"
                   "\"trial\":{\"command\":[\"true\",\"${lr}\",\"${act}\"]}}",
                   name, max_trials);
    return text;
}

const char *make_sweep(const char *name, int max_trials)
{
    static char id[128];
    struct rest user = as_user();
    REPLY_AUTO r = rest_call(&user, "POST", "/v1/sweeps", sweep_json(name, max_trials));
    ck_status(r, 201);
    (void)snprintf(id, sizeof id, "%s", reply_str(&r, "id"));
    return id;
}

struct reply put_blob(const char *bytes, size_t len, char hex[SHA256_HEX_SIZE])
{
    char path[128];
    struct as_err err;
    struct rest runner = as_runner();
    const struct rest_options opts = {
        .body = bytes, .len = len, .type = "application/octet-stream"};
    ck_ok(sha256_of(bytes, len, hex, &err), err);
    (void)snprintf(path, sizeof path, "/v1/blobs/%s", hex);
    return rest_call_with(&runner, "PUT", path, &opts);
}

long long make_runner(const char *name, int slots)
{
    char body[256];
    struct rest runner = as_runner();
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"%s\",\"slots\":%d,\"gpus\":[],\"host\":\"here\",\"version\":\"1\"}",
                   name, slots);
    REPLY_AUTO r = rest_call(&runner, "POST", "/v1/runners", body);
    ck_status(r, 200);
    return reply_int(&r, "epoch");
}

struct reply claim(const char *runner, long long epoch, int n, int wait_ms)
{
    struct rest_request r;
    claim_start(&r, runner, epoch, n, wait_ms);
    rest_join(&r);
    return r.reply;
}

void claim_start(struct rest_request *r, const char *runner, long long epoch, int n, int wait_ms)
{
    char path[200], body[256], id[17];
    uint8_t fresh[8];
    struct rest to = as_runner();
    random_bytes(fresh, sizeof fresh);
    hex_format(fresh, sizeof fresh, id);
    (void)snprintf(path, sizeof path, "/v1/runners/%s/claim", runner);
    (void)snprintf(body, sizeof body,
                   "{\"epoch\":%lld,\"claim_id\":\"%s\",\"max_trials\":%d,\"wait_ms\":%d}", epoch,
                   id, n, wait_ms);
    rest_start(r, &to, "POST", path, body);
}

int open_post(token_role role, const char *path, const char *body)
{
    char head[600];
    int fd = raw_connect(fix.port);
    (void)snprintf(head, sizeof head,
                   "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                   "Assay-Runner-Secret: " REST_SECRET "\r\n"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                   path, fix.tokens[role], strlen(body));
    raw_puts(fd, head);
    raw_puts(fd, body);
    return fd;
}

long long figure(const char *name)
{
    char line[200];
    struct rest viewer = as_viewer();
    REPLY_AUTO r = rest_call(&viewer, "GET", "/metrics", NULL);
    ck_status(r, 200);
    (void)snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(str_cstr(&r.body), line);
    ck_assert_msg(at != NULL, "%s is not in %s", name, str_cstr(&r.body));
    return strtoll(at + strlen(line), NULL, 10);
}

void await_figure(const char *name, long long n)
{
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    for (long long now; (now = figure(name)) != n; clock_sleep_ms(5))
        ck_assert_msg(clock_mono_ns() < until, "%s is %lld, expected %lld", name, now, n);
}

void drop_sweep(const char *id)
{
    char path[200];
    struct rest user = as_user();
    (void)snprintf(path, sizeof path, "/v1/sweeps/%s", id);
    REPLY_AUTO cancelled = rest_call(&user, "PATCH", path, "{\"state\":\"cancelled\"}");
    ck_assert_msg(cancelled.status == 200 || cancelled.status == 409, "%s",
                  str_cstr(&cancelled.body));
    REPLY_AUTO deleted = rest_call(&user, "DELETE", path, NULL);
    ck_assert_msg(deleted.status == 204 || deleted.status == 409, "%s", str_cstr(&deleted.body));
}
