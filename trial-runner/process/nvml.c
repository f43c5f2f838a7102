/* NVML's functions, by dlsym(): the machine that builds this needs none of NVIDIA's headers, and a
 * runner without a GPU loads nothing. Types are those of nvml.h (stable since NVML 4): a handle is
 * a pointer, a result is an int with 0 for success.
 *
 * A GPU that does not answer (NVML_ERROR_GPU_IS_LOST) keeps its place in the list, so that the
 * indices of the others stay right. */
#include "trial-runner/process/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define LIBRARY "libnvidia-ml.so.1"
#define NAME_MAX_BYTES 96

typedef struct nvml_handle *nvml_handle;

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_busy {
    unsigned gpu, memory; /* per cent of the last time */
};

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int);
    int (*count)(unsigned *);
    int (*by_index)(unsigned, nvml_handle *);
    int (*uuid)(nvml_handle, char *, unsigned);
    int (*name)(nvml_handle, char *, unsigned);
    int (*memory)(nvml_handle, struct nvml_memory *);
    /* NULL in drivers that know no parts (before 450) */
    int (*mig_mode)(nvml_handle, unsigned *, unsigned *);
    int (*mig_count)(nvml_handle, unsigned *);
    int (*mig_by_index)(nvml_handle, unsigned, nvml_handle *);
    /* NULL where the driver (or a test's) has no such function */
    int (*by_uuid)(const char *, nvml_handle *);
    int (*busy)(nvml_handle, struct nvml_busy *);
};

static const struct {
    const char *name;
    size_t at;
    bool optional;
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init), false},
    {"nvmlShutdown", offsetof(struct nvml, shutdown), false},
    {"nvmlErrorString", offsetof(struct nvml, error_string), false},
    {"nvmlDeviceGetCount_v2", offsetof(struct nvml, count), false},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml, by_index), false},
    {"nvmlDeviceGetUUID", offsetof(struct nvml, uuid), false},
    {"nvmlDeviceGetName", offsetof(struct nvml, name), false},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct nvml, memory), false},
    {"nvmlDeviceGetMigMode", offsetof(struct nvml, mig_mode), true},
    {"nvmlDeviceGetMaxMigDeviceCount", offsetof(struct nvml, mig_count), true},
    {"nvmlDeviceGetMigDeviceHandleByIndex", offsetof(struct nvml, mig_by_index), true},
    {"nvmlDeviceGetHandleByUUID", offsetof(struct nvml, by_uuid), true},
    {"nvmlDeviceGetUtilizationRates", offsetof(struct nvml, busy), true},
};

void nvml_devices_done(struct nvml_devices *d)
{
    free(d->v);
    *d = (struct nvml_devices){0};
}

static void nvml_close(struct nvml *m)
{
    if (m->library)
        (void)dlclose(m->library);
}

static as_status nvml_open(struct nvml *m, struct as_err *err)
{
    const char *path = getenv("ASSAY_NVML");
    path = path && *path ? path : LIBRARY;
    m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!m->library)
        return as_fail(err, AS_E_UNSUPPORTED, "NVML does not load: %s", dlerror());
    for (size_t i = 0; i < AS_ARRAY_LEN(symbols); i++) {
        void *f = dlsym(m->library, symbols[i].name);
        if (!f && !symbols[i].optional)
            return as_fail(err, AS_E_UNSUPPORTED, "NVML (%s) has no %s", path, symbols[i].name);
        memcpy((char *)m + symbols[i].at, &f, sizeof f);
    }
    return AS_OK;
}

static as_status failed(const struct nvml *m, int result, const char *what, struct as_err *err)
{
    const char *why = m->error_string(result);
    return as_fail(err, AS_E_UNAVAILABLE, "NVML: %s: %s", what, why ? why : "unknown error");
}

