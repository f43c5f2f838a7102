/* Outputs to predictions: softmax and sigmoid against their definitions, units, both classes. */
#include <math.h>

#include "model/network/outputs.h"
#include "tests/support/check_main.h"

START_TEST(softmax_of_rows)
{
    float z[] = {1, 2, 3, -1000, 0, 1000};
    outputs_to_probabilities(z, 2, 3, TRAIN_CROSS_ENTROPY);
    double sum = exp(1) + exp(2) + exp(3);
    for (int o = 0; o < 3; o++)
        ck_assert_double_eq_tol((double)z[o], exp(o + 1) / sum, 1e-7);
    ck_assert(z[3] == 0 && z[4] == 0 && z[5] == 1); /* no overflow */
}
END_TEST

START_TEST(sigmoid_of_each)
{
    float z[] = {0, 1, -100, 100};
    outputs_to_probabilities(z, 2, 2, TRAIN_BCE);
    ck_assert(z[0] == 0.5f && z[3] == 1);
    ck_assert_double_eq_tol((double)z[1], 1 / (1 + exp(-1)), 1e-7);
    ck_assert_double_eq_tol((double)z[2], 0, 1e-40);
}
END_TEST

START_TEST(numbers_stay)
{
    float z[] = {3, -4};
    outputs_to_probabilities(z, 1, 2, TRAIN_MSE);
    outputs_to_probabilities(z, 1, 2, TRAIN_HUBER);
    ck_assert(z[0] == 3 && z[1] == -4);
}
END_TEST

START_TEST(own_unit)
{
    float v[] = {1, 1, -2, 0};
    const struct preprocess fit = {
        .n_targets = 2, .target_mean = (double[]){10, 100}, .target_scale = (double[]){2, 0.5}};
    outputs_to_own_unit(v, 2, &fit);
    ck_assert(v[0] == 12 && v[1] == 100.5f && v[2] == 6 && v[3] == 100);
}
END_TEST

START_TEST(both_classes)
{
    float v[6] = {0.25f, 0.5f, 1};
    outputs_to_both_classes(v, 3);
    const float expected[] = {0.75f, 0.25f, 0.5f, 0.5f, 0, 1};
    for (int i = 0; i < 6; i++)
        ck_assert(v[i] == expected[i]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("outputs");
    TCase *t = tcase_create("outputs");
    tcase_add_test(t, softmax_of_rows);
    tcase_add_test(t, sigmoid_of_each);
    tcase_add_test(t, numbers_stay);
    tcase_add_test(t, own_unit);
    tcase_add_test(t, both_classes);
    suite_add_tcase(s, t);
    return s;
}
