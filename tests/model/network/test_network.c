/* Whole networks of every kind: gradients against finite differences on the reference back end,
 * members of a group against the same members alone, padded against not padded, state. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/network/network.h"
#include "model/plan/memory.h"
#include "model/plan/pad.h"
#include "model/plan/plan.h"
#include "tests/model/network/rig.h"
#include "tests/support/check_main.h"

#define MOST_SLOTS 3

static struct as_err err;

/* ---- gradients ---- */

static double difference(struct rig *r, size_t k, size_t at, float p, float h)
{
    struct buf *params = network_params(r->network);
    ck_ok(buf_fill_f32(params, at, 1, p + h, &err), err);
    double up = rig_loss(r, k);
    ck_ok(buf_fill_f32(params, at, 1, p - h, &err), err);
    double down = rig_loss(r, k);
    ck_ok(buf_fill_f32(params, at, 1, p, &err), err);
    return (up - down) / (2 * (double)h);
}

/* Losses are floats of about 2: over h a difference is known to about 2e-7 / h. */
static bool agrees(struct rig *r, size_t k, size_t at, float p, float g)
{
    static const float steps[] = {8e-3f, 2e-3f, 5e-4f};
    for (size_t i = 0; i < AS_ARRAY_LEN(steps); i++) {
        double d = difference(r, k, at, p, steps[i]);
        if (fabs(d - (double)g) <= 2e-4 + 4e-7 / (double)steps[i] + 0.01 * fabs((double)g))
            return true;
    }
    return false;
}

/* Some forty elements of a tensor. Where the loss has kinks, a step may cross one: then one element
 * in eight may disagree. */
static size_t check_tensor(struct rig *r, const struct rig_kind *kind, size_t k,
                           const float *params, const float *grads, const struct net_tensor *t)
{
    size_t stride = t->count > 40 ? t->count / 40 : 1, tried = 0, wrong = 0, moved = 0;
    size_t base = k * r->plan->n_params;
    for (size_t i = k; i < t->count; i += stride, tried++) {
        size_t at = t->offset + i;
        moved += fabsf(grads[at]) > 1e-3f;
        if (agrees(r, k, base + at, params[at], grads[at]))
            continue;
        wrong++;
        ck_assert_msg(!kind->smooth, "%s: %s[%zu] of member %zu: %g, differences say %g",
                      kind->name, t->name, i, k, (double)grads[at],
                      difference(r, k, base + at, params[at], 2e-3f));
    }
    ck_assert_msg(wrong <= tried / 8 + (tried < 8), "%s: %s of member %zu: %zu of %zu disagree",
                  kind->name, t->name, k, wrong, tried);
    return moved;
}

START_TEST(gradients)
{
    const struct rig_kind *kind = &rig_kinds[_i];
    struct rig r;
    rig_open(&r, "reference", rig_plan(kind->rest, kind->data), kind->data, 2, 5);
    size_t moved = 0;
    for (size_t k = 0; k < 2; k++)
        ck_ok(network_init(r.network, k, r.plan, 20 + k, &err), err);
    ck_ok(rig_train(&r, r.be, 0, 2, &err), err);
    for (size_t k = 0; k < 2; k++) {
        AS_AUTO(as_freep) float *params = rig_read(&r, network_params(r.network), k, r.plan);
        AS_AUTO(as_freep) float *grads = rig_read(&r, network_gradients(r.network), k, r.plan);
        for (size_t t = 0; t < r.plan->n_tensors; t++)
            moved += check_tensor(&r, kind, k, params, grads, &r.plan->tensors[t]);
    }
    ck_assert_uint_gt(moved, 20);
    rig_close(&r);
}
END_TEST

/* ---- gradients that are reported while others are computed ---- */

struct reports {
    const struct rig *r;
    float *seen;      /* [n_params]: the gradients as they were reported */
    unsigned *times;  /* [n_params] */
    size_t last, n;   /* where the last report began; how many */
    size_t backwards; /* reports of an earlier place than the one before */
};

