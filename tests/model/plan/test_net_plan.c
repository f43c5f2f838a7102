/* Plans against counts made by hand, what cannot be, signatures, padding. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/plan/memory.h"
#include "model/plan/pad.h"
#include "model/plan/plan.h"
#include "model/plan/signature.h"
#include "tests/support/check_main.h"

static struct as_err err;

static const struct net_data digits = {
    .task = DATASET_CLASSIFICATION, .rows = 1797, .numeric = 64, .outputs = 10};
static const struct net_data mnist = {.kind = NET_IMAGES,
                                      .task = DATASET_CLASSIFICATION,
                                      .rows = 70000,
                                      .height = 28,
                                      .width = 28,
                                      .channels = 1,
                                      .outputs = 10};
static const struct net_data cifar = {.kind = NET_IMAGES,
                                      .task = DATASET_CLASSIFICATION,
                                      .rows = 60000,
                                      .height = 32,
                                      .width = 32,
                                      .channels = 3,
                                      .outputs = 10};
static const struct net_data text = {.kind = NET_TOKENS,
                                     .task = DATASET_LANGUAGE_MODELING,
                                     .rows = 100000,
                                     .vocab = 65,
                                     .outputs = 65};

/* A document with `rest` beside what is required; owned by the caller. */
static struct train_spec spec_of(const char *rest)
{
    struct train_spec s = {0};
    char doc[1024];
    JSON_AUTO j = NULL;
    (void)snprintf(doc, sizeof doc, "{\"dataset\":\"d\",\"epochs\":3%s%s}", *rest ? "," : "", rest);
    ck_ok(json_parse(doc, strlen(doc), &j, &err), err);
    ck_ok(train_spec_parse(j, "", &s, &err), err);
    return s;
}

static struct net_plan *plan_of(const char *rest, const struct net_data *data)
{
    struct train_spec s = spec_of(rest);
    struct net_plan *p = NULL;
    ck_ok(net_plan_create(&s, data, "/train", &p, &err), err);
    train_spec_done(&s);
    return p;
}

START_TEST(mlp_counts)
{
    AS_AUTO(net_plan_freep)
    struct net_plan *p = plan_of("\"model\":{\"layers\":[32,16]},\"batch_size\":100", &digits);
    ck_assert_uint_eq(p->n_nodes, 4);
    ck_assert_uint_eq(p->n_params, 64 * 32 + 32 + 32 * 16 + 16 + 16 * 10 + 10);
    ck_assert_str_eq(p->tensors[0].name, "layers.0.weight");
    ck_assert_str_eq(p->tensors[5].name, "layers.2.bias");
    ck_assert_uint_eq(p->tensors[4].offset, 64 * 32 + 32 + 32 * 16 + 16);
    double products = 2.0 * (64 * 32 + 32 * 16 + 16 * 10);
    ck_assert_double_eq(p->flops_forward, products);
    /* back: twice the products, but nobody asks for the gradient by the data */
    ck_assert_double_eq(p->flops_train, 3 * products - 2.0 * 64 * 32);
    /* 16 then 32 columns go back: two slots of at most 32, 16 */
    ck_assert_uint_eq(p->n_slots, 2);
    ck_assert_uint_eq(p->slots[0] + p->slots[1], 32 + 16);

    struct train_spec s = spec_of("\"model\":{\"layers\":[32,16]},\"batch_size\":100");
    struct net_bytes b;
    net_plan_bytes(p, &s, &digits, 100, &b);
    ck_assert_uint_eq(b.parameters, 4 * p->n_params);
    ck_assert_uint_eq(b.moments, 8 * p->n_params);
    ck_assert_uint_eq(b.accumulated, 4 * p->n_params);
    ck_assert_uint_eq(b.activations, 4 * 100 * (32 + 16 + 10 + 32 + 16));
    ck_assert_uint_eq(b.workspace, 0);
    ck_assert_uint_eq(b.batch, 4 * 100 * (64 + 1 + 2));
    ck_assert_uint_eq(b.shared, 4 * 1797 * 65);
    ck_assert_uint_eq(b.member, b.parameters + b.gradients + b.moments + b.accumulated +
                                    b.activations + b.batch + b.tables);
    ck_assert_uint_ge(b.tables, 4 * 1797); /* the order of the rows */
    train_spec_done(&s);
}
END_TEST

