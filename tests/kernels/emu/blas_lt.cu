/* cublasLt on the host. It is strict: it refuses every size, leading dimension, stride or alignment
 * that the real library may refuse. With EMU_RELU=nan_to_0 the ReLU epilogue loses NaN. With
 * EMU_LT=launch_fails algorithms pass the check and then do not run. */
#include <cublasLt.h>

#include <stdlib.h>

#define WIDE_BYTES 16

enum { WIDE = 1, NARROW, SPLIT };

struct emu_lt {
    bool relu_loses_nan, launch_fails;
};

struct emu_lt_desc {
    cublasComputeType_t compute;
    cublasOperation_t op_a, op_b;
    cublasLtEpilogue_t epilogue;
    float *bias;
    int64_t bias_stride;
};

struct emu_lt_layout {
    uint64_t rows, cols;
    int64_t ld, stride;
    int32_t count;
};

struct emu_lt_preference {
    uint64_t workspace;
    uint32_t schemes, align_a, align_b, align_c, align_d;
};

static bool is_set(const char *name, const char *value)
{
    const char *v = getenv(name);
    return v != NULL && strcmp(v, value) == 0;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *ret)
{
    *ret = new emu_lt{is_set("EMU_RELU", "nan_to_0"), is_set("EMU_LT", "launch_fails")};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

/* Copy an attribute of the size that it has. */
template <typename T> static cublasStatus_t take(T *to, const void *from, size_t size)
{
    if (from == NULL || size != sizeof(T))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *ret, cublasComputeType_t compute,
                                        cudaDataType scale)
{
    if (scale != CUDA_R_32F)
        return CUBLAS_STATUS_INVALID_VALUE;
    *ret =
        new emu_lt_desc{compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    delete d;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t what, const void *from,
                                              size_t size)
{
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(&d->op_a, from, size);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(&d->op_b, from, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(&d->epilogue, from, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(&d->bias, from, size);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
        return take(&d->bias_stride, from, size);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *ret, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    if (type != CUDA_R_32F)
        return CUBLAS_STATUS_INVALID_VALUE;
    *ret = new emu_lt_layout{rows, cols, ld, 0, 1};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    delete l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t what,
                                                const void *from, size_t size)
{
    switch (what) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return take(&l->count, from, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return take(&l->stride, from, size);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *ret)
{
    *ret = new emu_lt_preference{0, CUBLASLT_REDUCTION_SCHEME_MASK, 256, 256, 256, 256};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void *from, size_t size)
{
    switch (what) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return take(&p->workspace, from, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return take(&p->schemes, from, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return take(&p->align_a, from, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return take(&p->align_b, from, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return take(&p->align_c, from, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return take(&p->align_d, from, size);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- what can be done ---- */

/* Operation and layouts; c is also the layout of the output. */
struct problem {
    const struct emu_lt_desc *d;
    const struct emu_lt_layout *a, *b, *c;
};

static uint64_t inner_of(const struct problem &p)
{
    return p.d->op_a == CUBLAS_OP_T ? p.a->rows : p.a->cols;
}

static bool apart(const struct emu_lt_layout *l)
{
    return l->count == 1 || l->stride >= l->ld * (int64_t)l->cols;
}

static bool sound_layout(const struct emu_lt_layout *l)
{
    bool some = l->rows > 0 && l->cols > 0 && l->ld >= (int64_t)l->rows;
    return some && l->count >= 1 && (l->stride == 0 || apart(l));
}

/* Whether the sizes agree. Members of the output must not overlap. */
static bool is_sound(const struct problem &p)
{
    bool t_a = p.d->op_a == CUBLAS_OP_T, t_b = p.d->op_b == CUBLAS_OP_T;
    uint64_t m = t_a ? p.a->cols : p.a->rows, n = t_b ? p.b->rows : p.b->cols;
    uint64_t inner_b = t_b ? p.b->cols : p.b->rows;
    return sound_layout(p.a) && sound_layout(p.b) && sound_layout(p.c) && apart(p.c) &&
           m == p.c->rows && n == p.c->cols && inner_b == inner_of(p) && p.a->count == p.c->count &&
           p.b->count == p.c->count;
}

static bool uses_bias(const struct problem &p)
{
    return (p.d->epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADA)) != 0;
}

static bool at(const void *p, size_t bytes)
{
    return (uintptr_t)p % bytes == 0;
}

static bool wide_rows(const struct emu_lt_layout *l)
{
    return l->ld % 4 == 0 && (l->count == 1 || l->stride % 4 == 0);
}

/* Of BGRADA. */
static int32_t members_at_once(uint64_t inner)
{
    return inner % 4 != 0 ? 1 : inner % 8 != 0 ? 2 : INT32_MAX;
}

static cublasStatus_t supported(const struct problem &p, uint64_t algo)
{
    bool sums = p.d->epilogue == CUBLASLT_EPILOGUE_BGRADA;
    bool wide = wide_rows(p.a) && wide_rows(p.b) && wide_rows(p.c);
    if (!is_sound(p))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (uses_bias(p) && (p.d->bias == NULL || !at(p.d->bias, sizeof(float))))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (uses_bias(p) && !at(p.d->bias, WIDE_BYTES))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (uses_bias(p) && p.c->count > 1 && p.d->bias_stride % 4 != 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (algo == WIDE && sums && p.c->count > members_at_once(inner_of(p)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    bool can = algo == WIDE ? wide : algo == NARROW ? !sums : algo == SPLIT && !uses_bias(p);
    return can ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static size_t workspace_of(uint64_t algo, const struct problem &p)
{
    return algo == SPLIT ? (size_t)p.c->count * p.c->rows * p.c->cols * sizeof(float) : 0;
}

static cublasLtMatmulHeuristicResult_t result_of(uint64_t algo, const struct problem &p)
{
    cublasLtMatmulHeuristicResult_t r = {};
    r.algo.data[0] = algo;
    r.workspaceSize = workspace_of(algo, p);
    r.wavesCount = 1;
    return r;
}

static bool wanted(const struct emu_lt_preference *f, uint64_t algo, const struct problem &p)
{
    bool reduced = (f->schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
    bool aligned = f->align_a >= WIDE_BYTES && f->align_b >= WIDE_BYTES &&
                   f->align_c >= WIDE_BYTES && f->align_d >= WIDE_BYTES;
    return (algo != WIDE || aligned) && (algo != SPLIT || reduced) &&
           workspace_of(algo, p) <= f->workspace;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t p, int most,
                                              cublasLtMatmulHeuristicResult_t ret[], int *ret_n)
{
    const struct problem problem = {d, a, b, c};
    const uint64_t alone[] = {SPLIT, WIDE, NARROW}, several[] = {NARROW, SPLIT, WIDE};
    if (h == NULL || out != c || most <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    *ret_n = 0;
    for (uint64_t algo : c->count == 1 ? alone : several) {
        cublasStatus_t s = supported(problem, algo);
        if (s == CUBLAS_STATUS_INVALID_VALUE)
            return s;
        if (s == CUBLAS_STATUS_SUCCESS && wanted(p, algo, problem) && *ret_n < most)
            ret[(*ret_n)++] = result_of(algo, problem);
    }
    return *ret_n > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t h, cublasLtMatmulDesc_t d,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *ret)
{
    const struct problem problem = {d, a, b, c};
    if (h == NULL || out != c)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t s = supported(problem, algo->data[0]);
    if (s == CUBLAS_STATUS_SUCCESS)
        *ret = result_of(algo->data[0], problem);
    return s;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t what,
                                                    void *to, size_t size, size_t *ret_written)
{
    int32_t parts = algo->data[0] == SPLIT ? 2 : 1;
    if (what != CUBLASLT_ALGO_CONFIG_SPLITK_NUM || size != sizeof(parts))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, &parts, size);
    *ret_written = size;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- running ---- */

struct lt_run {
    struct emu_lt_desc d;
    struct emu_lt_layout a, b, c;
    uint64_t algo;
    float alpha, beta;
    const float *pa, *pb;
    float *pc;
    bool relu_loses_nan;
};

static float at_a(const struct lt_run &r, long long k, uint64_t i, uint64_t l)
{
    uint64_t place = r.d.op_a == CUBLAS_OP_T ? l + i * (uint64_t)r.a.ld : i + l * (uint64_t)r.a.ld;
    return r.pa[k * r.a.stride + (long long)place];
}

static float at_b(const struct lt_run &r, long long k, uint64_t l, uint64_t j)
{
    uint64_t place = r.d.op_b == CUBLAS_OP_T ? j + l * (uint64_t)r.b.ld : l + j * (uint64_t)r.b.ld;
    return r.pb[k * r.b.stride + (long long)place];
}

/* The chain that term l of `inner` belongs to. */
static unsigned chain_of(uint64_t algo, uint64_t l, uint64_t inner)
{
    return algo == WIDE ? l % 4 : algo == SPLIT ? l >= inner / 2 : 0;
}

/* The sum of term(l) in the algorithm's order. */
template <typename F> static float sum_of(uint64_t algo, uint64_t inner, F term)
{
    float chains[4] = {0, 0, 0, 0};
    for (uint64_t i = 0; i < inner; i++) {
        uint64_t l = algo == NARROW ? inner - 1 - i : i;
        chains[chain_of(algo, l, inner)] += term(l);
    }
    return (chains[0] + chains[1]) + (chains[2] + chains[3]);
}

static float finish(const struct lt_run &r, long long k, uint64_t i, float v)
{
    if ((r.d.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0)
        v += r.d.bias[k * r.d.bias_stride + (long long)i];
    if ((r.d.epilogue & CUBLASLT_EPILOGUE_RELU) != 0)
        v = v < 0 || (r.relu_loses_nan && v != v) ? 0 : v;
    return v;
}

static void run(const struct lt_run &r)
{
    bool rounded = r.d.compute == CUBLAS_COMPUTE_32F_FAST_16BF;
    const struct problem p = {&r.d, &r.a, &r.b, &r.c};
    uint64_t inner = inner_of(p);
    for (long long k = 0; k < r.c.count; k++) {
        for (uint64_t j = 0; j < r.c.cols; j++)
            for (uint64_t i = 0; i < r.c.rows; i++) {
                float *to = r.pc + k * r.c.stride + (long long)(i + j * (uint64_t)r.c.ld);
                float sum = sum_of(r.algo, inner, [&](uint64_t l) {
                    return emu_factor(rounded, at_a(r, k, i, l)) *
                           emu_factor(rounded, at_b(r, k, l, j));
                });
                *to = finish(r, k, i, r.alpha * sum + (r.beta != 0 ? r.beta * *to : 0));
            }
        for (uint64_t i = 0; r.d.epilogue == CUBLASLT_EPILOGUE_BGRADA && i < r.c.rows; i++)
            r.d.bias[k * r.d.bias_stride + (long long)i] =
                sum_of(r.algo, inner, [&](uint64_t l) { return at_a(r, k, i, l); });
    }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t layout_a, const void *b,
                              cublasLtMatrixLayout_t layout_b, const void *beta, const void *c,
                              cublasLtMatrixLayout_t layout_c, void *out,
                              cublasLtMatrixLayout_t layout_out, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_size, cudaStream_t stream)
{
    const struct problem p = {d, layout_a, layout_b, layout_c};
    if (h == NULL || a == NULL || b == NULL || c == NULL || c != out || layout_c != layout_out ||
        algo == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t s = supported(p, algo->data[0]);
    if (s != CUBLAS_STATUS_SUCCESS)
        return s;
    size_t bytes = algo->data[0] == WIDE ? WIDE_BYTES : sizeof(float);
    if (!at(a, bytes) || !at(b, bytes) || !at(out, bytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    size_t wants = workspace_of(algo->data[0], p);
    if (wants > workspace_size || (wants > 0 && workspace == NULL))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (h->launch_fails)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    struct lt_run r = {*d,
                       *layout_a,
                       *layout_b,
                       *layout_c,
                       algo->data[0],
                       *(const float *)alpha,
                       *(const float *)beta,
                       (const float *)a,
                       (const float *)b,
                       (float *)out,
                       h->relu_loses_nan};
    emu_enqueue(stream, [=] { run(r); });
    return CUBLAS_STATUS_SUCCESS;
}
