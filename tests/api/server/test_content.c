/* Parts of content, compressed answers, and answers that the client already has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/api/server/fixture.h"
#include "tests/support/check_main.h"

static struct reply get_with(const char *method, const char *path, const char *one,
                             const char *other)
{
    struct rest viewer = as_viewer();
    const char *const headers[] = {one, other, NULL};
    const struct rest_options opts = {.headers = headers, .is_unchecked = true};
    return rest_call_with(&viewer, method, path, &opts);
}

static const char *header(const struct reply *r, const char *name)
{
    static char texts[4][200];
    static unsigned next;
    char *buf = texts[next++ % 4];
    return reply_header(r, name, buf, sizeof texts[0]);
}

/* Content of several pieces of the store. */
START_TEST(test_parts_of_content)
{
    enum { SIZE = 5 << 19 };
    char hex[SHA256_HEX_SIZE], path[100], range[100], want[100], etag[100];
    char *bytes = malloc(SIZE);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7 + i / 1000);
    REPLY_AUTO put = put_blob(bytes, SIZE, hex);
    ck_status(put, 201);
    (void)snprintf(path, sizeof path, "/v1/blobs/%s", hex);
    (void)snprintf(etag, sizeof etag, "\"%s\"", hex);
    static const struct {
        int64_t first, last;
    } parts[] = {{0, 0}, {5, 5}, {0, SIZE - 1}, {(1 << 20) - 3, (1 << 20) + 3}, {1 << 20, 1 << 21}};
    for (size_t i = 0; i < AS_ARRAY_LEN(parts); i++) {
        int64_t first = parts[i].first, last = parts[i].last;
        (void)snprintf(range, sizeof range, "Range: bytes=%lld-%lld", (long long)first,
                       (long long)last);
        (void)snprintf(want, sizeof want, "bytes %lld-%lld/%d", (long long)first, (long long)last,
                       SIZE);
        REPLY_AUTO r = get_with("GET", path, range, NULL);
        ck_assert_int_eq(r.status, 206);
        ck_assert_str_eq(header(&r, "Content-Range"), want);
        ck_assert_str_eq(header(&r, "ETag"), etag);
        ck_assert_uint_eq(r.body.len, (size_t)(last - first + 1));
        ck_assert_mem_eq(r.body.s, bytes + first, r.body.len);
    }
    REPLY_AUTO tail = get_with("GET", path, "Range: bytes=-10", NULL);
    ck_assert_int_eq(tail.status, 206);
    ck_assert_mem_eq(tail.body.s, bytes + SIZE - 10, 10);
    (void)snprintf(range, sizeof range, "Range: bytes=%d-", SIZE);
    REPLY_AUTO behind = get_with("GET", path, range, NULL);
    ck_assert_int_eq(behind.status, 416);
    (void)snprintf(want, sizeof want, "bytes */%d", SIZE);
    ck_assert_str_eq(header(&behind, "Content-Range"), want);

    (void)snprintf(range, sizeof range, "If-Range: %s", etag);
    REPLY_AUTO same = get_with("GET", path, "Range: bytes=0-9", range);
    ck_assert_int_eq(same.status, 206);
    REPLY_AUTO other = get_with("GET", path, "Range: bytes=0-9", "If-Range: \"other\"");
    ck_assert_int_eq(other.status, 200);
    ck_assert_uint_eq(other.body.len, SIZE);
    (void)snprintf(range, sizeof range, "If-None-Match: %s", etag);
    REPLY_AUTO known = get_with("GET", path, range, NULL);
    ck_assert_int_eq(known.status, 304);
    ck_assert_uint_eq(known.body.len, 0);
    REPLY_AUTO head = get_with("HEAD", path, NULL, NULL);
    ck_assert_int_eq(head.status, 200);
    (void)snprintf(want, sizeof want, "%d", SIZE);
    ck_assert_str_eq(header(&head, "Content-Length"), want);
    ck_assert_str_eq(header(&head, "Accept-Ranges"), "bytes");
    free(bytes);
}
END_TEST

/* Content whose row was damaged: what asks for bytes that are gone hears that they are lost. An
 * answer that is cut would be asked for again for ever. */
START_TEST(test_content_that_is_cut_short)
{
    char bytes[100] = {1}, hex[SHA256_HEX_SIZE], path[100], sql[200];
    REPLY_AUTO put = put_blob(bytes, sizeof bytes, hex);
    ck_status(put, 201);
    (void)snprintf(path, sizeof path, "/v1/blobs/%s", hex);
    (void)snprintf(sql, sizeof sql,
                   "update blob_chunk set content = substr(content, 1, 40) where sha256 = '%s'",
                   hex);
    pg_fixture_exec(fix.database, sql);
    REPLY_AUTO there = get_with("GET", path, "Range: bytes=0-39", NULL);
    ck_assert_int_eq(there.status, 206);
    REPLY_AUTO gone = get_with("GET", path, "Range: bytes=40-", NULL);
    ck_assert_int_eq(gone.status, 404);
    (void)snprintf(sql, sizeof sql, "delete from blob_chunk where sha256 = '%s'", hex);
    pg_fixture_exec(fix.database, sql);
    REPLY_AUTO all = get_with("GET", path, NULL, NULL);
    ck_assert_int_eq(all.status, 404);
}
END_TEST

