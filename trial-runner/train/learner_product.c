#include "trial-runner/train/learner_product.h"

#include <stdlib.h>

void learner_product_done(struct learner_product *l)
{
    buf_free(l->left);
    buf_free(l->right);
    buf_free(l->product);
    free(l->landed);
    *l = (struct learner_product){0};
}

/* At least n numbers; what was there is lost. */
static as_status make(struct backend *be, struct buf **b, size_t n, struct as_err *err)
{
    if (*b && buf_len(*b) >= n)
        return AS_OK;
    buf_free(*b);
    *b = NULL;
    return buf_create(be, BUF_F32, n, b, err);
}

static as_status land(struct learner_product *l, size_t n, const float **ret, struct as_err *err)
{
    *ret = buf_host(l->product);
    if (*ret)
        return AS_OK;
    if (l->n_landed < n) {
        free(l->landed);
        l->landed = as_calloc(n, sizeof *l->landed);
        l->n_landed = l->landed ? n : 0;
    }
    if (!l->landed)
        return as_fail_nomem(err);
    *ret = l->landed;
    return buf_download(l->product, 0, l->landed, n, err);
}

as_status learner_product_run(struct learner_product *l, struct backend *be,
                              const struct outer_product *p, const float **ret, struct as_err *err)
{
    size_t n_left = p->pairs * p->rows, n_right = p->pairs * p->cols, n = p->rows * p->cols;
    as_status st;
    if ((st = make(be, &l->left, n_left, err)) < 0 ||
        (st = make(be, &l->right, n_right, err)) < 0 || (st = make(be, &l->product, n, err)) < 0 ||
        (st = buf_upload(l->left, 0, p->left, n_left, err)) < 0 ||
        (st = buf_upload(l->right, 0, p->right, n_right, err)) < 0)
        return st;
    struct linear_args a = {.members = 1,
                            .batch = p->pairs,
                            .in = p->rows,
                            .out = p->cols,
                            .x = tensor_at(l->left, 0, n_left),
                            .w = tensor_at(l->product, 0, n)}; /* not read */
    struct linear_grads g = {.dy = tensor_at(l->right, 0, n_right),
                             .dw = tensor_at(l->product, 0, n)};
    st = backend_linear_backward(be, &a, &g, err);
    return st < 0 ? st : land(l, n, ret, err);
}