static as_status take_report(void *arg, size_t first, size_t n, struct as_err *e)
{
    struct reports *s = arg;
    for (size_t i = first; i < first + n; i++)
        s->times[i]++;
    s->backwards += s->n > 0 && first < s->last;
    s->last = first;
    s->n++;
    return buf_download(network_gradients(s->r->network), first, s->seen + first, n, e);
}

START_TEST(each_gradient_is_reported_once_when_it_is_complete)
{
    const struct rig_kind *kind = &rig_kinds[_i];
    struct rig r;
    rig_open(&r, "cpu", rig_plan(kind->rest, kind->data), kind->data, 1, 5);
    size_t n = r.plan->n_params;
    AS_AUTO(as_freep) float *seen = as_calloc(n, sizeof *seen);
    AS_AUTO(as_freep) unsigned *times = as_calloc(n, sizeof *times);
    struct reports s = {.r = &r, .seen = seen, .times = times};
    r.pass.on_grads = take_report;
    r.pass.watch_arg = &s;
    ck_ok(network_init(r.network, 0, r.plan, 20, &err), err);
    ck_ok(rig_train(&r, r.be, 0, 1, &err), err);
    AS_AUTO(as_freep) float *grads = rig_read(&r, network_gradients(r.network), 0, r.plan);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(times[i] == 1, "%s: parameter %zu is reported %u times", kind->name, i,
                      times[i]);
    ck_assert_msg(memcmp(seen, grads, n * sizeof *seen) == 0, "%s: reported too early", kind->name);
    ck_assert_uint_eq(s.n, r.plan->n_tensors);
    ck_assert_msg(s.n < 3 || s.backwards * 3 >= s.n - 1, "%s: the last layers come first",
                  kind->name);
    rig_close(&r);
}
END_TEST

/* ---- groups ---- */

struct lanes {
    struct rig *r;
};

static as_status train_slot(struct backend *lane, size_t i, void *arg, struct as_err *e)
{
    return rig_train(((struct lanes *)arg)->r, lane, i, 1, e);
}

static void same_member(const struct rig *group, size_t k, const struct rig *solo, size_t slot,
                        const char *what)
{
    size_t n = solo->plan->n_params, s = solo->plan->n_state;
    AS_AUTO(as_freep)
    float *a = rig_read(group, network_gradients(group->network), k, solo->plan);
    AS_AUTO(as_freep)
    float *b = rig_read(solo, network_gradients(solo->network), slot, solo->plan);
    AS_AUTO(as_freep) float *x = as_calloc(s, sizeof *x), *y = as_calloc(s, sizeof *y);
    ck_assert_msg(memcmp(a, b, n * sizeof *a) == 0, "%s: gradients", what);
    ck_ok(network_read_state(group->network, k, x, &err), err);
    ck_ok(network_read_state(solo->network, slot, y, &err), err);
    ck_assert_msg(s == 0 || memcmp(x, y, s * sizeof *x) == 0, "%s: state", what);
}

/* Member k of three, and in a lane of its own, has the bits that it has alone. */
START_TEST(group_is_solo)
{
    const struct rig_kind *kind = &rig_kinds[_i];
    struct rig group, apart;
    rig_open(&group, "cpu", rig_plan(kind->rest, kind->data), kind->data, MOST_SLOTS, 5);
    rig_open(&apart, "cpu", rig_plan(kind->rest, kind->data), kind->data, MOST_SLOTS, 5);
    for (size_t k = 0; k < MOST_SLOTS; k++) {
        ck_ok(network_init(group.network, k, group.plan, 20 + k, &err), err);
        ck_ok(network_init(apart.network, k, group.plan, 20 + k, &err), err);
    }
    ck_ok(rig_train(&group, group.be, 0, MOST_SLOTS, &err), err);
    struct lanes lanes = {&apart};
    ck_ok(backend_for_each(apart.be, MOST_SLOTS, train_slot, &lanes, &err), err);
    for (size_t k = 0; k < MOST_SLOTS; k++) {
        struct rig solo;
        rig_open(&solo, "cpu", rig_plan(kind->rest, kind->data), kind->data, 1, 5 + (int32_t)k);
        ck_ok(network_init(solo.network, 0, solo.plan, 20 + k, &err), err);
        ck_ok(rig_train(&solo, solo.be, 0, 1, &err), err);
        same_member(&group, k, &solo, 0, kind->name);
        same_member(&apart, k, &solo, 0, kind->name);
        rig_close(&solo);
    }
    rig_close(&group);
    rig_close(&apart);
}
END_TEST

