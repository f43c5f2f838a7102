/* Where content lies and when its space is free again: parts, references that go, the folder of a
 * blob store with its faults. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "scheduler/content/blobs.h"
#include "scheduler/content/content_gc.h"
#include "scheduler/content/piece_store.h"
#include "scheduler/store/blob_store.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

#define BIG ((size_t)9 << 20) /* three parts */

static struct service s;
static struct as_err err;
static char dir[64];
static struct piece_store *pieces;

static int64_t count(const char *from)
{
    char sql[300];
    snprintf(sql, sizeof sql, "select count(*) from %s", from);
    return pg_fixture_i64(s.url, sql);
}

/* BIG bytes that do not repeat; `mark` is written into the last part. */
static char *make_big(char mark, char hex[SHA256_HEX_SIZE])
{
    char *bytes = malloc(BIG);
    for (size_t i = 0; i < BIG; i++)
        bytes[i] = (char)(i * 2654435761u >> 13 ^ i >> 20);
    bytes[BIG - 1] = mark;
    ck_ok(sha256_of(bytes, BIG, hex, &err), err);
    return bytes;
}

static bool put(const char *bytes, size_t len, const char *hex)
{
    AS_AUTO(blob_put_freep) struct blob_put *p = NULL;
    bool created = false;
    ck_ok(blob_put_create(hex, &p, &err), err);
    ck_ok(blob_put_add(p, bytes, len, &err), err);
    ck_ok(blob_put_commit(s.db, p, &created, &err), err);
    return created;
}

/* Read it whole from `offset` on and compare. */
static as_status read_back(const char *bytes, size_t len, const char *hex, size_t offset)
{
    AS_AUTO(as_freep) char *back = malloc(len);
    size_t n = 1, at = offset;
    for (; n > 0; at += n) {
        as_status st = blob_read(s.db, hex, (int64_t)at, back + at, 300001, &n, &err);
        if (st != AS_OK)
            return st;
    }
    ck_assert_uint_eq(at, len);
    ck_assert_mem_eq(bytes + offset, back + offset, len - offset);
    return AS_OK;
}

static struct content_report care(void)
{
    static struct content_gc c;
    struct content_report r;
    c.db = s.db;
    ck_ok(content_gc_tick(&c, &r, &err), err);
    return r;
}

/* As if the time of content that lost its references were over. */
static void let_time_pass(void)
{
    pg_fixture_exec(s.url, "update blob set released_at = released_at - interval '1 min'");
}

static void use_folder(void)
{
    snprintf(dir, sizeof dir, "/tmp/assay-blobs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const struct piece_place place = {.where = dir};
    ck_ok(piece_store_open(&place, &pieces, &err), err);
    store_set_pieces(s.db, pieces);
}

static void leave_folder(void)
{
    store_set_pieces(s.db, NULL);
    piece_store_close(pieces);
    pieces = NULL;
    ck_ok(file_remove_tree(dir, &err), err);
}

static const char *path_of(const char *hex)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%.2s/%s", dir, hex, hex);
    return path;
}

static void check_parts_are_shared(void)
{
    char one[SHA256_HEX_SIZE], two[SHA256_HEX_SIZE];
    AS_AUTO(as_freep) char *a = make_big('a', one);
    AS_AUTO(as_freep) char *b = make_big('b', two);
    ck_assert(put(a, BIG, one));
    ck_assert(!put(a, BIG, one));
    ck_assert_int_eq(count("blob where place <> 'parts'"), 3);
    ck_assert(put(b, BIG, two)); /* two of its parts are there */
    ck_assert_int_eq(count("blob where place <> 'parts'"), 4);
    ck_ok(read_back(a, BIG, one, 0), err);
    ck_ok(read_back(b, BIG, two, 0), err);
    ck_ok(read_back(b, BIG, two, 4194303), err);
}

START_TEST(parts_are_stored_once)
{
    check_parts_are_shared();
}
END_TEST

START_TEST(parts_are_stored_once_in_a_folder)
{
    use_folder();
    check_parts_are_shared();
    ck_assert_int_eq(count("blob_chunk"), 0);
    ck_assert_int_eq(count("blob_loose"), 0);
    leave_folder();
}
END_TEST

