/* A network that is cut into its layers, each a network of its own, has the outputs, gradients and
 * running statistics of the whole one, to the bit. */
#include <string.h>

#include "model/plan/plan_cut.h"
#include "tests/model/network/rig.h"
#include "tests/support/check_main.h"

static struct as_err err;

enum { MOST_PARTS = 16, SETS = 3 };

/* One part on its way. */
struct part {
    struct net_plan *plan;
    struct network *network;
    struct buf *x; /* NULL: of the first part */
    struct network_pass pass;
};

struct parts {
    struct rig *whole;
    struct net_parts layers;
    struct part of[MOST_PARTS];
};

static void open_part(struct parts *p, size_t i)
{
    struct part *to = &p->of[i];
    const struct net_part *layer = &p->layers.of[i];
    const float *params = buf_host(network_params(p->whole->network));
    const float *state =
        p->whole->plan->n_state > 0 ? buf_host(network_state(p->whole->network)) : NULL;
    ck_ok(net_plan_cut(p->whole->plan, layer, &to->plan, &err), err);
    ck_ok(network_create(p->whole->be, to->plan, 1, p->whole->plan->max_rows, &to->network, &err),
          err);
    ck_ok(network_keep(to->network, SETS, &err), err);
    ck_ok(network_write(to->network, network_params(to->network), 0, to->plan,
                        params + layer->first_param, &err),
          err);
    if (to->plan->n_state > 0)
        ck_ok(network_write_state(to->network, 0, state + layer->first_state, &err), err);
    to->pass = p->whole->pass;
    if (i == 0)
        return;
    size_t n = p->whole->plan->max_rows * net_shape_elements(to->plan->nodes[0].out);
    to->x = rig_buf(p->whole, BUF_F32, n);
    to->pass.x = tensor_at(to->x, 0, n);
}

static void open_parts(struct parts *p, struct rig *whole)
{
    *p = (struct parts){.whole = whole};
    ck_ok(net_plan_layers(whole->plan, &p->layers, &err), err);
    ck_assert_uint_le(p->layers.n, MOST_PARTS);
    for (size_t i = 0; i < p->layers.n; i++)
        open_part(p, i);
}

static void close_parts(struct parts *p)
{
    for (size_t i = 0; i < p->layers.n; i++) {
        network_free(p->of[i].network);
        net_plan_free(p->of[i].plan);
        buf_free(p->of[i].x);
    }
    net_parts_done(&p->layers);
}

static void copy(struct tensor from, struct buf *to, size_t at, size_t n)
{
    ck_ok(buf_copy(to, at, from.buf, from.offset, n, &err), err);
}

/* The passes use one set, others lie between forward and backward. */
static void run_parts(struct parts *p, const float *gradient, size_t n_outputs, float *outputs)
{
    size_t n = p->layers.n, rows = p->whole->pass.rows;
    for (size_t i = 0; i < n; i++) {
        struct part *part = &p->of[i];
        network_use(part->network, 1);
        ck_ok(network_forward(part->network, p->whole->be, 0, 1, &part->pass, &err), err);
        struct tensor y = network_result(part->network, &part->pass);
        if (i + 1 < n)
            copy(y, p->of[i + 1].x, 0, rows * net_shape_elements(p->layers.of[i].out));
        else
            ck_ok(buf_download(y.buf, y.offset, outputs, n_outputs, &err), err);
    }
    for (size_t i = n; i-- > 0;) {
        struct part *part = &p->of[i];
        struct tensor end = network_output_gradient(part->network);
        if (i + 1 == n)
            ck_ok(buf_upload(end.buf, end.offset, gradient, n_outputs, &err), err);
        else
            copy(network_input_gradient(p->of[i + 1].network), end.buf, end.offset,
                 rows * net_shape_elements(p->layers.of[i].out));
        ck_ok(network_backward(part->network, p->whole->be, 0, 1, &part->pass, &err), err);
    }
}

START_TEST(parts_have_the_bits_of_the_whole)
{
    const struct rig_kind *kind = &rig_kinds[_i];
    struct rig r;
    struct parts p;
    rig_open(&r, "cpu", rig_plan(kind->rest, kind->data), kind->data, 1, 5);
    ck_ok(network_init(r.network, 0, r.plan, 20, &err), err);
    open_parts(&p, &r); /* before a pass: it changes running statistics */
    size_t n = r.pass.rows * r.plan->tokens * r.plan->outputs;
    AS_AUTO(as_freep) float *gradient = as_calloc(n, sizeof *gradient);
    AS_AUTO(as_freep) float *outputs = as_calloc(n, sizeof *outputs);
    for (size_t i = 0; i < n; i++)
        gradient[i] = (float)(i % 7) - 2.5f;
    ck_ok(network_forward(r.network, r.be, 0, 1, &r.pass, &err), err);
    struct tensor y = network_outputs(r.network, 0);
    run_parts(&p, gradient, n, outputs);
    ck_assert_msg(memcmp(buf_host(y.buf), outputs, n * sizeof *outputs) == 0, "%s", kind->name);
    ck_ok(buf_upload(y.buf, y.offset, gradient, n, &err), err);
    ck_ok(network_backward(r.network, r.be, 0, 1, &r.pass, &err), err);
    for (size_t i = 0; i < p.layers.n; i++) {
        const struct net_part *l = &p.layers.of[i];
        const float *grads = buf_host(network_gradients(r.network));
        ck_assert_msg(memcmp(grads + l->first_param, buf_host(network_gradients(p.of[i].network)),
                             (l->end_param - l->first_param) * sizeof(float)) == 0,
                      "%s: gradients of %s", kind->name, l->name);
        if (l->end_state > l->first_state)
            ck_assert_msg(memcmp((const float *)buf_host(network_state(r.network)) + l->first_state,
                                 buf_host(network_state(p.of[i].network)),
                                 (l->end_state - l->first_state) * sizeof(float)) == 0,
                          "%s: statistics of %s", kind->name, l->name);
    }
    ck_assert_uint_eq(p.layers.of[p.layers.n - 1].end_param, r.plan->n_params);
    close_parts(&p);
    rig_close(&r);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("network_parts");
    TCase *t = tcase_create("network_parts");
    tcase_add_loop_test(t, parts_have_the_bits_of_the_whole, 0, RIG_KINDS);
    suite_add_tcase(s, t);
    return s;
}
