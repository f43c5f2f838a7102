/* All that an attempt prints: what is kept of much, of bytes of any kind, and of a folder that the
 * trial has changed. */
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "trial-runner/collect/tail.h"
#include "trial-runner/collect/whole_log.h"

#define MIB (1 << 20)
#define PATIENT_ROUNDS 64 /* flushes between additions, so that the disk is never too slow */

static char dir[TEMP_FOLDER_SIZE];
static struct whole_log *w;

static void setup(void)
{
    struct as_err err = {0};
    temp_folder_make(dir);
    ck_ok(whole_log_create(dir, MIB, &w, &err), err);
}

static void teardown(void)
{
    whole_log_free(w);
    w = NULL;
    temp_folder_remove(dir);
}

/* Returns what is kept; the caller frees it. */
static char *joined(size_t *ret_len)
{
    struct as_err err = {0};
    AS_AUTO(as_freep) char *path = NULL;
    char *text = NULL;
    whole_log_flush(w);
    ck_ok(whole_log_join(dir, MIB, &path, &err), err);
    ck_ok(file_read(path, 4 * MIB, &text, ret_len, &err), err);
    return text;
}

/* Bytes on the disk below the folder of parts. */
static int64_t on_disk(void)
{
    AS_AUTO(str_done) struct str command = {0};
    long long bytes = -1;
    str_printf(&command, "cat %s/" WHOLE_LOG_FOLDER "/* | wc -c", dir);
    FILE *f = popen(command.s, "r"); /* NOLINT(cert-env33-c) */
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%lld", &bytes), 1);
    pclose(f);
    return bytes;
}

START_TEST(little_is_not_written)
{
    AS_AUTO(as_freep) char *path = NULL;
    struct as_err err = {0};
    char line[TAIL_BYTES / 4];
    memset(line, 'x', sizeof line);
    for (int i = 0; i < 4; i++)
        whole_log_add(w, line, sizeof line);
    whole_log_flush(w);
    ck_assert(!whole_log_exists(dir));
    ck_fails(whole_log_join(dir, MIB, &path, &err), AS_E_NOT_FOUND, err, "output");
    whole_log_add(w, "y", 1); /* more than the tail holds: all of it is written */
    size_t len = 0;
    AS_AUTO(as_freep) char *text = joined(&len);
    ck_assert_uint_eq(len, TAIL_BYTES + 1);
    ck_assert_int_eq(text[len - 1], 'y');
    ck_assert_int_eq(text[0], 'x');
}
END_TEST

/* Any bytes at all, in pieces of any size: they are kept as they came. */
START_TEST(bytes_are_kept_as_they_are)
{
    size_t len = 0;
    char piece[997];
    AS_AUTO(as_freep) char *all = malloc(400 * sizeof piece);
    for (int i = 0; i < 400; i++) {
        for (size_t k = 0; k < sizeof piece; k++)
            piece[k] = (char)(i * 31 + (int)k * 7);
        memcpy(all + (size_t)i * sizeof piece, piece, sizeof piece);
        whole_log_add(w, piece, sizeof piece);
    }
    AS_AUTO(as_freep) char *text = joined(&len);
    ck_assert_uint_eq(len, 400 * sizeof piece);
    ck_assert_mem_eq(text, all, len);
}
END_TEST

/* One line without an end, of many times the limit: its beginning and its end stay, and one line
 * between them says how much is missing. */
START_TEST(an_endless_line_is_bounded)
{
    size_t len = 0, piece_bytes = 128 << 10;
    int64_t total = 0, cut = -1;
    AS_AUTO(as_freep) char *piece = malloc(piece_bytes);
    memset(piece, 'm', piece_bytes);
    whole_log_add(w, "begin", 5);
    for (int i = 0; i < PATIENT_ROUNDS; i++) {
        whole_log_add(w, piece, piece_bytes);
        whole_log_flush(w);
        total += (int64_t)piece_bytes;
        ck_assert_int_le(on_disk(), MIB);
    }
    whole_log_add(w, "end", 3);
    AS_AUTO(as_freep) char *text = joined(&len);
    ck_assert(as_starts_with(text, "begin"));
    ck_assert_str_eq(text + len - 3, "end");
    ck_assert_uint_lt(len, MIB + 200);
    ck_assert_uint_gt(len, MIB / 8 * 7);
    const char *line = strstr(text, "\n[assay-runner] ");
    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(sscanf(line, "\n[assay-runner] %" SCNd64 " bytes", &cut), 1);
    const char *rest = strchr(line + 1, '\n') + 1;
    ck_assert_ptr_null(strstr(rest, "[assay-runner]"));
    ck_assert_int_eq((line - text) + cut + (int64_t)strlen(rest), total + 8);
}
END_TEST

