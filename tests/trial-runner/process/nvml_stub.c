/* Stands in for NVIDIA's libnvidia-ml.so.1, which needs a driver. NVML_STUB lists the devices:
 *   "MODEL:GPU-a:MEGABYTES;MODEL:GPU-b:MEGABYTES=MIG-x,MIG-y;lost"
 * A GPU with parts is divided; a part has a quarter of its memory. "fail" as the whole text: the
 * driver does not answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define DEVICES_MAX 16
#define PARTS_MAX 8
#define DRIVER_NOT_LOADED 9
#define NOT_FOUND 6
#define GPU_IS_LOST 15

struct nvml_handle {
    char model[32], id[64];
    unsigned long long bytes;
    struct nvml_handle *parts[PARTS_MAX];
    unsigned n_parts;
};

struct memory {
    unsigned long long total, free, used;
};

struct utilization {
    unsigned gpu, memory;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int e);
int nvmlDeviceGetCount_v2(unsigned *ret);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, struct nvml_handle **ret);
int nvmlDeviceGetUUID(struct nvml_handle *h, char *ret, unsigned size);
int nvmlDeviceGetName(struct nvml_handle *h, char *ret, unsigned size);
int nvmlDeviceGetMemoryInfo(struct nvml_handle *h, struct memory *ret);
int nvmlDeviceGetHandleByUUID(const char *id, struct nvml_handle **ret);
int nvmlDeviceGetUtilizationRates(struct nvml_handle *h, struct utilization *ret);
int nvmlDeviceGetMigMode(struct nvml_handle *h, unsigned *now, unsigned *pending);
int nvmlDeviceGetMaxMigDeviceCount(struct nvml_handle *h, unsigned *ret);
int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_handle *h, unsigned i,
                                        struct nvml_handle **ret);

static struct nvml_handle devices[DEVICES_MAX], parts[DEVICES_MAX * PARTS_MAX];
static unsigned n_devices, n_all_parts;

static void add_parts(struct nvml_handle *gpu, const char *list)
{
    char id[64];
    for (int n = 0; sscanf(list, "%63[^,]%n", id, &n) == 1; list += n + (list[n] == ',')) {
        struct nvml_handle *p = &parts[n_all_parts++];
        *p = (struct nvml_handle){.bytes = gpu->bytes / 4};
        memcpy(p->id, id, sizeof id);
        gpu->parts[gpu->n_parts++] = p;
    }
}

EXPORT int nvmlInit_v2(void)
{
    const char *at = getenv("NVML_STUB");
    char text[256];
    n_devices = n_all_parts = 0;
    if (!at || strcmp(at, "fail") == 0)
        return DRIVER_NOT_LOADED;
    for (int n = 0; sscanf(at, "%255[^;]%n", text, &n) == 1; at += n + (at[n] == ';')) {
        struct nvml_handle *d = &devices[n_devices++];
        unsigned long long megabytes = 0;
        *d = (struct nvml_handle){0};
        char *list = strchr(text, '=');
        if (list)
            *list++ = '\0';
        if (sscanf(text, "%31[^:]:%63[^:]:%llu", d->model, d->id, &megabytes) == 3)
            d->bytes = megabytes << 20;
        else
            d->id[0] = '\0';
        if (list)
            add_parts(d, list);
    }
    return 0;
}

EXPORT int nvmlShutdown(void)
{
    return 0;
}

EXPORT const char *nvmlErrorString(int e)
{
    return e == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Not Found";
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *ret)
{
    *ret = n_devices;
    return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, struct nvml_handle **ret)
{
    if (i >= n_devices || !devices[i].id[0])
        return GPU_IS_LOST;
    *ret = &devices[i];
    return 0;
}

EXPORT int nvmlDeviceGetUUID(struct nvml_handle *h, char *ret, unsigned size)
{
    (void)snprintf(ret, size, "%s", h->id);
    return 0;
}

EXPORT int nvmlDeviceGetName(struct nvml_handle *h, char *ret, unsigned size)
{
    (void)snprintf(ret, size, "%s", h->model);
    return 0;
}

EXPORT int nvmlDeviceGetMemoryInfo(struct nvml_handle *h, struct memory *ret)
{
    *ret =
        (struct memory){.total = h->bytes, .free = h->bytes / 2, .used = h->bytes - h->bytes / 2};
    return 0;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *id, struct nvml_handle **ret)
{
    for (unsigned i = 0; i < n_devices; i++)
        if (id[0] && strcmp(devices[i].id, id) == 0) {
            *ret = &devices[i];
            return 0;
        }
    return NOT_FOUND;
}

/* Each is busy for three quarters of the time, but divided ones, of which nobody says. */
EXPORT int nvmlDeviceGetUtilizationRates(struct nvml_handle *h, struct utilization *ret)
{
    *ret = (struct utilization){.gpu = 75, .memory = 1};
    return h->n_parts > 0 ? NOT_FOUND : 0;
}

EXPORT int nvmlDeviceGetMigMode(struct nvml_handle *h, unsigned *now, unsigned *pending)
{
    *now = *pending = h->n_parts > 0;
    return 0;
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct nvml_handle *h, unsigned *ret)
{
    (void)h;
    *ret = PARTS_MAX;
    return 0;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_handle *h, unsigned i,
                                               struct nvml_handle **ret)
{
    if (i % 2 == 0 || i / 2 >= h->n_parts) /* parts may leave places free */
        return NOT_FOUND;
    *ret = h->parts[i / 2];
    return 0;
}
