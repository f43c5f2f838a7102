/* What is no UBJSON never reaches XGBoost, which would read it in its older format and fill as much
 * memory as a length in it says. */
#include "tests/support/check_main.h"

#include <stdint.h>
#include <string.h>

#include "model/trees/xgboost.h"

static const struct xgboost *x;
static struct as_err absent;

static void refused(const void *bytes, size_t len, const char *why)
{
    struct as_err err = {0};
    xgb_booster b = NULL;
    ck_assert_int_eq(x->booster_create(NULL, 0, &b), 0);
    ck_fails(xgboost_load(x, b, bytes, len, &err), AS_E_INVAL, err, why);
    ck_assert_int_eq(x->booster_free(b), 0);
}

START_TEST(older_format)
{
    /* "binf", a block of parameters, and the length of a name: 16 GiB. */
    unsigned char bytes[4 + 136 + 8 + 16] = "binf";
    uint64_t length = UINT64_C(16) << 30;
    memcpy(bytes + 140, &length, sizeof length);
    refused(bytes, sizeof bytes, "no model of trees: no UBJSON");
    refused(bytes + 4, sizeof bytes - 4, "no model of trees: ");
}
END_TEST

START_TEST(length_beyond_the_bytes)
{
    static const char list[] = "{i\x01"
                               "a[$l#L\x00\x00\x00\x10\x00\x00\x00\x00]}";
    refused(list, sizeof list - 1, "a length is not within the file");
    refused("", 0, "cut short");
    refused("[]", 2, "expected an object");
    refused("{}", 2, "no model of trees: XGBoost");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("xgboost_load");
    TCase *tc = tcase_create("load");
    bool is_there = xgboost_open(&x, &absent) == AS_OK;
    add_test_if(tc, older_format, is_there, absent.msg);
    add_test_if(tc, length_beyond_the_bytes, is_there, absent.msg);
    suite_add_tcase(s, tc);
    return s;
}
