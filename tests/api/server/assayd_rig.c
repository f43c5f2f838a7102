#include "tests/api/server/assayd_rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/support/check_main.h"

char rig_dir[TEMP_FOLDER_SIZE], rig_database[PG_URL_SIZE];

const char *rig_file(const char *name)
{
    static char paths[32][128];
    static unsigned next;
    char *path = paths[next++ % 32];
    (void)snprintf(path, sizeof paths[0], "%s/%s", rig_dir, name);
    return path;
}

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
static void await_file(pid_t pid, const char *path, char url[128])
{
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    const char *line = NULL;
    while (!(line = read_line(path)) && assayd_runs(pid) && clock_mono_ns() < until)
        clock_sleep_ms(20);
    ck_assert_msg(line != NULL, "assayd did not get ready");
    (void)snprintf(url, 128, "%s", line);
}

static void read_token(char token[128])
{
    (void)snprintf(token, 128, "%s", read_line(rig_file("admin")));
}

pid_t rig_start_as(const char *name, char url[128], char token[128])
{
    const char *const args[] = {"--listen",
                                "127.0.0.1:0",
                                "--database",
                                rig_database,
                                "--address-file",
                                rig_file(name),
                                "--admin-token-file",
                                rig_file("admin"),
                                "--runner-token-file",
                                rig_file("runner"),
                                "--web",
                                rig_dir,
                                "--die-with-parent",
                                NULL};
    (void)unlink(rig_file(name));
    pid_t pid = assayd_start(rig_dir, args);
    await_file(pid, rig_file(name), url);
    read_token(token);
    return pid;
}

pid_t rig_start(char url[128], char token[128])
{
    return rig_start_as("url", url, token);
}

void rig_await_ready(pid_t pid, char url[128], char token[128])
{
    await_file(pid, rig_file("url"), url);
    read_token(token);
}

void rig_stop(pid_t pid)
{
    (void)kill(pid, SIGTERM);
    ck_ends(pid, 0);
}

void rig_make_asked(const struct rest *to, const char *path, const char *method, int max_trials)
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
    temp_folder_make(rig_dir);
    pg_fixture_database(rig_database);
}

static void teardown(void)
{
    assayd_end_all();
    temp_folder_remove(rig_dir);
}

Suite *rig_suite(const char *name, TCase **ret_case)
{
    Suite *s = suite_create(name);
    TCase *tc = tcase_create("program");
    (void)curl_global_init(CURL_GLOBAL_ALL);
    (void)setenv("CK_FORK", "no", 1); /* only the process that started the cluster may stop it */
    pg_fixture_start();
    tcase_add_checked_fixture(tc, setup, teardown);
    suite_add_tcase(s, tc);
    *ret_case = tc;
    return s;
}
