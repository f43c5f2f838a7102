/* `trial.train.distributed`: defaults, every field, combinations that cannot work, numbers of
 * ranks. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/document/train_spec.h"
#include "tests/support/check_main.h"

#define AUTO_BLOCKS "{\"model_parallel\":\"auto\"}"

static struct as_err err;

#define SGD ",\"optimizer\":{\"kind\":\"sgd\"}"

static as_status parse_with(const char *more, const char *distributed, struct train_spec *ret)
{
    JSON_AUTO j = NULL;
    char text[600];
    (void)snprintf(text, sizeof text,
                   "{\"dataset\":\"d\",\"epochs\":2,\"batch_size\":64,\"micro_batch\":16%s,"
                   "\"distributed\":%s}",
                   more, distributed);
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return train_spec_parse(j, "/trial/train", ret, &err);
}

static struct distributed_spec good(const char *distributed)
{
    struct train_spec s = {0};
    ck_ok(parse_with("", distributed, &s), err);
    train_spec_done(&s);
    return s.distributed;
}

START_TEST(defaults)
{
    struct train_spec s;
    JSON_AUTO j = NULL;
    const char *text = "{\"dataset\":\"d\",\"epochs\":2}";
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    ck_ok(train_spec_parse(j, "/trial/train", &s, &err), err);
    ck_assert(!s.distributed.given);
    ck_assert_int_eq(s.distributed.strategy, DISTRIBUTED_ALLREDUCE);
    struct distributed_spec d = good("{}");
    ck_assert(d.given);
    ck_assert_int_eq(d.sum, DISTRIBUTED_TREE);
    ck_assert_int_eq(d.codec, DISTRIBUTED_PLAIN);
    ck_assert(!d.error_feedback);
    ck_assert(!d.shard_state);
    ck_assert_int_eq(d.state_copies, 2);
    ck_assert(!d.encrypt && !d.lineage && !d.backup_copies);
    ck_assert(good("{\"partitions\":\"lineage\",\"compress\":\"fp16\"}").lineage);
    d = good("{\"partitions\":\"lineage\",\"server\":{\"backup_copies\":true}}");
    ck_assert(d.lineage && d.backup_copies);
    /* of a section that is not chosen */
    ck_assert(
        !good("{\"strategy\":\"allreduce\",\"server\":{\"backup_copies\":true}}").backup_copies);
}
END_TEST

START_TEST(strategies)
{
    ck_assert_int_eq(good("{\"allreduce\":\"ring\"}").sum, DISTRIBUTED_RING);
    ck_assert_int_eq(good("{\"allreduce\":\"halving_doubling\"}").sum,
                     DISTRIBUTED_HALVING_DOUBLING);
    ck_assert_int_eq(good("{\"allreduce\":\"auto\"}").sum, DISTRIBUTED_AUTO);
    struct distributed_spec d =
        good("{\"server\":{\"mode\":\"ssp\",\"staleness\":5,\"shards\":7}}");
    ck_assert_int_eq(d.strategy, DISTRIBUTED_SERVER);
    ck_assert_int_eq(d.mode, DISTRIBUTED_SSP);
    ck_assert_int_eq(d.staleness, 5);
    ck_assert_int_eq(d.server_shards, 7);
    d = good("{\"server\":{\"backup\":1}}");
    ck_assert_int_eq(d.mode, DISTRIBUTED_SYNC);
    ck_assert_int_eq(d.backup, 1);
    d = good("{\"groups\":2}");
    ck_assert_int_eq(d.strategy, DISTRIBUTED_SERVER);
    ck_assert_int_eq(d.groups, 2);
    d = good("{\"gossip\":{\"peers\":2}}");
    ck_assert_int_eq(d.strategy, DISTRIBUTED_GOSSIP);
    ck_assert_int_eq(d.peers, 2);
    ck_assert_int_eq(d.gossip_staleness, 4);
    ck_assert_int_eq(good("{\"gossip\":{\"staleness\":9}}").gossip_staleness, 9);
    ck_assert(good("{\"shard_state\":true}").shard_state);
    ck_assert_int_eq(good(AUTO_BLOCKS).strategy, DISTRIBUTED_MODEL_PARALLEL);
    ck_assert_int_eq(good("{\"strategy\":\"model_parallel\"}").strategy,
                     DISTRIBUTED_MODEL_PARALLEL);
    ck_assert_int_eq(good("{\"groups\":0}").strategy, DISTRIBUTED_ALLREDUCE);
}
END_TEST