START_TEST(a_client_sends_what_is_missing)
{
    char hex[SHA256_HEX_SIZE], parts[3][SHA256_HEX_SIZE];
    AS_AUTO(as_freep) char *bytes = make_big('a', hex);
    const char *list[3];
    const size_t len[] = {4 << 20, 4 << 20, 1 << 20};
    bool created = true;
    for (int i = 0; i < 3; i++) {
        ck_ok(sha256_of(bytes + i * ((size_t)4 << 20), len[i], parts[i], &err), err);
        list[i] = parts[i];
    }
    put(bytes + (4 << 20), len[1], parts[1]);
    struct blob_parts p = {.size = BIG, .sha256 = list, .n = 3};
    ck_ok(blob_put_parts(s.db, &s.a, hex, &p, &created, &err), err);
    ck_assert(!created && p.n_missing == 2 && p.missing[0] == 0 && p.missing[1] == 2);
    put(bytes, len[0], parts[0]);
    put(bytes + (8 << 20), len[2], parts[2]);
    char wrong[SHA256_HEX_SIZE];
    ck_ok(sha256_of("x", 1, wrong, &err), err);
    ck_fails(blob_put_parts(s.db, &s.a, wrong, &p, &created, &err), AS_E_INVAL, err, hex);
    ck_ok(blob_put_parts(s.db, &s.a, hex, &p, &created, &err), err);
    ck_assert(created && p.n_missing == 0);
    ck_ok(blob_put_parts(s.db, &s.a, hex, &p, &created, &err), err);
    ck_assert(!created);
    ck_ok(read_back(bytes, BIG, hex, 0), err);
    p.n = 2;
    ck_fails(blob_put_parts(s.db, &s.a, wrong, &p, &created, &err), AS_E_INVAL, err, "/parts");
    p.size = 1;
    ck_fails(blob_put_parts(s.db, &s.a, wrong, &p, &created, &err), AS_E_INVAL, err, "/size");
}
END_TEST

static void put_checkpoint(struct attempt_ref ref, const char *hex)
{
    struct file_row f = {"state", (int64_t)BIG, hex};
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, &f, 1, &err), err);
}

START_TEST(superseded_checkpoints_go_and_so_do_those_of_a_deleted_sweep)
{
    char one[SHA256_HEX_SIZE], two[SHA256_HEX_SIZE];
    AS_AUTO(as_freep) char *a = make_big('a', one);
    AS_AUTO(as_freep) char *b = make_big('b', two);
    int64_t size;
    make_sweep(&s, "a", "'max_trials': 1", ", 'ensemble': false");
    struct claimed_row c = claim_one(&s, "r", make_runner(&s, "r", 1));
    put(a, BIG, one);
    put_checkpoint(ref_of(&c), one);
    put(b, BIG, two);
    put_checkpoint(ref_of(&c), two);
    ck_assert_int_eq(care().removed, 0); /* somebody may still fetch it */
    let_time_pass();
    ck_assert_int_eq(care().removed, 1);
    let_time_pass();
    ck_assert_int_eq(care().removed, 1); /* the part that no other content has */
    ck_fails(blob_stat(s.db, one, &size, &err), AS_E_NOT_FOUND, err, one);
    ck_ok(read_back(b, BIG, two, 0), err);
    ck_assert_int_eq(count("blob where released_at is not null"), 0);
    finish(&s, ref_of(&c), 1);
    (void)reap(&s);
    ck_ok(sweep_delete(s.db, "a", &err), err);
    for (int i = 0; i < 3; i++) {
        let_time_pass();
        (void)care();
    }
    ck_assert_int_eq(count("blob") + count("blob_chunk") + count("blob_part"), 0);
}
END_TEST

START_TEST(an_upload_of_what_is_about_to_go_keeps_it)
{
    char hex[SHA256_HEX_SIZE];
    int64_t size;
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", make_runner(&s, "r", 1));
    struct attempt_ref ref = ref_of(&c);
    put_blob(&s, "state", hex);
    struct file_row f = {"x", 5, hex};
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, &f, 1, &err), err);
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, NULL, 0, &err), err);
    let_time_pass();
    ck_ok(blob_stat(s.db, hex, &size, &err), err); /* a runner asks before it uploads */
    ck_assert_int_eq(care().removed, 0);
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, &f, 1, &err), err);
}
END_TEST