START_TEST(batches)
{
    AS_AUTO(net_plan_freep) struct net_plan *all = plan_of("\"batch_size\":5000", &digits);
    ck_assert_uint_eq(all->max_rows, 1797 - 449); /* the training rows */
    AS_AUTO(net_plan_freep)
    struct net_plan *micro = plan_of("\"batch_size\":64,\"micro_batch\":16", &digits);
    ck_assert_uint_eq(micro->max_rows, 16);
    /* rows of a table are cheap: validation takes more of them at once */
    ck_assert_uint_eq(micro->buffer_rows, 256);
    ck_assert_uint_eq(all->buffer_rows, all->max_rows);
    struct net_data few = digits;
    few.rows = 40;
    AS_AUTO(net_plan_freep) struct net_plan *ten = plan_of("\"batch_size\":4", &few);
    ck_assert_uint_eq(ten->buffer_rows, 10);
    AS_AUTO(net_plan_freep)
    struct net_plan *cnn = plan_of("\"model\":{\"kind\":\"cnn\"},\"batch_size\":4", &mnist);
    ck_assert_uint_eq(cnn->buffer_rows, 4);
}
END_TEST

START_TEST(lenet_counts)
{
    AS_AUTO(net_plan_freep) struct net_plan *p = plan_of("\"model\":{\"kind\":\"cnn\"}", &mnist);
    ck_assert_uint_eq(p->n_params, 156 + 2416 + 48120 + 10164 + 850); /* 61,706, as LeCun's */
    double conv1 = 2.0 * 28 * 28 * 6 * 25, conv2 = 2.0 * 10 * 10 * 16 * 150;
    double dense = 2.0 * (400 * 120 + 120 * 84 + 84 * 10);
    double pools = 4.0 * (14 * 14 * 6 + 5 * 5 * 16);
    ck_assert_double_eq(p->flops_forward, conv1 + conv2 + dense + pools);
    ck_assert_double_eq(p->flops_train, 2 * conv1 + 3 * (conv2 + dense) + 2 * pools);
    ck_assert_str_eq(p->tensors[0].name, "layers.0.weight");
    ck_assert_uint_eq(p->tensors[0].n_dims, 4);
    ck_assert_uint_eq(p->tensors[2].dims[2], 6);
}
END_TEST

START_TEST(resnet_counts)
{
    AS_AUTO(net_plan_freep)
    struct net_plan *p = plan_of("\"model\":{\"kind\":\"cnn\",\"preset\":\"resnet18\"}", &cifar);
    ck_assert_uint_eq(p->n_params, 11173962); /* kuangliu/pytorch-cifar's ResNet18 */
    ck_assert_uint_eq(p->n_state, 2 * 4800);  /* channels of its 20 normalisations */
    /* the usual figure: 0.56 GMAC */
    ck_assert_double_eq_tol(p->flops_forward / 2, 0.556e9, 0.004e9);
    ck_assert_str_eq(p->states[0].name, "layers.0.norm.running_mean");
    /* in place and by turns: a few slots, not one for each of 60 nodes */
    ck_assert_uint_le(p->n_slots, 4);
    AS_AUTO(net_plan_freep)
    struct net_plan *small = plan_of("\"model\":{\"kind\":\"cnn\",\"preset\":\"resnet8\"}", &cifar);
    ck_assert_uint_eq(small->n_params, 78042);
}
END_TEST

/* A batch above the windows of the text has no larger buffers than one with all windows. */
START_TEST(text_bounds_its_batches)
{
    struct net_data few = text;
    few.rows = 4000; /* 1,000 of them held out: 3,000 / 50 windows, less one */
    AS_AUTO(net_plan_freep)
    struct net_plan *p = plan_of("\"model\":{\"kind\":\"transformer\",\"context\":50},"
                                 "\"batch_size\":1000000",
                                 &few);
    ck_assert_uint_eq(p->max_rows, 59);
    ck_assert_uint_eq(p->buffer_rows, 59);
    few.rows = 110; /* 82 tokens to train on: one window */
    AS_AUTO(net_plan_freep)
    struct net_plan *one = plan_of("\"model\":{\"kind\":\"transformer\",\"context\":50},"
                                   "\"batch_size\":1000000",
                                   &few);
    ck_assert_uint_eq(one->max_rows, 1);
    struct net_data single = digits;
    single.rows = 1;
    AS_AUTO(net_plan_freep) struct net_plan *row = plan_of("\"batch_size\":1000000", &single);
    ck_assert_uint_eq(row->max_rows, 1);
}
END_TEST

