/* Products through cublasLt; product.cuh states the rules of its plans.
 *
 * cublasLt is column-major: a row-major [m, n] is its [n, m], so a product is described with its
 * factors exchanged: cublasLt's A is our b, its B is our a, and the rows of its D are our columns.
 * BGRADA, the sums of A over the inner size, is therefore the bias gradient when b is dy. */
#include "kernels/cuda/product.cuh"

#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <cublasLt.h>

#define CANDIDATES 8
#define PROBE 16 /* rows and columns of the product that tests ReLU */

/* All fields have one type, so there is no padding and two keys are compared as bytes. */
struct lt_key {
    size_t members, m, n, inner, fused;
    size_t a_turned, a_row, a_stride, a_align;
    size_t b_turned, b_row, b_stride, b_align;
    size_t c_stride, c_align, bias_stride, bias_align;
};

struct lt_plan {
    struct lt_key key;
    size_t each; /* members of one launch: all, or 1; 0: cublasLt has no algorithm */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c; /* cublasLt's: a is our b */
    cublasLtMatmulAlgo_t algo;
};

struct lt {
    cublasLtHandle_t handle;
    cublasLtMatmulPreference_t preference;
    float *probe; /* [4, PROBE, PROBE], on the device */
    struct lt_plan *plans;
    size_t n, room;
};

static bool good(cublasStatus_t s)
{
    return s == CUBLAS_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

template <typename T>
static bool set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, T value)
{
    return good(cublasLtMatmulDescSetAttribute(d, what, &value, sizeof(value)));
}

template <typename T>
static bool set(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t what, T value)
{
    return good(cublasLtMatrixLayoutSetAttribute(l, what, &value, sizeof(value)));
}

template <typename T>
static bool set(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what, T value)
{
    return good(cublasLtMatmulPreferenceSetAttribute(p, what, &value, sizeof(value)));
}

/* Also frees a plan that is half made. */
static void forget(struct lt_plan *p)
{
    if (p->desc != NULL)
        (void)cublasLtMatmulDescDestroy(p->desc);
    for (cublasLtMatrixLayout_t l : {p->a, p->b, p->c})
        if (l != NULL)
            (void)cublasLtMatrixLayoutDestroy(l);
    p->desc = NULL;
    p->a = p->b = p->c = NULL;
    p->each = 0;
}

static cublasLtEpilogue_t epilogue_of(size_t fused)
{
    switch (fused) {
    case FUSE_BIAS:
        return CUBLASLT_EPILOGUE_BIAS;
    case FUSE_RELU:
        return CUBLASLT_EPILOGUE_RELU;
    case FUSE_BIAS | FUSE_RELU:
        return CUBLASLT_EPILOGUE_RELU_BIAS;
    case FUSE_BIAS_GRAD:
        return CUBLASLT_EPILOGUE_BGRADA;
    default:
        return CUBLASLT_EPILOGUE_DEFAULT;
    }
}

/* The layout in cublasLt's terms of a matrix that is [rows, cols] in our order after the
 * transpose. */
static bool layout(cublasLtMatrixLayout_t *ret, size_t rows, size_t cols, size_t turned, size_t row)
{
    return good(cublasLtMatrixLayoutCreate(ret, CUDA_R_32F, turned ? rows : cols,
                                           turned ? cols : rows, (int64_t)row));
}

/* Descriptors of one member. The bias is not known yet. An address with its alignment stands in for
 * it, because the heuristics use the alignment. */
static bool describe(struct lt_plan *p, cublasComputeType_t compute)
{
    const struct lt_key *k = &p->key;
    if (!good(cublasLtMatmulDescCreate(&p->desc, compute, CUDA_R_32F)) ||
        !set(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, k->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N) ||
        !set(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, k->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N) ||
        !set(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(k->fused)))
        return false;
    if (k->bias_align > 0 &&
        !set(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (void *)(uintptr_t)k->bias_align))
        return false;
    return layout(&p->a, k->inner, k->n, k->b_turned, k->b_row) &&
           layout(&p->b, k->m, k->inner, k->a_turned, k->a_row) &&
           layout(&p->c, k->m, k->n, false, k->n);
}

static bool set_members(cublasLtMatrixLayout_t l, size_t members, size_t stride)
{
    return set(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, (int32_t)members) &&
           set(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, (int64_t)stride);
}

/* The stride of an output. A lone member's stride may be anything; it is rounded up to the
 * alignment. */