/* A plan with dropout of 0, with rates of 0 and with none, and one without dropout: the same bits.
 */
static const struct {
    const char *with, *without;
    const struct net_data *data;
} pairs[] = {
    {"\"model\":{\"activation\":\"tanh\",\"dropout\":0}", "\"model\":{\"activation\":\"tanh\"}",
     &rig_table},
    {"\"model\":{\"kind\":\"cnn\",\"dropout\":0,\"layers\":[{\"conv\":4},{\"residual\":[{"
     "\"conv\":4},{\"dropout\":true}]},{\"dropout\":true}]}",
     "\"model\":{\"kind\":\"cnn\",\"layers\":[{\"conv\":4},{\"residual\":[{\"conv\":4},{"
     "\"dropout\":true}]},{\"dropout\":true}]}",
     &rig_images},
    {"\"model\":{\"kind\":\"transformer\",\"depth\":2,\"width\":8,\"heads\":2,\"context\":6,"
     "\"dropout\":0}",
     "\"model\":{\"kind\":\"transformer\",\"depth\":2,\"width\":8,\"heads\":2,\"context\":6}",
     &rig_text},
};

START_TEST(dropout_of_none)
{
    const struct net_data *data = pairs[_i].data;
    for (int given = 0; given < 2; given++) {
        struct rig with, without;
        rig_open(&with, "cpu", rig_plan(pairs[_i].with, data), data, 1, 5);
        rig_open(&without, "cpu", rig_plan(pairs[_i].without, data), data, 1, 5);
        ck_assert_uint_gt(with.plan->n_nodes, without.plan->n_nodes);
        ck_ok(network_init(with.network, 0, with.plan, 20, &err), err);
        ck_ok(network_init(without.network, 0, without.plan, 20, &err), err);
        ck_ok(buf_fill_f32(with.rate, 0, 1, 0, &err), err);
        if (!given)
            with.pass.rate = tensor_none();
        ck_ok(rig_train(&with, with.be, 0, 1, &err), err);
        ck_ok(rig_train(&without, without.be, 0, 1, &err), err);
        same_member(&with, 0, &without, 0, "dropout of 0");
        rig_close(&with);
        rig_close(&without);
    }
}
END_TEST

/* The host's kernels against the oracle, through a whole network. */
START_TEST(cpu_is_reference)
{
    const struct rig_kind *kind = &rig_kinds[_i];
    struct rig oracle, cpu;
    rig_open(&oracle, "reference", rig_plan(kind->rest, kind->data), kind->data, 1, 5);
    rig_open(&cpu, "cpu", rig_plan(kind->rest, kind->data), kind->data, 1, 5);
    ck_ok(network_init(oracle.network, 0, oracle.plan, 20, &err), err);
    ck_ok(network_init(cpu.network, 0, cpu.plan, 20, &err), err);
    ck_ok(rig_train(&oracle, oracle.be, 0, 1, &err), err);
    ck_ok(rig_train(&cpu, cpu.be, 0, 1, &err), err);
    AS_AUTO(as_freep)
    float *a = rig_read(&oracle, network_gradients(oracle.network), 0, oracle.plan);
    AS_AUTO(as_freep) float *b = rig_read(&cpu, network_gradients(cpu.network), 0, cpu.plan);
    for (size_t i = 0; i < oracle.plan->n_params; i++)
        ck_assert_msg(fabsf(a[i] - b[i]) <= 2e-5f + 1e-4f * fabsf(a[i]), "%s: %zu: %g and %g",
                      kind->name, i, (double)a[i], (double)b[i]);
    rig_close(&oracle);
    rig_close(&cpu);
}
END_TEST