START_TEST(local_sgd)
{
    struct distributed_spec d = good("{\"local_sgd\":{\"steps\":50}}");
    ck_assert_int_eq(d.strategy, DISTRIBUTED_LOCAL_SGD);
    ck_assert_int_eq(d.local_steps, 50);
    ck_assert_int_eq(d.moments, DISTRIBUTED_MOMENTS_AVERAGE);
    ck_assert_double_eq(d.outer.lr, 1);
    ck_assert_double_eq(d.outer.momentum, 0);
    d = good("{\"local_sgd\":{\"steps\":2,\"moments\":\"reset\",\"block_momentum\":0.75}}");
    ck_assert_int_eq(d.moments, DISTRIBUTED_MOMENTS_RESET);
    ck_assert(d.outer.block);
    ck_assert_double_eq(d.outer.momentum, 0.75);
    ck_assert_double_eq(d.outer.lr, 0.25); /* the weights move as far as by plain averaging */
    d = good("{\"local_sgd\":{\"steps\":2,\"block_momentum\":{\"momentum\":0.5,\"lr\":2,"
             "\"nesterov\":true}}}");
    ck_assert_double_eq(d.outer.lr, 2);
    ck_assert(d.outer.block && d.outer.nesterov);
    d = good("{\"local_sgd\":{\"steps\":2,\"outer\":{}}}");
    ck_assert(!d.outer.block && d.outer.nesterov);
    ck_assert_double_eq(d.outer.lr, 0.7);
    ck_assert_double_eq(d.outer.momentum, 0.3);
    d = good("{\"local_sgd\":{\"steps\":2,\"outer\":{\"lr\":0.7,\"momentum\":0.9}}}");
    ck_assert(d.outer.lr == 0.7 && d.outer.momentum == 0.9); /* as Douillard et al. */
    ck_assert(!good("{\"local_sgd\":{\"steps\":2,\"outer\":{\"kind\":\"sgd\"}}}").outer.nesterov);
}
END_TEST

START_TEST(codecs)
{
    struct distributed_spec d = good("{\"compress\":\"one_bit\"}");
    ck_assert_int_eq(d.codec, DISTRIBUTED_ONE_BIT);
    ck_assert(d.error_feedback);
    d = good("{\"compress\":\"top_k\",\"error_feedback\":false}");
    ck_assert_int_eq(d.codec, DISTRIBUTED_TOP_K);
    ck_assert_double_eq(d.fraction, 0.01);
    ck_assert(!d.error_feedback);
    d = good("{\"compress\":{\"kind\":\"powersgd\",\"rank\":4}}");
    ck_assert_int_eq(d.codec, DISTRIBUTED_POWERSGD);
    ck_assert_int_eq(d.rank, 4);
    ck_assert_double_eq(good("{\"compress\":{\"kind\":\"top_k\",\"fraction\":0.5}}").fraction, 0.5);
    ck_assert(!good("{\"compress\":\"none\",\"error_feedback\":true}").error_feedback);
    ck_assert_int_eq(good("{\"compress\":\"fp16\"}").codec, DISTRIBUTED_FP16);
    ck_assert(!d.half && d.warmup_steps == 0);
    d = good("{\"compress\":{\"kind\":\"powersgd\",\"half\":true,\"warmup_steps\":9}}");
    ck_assert(d.half && d.warmup_steps == 9 && d.rank == 2);
    ck_assert(!good("{\"compress\":{\"kind\":\"one_bit\",\"half\":false}}").half);
}
END_TEST

START_TEST(significance)
{
    struct train_spec s = {0};
    ck_ok(parse_with(SGD, "{\"server\":{\"mode\":\"ssp\",\"significance\":0.01}}", &s), err);
    ck_assert_double_eq(s.distributed.significance, 0.01);
    ck_assert(s.distributed.factors == DISTRIBUTED_FACTORS_NEVER);
    ck_assert(good("{\"sufficient_factors\":\"auto\"}").factors == DISTRIBUTED_FACTORS_AUTO);
    ck_assert(!s.distributed.sparse_rows && good("{\"server\":{\"rows\":\"sparse\"}}").sparse_rows);
    ck_assert(s.distributed.error_feedback); /* what is held back travels later */
    train_spec_done(&s);
    ck_ok(parse_with("", "{\"strategy\":\"allreduce\",\"server\":{\"significance\":0.01}}", &s),
          err);
    ck_assert(s.distributed.significance == 0 && !s.distributed.error_feedback);
    train_spec_done(&s);
}
END_TEST