static size_t apart(size_t stride, size_t elements)
{
    return stride < elements ? (elements + 3) / 4 * 4 : stride;
}

static bool set_all_members(struct lt_plan *p, size_t members)
{
    const struct lt_key *k = &p->key;
    bool grouped = members > 1, grads = (k->fused & FUSE_BIAS_GRAD) != 0;
    size_t bias = grads ? apart(k->bias_stride, k->n) : k->bias_stride;
    if (k->bias_align > 0 &&
        !set(p->desc, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, (int64_t)(grouped ? bias : 0)))
        return false;
    return set_members(p->a, members, grouped ? k->b_stride : 0) &&
           set_members(p->b, members, grouped ? k->a_stride : 0) &&
           set_members(p->c, members, grouped ? apart(k->c_stride, k->m * k->n) : 0);
}

/* ---- choosing ---- */

static bool prefer(struct lt *lt, const struct lt_key *k)
{
    return set(lt->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, (uint32_t)k->b_align) &&
           set(lt->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, (uint32_t)k->a_align) &&
           set(lt->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, (uint32_t)k->c_align) &&
           set(lt->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, (uint32_t)k->c_align);
}

static bool sums_whole(const cublasLtMatmulAlgo_t *algo)
{
    int32_t parts = 0;
    size_t size = 0;
    return good(cublasLtMatmulAlgoConfigGetAttribute(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts,
                                                     sizeof(parts), &size)) &&
           parts <= 1;
}

static bool takes(struct lt *lt, struct lt_plan *p)
{
    cublasLtMatmulHeuristicResult_t result = {};
    return good(cublasLtMatmulAlgoCheck(lt->handle, p->desc, p->a, p->b, p->c, p->c, &p->algo,
                                        &result)) &&
           result.workspaceSize <= BLAS_WORKSPACE_BYTES;
}

/* Get the first algorithm of the heuristics for one member. */
static bool ask(struct lt *lt, struct lt_plan *p)
{
    cublasLtMatmulHeuristicResult_t found[CANDIDATES] = {};
    int n = 0;
    if (!prefer(lt, &p->key) ||
        !good(cublasLtMatmulAlgoGetHeuristic(lt->handle, p->desc, p->a, p->b, p->c, p->c,
                                             lt->preference, CANDIDATES, found, &n)))
        return false;
    for (int i = 0; i < n; i++)
        if (good(found[i].state) && found[i].workspaceSize <= BLAS_WORKSPACE_BYTES &&
            sums_whole(&found[i].algo)) {
            p->algo = found[i].algo;
            return true;
        }
    return false;
}

static cublasStatus_t multiply(struct cuda_backend *c, const struct lt_plan *p, float beta,
                               const float *our_a, const float *our_b, float *our_c)
{
    const float one = 1.0f;
    return cublasLtMatmul(c->lt->handle, p->desc, &one, our_b, p->a, our_a, p->b, &beta, our_c,
                          p->c, our_c, p->c, &p->algo, c->blas_workspace, BLAS_WORKSPACE_BYTES,
                          c->stream);
}

/* Whether the algorithm keeps NaN: run it on a small product of NaN. */
static bool probe(struct cuda_backend *c, const struct lt_plan *p)
{
    struct lt_plan small = {.key = p->key, .algo = p->algo};
    float *a = c->lt->probe, *b = a + PROBE * PROBE, *out = b + PROBE * PROBE;
    float *bias = out + PROBE * PROBE, seen[PROBE * PROBE] = {0};
    size_t bytes = sizeof(seen);
    small.key.m = small.key.n = small.key.inner = PROBE;
    small.key.a_row = small.key.b_row = PROBE;
    bool kept =
        describe(&small, c->compute) && takes(c->lt, &small) &&
        (p->key.bias_align == 0 || set(small.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias)) &&
        cudaMemsetAsync(a, 0xff, 4 * bytes, c->stream) == cudaSuccess &&
        cudaMemsetAsync(out, 0, bytes, c->stream) == cudaSuccess &&
        good(multiply(c, &small, 0.0f, a, b, out)) &&
        cudaMemcpyAsync(seen, out, bytes, cudaMemcpyDeviceToHost, c->stream) == cudaSuccess &&
        cudaStreamSynchronize(c->stream) == cudaSuccess;
    for (float v : seen)
        kept = kept && std::isnan(v);
    forget(&small);
    return kept;
}

static size_t alignment(struct tensor t, size_t most)
{
    size_t own = tensor_alignment(t);
    return most > 0 && most < own ? most : own;
}

