/* A build without protobuf-c refuses by name. */
#include <string.h>

#include "model/onnx/onnx_write.h"
#include "tests/support/check_main.h"

START_TEST(refuses)
{
    struct as_err err = {0};
    ck_assert(!onnx_is_built());
    ck_fails(onnx_write(NULL, "m.onnx", &err), AS_E_UNSUPPORTED, err, "cannot write ONNX");
    ck_assert_ptr_nonnull(strstr(err.msg, "libonnx-dev"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("onnx_absent");
    TCase *t = tcase_create("onnx_absent");
    tcase_add_test(t, refuses);
    suite_add_tcase(s, t);
    return s;
}