/* A sweep that searches over strategies gives all sections, and a word. */
START_TEST(the_word_chooses_among_sections)
{
    static const char *const words[] = {"allreduce", "local_sgd", "server", "gossip"};
    for (int i = 0; i < 4; i++) {
        char text[300];
        (void)snprintf(text, sizeof text,
                       "{\"strategy\":\"%s\",\"local_sgd\":{\"steps\":8},\"server\":{\"mode\":"
                       "\"async\"},\"gossip\":{\"peers\":1}}",
                       words[i]);
        ck_assert_int_eq((int)good(text).strategy, i);
        if (i != DISTRIBUTED_LOCAL_SGD) { /* its parameter is not active */
            (void)snprintf(text, sizeof text, "{\"strategy\":\"%s\",\"local_sgd\":{}}", words[i]);
            ck_assert_int_eq((int)good(text).strategy, i);
        }
        ck_assert_str_eq(distributed_strategy_name((distributed_strategy)i), words[i]);
    }
#define BOTH "\"server\":{\"mode\":\"ssp\"},\"groups\":2}"
    struct distributed_spec server = good("{\"strategy\":\"server\"," BOTH);
    ck_assert(server.strategy == DISTRIBUTED_SERVER && server.groups == 0);
    ck_assert_int_eq(server.mode, DISTRIBUTED_SSP);
    struct distributed_spec groups =
        good("{\"strategy\":\"groups\",\"server\":{\"shards\":3},\"groups\":2}");
    ck_assert(groups.strategy == DISTRIBUTED_SERVER && groups.groups == 2);
    ck_assert_int_eq(groups.server_shards, 3);
}
END_TEST