static struct lt_key key_of(const struct product *p, unsigned fused)
{
    bool bias = (fused & (FUSE_BIAS | FUSE_BIAS_GRAD)) != 0;
    return {p->members,
            p->m,
            p->n,
            p->inner,
            fused,
            p->a.transposed,
            p->a.row,
            p->a.t.stride,
            alignment(p->a.t, p->a_align),
            p->b.transposed,
            p->b.row,
            p->b.t.stride,
            alignment(p->b.t, p->b_align),
            p->c.stride,
            tensor_alignment(p->c),
            bias ? p->bias.stride : 0,
            bias ? tensor_alignment(p->bias) : 0};
}

/* ---- plans ---- */

static as_status plan_of(struct cuda_backend *c, const struct lt_key *key, struct lt_plan **ret,
                         struct as_err *err);

/* With ReLU it is the algorithm of the product without, so that the bits do not depend on whether
 * ReLU is in its launch. */
static as_status choose(struct cuda_backend *c, struct lt_plan *p, bool *ret_found,
                        struct as_err *err)
{
    if ((p->key.fused & FUSE_RELU) == 0) {
        *ret_found = ask(c->lt, p);
        return AS_OK;
    }
    struct lt_key key = p->key;
    struct lt_plan *plain = NULL;
    key.fused &= ~(size_t)FUSE_RELU;
    as_status st = plan_of(c, &key, &plain, err);
    if (st < 0)
        return st;
    *ret_found = plain->each > 0;
    p->algo = plain->algo;
    *ret_found = *ret_found && takes(c->lt, p) && probe(c, p);
    return AS_OK;
}

/* The number of members of a launch: all, 1, or 0 if there is no way. A fused step must work for
 * two members at once, even for a lone member. Otherwise a lone member's bias gradient would be
 * summed in another order than in a group, and a group would need a launch for each member. */
static size_t members_of_launch(struct lt *lt, struct lt_plan *p)
{
    size_t members = p->key.members;
    if (p->key.fused != 0 && (!set_all_members(p, 2) || !takes(lt, p)))
        return 0;
    if (members > 1 && set_all_members(p, members) && takes(lt, p))
        return members;
    return set_all_members(p, 1) ? 1 : 0;
}

/* Make the plan. On failure it is freed. */
static as_status make(struct cuda_backend *c, struct lt_plan *p, struct as_err *err)
{
    bool found = false;
    as_status st = describe(p, c->compute) ? choose(c, p, &found, err) : AS_OK;
    p->each = found ? members_of_launch(c->lt, p) : 0;
    if (p->each == 0)
        forget(p);
    return st;
}

static struct lt_plan *add(struct lt *lt)
{
    if (lt->n == lt->room) {
        size_t room = lt->room == 0 ? 64 : 2 * lt->room;
        void *more = realloc(lt->plans, room * sizeof(*lt->plans));
        if (more == NULL)
            return NULL;
        lt->plans = (struct lt_plan *)more;
        lt->room = room;
    }
    return &lt->plans[lt->n++];
}

/* Find the plan, or make it; *ret is NULL if it must not be made now. A view of the back end until
 * the next call. */
static as_status plan_of(struct cuda_backend *c, const struct lt_key *key, struct lt_plan **ret,
                         struct as_err *err)
{
    *ret = NULL;
    for (size_t i = 0; i < c->lt->n; i++)
        if (memcmp(&c->lt->plans[i].key, key, sizeof(*key)) == 0) {
            *ret = &c->lt->plans[i];
            return AS_OK;
        }
    if (c->recording && (key->fused & FUSE_RELU) != 0)
        return AS_OK;
    struct lt_plan made = {.key = *key};
    as_status st = make(c, &made, err);
    if (st < 0)
        return st;
    struct lt_plan *p = add(c->lt);
    if (p == NULL) {
        forget(&made);
        return as_fail(err, AS_E_NOMEM, "back end cuda: product: out of memory");
    }
    *p = made;
    c->count.planned++;
    c->count.planned_late += c->recording;
    c->count.refused += p->each == 0;
    *ret = p;
    return AS_OK;
}

/* ---- running ---- */

static cublasStatus_t run_from(struct cuda_backend *c, const struct lt_plan *plan,
                               const struct product *p, size_t k)
{
    if (plan->key.bias_align > 0 &&
        !set(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, tensor_f32(p->bias, k)))
        return CUBLAS_STATUS_INVALID_VALUE;
    return multiply(c, plan, p->beta, tensor_f32(p->a.t, k), tensor_f32(p->b.t, k),
                    tensor_f32(p->c, k));
}

