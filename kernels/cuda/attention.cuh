/* Attention: what its two sets of kernels share. Those in attention_tile.cu are the fast ones;
 * those in attention.cu take longer heads, and devices with little shared memory. */
#ifndef ASSAY_KERNELS_CUDA_ATTENTION_CUH
#define ASSAY_KERNELS_CUDA_ATTENTION_CUH

#include "kernels/cuda/cuda.cuh"

/* An array stays in registers only if the compiler knows its indices. */
#define UNROLLED _Pragma("unroll")

struct attention {
    size_t members, batch, heads, seq, dim;
    size_t tile; /* positions of a tile of the kernels in attention.cu: 32, or as many as fit */
    float scale;
    bool wide; /* every row of a head is made of whole, aligned pieces of 16 bytes */
    struct dev_f32 qkv, out, lse, delta, dout, dqkv;
};

typedef void attention_kernel(struct attention a);

/* A kernel for blocks of ATTENTION_THREADS, one for each `owned` positions of each head; its bytes
 * of shared memory. */
#define ATTENTION_THREADS 128
struct attention_way {
    attention_kernel *kernel;
    size_t owned, bytes;
};

struct attention_ways {
    struct attention_way forward, backward_q, backward_kv;
};

/* The three kernels for heads of this size in sequences of this length: false if they are too
 * large. The number of members has no part in the choice (attention_tile.cu). */
bool attention_tiles(const struct attention_args *a, struct attention_ways *ret);

#endif
