/* Finds the GPUs of this machine that a runner hands out.
 *
 * The files /dev/nvidiaN say nothing about that: Slurm and containers show a process some devices
 * only, a part of a GPU (MIG) has no such file, and CUDA may number devices in another order. So
 * the driver is asked, through NVML, and GPUs are handed out by UUID, which means the same device
 * whatever a trial's environment says about orders.
 *
 * The choice among the listed devices follows CUDA's rules for CUDA_VISIBLE_DEVICES (CUDA C++
 * Programming Guide, "CUDA Environment Variables"). There is one case in which NVML cannot know
 * what CUDA means: an index where GPUs of different models are numbered by speed. Then, and where
 * NVML is absent, assay-train --list-devices is asked, in a process of its own, because asking CUDA
 * opens the device.
 *
 * A machine without a driver is the common case. It is silent and costs nothing. */
#include "trial-runner/process/gpus.h"

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/utf8.h"
#include "trial-runner/process/child.h"

#define NONE SIZE_MAX
#define ASK_PATIENCE_MS 60000
#define ANSWER_MAX ((size_t)64 << 10)
#define FAULT_MAX 300
#define FAULT_ALL "all: "

/* ---- lists ---- */

static bool has_id(const struct gpu_list *l, const char *id)
{
    for (size_t i = 0; i < l->n; i++)
        if (as_streq(l->v[i].id, id))
            return true;
    return false;
}

static as_status add_gpu(struct gpu_list *l, const char *id, int64_t memory_bytes,
                         struct as_err *err)
{
    if (l->n == GPUS_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "more than %d GPUs", GPUS_MAX);
    struct gpu *g = &l->v[l->n++];
    (void)snprintf(g->id, sizeof g->id, "%s", id);
    g->memory_bytes = memory_bytes;
    return AS_OK;
}

__attribute__((format(printf, 2, 3))) static void note(struct gpu_list *l, const char *fmt, ...)
{
    size_t n = strlen(l->note);
    va_list args;
    if (n > 0)
        n += (size_t)snprintf(l->note + n, sizeof l->note - n, "; ");
    if (n >= sizeof l->note)
        return;
    va_start(args, fmt);
    (void)vsnprintf(l->note + n, sizeof l->note - n, fmt, args);
    va_end(args);
    as_utf8_repair(l->note);
}

/* ---- which devices CUDA would take ---- */

static bool is_index(const char *entry, size_t len)
{
    return len > 0 && len < 6 && strspn(entry, "0123456789") >= len;
}

/* Returns the place of GPU number `index`, or NONE. */
static size_t find_index(const struct nvml_devices *all, size_t index)
{
    for (size_t i = 0; i < all->n; i++)
        if (!all->v[i].is_part && index-- == 0)
            return i;
    return NONE;
}

/* Returns the place of the one device whose id begins so, or NONE. */
static size_t find_id(const struct nvml_devices *all, const char *entry, size_t len)
{
    size_t found = NONE;
    if (len <= strlen("GPU-"))
        return NONE;
    for (size_t i = 0; i < all->n; i++) {
        const char *id = all->v[i].id;
        if (strncmp(id, entry, len) != 0)
            continue;
        if (id[len] == '\0')
            return i;
        if (found != NONE)
            return NONE; /* it does not say which */
        found = i;
    }
    return found;
}

/* Returns the place of the device that an entry means: for a divided GPU its first part. */
static size_t find_entry(const struct nvml_devices *all, const char *entry, size_t len)
{
    size_t i =
        is_index(entry, len) ? find_index(all, strtoul(entry, NULL, 10)) : find_id(all, entry, len);
    if (i == NONE || !all->v[i].is_divided)
        return i;
    return i + 1 < all->n && all->v[i + 1].is_part ? i + 1 : NONE;
}

/* Returns the next entry of a list with its length, and moves *at behind it; NULL at the end. */
static const char *next_entry(const char **at, size_t *ret_len)
{
    const char *entry = *at;
    if (!entry)
        return NULL;
    size_t len = strcspn(entry, ",");
    *at = entry[len] ? entry + len + 1 : NULL;
    while (len > 0 && isspace((unsigned char)*entry))
        entry++, len--;
    while (len > 0 && isspace((unsigned char)entry[len - 1]))
        len--;
    *ret_len = len;
    return entry;
}

static as_status select_all(const struct nvml_devices *all, struct gpu_list *ret,
                            struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < all->n; i++)
        if (all->v[i].id[0] && !all->v[i].is_divided)
            st = add_gpu(ret, all->v[i].id, all->v[i].memory_bytes, err);
    return st;
}