static void count(struct products_count *n, const struct lt_plan *plan)
{
    n->lt++;
    n->bias += (plan->key.fused & FUSE_BIAS) != 0;
    n->relu += (plan->key.fused & FUSE_RELU) != 0;
    n->bias_grad += (plan->key.fused & FUSE_BIAS_GRAD) != 0;
    n->one_by_one += plan->each < plan->key.members;
}

static bool fits(const struct product *p)
{
    for (size_t size : {p->members, p->m, p->n, p->inner, p->a.row, p->b.row})
        if (size == 0 || size > INT_MAX)
            return false;
    return true;
}

/* An algorithm that passed the check may still not run (cublasLt.h says so). If the first launch is
 * refused, nothing has been written, and the plan is dropped. */
as_status lt_product(struct backend *be, const struct product *p, unsigned fused, bool *ret_done,
                     struct as_err *err)
{
    struct cuda_backend *c = cuda_of(be);
    *ret_done = false;
    if (c->lt == NULL || !fits(p))
        return AS_OK;
    struct lt_key key = key_of(p, fused);
    struct lt_plan *plan = NULL;
    as_status st = plan_of(c, &key, &plan, err);
    if (st < 0 || plan == NULL || plan->each == 0)
        return st;
    for (size_t k = 0; k < p->members; k += plan->each) {
        cublasStatus_t s = run_from(c, plan, p, k);
        if (!good(s) && k > 0)
            return blas_status(s, "product", err);
        if (!good(s)) {
            forget(plan);
            c->count.refused++;
            return AS_OK;
        }
    }
    count(&c->count, plan);
    *ret_done = true;
    return AS_OK;
}

/* ---- opening ---- */

static as_status open_lt(struct cuda_backend *c, struct as_err *err)
{
    c->lt = (struct lt *)calloc(1, sizeof(*c->lt));
    if (c->lt == NULL)
        return as_fail(err, AS_E_NOMEM, "back end cuda: out of memory");
    as_status st = blas_status(cublasLtCreate(&c->lt->handle), "cublasLt", err);
    if (st < 0 ||
        (st = blas_status(cublasLtMatmulPreferenceCreate(&c->lt->preference), "cublasLt", err)) < 0)
        return st;
    if (!set(c->lt->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
             (uint32_t)CUBLASLT_REDUCTION_SCHEME_NONE) ||
        !set(c->lt->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
             (uint64_t)BLAS_WORKSPACE_BYTES))
        return as_fail(err, AS_E_INTERNAL, "back end cuda: cublasLt: preferences");
    return cuda_status(cudaMalloc(&c->lt->probe, 4 * PROBE * PROBE * sizeof(float)), "workspace",
                       err);
}

as_status lt_open(struct cuda_backend *c, struct as_err *err)
{
    static const struct {
        const char *name;
        bool lt, split;
    } ways[] = {{"auto", true, true}, {"lt", true, false}, {"gemm", false, false}};
    const char *name = getenv(CUDA_PRODUCTS_ENV);
    if (name == NULL || name[0] == '\0')
        name = "auto";
    for (const auto &way : ways)
        if (strcmp(name, way.name) == 0) {
            as_status st = way.split ? split_open(c, err) : AS_OK;
            return st == AS_OK && way.lt ? open_lt(c, err) : st;
        }
    return as_fail(err, AS_E_INVAL,
                   "back end cuda: " CUDA_PRODUCTS_ENV " is '%.40s', must be auto, lt or gemm",
                   name);
}

void lt_close(struct cuda_backend *c)
{
    split_close(c);
    if (c->lt == NULL)
        return;
    for (size_t i = 0; i < c->lt->n; i++)
        forget(&c->lt->plans[i]);
    if (c->lt->preference != NULL)
        (void)cublasLtMatmulPreferenceDestroy(c->lt->preference);
    if (c->lt->handle != NULL)
        (void)cublasLtDestroy(c->lt->handle);
    (void)cudaFree(c->lt->probe);
    free(c->lt->plans);
    free(c->lt);
}

extern "C" __attribute__((visibility("default"))) cuda_products_count assay_cuda_products_count;
const struct products_count *assay_cuda_products_count(const struct backend *be)
{
    return &((const struct cuda_backend *)be)->count;
}