START_TEST(transformer_counts)
{
    AS_AUTO(net_plan_freep)
    struct net_plan *p = plan_of("\"model\":{\"kind\":\"transformer\",\"depth\":3,\"width\":48,"
                                 "\"heads\":6,\"context\":20}",
                                 &text);
    size_t w = 48;
    ck_assert_uint_eq(p->n_params, 65 * w + 20 * w + 3 * (12 * w * w + 13 * w) + 2 * w + w * 65);
    double products = 2.0 * 20 * (double)(3 * 12 * w * w + w * 65);
    double attention = 3 * 2.0 * 20 * 21 * (double)w;
    double others = 20.0 * (double)w * (1 + 3 * 4 + 1); /* embedding, norms and sums */
    ck_assert_double_eq(p->flops_forward, products + attention + others);
    ck_assert_double_eq(p->flops_train, 3 * (products + attention) + 2 * others);
    ck_assert_uint_eq(p->tokens, 20);
    ck_assert_uint_eq(p->outputs, 65);
}
END_TEST

START_TEST(categories)
{
    const struct net_data d = {.task = DATASET_REGRESSION,
                               .rows = 100,
                               .numeric = 3,
                               .n_categories = 2,
                               .category_slots = 7,
                               .outputs = 2};
    AS_AUTO(net_plan_freep) struct net_plan *hot = plan_of("\"model\":{\"layers\":[4]}", &d);
    ck_assert_uint_eq(hot->n_params, 10 * 4 + 4 + 4 * 2 + 2);
    AS_AUTO(net_plan_freep)
    struct net_plan *emb = plan_of("\"model\":{\"layers\":[4],\"embedding\":5}", &d);
    ck_assert_uint_eq(emb->n_params, 7 * 5 + (3 + 2 * 5) * 4 + 4 + 4 * 2 + 2);
    ck_assert_uint_eq(emb->embedding, 5);
    ck_assert_str_eq(emb->tensors[0].name, "categories.weight");
}
END_TEST

