#include "base/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libopenblas.so.0"
#define EXIT_NO_LIBRARY 127 /* as ld.so ends a program */

#define SYMBOL(name, member)                                                                       \
    {                                                                                              \
        name, offsetof(struct blas, member)                                                        \
    }
static const struct {
    const char *name;
    size_t at;
} symbols[] = {
    SYMBOL("cblas_sgemm", sgemm),
    SYMBOL("cblas_dgemm", dgemm),
    SYMBOL("cblas_dgemv", dgemv),
    SYMBOL("cblas_dsymm", dsymm),
    SYMBOL("cblas_dsyrk", dsyrk),
    SYMBOL("cblas_dtrsv", dtrsv),
    SYMBOL("cblas_ddot", ddot),
    SYMBOL("cblas_daxpy", daxpy),
    SYMBOL("openblas_get_num_threads", get_num_threads),
    SYMBOL("openblas_set_num_threads", set_num_threads),
    SYMBOL("openblas_get_corename", get_corename),
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct blas library;                 /* guarded by lock until `opened` is set */
static _Atomic(const struct blas *) opened; /* NULL, then constant */

static as_status open_locked(struct as_err *err)
{
    /* Its threads would never be used (kernels/cpu/cpu.c, search/regression/blas_thread_priv.h),
     * and where memory is short they wait for ever for their buffers, and the process for them at
     * its end. It reads the variable when it is loaded. */
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 0);
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "OpenBLAS does not open: %.120s (install libopenblas0)", dlerror());
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *f = dlsym(handle, symbols[i].name);
        if (f == NULL) {
            (void)dlclose(handle);
            return as_fail(err, AS_E_UNSUPPORTED, LIBRARY " has no %s", symbols[i].name);
        }
        memcpy((char *)&library + symbols[i].at, &f, sizeof(f));
    }
    atomic_store(&opened, &library);
    return AS_OK;
}

as_status blas_open(struct as_err *err)
{
    (void)pthread_mutex_lock(&lock);
    as_status st = blas_get() != NULL ? AS_OK : open_locked(err);
    (void)pthread_mutex_unlock(&lock);
    return st;
}

const struct blas *blas_get(void)
{
    return atomic_load(&opened);
}

const struct blas *blas_need(void)
{
    const struct blas *found = blas_get();
    struct as_err err;
    if (found != NULL)
        return found;
    if (blas_open(&err) == AS_OK)
        return blas_get();
    (void)fprintf(stderr, "%s\n", err.msg);
    exit(EXIT_NO_LIBRARY);
}
