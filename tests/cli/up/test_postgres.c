#include "cli/up/postgres.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static char dir[TEMP_FOLDER_SIZE];

static void setup(void)
{
    temp_folder_make(dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

START_TEST(unknown_version)
{
    struct as_err err = {0};
    char path[100], *bin = NULL;
    (void)snprintf(path, sizeof path, "%s/PG_VERSION", dir);
    ck_ok(file_replace(path, "9\n", 2, 0600, &err), err);
    ck_fails(postgres_find(dir, &bin, &err), AS_E_NOT_FOUND, err, "PostgreSQL 9");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("postgres");
    TCase *t = tcase_create("postgres");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, unknown_version);
    suite_add_tcase(s, t);
    return s;
}
