/* assay-train on a device that is missing, broken or full. The real program runs the plugin on the
 * emulated device (tests/kernels/emu), which breaks and fills up as its variables say. */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/rig.h"
#include "tests/support/roots.h"

static struct rig rig;
static char fault_path[96];
static char events[1 << 16]; /* of the last run, all lines */

#define SHAPE "\"model\":{\"layers\":[12]},\"micro_batch\":32,\"batch_size\":32,\"epochs\":2"
static const struct trial trials[] = {
    {"a", SHAPE, "1"},
    {"b", SHAPE ",\"optimizer\":{\"kind\":\"sgd\"}", "2"},
    {"c", SHAPE ",\"optimizer\":{\"kind\":\"adam\",\"lr\":0.01}", "3"},
    {"d", SHAPE ",\"optimizer\":{\"clip_norm\":0.1}", "4"},
};
static const struct trial *const all[] = {&trials[0], &trials[1], &trials[2], &trials[3]};
static const char *const variables[] = {
    "EMU_FAIL",           "EMU_MEMORY",        "EMU_SAYS_FREE", "EMU_ASYNC", "CUDA_VISIBLE_DEVICES",
    "ASSAY_DEVICE_FAULT", "ASSAY_MEMORY_BYTES"};

static void setup(void)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(variables); i++)
        (void)unsetenv(variables[i]);
    rig_open(&rig);
    (void)snprintf(fault_path, sizeof fault_path, "%s/fault", rig.dir);
    (void)setenv("ASSAY_DEVICE_FAULT", fault_path, 1);
    (void)setenv("ASSAY_BACKEND", "cuda", 1);
    (void)setenv("CUDA_VISIBLE_DEVICES", "GPU-1", 1);
}

static void teardown(void)
{
    rig_close(&rig);
}