/* ---- padding ---- */

#define PAD_STEPS 12

/* Optimizer `kind` over all slots. */
static void step_all(struct rig *r, int32_t kind, struct buf *m1, struct buf *m2, struct buf *steps)
{
    size_t n = r->plan->n_params;
    struct buf *kinds_of = rig_buf(r, BUF_I32, r->slots), *lr = rig_buf(r, BUF_F32, r->slots);
    struct buf *work = rig_buf(r, BUF_F32, r->slots * 2 * r->plan->n_tensors);
    struct buf *decay = rig_buf(r, BUF_F32, r->slots);
    size_t segments[16];
    ck_ok(buf_fill_i32(kinds_of, 0, r->slots, kind, &err), err);
    ck_ok(buf_fill_f32(lr, 0, r->slots, 0.02f, &err), err);
    ck_ok(buf_fill_f32(decay, 0, r->slots, 0.1f, &err), err);
    for (size_t i = 0; i < r->plan->n_tensors; i++)
        segments[i] = r->plan->tensors[i].offset;
    struct opt_args a = {.members = r->slots,
                         .n = n,
                         .kind = tensor_at(kinds_of, 0, 1),
                         .params = tensor_at(network_params(r->network), 0, n),
                         .grads = tensor_at(network_gradients(r->network), 0, n),
                         .m1 = tensor_at(m1, 0, n),
                         .m2 = tensor_at(m2, 0, n),
                         .lr = tensor_at(lr, 0, 1),
                         .weight_decay = tensor_at(decay, 0, 1),
                         .step = tensor_at(steps, 0, 1),
                         .segments = segments,
                         .n_segments = r->plan->n_tensors,
                         .work = tensor_at(work, 0, 2 * r->plan->n_tensors)};
    ck_ok(backend_optimize(r->be, &a, &err), err);
    buf_free(kinds_of);
    buf_free(lr);
    buf_free(work);
    buf_free(decay);
}

static void train_steps(struct rig *r, int32_t kind)
{
    size_t n = r->plan->n_params;
    struct buf *m1 = rig_buf(r, BUF_F32, r->slots * n), *m2 = rig_buf(r, BUF_F32, r->slots * n);
    struct buf *steps = rig_buf(r, BUF_I32, r->slots);
    for (int i = 0; i < PAD_STEPS; i++) {
        ck_ok(rig_train(r, r->be, 0, r->slots, &err), err);
        step_all(r, kind, m1, m2, steps);
    }
    buf_free(m1);
    buf_free(m2);
    buf_free(steps);
}

/* A member in a wider arena, with a wider one beside it, after some steps of every optimizer: the
 * oracle's bits, and on the host the same to rounding; what is padding is still 0. */