static void ck_unpacks(const struct reply *packed, const struct reply *plain)
{
    struct str back = {0};
    char buf[4096];
    z_stream z = {.next_in = (Bytef *)packed->body.s, .avail_in = (uInt)packed->body.len};
    int rc = inflateInit2(&z, 15 + 16);
    while (rc == Z_OK) {
        z.next_out = (Bytef *)buf;
        z.avail_out = sizeof buf;
        rc = inflate(&z, Z_NO_FLUSH);
        str_add(&back, buf, sizeof buf - z.avail_out);
    }
    ck_assert_int_eq(rc, Z_STREAM_END);
    ck_assert_int_eq(inflateEnd(&z), Z_OK);
    ck_assert_uint_eq(back.len, plain->body.len);
    ck_assert_mem_eq(str_cstr(&back), str_cstr(&plain->body), back.len);
    str_done(&back);
}

START_TEST(test_compressed_answers)
{
    for (int i = 0; i < 5; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "packed-%d", i);
        (void)make_sweep(name, 1);
    }
    REPLY_AUTO plain = get_with("GET", "/v1/sweeps", NULL, NULL);
    REPLY_AUTO packed = get_with("GET", "/v1/sweeps", "Accept-Encoding: gzip, br", NULL);
    ck_assert_int_eq(packed.status, 200);
    ck_assert_str_eq(header(&plain, "Content-Encoding"), "");
    ck_assert_str_eq(header(&packed, "Content-Encoding"), "gzip");
    ck_assert_str_eq(header(&plain, "Vary"), "Accept-Encoding");
    ck_assert_uint_lt(packed.body.len, plain.body.len / 2);
    ck_unpacks(&packed, &plain);
    REPLY_AUTO refused = get_with("GET", "/v1/sweeps", "Accept-Encoding: gzip;q=0", NULL);
    ck_assert_str_eq(header(&refused, "Content-Encoding"), "");
    REPLY_AUTO small = get_with("GET", "/v1/datasets", "Accept-Encoding: gzip", NULL);
    ck_assert_str_eq(header(&small, "Content-Encoding"), "");
}
END_TEST

START_TEST(test_versions)
{
    char line[200];
    const char *id = make_sweep("versions", 3);
    struct rest user = as_user();
    static const char *const paths[] = {"/v1/sweeps/versions", "/v1/sweeps",
                                        "/v1/sweeps/versions/trials", "/v1/datasets"};
    for (size_t i = 0; i < AS_ARRAY_LEN(paths); i++) {
        REPLY_AUTO first = get_with("GET", paths[i], NULL, NULL);
        ck_assert_int_eq(first.status, 200);
        (void)snprintf(line, sizeof line, "If-None-Match: %s", header(&first, "ETag"));
        REPLY_AUTO again = get_with("GET", paths[i], line, "Accept-Encoding: gzip");
        ck_assert_int_eq(again.status, 304);
        ck_assert_uint_eq(again.body.len, 0);
        ck_assert_str_eq(header(&again, "ETag"), header(&first, "ETag"));
    }
    REPLY_AUTO before = get_with("GET", paths[0], NULL, NULL);
    (void)snprintf(line, sizeof line, "If-None-Match: %s", header(&before, "ETag"));
    REPLY_AUTO paused = rest_call(&user, "PATCH", "/v1/sweeps/versions", "{\"state\":\"paused\"}");
    ck_status(paused, 200);
    ck_assert_str_eq(header(&paused, "ETag"), "");
    REPLY_AUTO after = get_with("GET", paths[0], line, NULL);
    ck_assert_int_eq(after.status, 200);
    drop_sweep(id);
}
END_TEST

/* The file of a whole table has a version of its own, and is compressed though it is no text. */
START_TEST(test_tables)
{
    static const char path[] = "/v1/sweeps/columns/table";
    char line[200], one[100];
    const char *id = make_sweep("columns", 3);
    REPLY_AUTO plain = get_with("GET", path, NULL, NULL);
    ck_assert_int_eq(plain.status, 200);
    ck_assert_str_eq(header(&plain, "Content-Type"), "application/vnd.assay.columns");
    ck_assert_mem_eq(plain.body.s, "ASYCOLS1", 8);
    REPLY_AUTO packed = get_with("GET", path, "Accept-Encoding: gzip", NULL);
    ck_assert_str_eq(header(&packed, "Content-Encoding"), "gzip");
    ck_unpacks(&packed, &plain);
    (void)snprintf(line, sizeof line, "If-None-Match: %s", header(&packed, "ETag"));
    REPLY_AUTO known = get_with("GET", path, line, "Accept-Encoding: gzip");
    ck_assert_int_eq(known.status, 304);
    ck_assert_uint_eq(known.body.len, 0);
    REPLY_AUTO none = get_with("GET", "/v1/sweeps/columns/table?since=x", NULL, NULL);
    ck_assert_int_eq(none.status, 400);
    REPLY_AUTO other = get_with("GET", "/v1/sweeps/columns/table?columns=loss", NULL, NULL);
    ck_assert_int_eq(other.status, 400);
    const char *version = strstr(plain.body.s + 16, "\"version\":\"");
    ck_assert_ptr_nonnull(version);
    (void)snprintf(one, sizeof one, "%s?since=%.*s", path, (int)strcspn(version + 11, "\""),
                   version + 11);
    REPLY_AUTO since = get_with("GET", one, NULL, NULL);
    ck_assert_int_eq(since.status, 200);
    ck_assert_ptr_nonnull(strstr(since.body.s + 16, "\"rows\":0"));
    drop_sweep(id);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("content");
    TCase *t = tcase_create("content");
    tcase_add_unchecked_fixture(t, fixture_start, fixture_stop);
    tcase_add_test(t, test_parts_of_content);
    tcase_add_test(t, test_content_that_is_cut_short);
    tcase_add_test(t, test_compressed_answers);
    tcase_add_test(t, test_versions);
    tcase_add_test(t, test_tables);
    suite_add_tcase(s, t);
    return s;
}
