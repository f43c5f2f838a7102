/* Runs an operation on both back ends and compares: values, a member alone and in a group,
 * gradients.
 *
 * An operation is a list of places and a call (case.h). Each check fills the places with random
 * numbers, calls, and compares whole buffers, so that a write beside a tensor fails too. */
#include "tests/kernels/case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct case_run case_make(const struct case_op *op, size_t members, bool shared)
{
    struct case_run r = {.op = op, .members = members};
    for (size_t i = 0; i < op->n_places; i++) {
        const struct case_place *p = &op->places[i];
        if ((p->flags & CASE_ABSENT) != 0)
            continue;
        bool once = shared && (p->flags & CASE_SHARED) != 0;
        r.at[i] = p->kind == BUF_F32
                      ? twin_f32(members, p->n, once, p->lo, p->hi)
                      : twin_i32(members, p->n, once, (int32_t)p->lo, (int32_t)p->hi);
    }
    return r;
}

static void tensors_of(const struct case_run *r, int s, struct tensor t[CASE_PLACES])
{
    for (size_t i = 0; i < CASE_PLACES; i++) {
        bool there = i < r->op->n_places && (r->op->places[i].flags & CASE_ABSENT) == 0;
        t[i] = there ? twin_at(&r->at[i], s) : tensor_none();
    }
}

static void do_side(const struct case_run *r, case_call *call, int s)
{
    struct as_err err;
    struct tensor t[CASE_PLACES];
    tensors_of(r, s, t);
    ck_ok(call(twin_backend(s), r->members, t, r->op->shape, &err), err);
}

void case_do(const struct case_run *r, case_call *call)
{
    FOR_SIDES(s)
    do_side(r, call, s);
}

void case_put(const struct case_run *r, size_t place, const float *values)
{
    for (size_t i = 0; i < r->op->places[place].n; i++)
        twin_set_f32(&r->at[place], 0, i, values[i]);
}

void case_expect(const struct case_run *r, size_t place, const float *want, float tolerance)
{
    FOR_SIDES(s)
    for (size_t i = 0; i < r->op->places[place].n; i++)
        ck_assert_msg(fabsf(twin_get_f32(&r->at[place], s, 0, i) - want[i]) <= tolerance,
                      "%s[%zu] on %s: %.9g, expected %.9g", r->op->places[place].name, i,
                      backend_name(twin_backend(s)), (double)twin_get_f32(&r->at[place], s, 0, i),
                      (double)want[i]);
}

void case_same(const struct case_run *r)
{
    for (size_t i = 0; i < r->op->n_places; i++)
        if ((r->op->places[i].flags & (CASE_ABSENT | CASE_SCRATCH)) == 0)
            twin_same_or_nan(&r->at[i], r->op->places[i].name, r->op->atol, r->op->rtol);
}

void case_twin(const struct case_op *op)
{
    for (size_t members = 0; members <= 3; members += twin_is_emulated() ? 3 : 1) {
        for (int shared = 0; shared < 2; shared++) {
            struct case_run r = case_make(op, members, shared);
            case_do(&r, op->call);
            case_same(&r);
        }
    }
    twin_close(); /* many buffers: free them */
    twin_open();
}

/* Copy member k of `from` to the only member of `to`. */
static void copy_member(const struct case_run *from, size_t k, const struct case_run *to, int s)
{
    for (size_t i = 0; i < from->op->n_places; i++) {
        struct as_err err;
        const struct twin *a = &from->at[i], *b = &to->at[i];
        if ((from->op->places[i].flags & CASE_ABSENT) == 0)
            ck_ok(buf_copy(b->side[s], b->offset, a->side[s], a->offset + k * a->stride,
                           from->op->places[i].n, &err),
                  err);
    }
}