as_status gpus_select(const struct nvml_devices *all, const char *visible, struct gpu_list *ret,
                      struct as_err *err)
{
    const char *entry;
    size_t len = 0;
    if (!visible)
        return select_all(all, ret, err);
    while ((entry = next_entry(&visible, &len))) {
        size_t i = find_entry(all, entry, len);
        if (i == NONE || !all->v[i].id[0])
            return AS_OK;
        if (has_id(ret, all->v[i].id))
            continue;
        as_status st = add_gpu(ret, all->v[i].id, all->v[i].memory_bytes, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

bool gpus_order_is_unclear(const struct nvml_devices *all, const char *visible, const char *order)
{
    const char *entry;
    size_t len = 0;
    if (!visible || all->are_alike || (order && as_streq(order, "PCI_BUS_ID")))
        return false;
    while ((entry = next_entry(&visible, &len)))
        if (is_index(entry, len))
            return true;
    return false;
}

/* ---- asking the trainer ---- */

as_status gpus_parse(const char *text, struct gpu_list *ret, struct as_err *err)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        char id[GPU_ID_MAX], digits[21];
        line += *line == '\n';
        _Static_assert(GPU_ID_MAX == 96, "the width below is one less");
        int64_t bytes;
        if (sscanf(line, "gpu %95s %20[0-9]", id, digits) != 2 ||
            as_parse_i64(digits, &bytes, NULL) != AS_OK || !as_utf8_valid(id, strlen(id)) ||
            has_id(ret, id))
            continue;
        as_status st = add_gpu(ret, id, bytes, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* Read a child's output to its end. Returns false when it took too long. */
static bool read_answer(int fd, struct str *out)
{
    char bytes[4096];
    int64_t end = clock_mono_ns() + ASK_PATIENCE_MS * NS_PER_MS;
    for (;;) {
        int64_t left = (end - clock_mono_ns()) / NS_PER_MS;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (left <= 0 || poll(&p, 1, (int)left) == 0)
            return false;
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n == 0)
            return true;
        if (n > 0 && out->len + (size_t)n <= ANSWER_MAX)
            str_add(out, bytes, (size_t)n);
    }
}

static as_status ask_trainer(const char *trainer, const char *visible, struct str *out,
                             struct as_err *err)
{
    AS_AUTO(child_spec_done) struct child_spec s = {0};
    AS_AUTO(file_closep) int fd = -1;
    const char *args[] = {trainer, "--list-devices"};
    int status = 0;
    pid_t pid = 0;
    as_status st = child_spec_set_argv(&s, args, 2, err);
    if (st == AS_OK)
        st = child_env_init(&s.env, environ, err);
    if (st == AS_OK && visible)
        st = child_env_set(&s.env, "CUDA_VISIBLE_DEVICES", visible, err);
    if (st == AS_OK)
        st = child_spawn(&s, &pid, &fd, err);
    if (st != AS_OK)
        return st;
    bool in_time = read_answer(fd, out);
    child_signal_group(pid, SIGKILL); /* it has ended, or is too late */
    (void)waitpid(pid, &status, 0);
    if (!in_time)
        return as_fail(err, AS_E_TIMEOUT, "%s --list-devices does not end", trainer);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return str_check(out, err);
    const char *text = str_cstr(out);
    return as_fail(err, AS_E_UNAVAILABLE, "%.*s", (int)strcspn(text, "\n"), text);
}

static as_status list_by_trainer(const char *trainer, const char *visible, struct gpu_list *ret,
                                 struct as_err *err)
{
    AS_AUTO(str_done) struct str out = {0};
    as_status st = ask_trainer(trainer, visible, &out, err);
    return st == AS_OK ? gpus_parse(str_cstr(&out), ret, err) : st;
}

/* ---- finding ---- */

/* Is there a driver at all? Without one nobody needs to be asked. */
static bool has_driver(void)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvhost-ctrl", "/dev/dxg"};
    const char *named = getenv("ASSAY_NVML");
    for (size_t i = 0; i < AS_ARRAY_LEN(nodes); i++)
        if (access(nodes[i], F_OK) == 0)
            return true;
    return named && *named;
}

/* The devices that `visible` shows; none if the driver cannot be asked. */
static as_status find_visible(const char *visible, const char *trainer, struct gpu_list *ret,
                              struct as_err *err)
{
    AS_AUTO(nvml_devices_done) struct nvml_devices all = {0};
    struct as_err why, no_trainer;
    if (!has_driver())
        return AS_OK;
    as_status st = nvml_list(&all, &why);
    if (st == AS_E_NOMEM)
        return as_fail_nomem(err);
    if (st == AS_OK && !gpus_order_is_unclear(&all, visible, getenv("CUDA_DEVICE_ORDER")))
        return gpus_select(&all, visible, ret, err);
    note(ret, "%s: asking %s",
         st == AS_OK ? "CUDA may number GPUs of several models in another order than NVML "
                       "(CUDA_DEVICE_ORDER=PCI_BUS_ID makes it clear)"
                     : why.msg,
         trainer);
    if (list_by_trainer(trainer, visible, ret, &no_trainer) == AS_OK)
        return AS_OK;
    note(ret, "%s", no_trainer.msg);
    ret->n = 0;
    return st == AS_OK ? gpus_select(&all, visible, ret, err) : AS_OK;
}

/* Find what one entry of --gpus means, and add it. */
static as_status add_named(const char *entry, size_t len, const char *trainer, struct gpu_list *ret,
                           struct as_err *err)
{
    AS_AUTO(as_freep) struct gpu_list *found = as_calloc(1, sizeof *found);
    char text[GPU_ID_MAX];
    if (!found)
        return as_fail_nomem(err);
    if (len == 0 || len > 80)
        return as_fail(err, AS_E_INVAL, "--gpus: expected 0,1,… or UUIDs, auto, auto:I/N, or none");
    (void)snprintf(text, sizeof text, "%.*s", (int)len, entry);
    as_status st = find_visible(text, trainer, found, err);
    if (st != AS_OK)
        return st;
    if (found->note[0] && !ret->note[0])
        note(ret, "%s", found->note);
    else if (found->n != 1 && has_driver())
        note(ret, "--gpus: the driver lists no GPU %s", text);
    const char *id = found->n == 1 ? found->v[0].id : text;
    if (has_id(ret, id))
        return as_fail(err, AS_E_INVAL, "--gpus: %s is given twice", text);
    return add_gpu(ret, id, found->n == 1 ? found->v[0].memory_bytes : 0, err);
}

static as_status find_named(const char *words, const char *trainer, struct gpu_list *ret,
                            struct as_err *err)
{
    for (const char *at = words; at;) {
        size_t len = strcspn(at, ",");
        as_status st = add_named(at, len, trainer, ret, err);
        if (st != AS_OK)
            return st == AS_E_TOO_LARGE ? as_err_prefix(err, st, "--gpus") : st;
        at = at[len] ? at + len + 1 : NULL;
    }
    return AS_OK;
}

/* Keep every nth GPU, from the first-th on (0-based). */
static void keep_share(struct gpu_list *l, size_t first, size_t nth)
{
    size_t kept = 0;
    for (size_t i = first; i < l->n; i += nth)
        l->v[kept++] = l->v[i];
    l->n = kept;
}

as_status gpus_find(const char *words, const char *trainer, struct gpu_list *ret,
                    struct as_err *err)
{
    char digits[2][5];
    int64_t part = 1, parts = 1;
    int end = 0;
    if (words && (!*words || as_streq(words, "none")))
        return AS_OK;
    bool has_share = words && as_starts_with(words, "auto:");
    if (has_share && (sscanf(words, "auto:%4[0-9]/%4[0-9]%n", digits[0], digits[1], &end) != 2 ||
                      words[end] || as_parse_i64(digits[0], &part, NULL) != AS_OK ||
                      as_parse_i64(digits[1], &parts, NULL) != AS_OK || part < 1 || part > parts))
        return as_fail(err, AS_E_INVAL, "--gpus: found '%.40s', expected auto:I/N, 1 <= I <= N",
                       words);
    if (words && !has_share && !as_streq(words, "auto"))
        return find_named(words, trainer, ret, err);
    as_status st = find_visible(getenv("CUDA_VISIBLE_DEVICES"), trainer, ret, err);
    if (st == AS_OK)
        keep_share(ret, (size_t)part - 1, (size_t)parts);
    return st;
}

/* ---- faults ---- */

bool gpus_read_fault(const char *path, struct str *reason, bool *ret_all)
{
    struct stat sb;
    char text[FAULT_MAX + 1];
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &sb) != 0 || !S_ISREG(sb.st_mode))
        return false;
    ssize_t n = read(fd, text, FAULT_MAX);
    if (n < 0)
        return false;
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    as_utf8_repair(text);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    *ret_all = as_starts_with(text, FAULT_ALL);
    const char *from = *ret_all ? text + strlen(FAULT_ALL) : text;
    str_puts(reason, *from ? from : "the trial gave no reason");
    return !reason->failed;
}
