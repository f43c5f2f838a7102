/* Whole trainings of ranks on emulated devices: sums from device to device through what stands in
 * for NCCL, and through the host where that cannot be. Equal bits both ways, for any number of
 * ranks, and when ranks die. Neither a GPU nor NCCL itself has run here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

/* Each rank has an emulated device of its own. */
static void own_device(size_t place)
{
    char text[600];
    (void)snprintf(text, sizeof text, "%s/tests/kernels/emu", build_root());
    (void)setenv("ASSAY_PLUGIN_DIR", text, 1);
    (void)snprintf(text, sizeof text, "%s/tests/kernels/emu/libemu-nccl.so", build_root());
    (void)setenv("ASSAY_NCCL", text, 1);
    (void)setenv("ASSAY_BACKEND", "cuda", 1);
    (void)snprintf(text, sizeof text, "%zu", place);
    (void)setenv("CUDA_VISIBLE_DEVICES", text, 1);
}

static void without_nccl(size_t place)
{
    own_device(place);
    (void)setenv("ASSAY_NCCL", "none", 1);
}

static void one_without_nccl(size_t place)
{
    own_device(place);
    if (place == 1)
        (void)setenv("ASSAY_NCCL", "none", 1);
}

static void other_version(size_t place)
{
    own_device(place);
    if (place == 1)
        (void)setenv("EMU_NCCL_VERSION", "22703", 1);
}

static void one_that_fails(size_t place)
{
    own_device(place);
    if (place == 1)
        (void)setenv("EMU_NCCL_FAILS", "1", 1);
}

static void shared_card(size_t place)
{
    own_device(place == 2 ? 0 : place);
}

/* A device that is far behind its host. */
static void late_device(size_t place)
{
    own_device(place);
    (void)setenv("EMU_ASYNC", "1", 1);
}

static void late_without_nccl(size_t place)
{
    without_nccl(place);
    (void)setenv("EMU_ASYNC", "1", 1);
}

static const struct gang_opts devices = {.environment = own_device};
static const struct gang_opts staged = {.environment = without_nccl};

/* 408 of SMALL_ROWS are trained on: an epoch ends with a batch of fewer shards. */
#define SMALL_ROWS 480
#define SMALL                                                                                      \
    "\"model\":{\"layers\":[16],\"dropout\":0.1},\"optimizer\":{\"kind\":\"adam\",\"lr\":0.01},"   \
    "\"batch_size\":160,\"micro_batch\":32,\"epochs\":"

/* Emulated products are slow. */
static void use_rows(size_t rows)
{
    AS_AUTO(str_done) struct str csv = {0};
    struct str doc = {0};
    char path[200];
    str_puts(&csv, "a,b,c,d,kind\n");
    for (size_t i = 0; i < rows; i++)
        str_printf(&csv, "%zu,%zu,%zu,%zu,%s\n", i % 7, i % 5, i % 3, i, i % 2 ? "odd" : "even");
    (void)snprintf(path, sizeof path, "%s/few.csv", rig.dir);
    ck_ok(file_replace(path, csv.s, csv.len, 0644, &rig.err), rig.err);
    str_printf(&doc,
               "{\"format\":\"csv\",\"task\":\"classification\",\"target\":\"kind\",\"rows\":%zu,"
               "\"features\":4,\"outputs\":2,\"classes\":[\"even\",\"odd\"],\"paths\":{\"table\":"
               "\"%s\",\"decoded\":\"%s/few.decoded\"}}",
               rows, path, rig.dir);
    free(rig.dataset);
    rig.dataset = str_take(&doc);
}

static void open_small(void)
{
    rig_open(&rig);
    use_rows(SMALL_ROWS);
}

static void close_small(void)
{
    rig_close(&rig);
}

static char *output_of(const char *tag, size_t place)
{
    char folder[8];
    size_t len;
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    char *out = rig_read(&rig, tag, folder, "out", &len);
    ck_assert_ptr_nonnull(out);
    return out;
}

static void expect_says(const char *tag, size_t place, const char *what)
{
    AS_AUTO(as_freep) char *out = output_of(tag, place);
    ck_assert_msg(strstr(out, what) != NULL, "%s: expected '%s' in: %s", tag, what, out);
}

START_TEST(sums_between_devices_have_equal_bits_for_any_number_of_ranks)
{
    char tag[8];
    const char *train = SMALL "2";
    gang_train_with(&rig, "host", train, 2, &staged);
    expect_says("host", 0, "through the host: rank 0 has no NCCL");
    for (size_t n = 1; n <= 4; n++) {
        (void)snprintf(tag, sizeof tag, "d%zu", n);
        gang_train_with(&rig, tag, train, n, &devices);
        gang_same(&rig, "host", tag);
        expect_says(tag, n - 1, "vectors travel from device to device");
    }
}
END_TEST

static const struct {
    void (*environment)(size_t place);
    const char *says;
} hindered[] = {{shared_card, "through the host: ranks 0 and 2 share GPU-a0a1a2a3"},
                {one_without_nccl, "through the host: rank 1 has no NCCL"},
                {other_version, "through the host: rank 1 has NCCL 22703, rank 0 has 22809"},
                {one_that_fails, "through the host: "},
                {late_device, "from device to device"},
                {late_without_nccl, "through the host: rank 0 has no NCCL"}};

