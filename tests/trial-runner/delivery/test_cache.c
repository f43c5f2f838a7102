/* Checkpoints in the cache: kept by digest, copied out, and never handed out changed. */
#include "tests/support/check_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "tests/support/temp_folder.h"
#include "trial-runner/delivery/cache.h"

static char dir[TEMP_FOLDER_SIZE], cache[TEMP_FOLDER_SIZE + 8];
static char sha[SHA256_HEX_SIZE];
static char *file, *copy, *cached;

static void setup(void)
{
    temp_folder_make(dir);
    snprintf(cache, sizeof cache, "%s/cache", dir);
    file = file_join(dir, "state");
    copy = file_join(dir, "copy");
    ck_assert(file_replace(file, "weights", 7, 0644, NULL) == AS_OK);
    ck_assert(sha256_of("weights", 7, sha, NULL) == AS_OK);
    ck_assert_int_gt(asprintf(&cached, "%s/%.2s/%s", cache, sha, sha), 0);
}

static void teardown(void)
{
    free(file);
    free(copy);
    free(cached);
    temp_folder_remove(dir);
}

static bool is_copied(void)
{
    struct as_err err;
    bool found = false;
    ck_ok(cache_copy(cache, sha, copy, &found, &err), err);
    return found;
}

START_TEST(a_copy_is_the_trials_own)
{
    struct as_err err;
    struct stat sb;
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    ck_assert(!is_copied());
    ck_ok(cache_keep(cache, 0, sha, file, &err), err);
    ck_ok(cache_keep(cache, 0, sha, file, &err), err); /* again: it is there */
    ck_assert_int_eq(unlink(file), 0);
    ck_assert(stat(cached, &sb) == 0 && (sb.st_mode & 0777) == 0600);
    ck_assert(is_copied());
    ck_assert(file_replace(copy, "other", 5, 0600, NULL) == AS_OK);
    ck_assert(is_copied());
    ck_ok(file_read(copy, 100, &text, &len, &err), err);
    ck_assert_str_eq(text, "weights");
}
END_TEST

/* A process that escaped from its trial wrote to the file that was kept. */
START_TEST(what_was_changed_is_removed)
{
    struct as_err err;
    ck_ok(cache_keep(cache, 0, sha, file, &err), err);
    FILE *f = fopen(file, "r+"); /* the same file, by a hard link */
    ck_assert(f && fputs("W", f) > 0 && fclose(f) == 0);
    ck_assert(!is_copied());
    ck_assert(access(cached, F_OK) < 0 && access(copy, F_OK) < 0);
}
END_TEST

START_TEST(the_limit_counts_checkpoints)
{
    struct as_err err;
    char other[SHA256_HEX_SIZE];
    AS_AUTO(as_freep) char *large = file_join(dir, "large");
    ck_assert(file_replace(large, "larger weights", 14, 0644, NULL) == AS_OK);
    ck_assert(sha256_of("larger weights", 14, other, NULL) == AS_OK);
    ck_ok(cache_keep(cache, 20, sha, file, &err), err);
    struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    ck_assert_int_eq(utimensat(AT_FDCWD, cached, old, 0), 0);
    ck_ok(cache_keep(cache, 20, other, large, &err), err);
    ck_assert(!is_copied());
}
END_TEST

START_TEST(what_is_no_digest_is_refused)
{
    struct as_err err;
    bool found = true;
    ck_fails(cache_keep(cache, 0, "../x", file, &err), AS_E_INVAL, err, "not a SHA-256");
    ck_fails(cache_copy(cache, "../x", copy, &found, &err), AS_E_INVAL, err, "not a SHA-256");
    ck_assert(!found);
    AS_AUTO(as_freep) char *none = file_join(dir, "none");
    ck_fails(cache_keep(cache, 0, sha, none, &err), AS_E_IO, err, "none");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("cache");
    TCase *t = tcase_create("cache");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_copy_is_the_trials_own);
    tcase_add_test(t, what_was_changed_is_removed);
    tcase_add_test(t, the_limit_counts_checkpoints);
    tcase_add_test(t, what_is_no_digest_is_refused);
    suite_add_tcase(s, t);
    return s;
}