static const struct {
    const char *more, *distributed, *pointer;
} bad[] = {
    {"", "7", ""},
    {"", "{\"ring\":true}", "/ring"},
    {"", "{\"strategy\":\"magic\"}", "/strategy"},
    {"", "{\"allreduce\":\"star\"}", "/allreduce"},
    {"", "{\"compress\":\"zip\"}", "/compress"},
    {"", "{\"compress\":{\"fraction\":0.1}}", "/compress/kind"},
    {"", "{\"compress\":{\"kind\":\"top_k\",\"fraction\":0}}", "/compress/fraction"},
    {"", "{\"compress\":{\"kind\":\"powersgd\",\"rank\":65}}", "/compress/rank"},
    {"", "{\"compress\":{\"kind\":\"powersgd\",\"size\":1}}", "/compress/size"},
    {"", "{\"compress\":{\"kind\":\"powersgd\",\"half\":1}}", "/compress/half"},
    {"", "{\"compress\":{\"kind\":\"one_bit\",\"half\":true}}", "/compress/half"},
    {"", "{\"compress\":{\"kind\":\"none\",\"half\":true}}", "/compress/half"},
    {"", "{\"compress\":{\"kind\":\"fp16\",\"warmup_steps\":-1}}", "/compress/warmup_steps"},
    {"", "{\"error_feedback\":1}", "/error_feedback"},
    {"", "{\"local_sgd\":{}}", "/local_sgd/steps"},
    {"", "{\"local_sgd\":{\"steps\":0}}", "/local_sgd/steps"},
    {"", "{\"local_sgd\":{\"steps\":2,\"block_momentum\":1}}", "/local_sgd/block_momentum"},
    {"", "{\"local_sgd\":{\"steps\":2,\"block_momentum\":{\"lr\":0}}}",
     "/local_sgd/block_momentum/lr"},
    {"", "{\"local_sgd\":{\"steps\":2,\"outer\":{\"kind\":\"adam\"}}}", "/local_sgd/outer/kind"},
    {"", "{\"local_sgd\":{\"steps\":2,\"block_momentum\":0.5,\"outer\":{}}}", "/local_sgd/outer"},
    {"", "{\"server\":{\"mode\":\"lazy\"}}", "/server/mode"},
    {"", "{\"server\":{\"staleness\":-1}}", "/server/staleness"},
    {"", "{\"gossip\":{\"peers\":0}}", "/gossip/peers"},
    {"", "{\"gossip\":{\"staleness\":0}}", "/gossip/staleness"},
    {"", "{\"groups\":-1}", "/groups"},
    {"", "{\"state_copies\":3}", "/state_copies"},
    {"", "{\"encrypt\":\"yes\"}", "/encrypt"},
    /* what cannot work together */
    {"", "{\"strategy\":\"local_sgd\"}", "/local_sgd/steps"},
    {"", "{\"strategy\":\"groups\"}", "/groups"},
    {"", "{\"strategy\":\"groups\"," BOTH, "/groups"},
    {"", "{\"local_sgd\":{\"steps\":2},\"server\":{}}", "/server"},
    {"", "{\"server\":{},\"gossip\":{}}", "/gossip"},
    {"", "{\"local_sgd\":{\"steps\":2},\"groups\":2}", "/groups"},
    {"", "{\"server\":{},\"compress\":\"powersgd\"}", "/compress"},
    {"", "{\"gossip\":{},\"compress\":\"fp16\"}", "/compress"},
    {"", "{\"shard_state\":true,\"compress\":\"fp16\"}", "/shard_state"},
    {"", "{\"shard_state\":true,\"local_sgd\":{\"steps\":2}}", "/shard_state"},
    {"", "{\"shard_state\":true,\"server\":{}}", "/shard_state"},
    {",\"optimizer\":{\"kind\":\"lamb\"}", "{\"shard_state\":true}", "/shard_state"},
    {",\"optimizer\":{\"kind\":\"lamb\"}", "{\"server\":{\"mode\":\"async\"}}", "/server"},
    {",\"optimizer\":{\"clip_norm\":1}", "{\"server\":{\"mode\":\"async\"}}", "/server"},
    {",\"optimizer\":{\"clip_norm\":1}", "{\"groups\":2}", "/groups"},
    {",\"optimizer\":{\"ema\":0.9}", "{\"groups\":1}", "/groups"},
    {"", "{\"groups\":2,\"server\":{\"mode\":\"ssp\"}}", "/groups"},
    {"", "{\"server\":{\"mode\":\"async\",\"backup\":1}}", "/server"},
    {"", "{\"server\":{\"mode\":\"ssp\",\"warm_start\":9}}", "/server/warm_start"},
    {"", "{\"sufficient_factors\":true}", "/sufficient_factors"},
    {"", "{\"sufficient_factors\":\"auto\",\"compress\":\"fp16\"}", "/sufficient_factors"},
    {"", "{\"sufficient_factors\":\"auto\",\"shard_state\":true}", "/sufficient_factors"},
    {"", "{\"sufficient_factors\":\"always\",\"gossip\":{}}", "/sufficient_factors"},
    {"", "{\"sufficient_factors\":\"auto\",\"local_sgd\":{\"steps\":4}}", "/sufficient_factors"},
    {"", "{\"sufficient_factors\":\"auto\",\"server\":{}}", "/sufficient_factors"},
    {"", "{\"server\":{\"rows\":\"some\"}}", "/server/rows"},
    {"", "{\"server\":{\"rows\":\"sparse\",\"mode\":\"async\"}}", "/server/rows"},
    {"", "{\"server\":{\"rows\":\"sparse\"},\"groups\":2}", "/server/rows"},
    {"", "{\"server\":{\"rows\":\"sparse\"},\"compress\":\"fp16\"}", "/server/rows"},
    {SGD, "{\"server\":{\"mode\":\"ssp\",\"rows\":\"sparse\",\"significance\":0.01}}",
     "/server/rows"},
    {"", "{\"server\":{\"significance\":-1}}", "/server/significance"},
    {SGD, "{\"server\":{\"significance\":0.01}}", "/server/significance"},
    {SGD, "{\"server\":{\"mode\":\"async\",\"significance\":0.01}}", "/server/significance"},
    {"", "{\"server\":{\"mode\":\"ssp\",\"significance\":0.01}}", "/server/significance"},
    {SGD, "{\"server\":{\"mode\":\"ssp\",\"significance\":0.01,\"backup\":1}}",
     "/server/significance"},
    {SGD, "{\"server\":{\"mode\":\"ssp\",\"significance\":0.01},\"compress\":\"fp16\"}",
     "/server/significance"},
    {SGD, "{\"server\":{\"mode\":\"ssp\",\"significance\":0.01},\"groups\":2}",
     "/server/significance"},
    {"", "{\"server\":{\"staleness\":64}}", "/server/staleness"},
    {"", "{\"server\":{\"mode\":\"async\"},\"compress\":\"powersgd\"}", "/compress"},
    {"", "{\"groups\":2,\"compress\":\"powersgd\"}", "/compress"},
    {"", "{\"groups\":2,\"server\":{\"backup\":1}}", "/groups"},
    {"", "{\"server\":{\"backup_copies\":2}}", "/server/backup_copies"},
    {"", "{\"server\":{\"backup_copies\":true,\"mode\":\"ssp\"}}", "/server/backup_copies"},
    {"", "{\"server\":{\"backup_copies\":true,\"mode\":\"async\"}}", "/server/backup_copies"},
    {"", "{\"server\":{\"backup_copies\":true,\"backup\":1}}", "/server/backup_copies"},
    {"", "{\"server\":{\"backup_copies\":true,\"rows\":\"sparse\"}}", "/server/backup_copies"},
    {"", "{\"server\":{\"backup_copies\":true},\"groups\":2}", "/server/backup_copies"},
    {"", "{\"server\":{\"backup_copies\":true},\"compress\":\"fp16\"}", "/server/backup_copies"},
    {"", "{\"partitions\":\"some\"}", "/partitions"},
    {"", "{\"partitions\":true}", "/partitions"},
    {"", "{\"partitions\":\"lineage\",\"local_sgd\":{\"steps\":2}}", "/partitions"},
    {"", "{\"partitions\":\"lineage\",\"gossip\":{}}", "/partitions"},
    {"", "{\"partitions\":\"lineage\",\"groups\":2}", "/partitions"},
    {"", "{\"partitions\":\"lineage\",\"model_parallel\":\"auto\"}", "/partitions"},
    {"", "{\"partitions\":\"lineage\",\"server\":{\"mode\":\"async\"}}", "/partitions"},
    {"", "{\"partitions\":\"lineage\",\"server\":{\"mode\":\"ssp\"}}", "/partitions"},
    {"", "{\"partitions\":\"lineage\",\"server\":{\"backup\":1}}", "/partitions"},
    {",\"optimizer\":{\"kind\":\"lbfgs\"}", "{\"partitions\":\"lineage\"}", "/partitions"},
    {",\"model\":{\"kind\":\"linear\",\"solver\":\"cocoa\"},\"optimizer\":{\"weight_decay\":1}",
     "{\"partitions\":\"lineage\"}", "/partitions"},
    {",\"model\":{\"kind\":\"boosted_trees\"}", "{\"partitions\":\"lineage\"}", "/partitions"},
    {",\"privacy\":{\"clip\":1,\"noise\":1}", "{\"partitions\":\"lineage\"}", "/partitions"},
    {",\"resample\":3", "{\"partitions\":\"lineage\"}", "/partitions"},
    {",\"validation\":{\"folds\":3}", "{\"partitions\":\"lineage\"}", "/partitions"},
    {",\"validation\":{\"column\":\"c\"}", "{\"partitions\":\"lineage\"}", "/partitions"},
    {",\"weights\":\"c\"", "{\"partitions\":\"lineage\"}", "/partitions"},
    {",\"numbers\":{\"encode\":\"piecewise_linear\"}", "{\"partitions\":\"lineage\"}",
     "/partitions"},
    {",\"boost\":{\"stage\":0}", "{\"partitions\":\"lineage\"}", "/partitions"},
    {"", "{\"model_parallel\":\"some\"}", "/model_parallel"},
    {"", "{\"model_parallel\":[[\"layers.0\"]]}", "/model_parallel"},
    {"", "{\"model_parallel\":[[\"layers.0\"],\"layers.1\"]}", "/model_parallel/1"},
    {"", "{\"model_parallel\":[[\"layers.0\"],[]]}", "/model_parallel/1"},
    {"", "{\"model_parallel\":[[\"layers.0\"],[\"layers.1\",2]]}", "/model_parallel/1/1"},
    {"", "{\"model_parallel\":\"auto\",\"gossip\":{}}", "/model_parallel"},
    {"", "{\"model_parallel\":\"auto\",\"server\":{}}", "/model_parallel"},
    {"", "{\"model_parallel\":\"auto\",\"local_sgd\":{\"steps\":2}}", "/model_parallel"},
    {"", "{\"model_parallel\":\"auto\",\"groups\":2}", "/model_parallel"},
    {"", "{\"model_parallel\":\"auto\",\"compress\":\"fp16\"}", "/model_parallel"},
    {"", "{\"model_parallel\":\"auto\",\"allreduce\":\"ring\"}", "/model_parallel"},
    {"", "{\"model_parallel\":\"auto\",\"shard_state\":true}", "/shard_state"},
    {"", "{\"model_parallel\":\"auto\",\"sufficient_factors\":\"auto\"}", "/sufficient_factors"},
    {",\"optimizer\":{\"kind\":\"lamb\"}", AUTO_BLOCKS, "/model_parallel"},
    {",\"optimizer\":{\"ema\":0.9}", AUTO_BLOCKS, "/model_parallel"},
    {",\"patience\":3", AUTO_BLOCKS, "/model_parallel"},
    {",\"privacy\":{\"clip\":1,\"noise\":1}", AUTO_BLOCKS, "/model_parallel"},
    {",\"model\":{\"kind\":\"boosted_trees\"}", AUTO_BLOCKS, "/model_parallel"},
    {",\"validation\":{\"folds\":3}", AUTO_BLOCKS, "/model_parallel"},
};

