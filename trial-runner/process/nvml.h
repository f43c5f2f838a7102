/* What the NVIDIA driver lists, through NVML, which is opened at run time. NVML creates no CUDA
 * context, costs no device memory, and sees the devices that this process may use (cgroups of
 * Slurm, containers). */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_NVML_H
#define ASSAY_TRIAL_RUNNER_PROCESS_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define GPU_ID_MAX 96 /* bytes of a UUID, with its NUL */

/* A GPU, or a part of one (MIG). The parts of a GPU follow it. */
struct nvml_device {
    char id[GPU_ID_MAX]; /* "GPU-…" or "MIG-…"; "" for a GPU that the driver lost */
    int64_t memory_bytes;
    bool is_part;
    bool is_divided; /* a GPU whose parts alone can be used */
};

struct nvml_devices {
    struct nvml_device *v; /* in the order of the PCI bus; owned */
    size_t n;
    bool are_alike; /* all GPUs are of one model */
};

void nvml_devices_done(struct nvml_devices *d);

/* List all devices. The library is $ASSAY_NVML, else libnvidia-ml.so.1. `ret` must be zeroed; the
 * caller calls nvml_devices_done() also on failure.
 * AS_E_UNSUPPORTED  the library is not here, or lacks a function
 * AS_E_UNAVAILABLE  the driver does not answer
 * AS_E_NOMEM */
AS_MUST_CHECK as_status nvml_list(struct nvml_devices *ret, struct as_err *err);

/* NVML, held open to read devices again and again. */
struct nvml_meter;

/* Errors as nvml_list. Owned by the caller. */
AS_MUST_CHECK as_status nvml_meter_open(struct nvml_meter **ret, struct as_err *err);
void nvml_meter_close(struct nvml_meter *m);
AS_DEFINE_FREEP(struct nvml_meter, nvml_meter_close)

/* How busy the device with this UUID is, from 0 to 1, and how much of its memory is in use, by
 * whomever. Below 0: the driver does not say (parts of GPUs have no figure for the first), or does
 * not know the device. */
void nvml_meter_read(const struct nvml_meter *m, const char *id, double *ret_busy,
                     double *ret_memory_bytes);

#endif
