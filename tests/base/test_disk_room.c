#include "base/disk_room.h"

#include <string.h>

#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

START_TEST(says_where_and_how_much)
{
    char dir[TEMP_FOLDER_SIZE], text[300] = "";
    temp_folder_make(dir);
    ck_assert(!disk_room_is_short(dir, 0, text, sizeof text));
    ck_assert_str_eq(text, "");
    ck_assert(disk_room_is_short(dir, UINT64_MAX, text, sizeof text));
    ck_assert_msg(strncmp(text, dir, strlen(dir)) == 0, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, " MiB left, and at least 17592186044415 MiB are needed"));
    ck_assert(disk_room_is_short(dir, UINT64_MAX, NULL, 0));
    temp_folder_remove(dir);
}
END_TEST

START_TEST(unknown_sizes)
{
    ck_assert(!disk_room_is_short("/proc", UINT64_MAX, NULL, 0));
    ck_assert(!disk_room_is_short("/nowhere", UINT64_MAX, NULL, 0));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("base/disk_room");
    TCase *tc = tcase_create("disk_room");
    tcase_add_test(tc, says_where_and_how_much);
    tcase_add_test(tc, unknown_sizes);
    suite_add_tcase(s, tc);
    return s;
}
