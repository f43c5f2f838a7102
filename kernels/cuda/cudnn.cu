/* Finds and opens the library, and checks its version. */
#include "kernels/cuda/cudnn.cuh"

#include <cstdlib>
#include <dlfcn.h>

#define DEFAULT_LIBRARY "libcudnn.so.9"

as_status dnn_status(const struct dnn_api *api, cudnnStatus_t s, const char *what,
                     struct as_err *err)
{
    if (s == CUDNN_STATUS_SUCCESS)
        return AS_OK;
    return as_fail(err, AS_E_INTERNAL, "back end cuda: cuDNN: %s: %s", what, api->error_string(s));
}

template <typename F> static bool find(void *library, const char *name, F *ret)
{
    *ret = (F)dlsym(library, name);
    return *ret != NULL;
}

/* The version number is major * 10000 + … from 9 on; in 8 it was major * 1000 + …. */
static as_status check_version(const char *name, size_t v, struct as_err *err)
{
    if (v / 10000 == 9)
        return AS_OK;
    size_t unit = v < 10000 ? 1000 : 10000;
    return as_fail(err, AS_E_UNAVAILABLE, "cuDNN is %zu.%zu, expected 9: %s", v / unit,
                   v % unit / 100, name);
}

static const char *missing(void *library, struct dnn_api *a)
{
    if (!find(library, "cudnnCreate", &a->create))
        return "cudnnCreate";
    if (!find(library, "cudnnDestroy", &a->destroy))
        return "cudnnDestroy";
    if (!find(library, "cudnnSetStream", &a->set_stream))
        return "cudnnSetStream";
    if (!find(library, "cudnnGetErrorString", &a->error_string))
        return "cudnnGetErrorString";
    if (!find(library, "cudnnBackendCreateDescriptor", &a->create_descriptor))
        return "cudnnBackendCreateDescriptor";
    if (!find(library, "cudnnBackendDestroyDescriptor", &a->destroy_descriptor))
        return "cudnnBackendDestroyDescriptor";
    if (!find(library, "cudnnBackendSetAttribute", &a->set_attribute))
        return "cudnnBackendSetAttribute";
    if (!find(library, "cudnnBackendGetAttribute", &a->get_attribute))
        return "cudnnBackendGetAttribute";
    if (!find(library, "cudnnBackendFinalize", &a->finalize))
        return "cudnnBackendFinalize";
    return find(library, "cudnnBackendExecute", &a->execute) ? NULL : "cudnnBackendExecute";
}

as_status dnn_load(struct dnn_api *ret, struct as_err *err)
{
    const char *name = getenv("ASSAY_CUDNN");
    if (name == NULL || name[0] == '\0')
        name = DEFAULT_LIBRARY;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *why = dlerror();
        return as_fail(err, AS_E_UNAVAILABLE, "%s does not open: %s", name, why != NULL ? why : "");
    }
    decltype(&cudnnGetVersion) version = NULL;
    struct dnn_api api = {};
    as_status st = AS_OK;
    if (!find(library, "cudnnGetVersion", &version))
        st = as_fail(err, AS_E_UNAVAILABLE, "%s is not cuDNN", name);
    else
        st = check_version(name, version(), err);
    const char *lacks = st == AS_OK ? missing(library, &api) : NULL;
    if (lacks != NULL)
        st = as_fail(err, AS_E_UNAVAILABLE, "%s has no %s", name, lacks);
    if (st < 0) {
        (void)dlclose(library);
        return st;
    }
    api.library = library;
    api.version = version();
    *ret = api;
    return AS_OK;
}
