/* The planner (kernels/cuda/cudnn_plan.cu) with the real cuDNN, where its library is installed. It
 * needs no device: cuDNN makes plans for a described H100. This tests cuDNN's rules for
 * descriptors, which the emulated library only imitates, and that the layers of our networks find
 * an engine. It prints the engines. It skips where the library is absent. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tests/support/check_main.h"
#include "tests/kernels/emu/plans.h"

/* An H100 in cuDNN 9.19's own description (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). */
static const char h100[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"pciDeviceId\":0,"
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"deviceVer\":900,\"driverVer\":13000,\"cudaDeviceId\":0,"
    "\"totalGlobalMem\":84900000000,\"deviceName\":\"NVIDIA H100 80GB HBM3\"}";

static const struct plans_shape shapes[] = {
    /* batch, side, C, O, kernel, stride, pad: LeNet, vgg8, resnet18, on images of 28 and 32 */
    {64, 28, 1, 20, 5, 1, 0},     {64, 12, 20, 50, 5, 1, 0},    {128, 28, 1, 6, 5, 1, 0},
    {128, 12, 6, 16, 5, 1, 0},    {128, 32, 3, 64, 3, 1, 1},    {128, 16, 64, 128, 3, 1, 1},
    {128, 8, 128, 256, 3, 1, 1},  {128, 8, 256, 256, 3, 1, 1},  {128, 32, 64, 64, 3, 1, 1},
    {128, 32, 64, 128, 3, 2, 1},  {128, 16, 128, 128, 3, 1, 1}, {128, 32, 64, 128, 1, 2, 0},
    {128, 16, 128, 256, 3, 2, 1}, {128, 8, 256, 512, 3, 2, 1},  {128, 4, 512, 512, 3, 1, 1},
};

static void open_library(void)
{
    struct as_err err;
    if (plans_open(h100, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        exit(77);
    }
}

START_TEST(layers)
{
    static const char *const ops[PLANS_OPS] = {"forward", "dx", "dw"};
    struct as_err err;
    bool cores = _i > 0;
    open_library();
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++)
        for (int op = 0; op < PLANS_OPS; op++) {
            const struct plans_shape *s = &shapes[i];
            struct plans_answer first, again;
            ck_ok(plans_ask(op, s, cores, &first, &err), err);
            ck_ok(plans_ask(op, s, cores, &again, &err), err);
            ck_assert_int_eq(first.engine, again.engine);
            ck_assert_uint_eq(first.workspace, again.workspace);
            ck_assert_uint_le(first.workspace, first.most);
            printf("%s %s %dx%dx%dx%d, %dx%d, %d outputs, stride %d: engine %d, %.1f MiB\n",
                   cores ? "tf32" : "float32", ops[op], (int)s->batch, (int)s->side, (int)s->side,
                   (int)s->channels, (int)s->kernel, (int)s->kernel, (int)s->out, (int)s->stride,
                   (int)first.engine, (double)first.workspace / 1048576);
        }
    plans_close();
}
END_TEST

/* An impossible convolution is an error, not a shape without an engine. */
START_TEST(wrong)
{
    struct as_err err;
    struct plans_answer a;
    const struct plans_shape none = {0, 28, 1, 20, 5, 1, 0};
    open_library();
    ck_fails(plans_ask(PLANS_FORWARD, &none, false, &a, &err), AS_E_INTERNAL, err, "cuDNN");
    plans_close();
}
END_TEST

TEST_SUITE()
{
    open_library();
    plans_close();
    Suite *s = suite_create("kernels_cudnn_plans");
    TCase *c = tcase_create("plans");
    tcase_add_loop_test(c, layers, 0, 2);
    tcase_add_test(c, wrong);
    suite_add_tcase(s, c);
    return s;
}
