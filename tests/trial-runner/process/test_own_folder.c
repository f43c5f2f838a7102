/* A folder of one trial inside the folder of its program. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"
#include "trial-runner/process/own_folder.h"

static char project[TEMP_FOLDER_SIZE];
static struct as_err err;

static void begin(void)
{
    temp_folder_make(project);
}

static void end(void)
{
    temp_folder_remove(project);
}

static void put(const char *folder, const char *name, const char *text)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert(fputs(text, f) >= 0 && fclose(f) == 0);
}

/* NULL: there is none. */
static char *get(const char *folder, const char *name)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    char *text = NULL;
    size_t len = 0;
    return file_read(path, 1000, &text, &len, NULL) == AS_OK ? text : NULL;
}

static char *make(int64_t number, bool is_first, const char *mark)
{
    const struct own_folder_trial t = {"s", number, is_first, mark};
    char *path = NULL;
    ck_ok(own_folder_make(project, &t, &path, &err), err);
    return path;
}

static void holds(const char *folder, const char *name, const char *text)
{
    AS_AUTO(as_freep) char *found = get(folder, name);
    ck_assert_pstr_eq(found, text);
}

/* A link where the folders of trials are made would lead somewhere else. */
START_TEST(a_link_is_not_followed)
{
    char elsewhere[TEMP_FOLDER_SIZE];
    const struct own_folder_trial t = {"s", 3, true, "token"};
    AS_AUTO(as_freep) char *place = file_join(project, ".assay");
    AS_AUTO(as_freep) char *of_sweep = file_join(project, ".assay/s");
    char *path = NULL;
    temp_folder_make(elsewhere);
    ck_assert_int_eq(symlink(elsewhere, place), 0);
    ck_fails(own_folder_make(project, &t, &path, &err), AS_E_IO, err, "is a link");
    ck_assert_int_eq(unlink(place), 0);
    ck_assert_int_eq(mkdir(place, 0700), 0);
    ck_assert_int_eq(symlink(elsewhere, of_sweep), 0);
    ck_fails(own_folder_make(project, &t, &path, &err), AS_E_IO, err, "is a link");
    ck_assert_int_eq(rmdir(elsewhere), 0); /* nothing was made there */
}
END_TEST

START_TEST(what_is_there_is_found_and_what_is_made_stays)
{
    char inner[60];
    put(project, "data.csv", "1");
    snprintf(inner, sizeof inner, "%s/lib", project);
    ck_assert_int_eq(mkdir(inner, 0755), 0);
    put(inner, "m.py", "2");
    AS_AUTO(as_freep) char *a = make(3, true, "x");
    AS_AUTO(as_freep) char *b = make(4, true, "y");
    holds(a, "data.csv", "1");
    holds(a, "lib/m.py", "2");
    put(a, "snapshot.pt", "of 3");
    holds(project, "snapshot.pt", NULL);
    holds(b, "snapshot.pt", NULL);
    holds(project, ".assay/.gitignore", "*\n");
    holds(a, ".assay/.gitignore", NULL); /* no way back into itself */
}
END_TEST

START_TEST(attempts_share_it_and_another_trial_of_the_name_does_not)
{
    put(project, "old", "1");
    AS_AUTO(as_freep) char *a = make(0, true, "first");
    put(a, "snapshot.pt", "1");
    put(project, "new", "2");
    AS_AUTO(as_freep) char *rank = make(0, true, "first"); /* another rank of the attempt */
    holds(rank, "snapshot.pt", "1");
    holds(rank, "new", "2");
    AS_AUTO(as_freep) char *second = make(0, false, "second"); /* the next attempt */
    holds(second, "snapshot.pt", "1");
    AS_AUTO(as_freep) char *other = make(0, true, "another"); /* the sweep was deleted */
    ck_assert_str_eq(other, a);
    holds(other, "snapshot.pt", NULL);
    holds(other, "old", "1");
    holds(project, "old", "1"); /* links were removed, and not what they lead to */
}
END_TEST

static void *make_one(void *arg)
{
    struct as_err own;
    char *path = NULL;
    const struct own_folder_trial t = {"s", 0, true, "m"};
    *(as_status *)arg = own_folder_make(project, &t, &path, &own);
    free(path);
    return NULL;
}

START_TEST(ranks_make_it_at_once)
{
    enum { N = 8 };
    pthread_t threads[N];
    as_status st[N];
    for (int i = 0; i < 40; i++) {
        char name[20];
        snprintf(name, sizeof name, "f%d", i);
        put(project, name, "1");
    }
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, make_one, &st[i]), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(st[i], AS_OK);
    }
    AS_AUTO(as_freep) char *path = make(0, true, "m");
    holds(path, "f39", "1");
}
END_TEST

START_TEST(says_why_it_cannot_be_made)
{
    const struct own_folder_trial t = {"s", 0, true, "m"};
    char *path = NULL;
    put(project, ".assay", "a file");
    ck_assert_int_lt(own_folder_make(project, &t, &path, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, ".assay"));
    ck_assert_ptr_null(path);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("own_folder");
    TCase *t = tcase_create("own_folder");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, a_link_is_not_followed);
    tcase_add_test(t, what_is_there_is_found_and_what_is_made_stays);
    tcase_add_test(t, attempts_share_it_and_another_trial_of_the_name_does_not);
    tcase_add_test(t, ranks_make_it_at_once);
    tcase_add_test(t, says_why_it_cannot_be_made);
    suite_add_tcase(s, t);
    return s;
}