static void same_bits(const struct case_run *group, size_t k, const struct case_run *alone, int s)
{
    for (size_t i = 0; i < group->op->n_places; i++) {
        struct as_err err;
        const struct case_place *p = &group->op->places[i];
        const struct twin *a = &group->at[i], *b = &alone->at[i];
        if ((p->flags & (CASE_ABSENT | CASE_SCRATCH)) != 0 || p->n == 0)
            continue;
        uint32_t *in_group = calloc(p->n, sizeof(*in_group)), *by_itself = calloc(p->n, 4);
        ck_assert(in_group != NULL && by_itself != NULL);
        ck_ok(buf_download(a->side[s], a->offset + k * a->stride, in_group, p->n, &err), err);
        ck_ok(buf_download(b->side[s], b->offset, by_itself, p->n, &err), err);
        ck_assert_msg(memcmp(in_group, by_itself, p->n * 4) == 0,
                      "%s of member %zu on %s: other bits alone than in a group", p->name, k,
                      backend_name(twin_backend(s)));
        free(in_group);
        free(by_itself);
    }
}

void case_slots(const struct case_op *op)
{
    enum { K = 5 };
    struct case_run group = case_make(op, K, false), alone[K];
    for (size_t k = 0; k < K; k++) {
        alone[k] = case_make(op, 1, false);
        FOR_SIDES(s)
        copy_member(&group, k, &alone[k], s);
    }
    case_do(&group, op->call);
    for (size_t k = 0; k < K; k++) {
        case_do(&alone[k], op->call);
        FOR_SIDES(s)
        same_bits(&group, k, &alone[k], s);
    }
    twin_close();
    twin_open();
}

/* The sum of `out` times c. */
static double sum_of(const struct case_run *r, const struct case_gradient *g, size_t k, int s)
{
    double sum = 0;
    for (size_t i = 0; i < r->op->places[g->out].n; i++)
        sum += (double)twin_get_f32(&r->at[g->out], s, k, i) *
               (g->dout < CASE_PLACES ? (double)twin_get_f32(&r->at[g->dout], s, k, i) : 1);
    return sum;
}

static double sum_with(const struct case_run *r, const struct case_gradient *g, size_t k, size_t i,
                       int s, float value)
{
    twin_set_f32(&r->at[g->in], k, i, value);
    do_side(r, r->op->call, s);
    return sum_of(r, g, k, s);
}

/* Copied before the input is changed, because the call may overwrite the gradient. */
static float *gradient_of(const struct case_run *r, const struct case_gradient *g, size_t k, int s)
{
    size_t n = r->op->places[g->grad].n;
    float *ret = calloc(n + 1, sizeof(*ret));
    ck_assert_ptr_nonnull(ret);
    for (size_t i = 0; i < n; i++)
        ret[i] = twin_get_f32(&r->at[g->grad], s, k, i);
    return ret;
}

static void member_differences(const struct case_run *r, const struct case_gradient *g, size_t k,
                               int s)
{
    float *want = gradient_of(r, g, k, s);
    for (size_t i = 0; i < r->op->places[g->in].n; i++) {
        float at = twin_get_f32(&r->at[g->in], s, k, i);
        double up = sum_with(r, g, k, i, s, at + g->step);
        double down = sum_with(r, g, k, i, s, at - g->step);
        twin_set_f32(&r->at[g->in], k, i, at);
        float got = (float)((up - down) / (double)(2 * g->step));
        ck_assert_msg(fabsf(got - want[i]) <= g->bound, "%s[%zu, %zu] on %s: %g by differences, %g",
                      r->op->places[g->grad].name, k, i, backend_name(twin_backend(s)), (double)got,
                      (double)want[i]);
    }
    free(want);
}

void case_differences(const struct case_op *op, const struct case_gradient *g)
{
    struct case_run r = case_make(op, 2, false);
    for (int s = 0; s < (twin_is_emulated() ? 1 : SIDES); s++) {
        for (size_t k = 0; k < r.members; k++) {
            case_do(&r, op->call);
            case_do(&r, g->backward);
            member_differences(&r, g, k, s);
        }
    }
    twin_close();
    twin_open();
}