/* Append a device. A handle that does not answer becomes one without an id. */
static as_status add_device(const struct nvml *m, nvml_handle h, bool is_part,
                            struct nvml_devices *ret, struct as_err *err)
{
    struct nvml_device d = {.is_part = is_part};
    struct nvml_memory memory = {0};
    as_status st = as_grow(&ret->v, ret->n + 1, sizeof *ret->v, err);
    if (st != AS_OK)
        return st;
    if (h && m->uuid(h, d.id, sizeof d.id) != 0)
        d.id[0] = '\0';
    d.id[sizeof d.id - 1] = '\0';
    if (d.id[0] && m->memory(h, &memory) == 0 && memory.total <= INT64_MAX)
        d.memory_bytes = (int64_t)memory.total;
    ret->v[ret->n++] = d;
    return AS_OK;
}

static as_status add_parts(const struct nvml *m, nvml_handle gpu, struct nvml_devices *ret,
                           struct as_err *err)
{
    unsigned now = 0, pending = 0, most = 0;
    if (!m->mig_mode || !m->mig_count || !m->mig_by_index ||
        m->mig_mode(gpu, &now, &pending) != 0 || now == 0)
        return AS_OK;
    ret->v[ret->n - 1].is_divided = true;
    if (m->mig_count(gpu, &most) != 0)
        return AS_OK;
    for (unsigned i = 0; i < most; i++) {
        nvml_handle part = NULL;
        if (m->mig_by_index(gpu, i, &part) != 0) /* places without a part */
            continue;
        as_status st = add_device(m, part, true, ret, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status list_devices(const struct nvml *m, struct nvml_devices *ret, struct as_err *err)
{
    char first[NAME_MAX_BYTES] = "", name[NAME_MAX_BYTES];
    unsigned n = 0;
    int result = m->count(&n);
    ret->are_alike = true;
    if (result != 0)
        return failed(m, result, "the number of devices", err);
    for (unsigned i = 0; i < n; i++) {
        nvml_handle gpu = NULL;
        if (m->by_index(i, &gpu) != 0)
            gpu = NULL;
        as_status st = add_device(m, gpu, false, ret, err);
        if (st == AS_OK && gpu)
            st = add_parts(m, gpu, ret, err);
        if (st != AS_OK)
            return st;
        if (!gpu || m->name(gpu, name, sizeof name) != 0)
            continue;
        name[sizeof name - 1] = '\0';
        ret->are_alike = ret->are_alike && (!first[0] || strcmp(first, name) == 0);
        memcpy(first, name, sizeof first);
    }
    return AS_OK;
}

as_status nvml_list(struct nvml_devices *ret, struct as_err *err)
{
    struct nvml m = {0};
    as_status st = nvml_open(&m, err);
    if (st == AS_OK) {
        int result = m.init();
        st = result == 0 ? list_devices(&m, ret, err) : failed(&m, result, "start", err);
        if (result == 0)
            (void)m.shutdown();
    }
    nvml_close(&m);
    return st;
}

struct nvml_meter {
    struct nvml nvml;
};

as_status nvml_meter_open(struct nvml_meter **ret, struct as_err *err)
{
    struct nvml_meter *m = as_calloc(1, sizeof *m);
    if (!m)
        return as_fail_nomem(err);
    as_status st = nvml_open(&m->nvml, err);
    if (st == AS_OK) {
        int result = m->nvml.init();
        st = result == 0 ? AS_OK : failed(&m->nvml, result, "start", err);
    }
    if (st < 0) {
        nvml_close(&m->nvml);
        free(m);
        return st;
    }
    *ret = m;
    return AS_OK;
}

void nvml_meter_close(struct nvml_meter *m)
{
    if (!m)
        return;
    (void)m->nvml.shutdown();
    nvml_close(&m->nvml);
    free(m);
}

void nvml_meter_read(const struct nvml_meter *m, const char *id, double *ret_busy,
                     double *ret_memory_bytes)
{
    nvml_handle h = NULL;
    struct nvml_busy busy = {0};
    struct nvml_memory memory = {0};
    *ret_busy = *ret_memory_bytes = -1;
    if (!m->nvml.by_uuid || m->nvml.by_uuid(id, &h) != 0)
        return;
    if (m->nvml.busy && m->nvml.busy(h, &busy) == 0)
        *ret_busy = busy.gpu / 100.0;
    if (m->nvml.memory(h, &memory) == 0)
        *ret_memory_bytes = (double)memory.used;
}
