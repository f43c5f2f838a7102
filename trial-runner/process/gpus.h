/* The GPUs that a runner hands out: which of those that the driver lists, by which names. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_GPUS_H
#define ASSAY_TRIAL_RUNNER_PROCESS_GPUS_H

#include "base/str.h"
#include "trial-runner/process/nvml.h"

#define GPUS_MAX 64
#define GPUS_NOTE_MAX 400

struct gpu {
    char id[GPU_ID_MAX];  /* as CUDA_VISIBLE_DEVICES takes it: a UUID where the driver said it */
    int64_t memory_bytes; /* 0: not known */
};

struct gpu_list {
    struct gpu v[GPUS_MAX];
    size_t n;
    char note[GPUS_NOTE_MAX]; /* what the operator should know; "" for nothing */
};

/* Find the GPUs to hand out.
 *   words    --gpus: NULL or "auto" for all that this process may use, "auto:I/N" for every Nth of
 *            them from the Ith on (1 <= I <= N), "none" or "" for none; else a list as
 *            CUDA_VISIBLE_DEVICES takes it, which replaces the inherited one. What the driver does
 *            not list of it is handed out as it was given
 *   trainer  path of assay-train, which lists them where NVML cannot
 * ret must be zeroed. No CUDA context is created in this process. AS_E_INVAL: the words;
 * AS_E_TOO_LARGE: more than GPUS_MAX; AS_E_NOMEM. A driver that cannot be asked is a note. */
AS_MUST_CHECK as_status gpus_find(const char *words, const char *trainer, struct gpu_list *ret,
                                  struct as_err *err);

/* ---- pure, for tests ---- */

/* Choose among all devices, as CUDA does.
 *   visible  CUDA_VISIBLE_DEVICES: indices, UUIDs or beginnings of them; the first entry that is
 *            none of the devices ends the list. NULL: all
 * A divided GPU stands for its parts: all of them, or in a list of `visible` the first.
 * AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status gpus_select(const struct nvml_devices *all, const char *visible,
                                    struct gpu_list *ret, struct as_err *err);

/* May an index in `visible` mean another device for CUDA than for NVML? So it is if the GPUs differ
 * and CUDA numbers them by speed (order: CUDA_DEVICE_ORDER, or NULL). */
bool gpus_order_is_unclear(const struct nvml_devices *all, const char *visible, const char *order);

/* Read what `assay-train --list-devices` printed: lines "gpu ID BYTES"; other lines are skipped.
 * AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status gpus_parse(const char *text, struct gpu_list *ret, struct as_err *err);

/* Read the file in which a trial reports its GPU (ASSAY_DEVICE_FAULT): one line, of which at most
 * 300 bytes are kept, as valid UTF-8. *ret_all: it says "all: ". Returns whether there is one; not
 * for anything but a regular file. */
bool gpus_read_fault(const char *path, struct str *reason, bool *ret_all);

#endif
