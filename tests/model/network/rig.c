/* The kinds of networks, and a network with its data for tests. */
#include "tests/model/network/rig.h"

#include <stdio.h>

#include "base/json.h"
#include "data/random_purpose.h"
#include "tests/support/check_main.h"

#define ROWS 5

static struct as_err err;

const struct net_data rig_table = {.task = DATASET_CLASSIFICATION, .numeric = 4, .outputs = 3};
static const struct net_data mixed = {.task = DATASET_CLASSIFICATION,
                                      .numeric = 3,
                                      .n_categories = 2,
                                      .category_slots = 7,
                                      .outputs = 3};
const struct net_data rig_images = {.kind = NET_IMAGES,
                                    .task = DATASET_CLASSIFICATION,
                                    .height = 8,
                                    .width = 7,
                                    .channels = 3,
                                    .outputs = 3};
const struct net_data rig_text = {
    .kind = NET_TOKENS, .task = DATASET_LANGUAGE_MODELING, .vocab = 11, .outputs = 11};

const struct rig_kind rig_kinds[RIG_KINDS] = {
    {"mlp relu", "\"model\":{\"layers\":[6,5]}", &rig_table, false},
    {"mlp tanh", "\"model\":{\"layers\":[6,5],\"activation\":\"tanh\",\"dropout\":0.3}", &rig_table,
     true},
    {"mlp gelu", "\"model\":{\"layers\":[6,5],\"activation\":\"gelu\",\"dropout\":0.3}", &rig_table,
     true},
    {"mlp norm", "\"model\":{\"layers\":[6,5],\"norm\":\"batch\",\"dropout\":0.3}", &rig_table,
     false},
    {"mlp of images", "\"model\":{\"layers\":[6],\"activation\":\"tanh\"}", &rig_images, true},
    {"linear", "\"model\":{\"kind\":\"logistic\"}", &rig_table, true},
    {"one-hot", "\"model\":{\"layers\":[6],\"activation\":\"tanh\"}", &mixed, true},
    {"embedding", "\"model\":{\"layers\":[6],\"activation\":\"tanh\",\"embedding\":4}", &mixed,
     true},
    {"cnn tanh",
     "\"model\":{\"kind\":\"cnn\",\"activation\":\"tanh\",\"dropout\":0.3,\"layers\":[{\"conv\":4},"
     "{\"dropout\":true},{\"pool\":\"avg\",\"size\":3,\"stride\":2,\"padding\":1},{\"conv\":6,"
     "\"kernel\":2,\"padding\":0},{\"dense\":5},{\"dropout\":true}]}",
     &rig_images, true},
    {"cnn gelu",
     "\"model\":{\"kind\":\"cnn\",\"activation\":\"gelu\",\"layers\":[{\"conv\":4,\"stride\":2},"
     "{\"conv\":8,\"depthwise\":true,\"padding\":1},{\"conv\":5,\"kernel\":1,\"activation\":"
     "\"none\"},"
     "{\"pool\":\"global\"}]}",
     &rig_images, true},
    {"cnn relu",
     "\"model\":{\"kind\":\"cnn\",\"dropout\":0.2,\"layers\":[{\"conv\":6,\"norm\":\"batch\"},{"
     "\"pool\":"
     "\"max\"},{\"dropout\":true},{\"dense\":5,\"norm\":\"batch\"},{\"dropout\":true}]}",
     &rig_images, false},
    {"resnet",
     "\"model\":{\"kind\":\"cnn\",\"layers\":[{\"conv\":4,\"norm\":\"batch\"},{\"residual\":[{"
     "\"conv\":4,"
     "\"norm\":\"batch\"},{\"conv\":4,\"norm\":\"batch\",\"activation\":\"none\"}]},{\"residual\":["
     "{"
     "\"conv\":6,\"stride\":2,\"norm\":\"batch\"},{\"conv\":6,\"norm\":\"batch\",\"activation\":"
     "\"none\"}"
     "]},{\"residual\":[{\"pool\":\"max\",\"size\":3,\"stride\":1,\"padding\":1}]},{\"pool\":"
     "\"global\"}]}",
     &rig_images, false},
    {"transformer",
     "\"model\":{\"kind\":\"transformer\",\"depth\":2,\"width\":8,\"heads\":2,\"context\":6,"
     "\"dropout\":0.2}",
     &rig_text, true},
};

struct net_plan *rig_plan(const char *rest, const struct net_data *data)
{
    struct train_spec s = {0};
    struct net_plan *p = NULL;
    char doc[1024];
    JSON_AUTO j = NULL;
    (void)snprintf(doc, sizeof doc, "{\"dataset\":\"d\",\"epochs\":3,\"batch_size\":5,%s}", rest);
    ck_ok(json_parse(doc, strlen(doc), &j, &err), err);
    ck_ok(train_spec_parse(j, "", &s, &err), err);
    ck_ok(net_plan_create(&s, data, "", &p, &err), err);
    train_spec_done(&s);
    return p;
}

struct buf *rig_buf(struct rig *r, buf_kind kind, size_t n)
{
    struct buf *b = NULL;
    ck_ok(buf_create(r->be, kind, n, &b, &err), err);
    return b;
}

/* Normal floats, or whole numbers in [lo, lo + below), the same for every member. */
static struct buf *random_f32(struct rig *r, struct rng *rng, size_t n)
{
    struct buf *b = rig_buf(r, BUF_F32, n);
    for (size_t i = 0; i < n; i++) {
        float v = (float)rng_normal(rng);
        ck_ok(buf_upload(b, i, &v, 1, &err), err);
    }
    return b;
}