static void read_events(int fd)
{
    size_t n = 0;
    ssize_t got = 1;
    while (got > 0 && n + 1 < sizeof events) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ck_assert_int_eq(poll(&p, 1, PATIENCE_MS), 1);
        got = read(fd, events + n, sizeof events - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    events[n] = '\0';
}

/* Train n trials in a group of as many slots; the exit code. No members are added later. */
static int train(const char *tag, size_t n)
{
    int pair[2], status = 0;
    char path[512], job[96], err[96];
    static const char close_line[] = "{\"op\":\"close\"}\n";
    rig_job(&rig, tag, all, n, n);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    (void)snprintf(path, sizeof path, "%s/trial-runner/train/assay-train", build_root());
    (void)snprintf(job, sizeof job, "%s/job.json", rig.dir);
    (void)snprintf(err, sizeof err, "%s/err", rig.dir);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (dup2(pair[1], 0) != 0 || !freopen("/dev/null", "a", stdout) ||
            !freopen(err, "a", stderr))
            _exit(126);
        (void)execl(path, "assay-train", job, (char *)NULL);
        _exit(127);
    }
    (void)close(pair[1]);
    ck_assert_int_gt(send(pair[0], close_line, strlen(close_line), MSG_NOSIGNAL), 0);
    read_events(pair[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    (void)close(pair[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static size_t count_of(const char *part)
{
    size_t n = 0;
    for (const char *at = events; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

/* The file ASSAY_DEVICE_FAULT; "" if there is none. Removes it. */
static const char *fault(void)
{
    static char text[1024];
    AS_AUTO(as_freep) char *bytes = NULL;
    size_t n = 0;
    text[0] = '\0';
    if (file_read(fault_path, sizeof text, &bytes, &n, NULL) == AS_OK)
        (void)snprintf(text, sizeof text, "%s", bytes);
    (void)unlink(fault_path);
    return text;
}

START_TEST(without_a_device_nothing_is_trained)
{
    const char *plugins = getenv("ASSAY_PLUGIN_DIR");
    AS_AUTO(as_freep) char *kept = as_strdup(plugins);
    (void)setenv("ASSAY_PLUGIN_DIR", rig.dir, 1); /* a build without the plugin */
    ck_assert_int_eq(train("none", 2), 75);
    ck_assert_uint_eq(count_of("\"exit\":75"), 2);
    ck_assert_msg(strstr(events, "no libassay-cuda.so") != NULL, "%s", events);
    ck_assert(strncmp(fault(), "all: back end cuda: no libassay", 31) == 0);
    (void)setenv("ASSAY_PLUGIN_DIR", kept, 1);
    (void)setenv("EMU_DRIVER", "12020", 1);
    ck_assert_int_eq(train("none", 1), 75);
    ck_assert_msg(strstr(fault(), "the driver is too old") != NULL, "%s", events);
    (void)unsetenv("EMU_DRIVER");
    ck_assert_uint_eq(count_of("started"), 0);
    (void)unsetenv("ASSAY_PLUGIN_DIR");
    (void)setenv("CUDA_VISIBLE_DEVICES", "", 1); /* it was given none: a mistake of the document */
    ck_assert_int_eq(train("none", 1), 1);
    ck_assert_str_eq(fault(), "");
    (void)setenv("ASSAY_PLUGIN_DIR", kept, 1);
}
END_TEST

/* At any moment, and also on a device that is far behind its host. `started` is not said by a
 * process whose first step failed. */
START_TEST(a_broken_device_is_reported)
{
    static const struct {
        const char *fail, *async;
        size_t members, started;
        const char *fault;
    } cases[] = {
        {"214:0", "0", 2, 0, "ECC"},   {"214:0", "1", 1, 0, "ECC"},
        {"214:60", "1", 2, 0, "ECC"}, /* in the first step */
        {"214:400", "1", 2, 2, "ECC"}, {"214:400", "0", 1, 1, "ECC"},
        {"700:400", "1", 2, 2, ""}, /* may be our own fault: the device is not blamed */
        {"700:400", "0", 1, 1, ""},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        (void)setenv("EMU_FAIL", cases[i].fail, 1);
        (void)setenv("EMU_ASYNC", cases[i].async, 1);
        ck_assert_msg(train("broken", cases[i].members) == 75 ||
                          (cases[i].members == 1 && count_of("\"exit\":75") == 1),
                      "%zu: %s", i, events);
        ck_assert_msg(count_of("\"exit\":75") == cases[i].members, "%zu: %s", i, events);
        ck_assert_msg(count_of("\"started\"") == cases[i].started, "%zu: %s", i, events);
        const char *text = fault();
        ck_assert_msg(cases[i].fault[0] ? strstr(text, cases[i].fault) && text[0] != 'a'
                                        : text[0] == '\0',
                      "%zu: '%s'", i, text);
    }
}
END_TEST

/* Equal bits, whatever the size of the group. */
static void trains_all(const char *tag)
{
    ck_assert_msg(train(tag, 4) == 0, "%s", events);
    ck_assert_uint_eq(count_of("\"exit\":0"), 4);
    for (size_t i = 0; i < 4; i++)
        rig_same(&rig, "roomy", tag, &trials[i]);
    ck_assert_str_eq(fault(), "");
}

static size_t number_after(const char *name)
{
    const char *at = strstr(events, name);
    ck_assert_msg(at != NULL, "%s: %s", name, events);
    return strtoull(at + strlen(name), NULL, 10);
}

START_TEST(a_group_is_as_large_as_the_memory)
{
    char text[32];
    ck_assert_int_eq(train("roomy", 4), 0);
    ck_assert_uint_eq(number_after("\"members\":"), 4);
    size_t each = number_after("\"bytes_per_member\":"), shared = number_after("\"bytes_shared\":");
    size_t own = 140000; /* what the emulated back end itself takes, about */
    (void)snprintf(text, sizeof text, "%zu", (shared + own + 3 * each) / 7 * 8);
    (void)setenv("EMU_MEMORY", text, 1);
    trains_all("smaller");
    size_t fits = number_after("\"members\":");
    ck_assert_msg(fits >= 1 && fits <= 3, "%zu", fits);
    /* Memory that was free a moment ago is not: the group is halved until it fits. */
    (void)snprintf(text, sizeof text, "%zu", shared + own + 5 * each / 2);
    (void)setenv("EMU_MEMORY", text, 1);
    (void)setenv("EMU_SAYS_FREE", "9000000000", 1);
    trains_all("halved");
    ck_assert_uint_eq(count_of("\"ready\""), 2);
    ck_assert_uint_eq(number_after("\"members\":"), 4); /* the first time */
    (void)unsetenv("EMU_SAYS_FREE");
    /* Not one member fits, and never will. */
    for (size_t i = 0; i < 2; i++) {
        size_t bytes = i == 0 ? shared - 1 : shared + each - 1; /* the data, a member beside it */
        (void)snprintf(text, sizeof text, "%zu", bytes);
        (void)setenv("EMU_MEMORY", text, 1);
        ck_assert_int_eq(train("large", 2), 1);
        ck_assert_msg(strstr(events, "but the device has only") != NULL, "%s", events);
    }
    /* It would fit if another process did not use the device: another attempt may succeed. */
    (void)setenv("EMU_SAYS_FREE", "900000", 1);
    (void)snprintf(text, sizeof text, "%zu", shared + own + each / 2);
    (void)setenv("EMU_MEMORY", text, 1);
    ck_assert_int_eq(train("crowded", 2), 75);
    ck_assert_str_eq(fault(), "");
}
END_TEST

static size_t launches(const char *kernel)
{
    char path[4096];
    size_t (*count)(const char *) = NULL;
    (void)snprintf(path, sizeof path, "%s/libassay-cuda.so", getenv("ASSAY_PLUGIN_DIR"));
    void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(plugin);
    *(void **)&count = dlsym(plugin, "emu_launches");
    ck_assert_ptr_nonnull(count);
    size_t n = count(kernel);
    ck_assert_int_eq(dlclose(plugin), 0);
    return n;
}

/* A group holds memory for any optimizer, but launches only what its members need. */
START_TEST(norms_are_launched_for_lamb_alone)
{
    static const struct trial lamb = {"l", SHAPE ",\"optimizer\":{\"kind\":\"lamb\"}", "5"};
    const struct trial *with[] = {&trials[0], &lamb};
    rig_job(&rig, "adam", all, 2, 2);
    ck_assert_int_eq(rig_run(&rig, "cuda", 1), 0);
    ck_assert_uint_gt(launches("optimize"), 0);
    ck_assert_uint_eq(launches("lamb_norms"), 0);
    rig_job(&rig, "lamb", with, 2, 2);
    ck_assert_int_eq(rig_run(&rig, "cuda", 1), 0);
    ck_assert_uint_gt(launches("lamb_norms"), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_faults");
    TCase *t = tcase_create("train_faults");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, without_a_device_nothing_is_trained);
    tcase_add_test(t, a_broken_device_is_reported);
    tcase_add_test(t, a_group_is_as_large_as_the_memory);
    tcase_add_test(t, norms_are_launched_for_lamb_alone);
    suite_add_tcase(s, t);
    return s;
}