START_TEST(ranks_that_cannot_go_through_the_host_with_the_same_bits)
{
    char tag[8];
    gang_train_with(&rig, "free", SMALL "1", 3, &devices);
    for (size_t i = 0; i < AS_ARRAY_LEN(hindered); i++) {
        const struct gang_opts opts = {.environment = hindered[i].environment};
        (void)snprintf(tag, sizeof tag, "h%zu", i);
        gang_train_with(&rig, tag, SMALL "1", 3, &opts);
        gang_same(&rig, "free", tag);
        expect_says(tag, 0, hindered[i].says);
    }
}
END_TEST

/* Two buckets of BUCKET_NUMBERS and more, over few rows. */
#define WIDE "\"model\":{\"layers\":[2048,260]},\"batch_size\":16,\"micro_batch\":8,\"epochs\":1"
#define WIDE_ROWS 40

START_TEST(gradients_leave_a_device_in_pieces_while_it_computes)
{
    static const struct {
        const char *tag;
        void (*environment)(size_t place);
    } ways[] = {{"pieces", without_nccl}, {"late", late_without_nccl}};
    use_rows(WIDE_ROWS);
    gang_train_with(&rig, "free", WIDE, 2, &devices);
    for (size_t i = 0; i < AS_ARRAY_LEN(ways); i++) {
        const struct gang_opts opts = {.environment = ways[i].environment};
        gang_train_with(&rig, ways[i].tag, WIDE, 2, &opts);
        gang_same(&rig, "free", ways[i].tag);
        expect_says(ways[i].tag, 0, "vectors travel through the host");
        for (size_t place = 0; place < 2; place++) /* the third is what is only known at the end */
            expect_says(ways[i].tag, place,
                        ": 2 of 3 buckets left before the gradient was complete");
    }
}
END_TEST

/* Workers' weights are averaged on the devices, too. What travels there is not sent by the
 * collective. */
START_TEST(averages_between_devices_have_the_bits_of_the_host)
{
    const char *train = "\"distributed\":{\"local_sgd\":{\"steps\":3}}," SMALL "2";
    uint64_t direct, through, exchanges;
    gang_train_with(&rig, "free", train, 3, &devices);
    gang_train_with(&rig, "host", train, 3, &staged);
    gang_same(&rig, "free", "host");
    gang_traffic(&rig, "free", 0, &direct, &exchanges);
    gang_traffic(&rig, "host", 0, &through, &exchanges);
    ck_assert_uint_gt(through, 1000);
    ck_assert_uint_eq(direct, 0);
}
END_TEST

/* Factors leave a device through the host, and their products are computed on each. A device may
 * compute a product by itself in another way than in a backward pass, but it does so on each. */
START_TEST(factors_of_devices_give_equal_bits_for_any_number_of_ranks)
{
    const char *train = "\"distributed\":{\"sufficient_factors\":\"always\"}," SMALL "2";
    const struct trial t = {".", "", "3"};
    gang_train_with(&rig, "whole", SMALL "2", 1, &devices);
    gang_train_with(&rig, "f1", train, 1, &devices);
    gang_train_with(&rig, "f3", train, 3, &devices);
    gang_same(&rig, "f1", "f3");
    ck_assert_double_le(rig_distance(&rig, "whole", "f1", &t), 1e-5);
}
END_TEST

/* The device of rank 1 breaks in the middle of the training. */
static void one_that_breaks(size_t place)
{
    own_device(place);
    if (place == 1)
        (void)setenv("EMU_FAIL", "214:150", 1);
}

START_TEST(a_rank_whose_device_breaks_leaves_the_others)
{
    const struct trial t = {"a", SMALL "3", "3"};
    const struct gang_opts opts = {.environment = one_that_breaks};
    struct gang g;
    gang_train_with(&rig, "calm", SMALL "3", 1, &devices);
    gang_start_with(&g, &rig, "broken", &t, 2, &opts);
    gang_run(&g);
    ck_assert_int_eq(g.ended[0], 0);
    ck_assert_int_eq(g.ended[1], 75);
    gang_done(&g);
    gang_same(&rig, "calm", "broken");
}
END_TEST

START_TEST(deaths_on_devices_change_no_bit)
{
    const char *train = SMALL "12";
    gang_train_with(&rig, "calm", train, 1, &devices);
    size_t well = gang_train_dying_with(&rig, "dying", train, 3, 3, 11, &devices);
    gang_same(&rig, "calm", "dying");
    expect_says("dying", well, "from device to device");
}
END_TEST

static TCase *case_of(Suite *s, const char *name)
{
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, open_small, close_small);
    suite_add_tcase(s, t);
    return t;
}

TEST_SUITE()
{
    Suite *s = suite_create("device_gang");
    tcase_add_test(case_of(s, "ranks"),
                   sums_between_devices_have_equal_bits_for_any_number_of_ranks);
    tcase_add_test(case_of(s, "hindered"),
                   ranks_that_cannot_go_through_the_host_with_the_same_bits);
    tcase_add_test(case_of(s, "pieces"), gradients_leave_a_device_in_pieces_while_it_computes);
    tcase_add_test(case_of(s, "averages"), averages_between_devices_have_the_bits_of_the_host);
    tcase_add_test(case_of(s, "factors"),
                   factors_of_devices_give_equal_bits_for_any_number_of_ranks);
    tcase_add_test(case_of(s, "broken"), a_rank_whose_device_breaks_leaves_the_others);
    tcase_add_test(case_of(s, "deaths"), deaths_on_devices_change_no_bit);
    return s;
}