static struct buf *random_i32(struct rig *r, struct rng *rng, size_t n, uint64_t below)
{
    struct buf *b = rig_buf(r, BUF_I32, n);
    for (size_t i = 0; i < n; i++)
        ck_ok(buf_fill_i32(b, i, 1, (int32_t)rng_below(rng, below), &err), err);
    return b;
}

static void open_data(struct rig *r, const struct net_data *d)
{
    struct rng rng = draw_stream(11, DRAW_SHUFFLE, 0);
    size_t tokens = r->plan->tokens, inputs = net_shape_elements(r->plan->nodes[0].out);
    r->classes = r->plan->outputs;
    r->loss_rows = ROWS * tokens;
    r->labels = random_i32(r, &rng, r->loss_rows, r->classes);
    if (d->kind == NET_TOKENS) {
        r->codes = random_i32(r, &rng, ROWS * tokens, d->vocab);
        r->pass.codes = tensor_at(r->codes, 0, 0);
        return;
    }
    r->x = random_f32(r, &rng, ROWS * inputs);
    r->pass.x = tensor_at(r->x, 0, 0);
    if (r->plan->n_categories == 0)
        return;
    r->codes = random_i32(r, &rng, ROWS * 2, 3);
    for (size_t i = 0; i < ROWS; i++) /* the second column's numbers follow the first's three */
        ck_ok(buf_fill_i32(r->codes, 2 * i + 1, 1, 3 + (int32_t)rng_below(&rng, 4), &err), err);
    r->pass.codes = tensor_at(r->codes, 0, 0);
}

void rig_open(struct rig *r, const char *backend, struct net_plan *plan,
              const struct net_data *data, size_t slots, int32_t first_seed)
{
    *r = (struct rig){.slots = slots, .plan = plan};
    ck_ok(backend_open(backend, NULL, &r->be, &err), err);
    ck_ok(network_create(r->be, plan, slots, ROWS + 2, &r->network, &err), err);
    open_data(r, data);
    r->rate = rig_buf(r, BUF_F32, slots);
    r->seed = rig_buf(r, BUF_I32, 2 * slots);
    r->step = rig_buf(r, BUF_I32, slots);
    r->row_loss = rig_buf(r, BUF_F32, slots * r->loss_rows);
    r->row_class = rig_buf(r, BUF_I32, slots * r->loss_rows);
    r->correct = rig_buf(r, BUF_I32, slots);
    r->loss = rig_buf(r, BUF_F32, slots);
    for (size_t k = 0; k < slots; k++) {
        ck_ok(buf_fill_f32(r->rate, k, 1, 0.3f, &err), err);
        ck_ok(buf_fill_i32(r->seed, 2 * k, 1, first_seed + (int32_t)k, &err), err);
        ck_ok(buf_fill_i32(r->step, k, 1, 3, &err), err);
    }
    r->pass.rows = ROWS;
    r->pass.train = true;
    r->pass.rate = tensor_at(r->rate, 0, 1);
    r->pass.seed = tensor_at(r->seed, 0, 2);
    r->pass.step = tensor_at(r->step, 0, 1);
}

void rig_close(struct rig *r)
{
    struct buf *all[] = {r->x,    r->codes,    r->labels,    r->rate,    r->seed,
                         r->step, r->row_loss, r->row_class, r->correct, r->loss};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        buf_free(all[i]);
    network_free(r->network);
    net_plan_free(r->plan);
    backend_free(r->be);
}

/* The loss of each member of the range; with `grad` its gradient in the outputs' place. */
static as_status loss_of(struct rig *r, struct backend *lane, size_t first, size_t n, bool grad,
                         struct as_err *e)
{
    struct tensor out = network_outputs(r->network, first);
    struct softmax_ce_args a = {
        .members = n,
        .batch = r->loss_rows,
        .classes = r->classes,
        .logits = out,
        .labels = tensor_at(r->labels, 0, 0),
        .dlogits = grad ? out : tensor_none(),
        .grad_scale = 1,
        .row_class = tensor_from(tensor_at(r->row_class, 0, r->loss_rows), first),
        .correct = tensor_at(r->correct, first, 1),
        .out = {.row_loss = tensor_from(tensor_at(r->row_loss, 0, r->loss_rows), first),
                .loss = tensor_at(r->loss, first, 1),
                .weight = 1}};
    return backend_softmax_ce(lane, &a, e);
}

as_status rig_train(struct rig *r, struct backend *lane, size_t first, size_t n, struct as_err *e)
{
    as_status st = network_forward(r->network, lane, first, n, &r->pass, e);
    if (st == AS_OK)
        st = loss_of(r, lane, first, n, true, e);
    return st < 0 ? st : network_backward(r->network, lane, first, n, &r->pass, e);
}

double rig_loss(struct rig *r, size_t k)
{
    float loss = 0;
    ck_ok(network_forward(r->network, r->be, 0, r->slots, &r->pass, &err), err);
    ck_ok(loss_of(r, r->be, 0, r->slots, false, &err), err);
    ck_ok(buf_download(r->loss, k, &loss, 1, &err), err);
    return (double)loss;
}

float *rig_read(const struct rig *r, const struct buf *arena, size_t slot,
                const struct net_plan *own)
{
    float *v = as_calloc(own->n_params, sizeof *v);
    ck_ok(network_read(r->network, arena, slot, own, v, &err), err);
    return v;
}