START_TEST(cannot_be)
{
    static const struct {
        const char *model, *pointer, *part;
        const struct net_data *data;
    } cases[] = {
        {"\"kind\":\"cnn\"", "kind", "takes images: the data set is a table", &digits},
        {"\"kind\":\"cnn\"", "kind", "a text of tokens", &text},
        {"\"kind\":\"transformer\"", "kind", "takes tokens: the data set is images", &mnist},
        {"\"kind\":\"transformer\"", "kind", "a table", &digits},
        {"\"kind\":\"logistic\"", "kind", "found logistic, expected transformer", &text},
        {"\"kind\":\"random_forest\"", "kind", "found random_forest, expected a network", &digits},
        {"\"kind\":\"cnn\",\"layers\":[{\"conv\":4},{\"conv\":8,\"kernel\":29,\"padding\":"
         "\"valid\"}]",
         "layers/1", "a window of 29 x 29 over an image of 28 x 28", &mnist},
        {"\"kind\":\"cnn\",\"layers\":[{\"pool\":\"max\",\"size\":32}]", "layers/0", "32 x 32",
         &mnist},
        {"\"kind\":\"cnn\",\"layers\":[{\"conv\":3},{\"residual\":[{\"conv\":4},{\"conv\":9,"
         "\"kernel\":40,\"padding\":0}]}]",
         "layers/1/residual/1", "40 x 40", &mnist},
        {"\"kind\":\"cnn\",\"layers\":[{\"residual\":[{\"conv\":4,\"kernel\":2,\"padding\":0}]}]",
         "layers/0", "27 x 27 of 28 x 28, which no 1x1 projection does", &mnist},
        {"\"kind\":\"cnn\",\"layers\":[{\"conv\":4,\"depthwise\":true}]", "layers/0",
         "found 4 channels, expected a multiple of the 3", &cifar},
        {"\"kind\":\"cnn\",\"layers\":[{\"dense\":4},{\"conv\":4}]", "layers/1", "left no image",
         &cifar},
        {"\"kind\":\"cnn\",\"layers\":[{\"conv\":4},{\"pool\":\"global\"},{\"conv\":4,\"kernel\":3,"
         "\"padding\":0}]",
         "layers/2", "an image of 1 x 1", &cifar},
        {"\"kind\":\"cnn\",\"activation\":\"tanh\",\"layers\":[{\"residual\":[{\"conv\":3}]}]",
         "activation", "expected relu with residual blocks", &cifar},
        {"\"kind\":\"cnn\",\"activation\":\"gelu\",\"layers\":[{\"conv\":3,\"norm\":\"batch\"}]",
         "activation", "found gelu, expected relu with batch", &cifar},
        {"\"activation\":\"tanh\",\"norm\":\"batch\"", "activation", "found tanh, expected relu",
         &digits},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char rest[256], at[128];
        (void)snprintf(rest, sizeof rest, "\"model\":{%s}", cases[i].model);
        (void)snprintf(at, sizeof at, "/train/model/%s", cases[i].pointer);
        struct train_spec s = spec_of(rest);
        struct net_plan *p = NULL;
        ck_fails(net_plan_create(&s, cases[i].data, "/train", &p, &err), AS_E_INVAL, err,
                 cases[i].part);
        ck_assert_str_eq(err.pointer, at);
        ck_assert_ptr_null(p);
    }
}
END_TEST

START_TEST(too_large)
{
    struct net_plan *p = NULL;
    struct train_spec s =
        spec_of("\"model\":{\"kind\":\"cnn\",\"preset\":\"resnet18\",\"width\":65536}");
    ck_fails(net_plan_create(&s, &cifar, "/train", &p, &err), AS_E_TOO_LARGE, err, "parameters");
    ck_assert_str_eq(err.pointer, "/train/model/preset");
    s = spec_of("\"model\":{\"kind\":\"cnn\",\"layers\":[{\"conv\":60000},{\"pool\":\"global\"}]},"
                "\"batch_size\":1000000");
    ck_fails(net_plan_create(&s, &cifar, "/train", &p, &err), AS_E_TOO_LARGE, err, "bytes");
}
END_TEST

/* ---- padding ---- */

START_TEST(buckets)
{
    size_t low = 1;
    for (size_t w = 1; w <= TRAIN_MAX_WIDTH; w++) {
        size_t top = net_width_bucket(w);
        ck_assert_uint_ge(top, w);
        if (net_width_bucket(low) != top)
            low = w; /* the first of a new bucket */
        ck_assert_uint_eq(net_width_bucket(low), top);
        ck_assert_uint_le(2 * top, 3 * low); /* within 1.5x */
    }
    static const size_t tops[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 65536};
    for (size_t i = 0; i < AS_ARRAY_LEN(tops); i++)
        ck_assert_uint_eq(net_width_bucket(tops[i]), tops[i]);
    ck_assert_uint_eq(net_width_bucket(49), 64);
}
END_TEST