/* An analysis by autovacuum, which comes after a minute, would keep the dead rows from VACUUM. */
START_TEST(space_is_given_back)
{
    static struct content_gc c;
    struct content_report r;
    char hex[SHA256_HEX_SIZE];
    AS_AUTO(as_freep) char *bytes = make_big('a', hex);
    pg_fixture_exec(s.url, "alter system set autovacuum = off");
    pg_fixture_exec(s.url, "select pg_reload_conf()");
    for (char i = 0; i < 8; i++) {
        for (size_t at = 0; at < BIG; at += (size_t)1 << 20)
            bytes[at] = i;
        ck_ok(sha256_of(bytes, BIG, hex, &err), err);
        put(bytes, BIG, hex);
    }
    static const char *const sized = "select pg_total_relation_size('blob_chunk')";
    ck_assert_int_gt(pg_fixture_i64(s.url, sized), (int64_t)8 * BIG);
    c.db = s.db;
    for (int i = 0; i < 4; i++) {
        pg_fixture_exec(s.url, "update blob set touched_at = now() - interval '2 days'");
        let_time_pass();
        ck_ok(content_gc_tick(&c, &r, &err), err);
    }
    ck_assert(r.vacuumed || c.unswept_bytes == 0);
    ck_assert_int_eq(count("blob"), 0);
    ck_assert_int_lt(pg_fixture_i64(s.url, sized), (int64_t)1 << 20);
}
END_TEST

START_TEST(files_have_the_names_of_their_digests)
{
    char hex[SHA256_HEX_SIZE], buf[8];
    struct stat sb;
    size_t n;
    use_folder();
    put_blob(&s, "content", hex);
    ck_assert_int_eq(stat(path_of(hex), &sb), 0);
    ck_assert_int_eq(sb.st_size, 7);
    ck_ok(blob_read(s.db, hex, 2, buf, 3, &n, &err), err);
    ck_assert(n == 3 && memcmp(buf, "nte", 3) == 0);
    store_set_pieces(s.db, NULL);
    ck_fails(blob_read(s.db, hex, 0, buf, 3, &n, &err), AS_E_IO, err, "--blob-store");
    store_set_pieces(s.db, pieces);
    pg_fixture_exec(s.url, "update blob set touched_at = now() - interval '2 days'");
    ck_assert_int_eq(care().outside, 1);
    ck_assert_int_lt(stat(path_of(hex), &sb), 0);
    leave_folder();
}
END_TEST

/* A second server would read the file: this one has it in memory. */
static as_status read_fresh(const char *hex)
{
    const struct piece_place place = {.where = dir};
    struct piece_store *other = NULL;
    char buf[8];
    size_t n;
    ck_ok(piece_store_open(&place, &other, &err), err);
    store_set_pieces(s.db, other);
    as_status st = blob_read(s.db, hex, 0, buf, sizeof buf, &n, &err);
    store_set_pieces(s.db, pieces);
    piece_store_close(other);
    return st;
}

START_TEST(altered_and_missing_files_are_named)
{
    char hex[SHA256_HEX_SIZE];
    use_folder();
    put_blob(&s, "content", hex);
    ck_ok(read_fresh(hex), err);
    int fd = open(path_of(hex), O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "C", 1, 0), 1);
    close(fd);
    ck_fails(read_fresh(hex), AS_E_IO, err, hex);
    ck_assert_ptr_nonnull(strstr(err.msg, "altered"));
    unlink(path_of(hex));
    ck_fails(read_fresh(hex), AS_E_IO, err, hex);
    ck_assert_ptr_nonnull(strstr(err.msg, "missing"));
    ck_assert_int_eq(symlink("/etc/passwd", path_of(hex)), 0); /* never followed */
    ck_fails(read_fresh(hex), AS_E_IO, err, "missing");
    unlink(path_of(hex));
    ck_assert_int_eq(mkfifo(path_of(hex), 0600), 0);
    ck_fails(read_fresh(hex), AS_E_IO, err, "missing");
    leave_folder();
}
END_TEST

