/* File sets, the journal of results, and what a claim may name. */
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "trial-runner/attempt/claimed.h"
#include "trial-runner/delivery/fileset.h"
#include "trial-runner/attempt/result_journal.h"

static char dir[TEMP_FOLDER_SIZE];

static void setup(void)
{
    temp_folder_make(dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

static void put(const char *name, const char *text)
{
    AS_AUTO(as_freep) char *path = file_join(dir, name);
    AS_AUTO(as_freep) char *parent = as_strdup(path);
    *strrchr(parent, '/') = '\0';
    ck_assert(file_mkdirs(parent, 0700, NULL) == AS_OK);
    ck_assert(file_replace(path, text, strlen(text), 0600, NULL) == AS_OK);
}

static int skipped;

static void on_skip(void *arg, const char *path, const char *why)
{
    (void)arg, (void)path, (void)why;
    skipped++;
}

START_TEST(lists_files_and_nothing_else)
{
    AS_AUTO(fileset_done) struct fileset s = {0};
    struct as_err err = {0};
    char link[128], fifo[128], loop[128];
    put("b", "bb");
    put("sub/deep/a", "a");
    put("model.tmp", "x");
    put("model.tmp.123", "x");
    put("tmp", "t");
    snprintf(link, sizeof link, "%s/passwd", dir);
    snprintf(fifo, sizeof fifo, "%s/fifo", dir);
    snprintf(loop, sizeof loop, "%s/sub/loop", dir);
    ck_assert_int_eq(symlink("/etc/passwd", link), 0);
    ck_assert_int_eq(symlink(dir, loop), 0);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    skipped = 0;
    ck_ok(fileset_scan(dir, &s, on_skip, NULL, &err), err);
    ck_assert_uint_eq(s.n, 3);
    ck_assert_str_eq(s.files[0].path, "b");
    ck_assert_int_eq(s.files[0].size, 2);
    ck_assert_str_eq(s.files[1].path, "sub/deep/a");
    ck_assert_str_eq(s.files[2].path, "tmp");
    ck_assert_int_eq(skipped, 3);
}
END_TEST

START_TEST(changes_are_seen_and_digests_kept)
{
    AS_AUTO(fileset_done) struct fileset a = {0}, b = {0}, c = {0}, none = {0};
    struct as_err err = {0};
    put("x", "1");
    put("y", "1");
    ck_ok(fileset_scan(dir, &a, NULL, NULL, &err), err);
    ck_ok(fileset_scan(dir, &b, NULL, NULL, &err), err);
    ck_assert(fileset_same(&a, &b));
    memset(a.files[0].sha256, 'a', 64);
    memset(a.files[1].sha256, 'b', 64);
    put("y", "22");
    ck_ok(fileset_scan(dir, &c, NULL, NULL, &err), err);
    ck_assert(!fileset_same(&a, &c));
    fileset_copy_digests(&c, &a);
    ck_assert_int_eq(c.files[0].sha256[0], 'a');
    ck_assert_str_eq(c.files[1].sha256, "");
    JSON_AUTO j = fileset_to_json(&c, "checkpoint");
    ck_assert_str_eq(json_string_value(json_object_get(j, "kind")), "checkpoint");
    ck_assert_uint_eq(json_array_size(json_object_get(j, "files")), 1);
    ck_ok(fileset_sync(&c, dir, &err), err);
    ck_fails(fileset_sync(&c, "/no/such/folder", &err), AS_E_NOT_FOUND, err, "no/such");
    ck_ok(fileset_scan("/no/such/folder", &none, NULL, NULL, &err), err);
    ck_assert_uint_eq(none.n, 0);
}
END_TEST

START_TEST(too_many_files)
{
    AS_AUTO(fileset_done) struct fileset s = {0};
    struct as_err err = {0};
    for (int i = 0; i < FILESET_MAX_FILES + 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/f%d", dir, i);
        fclose(fopen(path, "w"));
    }
    skipped = 0;
    ck_ok(fileset_scan(dir, &s, on_skip, NULL, &err), err);
    ck_assert_uint_eq(s.n, FILESET_MAX_FILES);
    ck_assert_int_eq(skipped, 3);
}
END_TEST

START_TEST(results_survive)
{
    AS_AUTO(trial_end_done) struct trial_end back = {0};
    struct as_err err = {0};
    struct trial_end r = {.outcome = OUTCOME_FAILED,
                          .exit_code = -11,
                          .has_exit_code = true,
                          .reason = (char *)"because \xc3\xa9",
                          .log = (char *)"a\nb",
                          .truncated = true,
                          .has_ran = true,
                          .ran_ms = 1234567890123,
                          .world = 7};
    ck_ok(result_journal_write(dir, &r, true, &err), err);
    ck_ok(result_journal_read(dir, &back, &err), err);
    ck_assert_int_eq(back.outcome, OUTCOME_FAILED);
    ck_assert(back.has_exit_code && back.exit_code == -11 && back.truncated);
    ck_assert(back.has_ran && back.ran_ms == r.ran_ms && back.world == 7);
    ck_assert_str_eq(back.reason, r.reason);
    ck_assert_str_eq(back.log, r.log);
    AS_AUTO(trial_end_done) struct trial_end bare = {0}, bare_back = {0};
    bare.outcome = OUTCOME_RELEASED;
    ck_ok(result_journal_write(dir, &bare, false, &err), err);
    ck_ok(result_journal_read(dir, &bare_back, &err), err);
    ck_assert(!bare_back.has_exit_code && !bare_back.reason && !bare_back.has_ran &&
              bare_back.world == 0);
}
END_TEST

static as_status on_found(void *arg, const struct attempt_id *id, struct trial_end *r,
                          struct as_err *err)
{
    (void)err;
    attempt_id_folder(id, arg);
    str_printf(arg, "=%s ", r->outcome == OUTCOME_NONE ? "output" : outcome_name(r->outcome));
    return AS_OK;
}

START_TEST(recovery_keeps_results_and_removes_the_rest)
{
    AS_AUTO(str_done) struct str found = {0};
    AS_AUTO(file_closep) int fd = -1;
    static const struct attempt_id alone = {.sweep = "s-1", .number = 3, .attempt = 2, .seat = -1},
                                   other = {.sweep = "s-1", .number = 4, .attempt = 1, .seat = -1},
                                   printed = {
                                       .sweep = "s-1", .number = 6, .attempt = 1, .seat = -1};
    AS_AUTO(as_freep) char *kept = result_journal_dir(dir, &alone);
    AS_AUTO(as_freep) char *lost = result_journal_dir(dir, &other);
    struct as_err err = {0};
    struct trial_end r = {.outcome = OUTCOME_COMPLETED};
    ck_ok(result_journal_lock(dir, &fd, &err), err);
    put("trials/s-1/3/2/report.jsonl", "{}");
    put("trials/s-1/4/1/report.jsonl", "{}");
    put("trials/s-1/5/1/result.json", "{\"outcome\": \"splendid\"}");
    put("trials/other/x/y/z", "");
    put("trials/s-1/6/1/output/00000000000000000000", "its output goes to the server");
    ck_ok(result_journal_write(kept, &r, true, &err), err);
    ck_ok(result_journal_recover(dir, on_found, &found, &err), err);
    ck_assert_ptr_nonnull(strstr(str_cstr(&found), "s-1/3/2=completed "));
    ck_assert_ptr_nonnull(strstr(str_cstr(&found), "s-1/6/1=output "));
    ck_assert_uint_eq(found.len, strlen("s-1/3/2=completed s-1/6/1=output "));
    ck_assert_int_eq(access(kept, F_OK), 0);
    ck_assert_int_ne(access(lost, F_OK), 0);
    result_journal_remove(dir, &alone);
    result_journal_remove(dir, &printed);
    AS_AUTO(as_freep) char *trials = file_join(dir, "trials");
    ck_assert_int_eq(rmdir(trials), 0); /* nothing is left in it */
}
END_TEST

/* Several ranks of one attempt on one runner: each has its folder and its result. */
START_TEST(recovery_knows_ranks)
{
    AS_AUTO(str_done) struct str found = {0};
    AS_AUTO(file_closep) int fd = -1;
    static const struct attempt_id first = {.sweep = "s-1", .number = 3, .attempt = 2, .seat = 0},
                                   late = {.sweep = "s-1", .number = 3, .attempt = 2, .seat = 12};
    AS_AUTO(as_freep) char *gone = result_journal_dir(dir, &first);
    AS_AUTO(as_freep) char *kept = result_journal_dir(dir, &late);
    struct as_err err = {0};
    struct trial_end r = {.outcome = OUTCOME_COMPLETED, .world = 4};
    ck_ok(result_journal_lock(dir, &fd, &err), err);
    put("trials/s-1/3/2.0/report.jsonl", "{}");
    put("trials/s-1/3/2.12/report.jsonl", "{}");
    put("trials/s-1/3/2.x/result.json", "{\"outcome\": \"completed\"}");
    put("trials/s-1/3/2.-1/result.json", "{\"outcome\": \"completed\"}");
    ck_ok(result_journal_write(kept, &r, true, &err), err);
    ck_ok(result_journal_recover(dir, on_found, &found, &err), err);
    ck_assert_str_eq(str_cstr(&found), "s-1/3/2.12=completed ");
    ck_assert_int_ne(access(gone, F_OK), 0);
    result_journal_remove(dir, &late);
    AS_AUTO(as_freep) char *trials = file_join(dir, "trials");
    ck_assert_int_eq(rmdir(trials), 0);
}
END_TEST

START_TEST(one_runner_for_a_work_folder)
{
    AS_AUTO(file_closep) int a = -1, b = -1;
    struct as_err err = {0};
    ck_ok(result_journal_lock(dir, &a, &err), err);
    ck_fails(result_journal_lock(dir, &b, &err), AS_E_CONFLICT, err, "another runner");
    close(a);
    a = -1;
    ck_ok(result_journal_lock(dir, &b, &err), err);
}
END_TEST

START_TEST(room_on_the_disk)
{
    /* 10 GiB: 64 MiB are enough; 100 MiB: 5 are */
    struct statvfs fs = {.f_frsize = 4096, .f_blocks = 2621440, .f_bavail = 16384, .f_files = 9};
    ck_assert(!result_journal_is_room(&fs)); /* no inodes */
    fs.f_favail = 1;
    ck_assert(result_journal_is_room(&fs));
    fs.f_bavail--;
    ck_assert(!result_journal_is_room(&fs));
    fs = (struct statvfs){.f_frsize = 4096, .f_blocks = 25600, .f_bavail = 1280};
    ck_assert(result_journal_is_room(&fs));
    fs.f_bavail--;
    ck_assert(!result_journal_is_room(&fs));
    fs = (struct statvfs){.f_frsize = 4096}; /* of no size, as some network file systems are */
    ck_assert(result_journal_is_room(&fs));
    ck_assert(result_journal_has_room("/nowhere"));
}
END_TEST

START_TEST(names_and_paths)
{
    static const char *const bad_paths[] = {"",   "/etc/passwd", "../x", "a/../b", "a//b",
                                            "a/", ".",           "a/.",  "a\nb"};
    static const char *const bad_names[] = {"", ".", "..", "a/b", ".x", "a b", "-x"};
    for (size_t i = 0; i < AS_ARRAY_LEN(bad_paths); i++)
        ck_assert_msg(!file_path_is_inner(bad_paths[i]), "%s", bad_paths[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(bad_names); i++)
        ck_assert_msg(!claimed_name_safe(bad_names[i]), "%s", bad_names[i]);
    ck_assert(file_path_is_inner("a/b..c/.hidden"));
    ck_assert(claimed_name_safe("digits-mlp-2"));
}
END_TEST

#define CLAIM(sweep, files)                                                                        \
    "{\"sweep\":\"" sweep "\",\"number\":3,\"attempt\":2,\"seed\":\"9\",\"params\":{},"            \
    "\"trial\":{\"command\":[\"x\"]},\"metric\":{\"name\":\"m\",\"goal\":\"minimize\"},"           \
    "\"files\":" files ",\"dataset\":null,\"timeout_ms\":null,\"new_field\":1}"

START_TEST(claims_are_checked)
{
    struct as_err err = {0};
    static const struct {
        const char *text, *want;
    } cases[] = {
        {CLAIM("s", "[]"), NULL},
        {CLAIM("../s", "[]"), "not a name"},
        {CLAIM("s", "[{\"path\":\"../x\",\"sha256\":\"00\"}]"), "file 0"},
        {CLAIM("s", "[{\"path\":\"x\",\"sha256\":\"00\"}]"), "file 0"},
        {"{\"sweep\":\"s\"}", "number"},
        {"[]", "object"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO j = NULL;
        AS_AUTO(claimed_done) struct claimed c = {0};
        ck_ok(json_parse(cases[i].text, strlen(cases[i].text), &j, &err), err);
        as_status st = claimed_parse(j, &c, &err);
        if (cases[i].want) {
            ck_fails(st, AS_E_INVAL, err, cases[i].want);
            continue;
        }
        ck_ok(st, err);
        ck_assert_int_eq(c.number, 3);
        ck_assert_int_eq(c.attempt, 2);
        ck_assert_int_eq(c.grace_ms, 30000);
        ck_assert_ptr_null(c.dataset);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("files");
    TCase *t = tcase_create("files");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, lists_files_and_nothing_else);
    tcase_add_test(t, changes_are_seen_and_digests_kept);
    tcase_add_test(t, too_many_files);
    tcase_add_test(t, results_survive);
    tcase_add_test(t, recovery_keeps_results_and_removes_the_rest);
    tcase_add_test(t, recovery_knows_ranks);
    tcase_add_test(t, one_runner_for_a_work_folder);
    tcase_add_test(t, room_on_the_disk);
    tcase_add_test(t, names_and_paths);
    tcase_add_test(t, claims_are_checked);
    suite_add_tcase(s, t);
    return s;
}