START_TEST(merging)
{
    AS_AUTO(net_plan_freep) struct net_plan *a = plan_of("\"model\":{\"layers\":[3,9]}", &digits);
    AS_AUTO(net_plan_freep) struct net_plan *b = plan_of("\"model\":{\"layers\":[5,7]}", &digits);
    AS_AUTO(net_plan_freep) struct net_plan *both = NULL;
    AS_AUTO(net_plan_freep)
    struct net_plan *same = plan_of("\"model\":{\"layers\":[5,9]}", &digits);
    ck_ok(net_plan_merge(a, b, &both, &err), err);
    ck_assert_uint_eq(both->n_params, same->n_params);
    ck_assert_double_eq(both->flops_train, same->flops_train);
    ck_assert_uint_eq(both->n_slots, same->n_slots);
    for (size_t i = 0; i < both->n_tensors; i++)
        ck_assert_uint_eq(both->tensors[i].offset, same->tensors[i].offset);
    ck_assert(net_plan_fits(a, both) && net_plan_fits(b, both) && net_plan_fits(both, same));
    ck_assert(!net_plan_fits(both, a));
    /* there and back, and zeros between */
    float *own = as_calloc(a->n_params, sizeof *own), *back = as_calloc(a->n_params, sizeof *own);
    float *wide = as_calloc(both->n_params, sizeof *own);
    for (size_t i = 0; i < a->n_params; i++)
        own[i] = (float)(i + 1);
    for (size_t i = 0; i < both->n_params; i++)
        wide[i] = -1;
    net_plan_spread(a, both, own, wide);
    size_t zeros = 0;
    for (size_t i = 0; i < both->n_params; i++)
        zeros += wide[i] == 0;
    ck_assert_uint_eq(zeros, both->n_params - a->n_params);
    ck_assert_float_eq(wide[both->tensors[2].offset + 9], own[a->tensors[2].offset + 9]);
    net_plan_collect(a, both, wide, back);
    ck_assert_mem_eq(own, back, a->n_params * sizeof *own);
    free(own);
    free(back);
    free(wide);

    AS_AUTO(net_plan_freep)
    struct net_plan *d1 = plan_of("\"model\":{\"layers\":[3,9],\"dropout\":0.5}", &digits);
    AS_AUTO(net_plan_freep)
    struct net_plan *d2 = plan_of("\"model\":{\"layers\":[4,8],\"dropout\":0}", &digits);
    AS_AUTO(net_plan_freep) struct net_plan *dropping = NULL;
    ck_ok(net_plan_merge(d1, d2, &dropping, &err), err);
    ck_assert_uint_eq(dropping->nodes[2].out.channels, 4);
    ck_assert_uint_eq(dropping->nodes[4].out.channels, 9);

    AS_AUTO(net_plan_freep) struct net_plan *deep = plan_of("\"model\":{\"layers\":[3]}", &digits);
    struct net_plan *none = NULL;
    ck_fails(net_plan_merge(a, deep, &none, &err), AS_E_INVAL, err, "more than the widths");
    AS_AUTO(net_plan_freep)
    struct net_plan *n1 = plan_of("\"model\":{\"layers\":[8],\"norm\":\"batch\"}", &digits);
    AS_AUTO(net_plan_freep)
    struct net_plan *n2 = plan_of("\"model\":{\"layers\":[9],\"norm\":\"batch\"}", &digits);
    ck_fails(net_plan_merge(n1, n2, &none, &err), AS_E_INVAL, err, "more than the widths");
    AS_AUTO(net_plan_freep) struct net_plan *widest = NULL;
    ck_ok(net_plan_widest(a, &widest, &err), err);
    ck_assert(widest->hidden[0] == 3 && widest->hidden[1] == 12 && net_plan_fits(a, widest));
}
END_TEST

/* ---- signatures ---- */

static bool share(const char *a, const char *b, const struct net_data *data)
{
    AS_AUTO(str_done) struct str x = {0};
    AS_AUTO(str_done) struct str y = {0};
    struct train_spec s = spec_of(a), t = spec_of(b);
    net_signature(&s, data, &x);
    net_signature(&t, data, &y);
    ck_assert(!x.failed && !y.failed && x.len > 0);
    train_spec_done(&s);
    train_spec_done(&t);
    return as_streq(str_cstr(&x), str_cstr(&y));
}