static void padded(const char *backend, int32_t optimizer, const char *model, bool bits)
{
    char wide_model[256];
    struct rig solo, pair;
    (void)snprintf(wide_model, sizeof wide_model, "\"model\":{\"layers\":[7,9],%s}", model);
    char narrow_model[256];
    (void)snprintf(narrow_model, sizeof narrow_model, "\"model\":{\"layers\":[5,7],%s}", model);
    AS_AUTO(net_plan_freep) struct net_plan *own = rig_plan(narrow_model, &rig_table);
    struct net_plan *wide = rig_plan(wide_model, &rig_table), *both = NULL;
    ck_ok(net_plan_merge(own, wide, &both, &err), err);
    rig_open(&solo, backend, rig_plan(narrow_model, &rig_table), &rig_table, 1, 5);
    rig_open(&pair, backend, both, &rig_table, 2, 5);
    ck_ok(network_init(solo.network, 0, own, 33, &err), err);
    ck_ok(network_init(pair.network, 0, own, 33, &err), err);
    ck_ok(network_init(pair.network, 1, wide, 34, &err), err);
    train_steps(&solo, optimizer);
    train_steps(&pair, optimizer);
    AS_AUTO(as_freep) float *a = rig_read(&solo, network_params(solo.network), 0, own);
    AS_AUTO(as_freep) float *b = rig_read(&pair, network_params(pair.network), 0, own);
    for (size_t i = 0; i < own->n_params; i++)
        ck_assert_msg(bits ? a[i] == b[i] : fabsf(a[i] - b[i]) <= 1e-6f * (1 + fabsf(a[i])),
                      "optimizer %d: %zu: %.9g alone, %.9g padded", optimizer, i, (double)a[i],
                      (double)b[i]);
    AS_AUTO(as_freep) float *all = rig_read(&pair, network_params(pair.network), 0, both);
    AS_AUTO(as_freep) float *spread = as_calloc(both->n_params, sizeof *spread);
    net_plan_spread(own, both, b, spread);
    for (size_t i = 0; i < both->n_params; i++)
        ck_assert_msg(all[i] == spread[i], "padding at %zu is %g", i, (double)all[i]);
    net_plan_free(wide);
    rig_close(&solo);
    rig_close(&pair);
}

START_TEST(padding)
{
    static const char *const models[] = {"\"activation\":\"relu\"", "\"activation\":\"tanh\"",
                                         "\"activation\":\"gelu\",\"dropout\":0.3"};
    for (size_t i = 0; i < AS_ARRAY_LEN(models); i++) {
        padded("reference", _i, models[i], true);
        padded("cpu", _i, models[i], false);
    }
}
END_TEST

/* ---- members, memory ---- */

START_TEST(evaluation_uses_the_state)
{
    struct rig r;
    const struct rig_kind *kind = &rig_kinds[RIG_RESNET];
    rig_open(&r, "cpu", rig_plan(kind->rest, kind->data), kind->data, 3, 5);
    for (size_t k = 0; k < 3; k++)
        ck_ok(network_init(r.network, k, r.plan, 20 + k, &err), err);
    ck_ok(rig_train(&r, r.be, 0, 3, &err), err);
    size_t s = r.plan->n_state;
    ck_assert_uint_gt(s, 0);
    AS_AUTO(as_freep) float *state = as_calloc(s, sizeof *state);
    ck_ok(network_read_state(r.network, 0, state, &err), err);
    /* evaluation uses the state and leaves it */
    r.pass.train = false;
    double before = rig_loss(&r, 0);
    ck_assert_double_eq(before, rig_loss(&r, 0));
    for (size_t i = 0; i < s; i++)
        state[i] = state[i] * 2 + 1;
    ck_ok(network_write_state(r.network, 0, state, &err), err);
    ck_assert(rig_loss(&r, 0) != before);
    rig_close(&r);
}
END_TEST

/* Other parameters than the network's own: an average of weights. */
START_TEST(other_params)
{
    struct rig r;
    rig_open(&r, "cpu", rig_plan(rig_kinds[0].rest, &rig_table), &rig_table, 2, 5);
    for (size_t k = 0; k < 2; k++)
        ck_ok(network_init(r.network, k, r.plan, 20 + k, &err), err);
    r.pass.train = false;
    double own = rig_loss(&r, 1);
    r.pass.params = rig_buf(&r, BUF_F32, 2 * r.plan->n_params);
    ck_assert_double_eq_tol(rig_loss(&r, 1), log(3), 1e-6);
    r.pass.params = (buf_free(r.pass.params), NULL);
    ck_assert_double_eq(rig_loss(&r, 1), own);
    rig_close(&r);
}
END_TEST