START_TEST(refused)
{
    struct train_spec s;
    char pointer[200];
    ck_assert_int_eq(parse_with(bad[_i].more, bad[_i].distributed, &s), AS_E_INVAL);
    (void)snprintf(pointer, sizeof pointer, "/trial/train/distributed%s", bad[_i].pointer);
    ck_assert_str_eq(err.pointer, pointer);
    ck_assert_msg(strstr(err.msg, pointer) != NULL, "%s", err.msg);
}
END_TEST

static const struct {
    const char *distributed;
    int64_t ranks;
    const char *pointer; /* NULL: it can run */
} counts[] = {
    {"{}", 4, NULL}, /* 64 / 16 shards */
    {"{}", 5, "/resources/ranks"},
    {"{\"groups\":3}", 3, NULL},
    {"{\"groups\":4}", 3, "/trial/train/distributed/groups"},
    {"{\"server\":{\"backup\":2}}", 3, NULL},
    {"{\"server\":{\"backup\":3}}", 3, "/trial/train/distributed/server/backup"},
    {"{\"gossip\":{\"peers\":2}}", 3, NULL},
    {"{\"gossip\":{\"peers\":3}}", 3, "/trial/train/distributed/gossip/peers"},
    {"{\"gossip\":{\"peers\":3}}", 1, NULL},
    {"{\"model_parallel\":[[\"a\"],[\"b\"],[\"c\"]]}", 3, NULL},
    {"{\"model_parallel\":[[\"a\"],[\"b\"],[\"c\"]]}", 4, "/resources/ranks"},
    {AUTO_BLOCKS, 5, NULL}, /* more than shards: layers are divided */
    {"{\"strategy\":\"allreduce\",\"gossip\":{\"peers\":3}}", 3, NULL}, /* not the chosen one */
};

START_TEST(ranks)
{
    struct train_spec s;
    ck_ok(parse_with("", counts[_i].distributed, &s), err);
    as_status st =
        distributed_check_ranks(&s, counts[_i].ranks, "/resources/ranks", "/trial/train", &err);
    ck_assert_int_eq(st, counts[_i].pointer ? AS_E_INVAL : AS_OK);
    if (counts[_i].pointer)
        ck_assert_str_eq(err.pointer, counts[_i].pointer);
    train_spec_done(&s);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("distributed_spec");
    TCase *t = tcase_create("distributed_spec");
    tcase_add_test(t, defaults);
    tcase_add_test(t, strategies);
    tcase_add_test(t, local_sgd);
    tcase_add_test(t, codecs);
    tcase_add_test(t, significance);
    tcase_add_test(t, the_word_chooses_among_sections);
    tcase_add_loop_test(t, refused, 0, (int)AS_ARRAY_LEN(bad));
    tcase_add_loop_test(t, ranks, 0, (int)AS_ARRAY_LEN(counts));
    suite_add_tcase(s, t);
    return s;
}
