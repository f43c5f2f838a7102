/* Ranks that take each other for ranks of other hosts and encrypt what they send, in real
 * processes: the same bits as without, over sums and over servers, with deaths. That nothing
 * readable travels is in collective/test_cipher.c. */
#include <stdio.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;
static const struct gang_opts apart = {.apart = true};

#define BEGIN                                                                                      \
    "\"model\":{\"layers\":[48,32]},\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05,"                  \
    "\"momentum\":0.9},\"batch_size\":256,\"micro_batch\":32,"

static const char *const strategies[] = {"\"strategy\":\"allreduce\"", "\"server\":{\"shards\":2}"};

static const char *document(char ret[400], const char *strategy, int epochs, const char *encrypt)
{
    (void)snprintf(ret, 400, BEGIN "\"epochs\":%d,\"distributed\":{%s%s}", epochs, strategy,
                   encrypt);
    return ret;
}

static bool says_so(const char *tag)
{
    size_t len;
    AS_AUTO(as_freep) char *out = rig_read(&rig, tag, "r0", "out", &len);
    return out && strstr(out, "is encrypted (AES-256-GCM)");
}

START_TEST(the_bits_are_those_without)
{
    char train[400];
    gang_train_with(&rig, "plain", document(train, strategies[_i], 2, ""), 3, &apart);
    gang_train_with(&rig, "encrypted", document(train, strategies[_i], 2, ",\"encrypt\":true"), 3,
                    &apart);
    gang_same(&rig, "plain", "encrypted");
    ck_assert(!says_so("plain"));
    ck_assert(says_so("encrypted"));
}
END_TEST

/* Its ranks meet and add up in a way of their own. */
START_TEST(clusters_are_those_without)
{
#define KMEANS "\"model\":{\"kind\":\"kmeans\",\"clusters\":10}"
    gang_train_with(&rig, "plain", KMEANS, 3, &apart);
    gang_train_with(&rig, "encrypted", KMEANS ",\"distributed\":{\"encrypt\":true}", 3, &apart);
    gang_same(&rig, "plain", "encrypted");
    ck_assert(!says_so("plain"));
    ck_assert(says_so("encrypted"));
}
END_TEST

START_TEST(deaths_change_no_bit)
{
    char train[400];
    gang_train(&rig, "calm", document(train, strategies[0], 60, ""), 1);
    (void)gang_train_dying_with(
        &rig, "dying", document(train, strategies[0], 60, ",\"encrypt\":true"), 3, 2, 7, &apart);
    gang_same(&rig, "calm", "dying");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("encrypt");
    TCase *t = tcase_create("encrypt");
    rig_fixture(t, &rig);
    tcase_add_loop_test(t, the_bits_are_those_without, 0, AS_ARRAY_LEN(strategies));
    tcase_add_test(t, clusters_are_those_without);
    tcase_add_test(t, deaths_change_no_bit);
    suite_add_tcase(s, t);
    return s;
}