START_TEST(signatures)
{
    static const char *const free_to_differ[] = {
        ("\"optimizer\":{\"kind\":\"sgd\",\"lr\":3,\"momentum\":0.9,\"weight_decay\":1,\"clip_"
         "norm\":1}"),
        "\"schedule\":{\"kind\":\"cosine\",\"warmup_epochs\":1}",
        "\"label_smoothing\":0.1",
        "\"batch_size\":128,\"micro_batch\":32",
        "\"model\":{\"layers\":[49]}",
        "\"model\":{\"layers\":[63]}",
        "\"report_every\":2",
        "\"huber_delta\":3",
        "\"metrics\":[\"val_auc\"]",
    };
    static const char *const must_agree[] = {
        "\"batch_size\":64",
        "\"model\":{\"layers\":[48]}",
        "\"model\":{\"layers\":[65]}",
        "\"model\":{\"layers\":[64,64]}",
        "\"model\":{\"activation\":\"tanh\"}",
        "\"model\":{\"norm\":\"batch\"}",
        "\"model\":{\"dropout\":0}",
        "\"model\":{\"kind\":\"linear\"}",
        "\"loss\":\"bce\"",
        "\"precision\":\"bfloat16\"",
        "\"standardize\":false",
        "\"validation\":{\"fraction\":0.3}",
        "\"validation\":{\"seed\":1}",
        "\"optimizer\":{\"ema\":0.9}",
        "\"class_weights\":\"balanced\"",
        "\"target\":{\"transform\":\"log\"}",
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(free_to_differ); i++)
        ck_assert_msg(share("", free_to_differ[i], &digits), "%s", free_to_differ[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(must_agree); i++)
        ck_assert_msg(!share("", must_agree[i], &digits), "%s", must_agree[i]);
    ck_assert(
        share("\"model\":{\"dropout\":0}", "\"model\":{\"dropout\":0.5,\"layers\":[50]}", &digits));
    ck_assert(!share("\"model\":{\"norm\":\"batch\"}",
                     "\"model\":{\"norm\":\"batch\",\"layers\":[65]}", &digits));
    ck_assert(share("\"augment\":{\"pad\":2}", "\"augment\":{\"flip\":0.5}", &mnist));
    ck_assert(share("\"augment\":{\"cutout\":0}", "\"augment\":{\"flip\":0.5}", &mnist));
    ck_assert(!share("", "\"augment\":{\"flip\":0.5}", &mnist));
    ck_assert(share("", "\"augment\":{\"flip\":0}", &digits));
    ck_assert(
        !share("\"model\":{\"kind\":\"cnn\"}", "\"model\":{\"kind\":\"cnn\",\"width\":7}", &mnist));
    ck_assert(!share("\"model\":{\"kind\":\"transformer\"}",
                     "\"model\":{\"kind\":\"transformer\",\"heads\":8}", &text));
}
END_TEST

/* ---- from a data set ---- */

START_TEST(from_dataset)
{
    const struct dataset_info images = {.input = DATASET_IMAGE,
                                        .task = DATASET_CLASSIFICATION,
                                        .n_rows = 7,
                                        .n_features = 24,
                                        .n_outputs = 3,
                                        .n_classes = 3,
                                        .height = 4,
                                        .width = 3,
                                        .channels = 2};
    struct net_data d = net_data_of(&images, NULL);
    ck_assert(d.kind == NET_IMAGES && d.height == 4 && d.width == 3 && d.channels == 2);
    ck_assert(d.outputs == 3 && d.rows == 7 && d.numeric == 0);
    const struct dataset_info table = {
        .task = DATASET_REGRESSION, .n_rows = 5, .n_features = 6, .n_outputs = 2};
    d = net_data_of(&table, NULL);
    ck_assert(d.kind == NET_TABLE && d.numeric == 6 && d.n_categories == 0 && d.outputs == 2);
    const struct dataset_info tokens = {.input = DATASET_TOKEN_TEXT,
                                        .task = DATASET_LANGUAGE_MODELING,
                                        .n_rows = 500,
                                        .n_features = 1,
                                        .n_outputs = 40};
    d = net_data_of(&tokens, NULL);
    ck_assert(d.kind == NET_TOKENS && d.vocab == 40 && d.outputs == 40);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("net_plan");
    TCase *t = tcase_create("net_plan");
    tcase_add_test(t, mlp_counts);
    tcase_add_test(t, batches);
    tcase_add_test(t, lenet_counts);
    tcase_add_test(t, resnet_counts);
    tcase_add_test(t, text_bounds_its_batches);
    tcase_add_test(t, transformer_counts);
    tcase_add_test(t, categories);
    tcase_add_test(t, cannot_be);
    tcase_add_test(t, too_large);
    tcase_add_test(t, buckets);
    tcase_add_test(t, merging);
    tcase_add_test(t, signatures);
    tcase_add_test(t, from_dataset);
    suite_add_tcase(s, t);
    return s;
}
