/* What we use of NCCL, declared here, so that its header is not needed to build: these functions
 * and numbers have been the same since NCCL 2.14 (nccl.h). */
#ifndef ASSAY_KERNELS_CUDA_NCCL_CUH
#define ASSAY_KERNELS_CUDA_NCCL_CUH

#include <cuda_runtime.h>

#define NCCL_ID_BYTES 128

typedef int nccl_result; /* ncclResult_t */
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };
enum { NCCL_FLOAT32 = 7 }; /* ncclDataType_t */

struct nccl_id { /* ncclUniqueId */
    char internal[NCCL_ID_BYTES];
};
typedef struct nccl_comm *nccl_comm_t; /* ncclComm_t */

struct nccl_api {
    nccl_result (*get_version)(int *version);
    nccl_result (*get_unique_id)(struct nccl_id *id);
    nccl_result (*comm_init_rank)(nccl_comm_t *comm, int n, struct nccl_id id, int rank);
    nccl_result (*comm_abort)(nccl_comm_t comm);
    nccl_result (*comm_get_async_error)(nccl_comm_t comm, nccl_result *error);
    nccl_result (*group_start)(void);
    nccl_result (*group_end)(void);
    nccl_result (*send)(const void *from, size_t count, int type, int peer, nccl_comm_t comm,
                        cudaStream_t stream);
    nccl_result (*recv)(void *to, size_t count, int type, int peer, nccl_comm_t comm,
                        cudaStream_t stream);
    const char *(*error_string)(nccl_result result);
};

#endif