/* A server that was killed between the file and the row. */
START_TEST(what_a_killed_upload_left_is_removed)
{
    char hex[SHA256_HEX_SIZE], draft[200];
    struct stat sb;
    use_folder();
    ck_ok(sha256_of("half", 4, hex, &err), err);
    ck_ok(piece_store_put(pieces, hex, "half", 4, &err), err);
    char sql[200];
    snprintf(sql, sizeof sql, "insert into blob_loose values ('%s', now() - interval '59 min')",
             hex);
    pg_fixture_exec(s.url, sql);
    ck_assert_int_eq(care().outside, 0); /* it may still be on its way */
    pg_fixture_exec(s.url, "update blob_loose set since = now() - interval '61 min'");
    ck_assert_int_eq(care().outside, 1);
    ck_assert(stat(path_of(hex), &sb) < 0 && count("blob_loose") == 0);
    /* and one whose content was stored meanwhile stays */
    put_blob(&s, "half", hex);
    pg_fixture_exec(s.url, sql);
    pg_fixture_exec(s.url, "update blob_loose set since = now() - interval '61 min'");
    ck_assert_int_eq(care().outside, 0);
    ck_assert(stat(path_of(hex), &sb) == 0 && count("blob_loose") == 0);
    snprintf(draft, sizeof draft, "%s/draft/x", dir);
    close(open(draft, O_WRONLY | O_CREAT, 0600));
    ck_ok(piece_store_tidy(pieces, 3600000, &err), err);
    ck_assert_int_eq(stat(draft, &sb), 0);
    ck_ok(piece_store_tidy(pieces, 0, &err), err);
    ck_assert_int_lt(stat(draft, &sb), 0);
    leave_folder();
}
END_TEST

START_TEST(a_folder_of_somebody_else_is_refused)
{
    char other[] = "/tmp/assay-other-XXXXXX", path[100];
    struct piece_store *p = NULL;
    ck_assert_ptr_nonnull(mkdtemp(other));
    snprintf(path, sizeof path, "%s/thesis.tex", other);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    const struct piece_place place = {.where = other};
    ck_fails(piece_store_open(&place, &p, &err), AS_E_CONFLICT, err, "thesis.tex");
    const struct piece_place file = {.where = path};
    ck_fails(piece_store_open(&file, &p, &err), AS_E_IO, err, "thesis.tex");
    unlink(path);
    ck_assert_int_eq(symlink(other, path), 0);
    ck_fails(piece_store_open(&file, &p, &err), AS_E_IO, err, "no link");
    unlink(path);
    rmdir(other);
    static const char *const bad[] = {"s3://",        "s3://ab",          "s3://Bucket",
                                      "s3://bucket/", "s3://bucket/../x", "s3://bucket/a b"};
    setenv("AWS_ACCESS_KEY_ID", "k", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        const struct piece_place s3 = {.where = bad[i], .endpoint = "http://127.0.0.1:1"};
        ck_fails(piece_store_open(&s3, &p, &err), AS_E_INVAL, err, "s3://BUCKET");
    }
    const struct piece_place end = {.where = "s3://bucket", .endpoint = "127.0.0.1:1"};
    ck_fails(piece_store_open(&end, &p, &err), AS_E_INVAL, err, "--s3-endpoint");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    const struct piece_place none = {.where = "s3://bucket", .endpoint = "http://127.0.0.1:1"};
    ck_fails(piece_store_open(&none, &p, &err), AS_E_INVAL, err, "AWS_SECRET_ACCESS_KEY");
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/content/storage");
    TCase *t = service_case(suite, "storage", &s, 0);
    tcase_add_test(t, parts_are_stored_once);
    tcase_add_test(t, parts_are_stored_once_in_a_folder);
    tcase_add_test(t, a_client_sends_what_is_missing);
    tcase_add_test(t, superseded_checkpoints_go_and_so_do_those_of_a_deleted_sweep);
    tcase_add_test(t, an_upload_of_what_is_about_to_go_keeps_it);
    tcase_add_test(t, files_have_the_names_of_their_digests);
    tcase_add_test(t, altered_and_missing_files_are_named);
    tcase_add_test(t, what_a_killed_upload_left_is_removed);
    tcase_add_test(t, a_folder_of_somebody_else_is_refused);
    tcase_add_test(service_case_alone(suite, "vacuum", &s, 0), space_is_given_back);
    return suite;
}