/* What the plan says is what the network takes, and the bound on workspaces holds on the host. */
START_TEST(memory)
{
    const struct rig_kind *kind = &rig_kinds[_i];
    struct train_spec s = {0};
    AS_AUTO(net_plan_freep) struct net_plan *p = rig_plan(kind->rest, kind->data);
    AS_AUTO(backend_freep) struct backend *be = NULL;
    struct net_bytes b;
    ck_ok(backend_open("cpu", NULL, &be, &err), err);
    static const size_t rows[] = {1, 5, 9, 24, 200};
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
        net_plan_bytes(p, &s, kind->data, rows[i], &b);
        size_t exact = network_bytes(be, p, 1, rows[i]);
        size_t planned = b.parameters + b.gradients + b.state + b.activations;
        ck_assert_uint_ge(exact, planned);
        ck_assert_uint_le(exact, planned + b.workspace);
        ck_assert_uint_eq(network_bytes(be, p, 3, rows[i]), 3 * exact);
    }
}
END_TEST

/* The presets at their real sizes. */
START_TEST(preset_memory)
{
    static const struct net_data sizes[] = {
        {.kind = NET_IMAGES, .height = 28, .width = 28, .channels = 1, .outputs = 10},
        {.kind = NET_IMAGES, .height = 32, .width = 32, .channels = 3, .outputs = 10},
        {.kind = NET_IMAGES, .height = 96, .width = 80, .channels = 3, .outputs = 10}};
    static const char *const presets[] = {"lenet", "vgg8", "resnet8", "resnet18"};
    static const size_t rows[] = {1, 32, 128};
    struct train_spec s = {0};
    AS_AUTO(backend_freep) struct backend *be = NULL;
    ck_ok(backend_open("cpu", NULL, &be, &err), err);
    for (size_t i = 0; i < AS_ARRAY_LEN(presets) * AS_ARRAY_LEN(sizes) * AS_ARRAY_LEN(rows); i++) {
        char rest[128];
        const struct net_data *d = &sizes[i / AS_ARRAY_LEN(presets) % AS_ARRAY_LEN(sizes)];
        size_t n = rows[i / (AS_ARRAY_LEN(presets) * AS_ARRAY_LEN(sizes))];
        (void)snprintf(rest, sizeof rest, "\"model\":{\"kind\":\"cnn\",\"preset\":\"%s\"}",
                       presets[i % AS_ARRAY_LEN(presets)]);
        AS_AUTO(net_plan_freep) struct net_plan *p = rig_plan(rest, d);
        struct net_bytes b;
        net_plan_bytes(p, &s, d, n, &b);
        size_t planned = b.parameters + b.gradients + b.state + b.activations;
        ck_assert_uint_ge(network_bytes(be, p, 1, n), planned);
        ck_assert_uint_le(network_bytes(be, p, 1, n), planned + b.workspace);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("network");
    TCase *t = tcase_create("network");
    tcase_add_loop_test(t, gradients, 0, RIG_KINDS);
    tcase_add_loop_test(t, each_gradient_is_reported_once_when_it_is_complete, 0, RIG_KINDS);
    tcase_add_loop_test(t, group_is_solo, 0, RIG_KINDS);
    tcase_add_loop_test(t, dropout_of_none, 0, (int)AS_ARRAY_LEN(pairs));
    tcase_add_loop_test(t, cpu_is_reference, 0, RIG_KINDS);
    tcase_add_loop_test(t, padding, 0, OPTIM_KINDS);
    tcase_add_test(t, evaluation_uses_the_state);
    tcase_add_test(t, other_params);
    tcase_add_loop_test(t, memory, 0, RIG_KINDS);
    tcase_add_test(t, preset_memory);
    suite_add_tcase(s, t);
    return s;
}