/* A program that prints faster than anything writes: whatever is kept, what is missing is said to
 * the byte. */
START_TEST(what_is_left_out_is_counted)
{
    size_t len = 0, piece_bytes = 700 << 10;
    int64_t counted = 0, total = 0;
    AS_AUTO(as_freep) char *piece = malloc(piece_bytes);
    memset(piece, 'm', piece_bytes);
    for (int i = 0; i < 200; i++) {
        whole_log_add(w, piece, piece_bytes);
        total += (int64_t)piece_bytes;
    }
    whole_log_add(w, "last", 4); /* what is printed last is kept, and a line before it counts */
    total += 4;
    whole_log_flush(w);
    whole_log_add(w, "end", 3);
    AS_AUTO(as_freep) char *text = joined(&len);
    for (const char *at = text; at < text + len;) {
        int64_t cut = 0;
        const char *line = strstr(at, "\n[assay-runner] ");
        counted += line ? line - at : (int64_t)strlen(at);
        if (!line)
            break;
        ck_assert_int_eq(sscanf(line, "\n[assay-runner] %" SCNd64 " bytes", &cut), 1);
        counted += cut;
        at = strchr(line + 1, '\n') + 1;
    }
    ck_assert_int_eq(counted, total + 3);
    ck_assert_str_eq(text + len - 7, "lastend");
}
END_TEST

/* The folder belongs to the trial as well: a link, a pipe, a folder in place of a part, and files
 * with other names. */
START_TEST(what_the_trial_puts_there_is_not_read)
{
    size_t len = 0;
    char path[200];
    AS_AUTO(as_freep) char *piece = malloc(TAIL_BYTES + 1);
    memset(piece, 'a', TAIL_BYTES + 1);
    whole_log_add(w, piece, TAIL_BYTES + 1);
    whole_log_flush(w);
    snprintf(path, sizeof path, "%s/" WHOLE_LOG_FOLDER "/00000000000000100000", dir);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
    snprintf(path, sizeof path, "%s/" WHOLE_LOG_FOLDER "/00000000000000200000", dir);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/" WHOLE_LOG_FOLDER "/00000000000000300000", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/" WHOLE_LOG_FOLDER "/99999999999999999999", dir);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
    snprintf(path, sizeof path, "%s/" WHOLE_LOG_FOLDER "/more", dir);
    ck_assert(file_replace(path, "more", 4, 0600, NULL) == AS_OK);
    snprintf(path, sizeof path, "%s/" WHOLE_LOG_NAME, dir);
    ck_assert_int_eq(symlink("/dev/full", path), 0);
    AS_AUTO(as_freep) char *text = joined(&len);
    ck_assert_uint_eq(len, TAIL_BYTES + 1);
    ck_assert_mem_eq(text, piece, len);
}
END_TEST

/* The runner may be root: through a link it would make files anywhere. */
START_TEST(nothing_is_written_through_a_link)
{
    char path[200], elsewhere[TEMP_FOLDER_SIZE];
    AS_AUTO(as_freep) char *piece = calloc(1, TAIL_BYTES + 1);
    temp_folder_make(elsewhere);
    snprintf(path, sizeof path, "%s/" WHOLE_LOG_FOLDER, dir);
    ck_assert_int_eq(symlink(elsewhere, path), 0);
    whole_log_add(w, piece, TAIL_BYTES + 1);
    whole_log_flush(w);
    ck_assert_int_eq(rmdir(elsewhere), 0); /* it is empty */
}
END_TEST

/* A folder that cannot be written to costs the output and nothing else. */
START_TEST(a_disk_that_refuses)
{
    char path[200];
    AS_AUTO(as_freep) char *piece = calloc(1, TAIL_BYTES + 1);
    snprintf(path, sizeof path, "%s/" WHOLE_LOG_FOLDER, dir);
    ck_assert(file_replace(path, "", 0, 0600, NULL) == AS_OK); /* a file in its place */
    whole_log_add(w, piece, TAIL_BYTES + 1);
    whole_log_flush(w);
    ck_assert(!whole_log_exists(dir));
    whole_log_add(w, piece, TAIL_BYTES + 1);
    whole_log_flush(w);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("whole_log");
    TCase *tc = tcase_create("whole_log");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, little_is_not_written);
    tcase_add_test(tc, bytes_are_kept_as_they_are);
    tcase_add_test(tc, an_endless_line_is_bounded);
    tcase_add_test(tc, what_is_left_out_is_counted);
    tcase_add_test(tc, what_the_trial_puts_there_is_not_read);
    tcase_add_test(tc, nothing_is_written_through_a_link);
    tcase_add_test(tc, a_disk_that_refuses);
    suite_add_tcase(s, tc);
    return s;
}
