#include "cli/session/disk_list.h"

#include "base/json.h"
#include "tests/support/check_main.h"

static as_status count_page(void *arg, const json_t *items, struct as_err *err)
{
    int64_t *next = arg;
    size_t i;
    json_t *item;
    (void)err;
    json_array_foreach((json_t *)items, i, item)
        ck_assert_int_eq(json_integer_value(json_object_get(item, "n")), (*next)++);
    return AS_OK;
}

static as_status stop_page(void *arg, const json_t *items, struct as_err *err)
{
    (void)arg, (void)items;
    return as_fail(err, AS_E_IO, "enough");
}

/* What goes in comes out in order, as often as it is asked for. */
START_TEST(again_and_again)
{
    struct as_err err = {0};
    AS_AUTO(disk_list_done) struct disk_list s = {0};
    ck_ok(disk_list_open(&s, &err), err);
    for (int64_t n = 0; n < 1001; n++) {
        JSON_AUTO page = json_pack("[{s:I, s:s}]", "n", (json_int_t)n, "text", "a\nb\x01");
        ck_ok(disk_list_add(&s, page, &err), err);
    }
    ck_assert_uint_eq(s.n, 1001);
    for (int round = 0; round < 3; round++) {
        int64_t next = 0;
        ck_ok(disk_list_pages(&s, count_page, &next, &err), err);
        ck_assert_int_eq(next, 1001);
    }
    ck_fails(disk_list_pages(&s, stop_page, NULL, &err), AS_E_IO, err, "enough");
}
END_TEST

START_TEST(nothing)
{
    struct as_err err = {0};
    AS_AUTO(disk_list_done) struct disk_list s = {0};
    ck_ok(disk_list_open(&s, &err), err);
    ck_ok(disk_list_pages(&s, stop_page, NULL, &err), err);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("disk_list");
    TCase *t = tcase_create("disk_list");
    tcase_add_test(t, again_and_again);
    tcase_add_test(t, nothing);
    suite_add_tcase(s, t);
    return s;
}
