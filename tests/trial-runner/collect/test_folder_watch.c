/* Writes to files in folders are heard by whoever listens to the folder, and by nobody else. */
#include "tests/support/check_main.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/support/temp_folder.h"
#include "trial-runner/collect/folder_watch.h"

static char dir[TEMP_FOLDER_SIZE];
static struct folder_watch *watch;

static void setup(void)
{
    struct as_err err;
    temp_folder_make(dir);
    ck_ok(folder_watch_create(&watch, &err), err);
}

static void teardown(void)
{
    folder_watch_free(watch);
    temp_folder_remove(dir);
}

/* What a listener has heard of the file "a". */
struct heard {
    pthread_mutex_t lock;
    int n;
    struct folder_listener listener;
};

static void on_write(void *arg, const char *name)
{
    struct heard *h = arg;
    pthread_mutex_lock(&h->lock);
    h->n += !name || strcmp(name, "a") == 0;
    pthread_mutex_unlock(&h->lock);
}

static int times(struct heard *h)
{
    pthread_mutex_lock(&h->lock);
    int n = h->n;
    pthread_mutex_unlock(&h->lock);
    return n;
}

static void await_more(struct heard *h, int than)
{
    int64_t end = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (times(h) <= than && clock_mono_ns() < end)
        clock_sleep_ms(2);
    ck_assert_int_gt(times(h), than);
}

static void listen_to(struct heard *h, const char *folder)
{
    struct as_err err;
    *h = (struct heard){.listener = {.on_write = on_write, .arg = h}};
    pthread_mutex_init(&h->lock, NULL);
    ck_ok(folder_watch_add(watch, folder, &h->listener, &err), err);
    ck_assert(folder_watch_listens(watch, &h->listener));
}

static void append(const char *folder, const char *name)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    FILE *f = fopen(path, "a");
    ck_assert(f && fputs("line\n", f) > 0 && fclose(f) == 0);
}

START_TEST(each_listener_hears_its_folder)
{
    struct heard one, two, other;
    AS_AUTO(as_freep) char *sub = file_join(dir, "sub");
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    listen_to(&one, dir);
    listen_to(&two, dir);
    listen_to(&other, sub);
    append(dir, "a");
    await_more(&one, 0);
    await_more(&two, 0);
    int before = times(&one);
    append(dir, "a");
    await_more(&one, before);
    ck_assert_int_eq(times(&other), 0);
    append(sub, "a");
    await_more(&other, 0);
    folder_watch_remove(watch, &one.listener);
    before = times(&one);
    int of_two = times(&two);
    append(dir, "a"); /* two shares the folder, and listens still */
    await_more(&two, of_two);
    ck_assert_int_eq(times(&one), before);
    folder_watch_remove(watch, &two.listener);
    folder_watch_remove(watch, &other.listener);
    folder_watch_remove(watch, &other.listener); /* again: no effect */
}
END_TEST

/* A rename to the name is a write to it, which is how some programs write. */
START_TEST(a_file_that_is_moved_there)
{
    struct heard h;
    AS_AUTO(as_freep) char *from = file_join(dir, "b");
    AS_AUTO(as_freep) char *to = file_join(dir, "a");
    append(dir, "b");
    listen_to(&h, dir);
    ck_assert_int_eq(rename(from, to), 0);
    await_more(&h, 0);
    folder_watch_remove(watch, &h.listener);
}
END_TEST

/* Nobody listens to a folder that is gone; one of the same name is another. */
START_TEST(a_folder_that_is_removed)
{
    struct heard h;
    AS_AUTO(as_freep) char *sub = file_join(dir, "sub");
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    listen_to(&h, sub);
    ck_assert_int_eq(rmdir(sub), 0);
    int64_t end = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (folder_watch_listens(watch, &h.listener) && clock_mono_ns() < end)
        clock_sleep_ms(2);
    ck_assert(!folder_watch_listens(watch, &h.listener));
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    listen_to(&h, sub);
    append(sub, "a");
    await_more(&h, 0);
    folder_watch_remove(watch, &h.listener);
}
END_TEST

START_TEST(no_such_folder)
{
    struct heard h = {.listener = {.on_write = on_write, .arg = &h}};
    struct as_err err;
    AS_AUTO(as_freep) char *none = file_join(dir, "none");
    ck_fails(folder_watch_add(watch, none, &h.listener, &err), AS_E_IO, err, "none");
    append(dir, "a");
    AS_AUTO(as_freep) char *file = file_join(dir, "a");
    ck_fails(folder_watch_add(watch, file, &h.listener, &err), AS_E_IO, err, "Not a directory");
    ck_assert(!folder_watch_listens(watch, &h.listener));
    folder_watch_remove(watch, &h.listener);
    folder_watch_remove(NULL, &h.listener);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("folder_watch");
    TCase *t = tcase_create("folder_watch");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, each_listener_hears_its_folder);
    tcase_add_test(t, a_file_that_is_moved_there);
    tcase_add_test(t, a_folder_that_is_removed);
    tcase_add_test(t, no_such_folder);
    suite_add_tcase(s, t);
    return s;
}
