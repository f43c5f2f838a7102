/* Search for the plugin in the folders that backend.h lists at backend_open. The first file that
 * exists is used. If it does not load, that is an error, and the search does not go on. */
#include "kernels/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "kernels/peers_priv.h"

#define PLUGIN_FILE "libassay-cuda.so"

/* Writes the folder of the running executable to `dir`; false when it is unknown. */
static bool exe_dir(char dir[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
    if (n <= 0)
        return false;
    dir[n] = '\0';
    char *slash = strrchr(dir, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

/* Whether there is a plugin in dir and below; writes its path to `path`. */
static bool plugin_in(const char *dir, const char *below, char path[PATH_MAX])
{
    int n = snprintf(path, PATH_MAX, "%s%s/" PLUGIN_FILE, dir, below);
    return n > 0 && n < PATH_MAX && access(path, F_OK) == 0;
}

static as_status plugin_find(char path[PATH_MAX], struct as_err *err)
{
    const char *only = getenv("ASSAY_PLUGIN_DIR");
    if (only != NULL && only[0] != '\0') {
        if (plugin_in(only, "", path))
            return AS_OK;
        return as_fail(err, AS_E_UNSUPPORTED,
                       "back end cuda: no " PLUGIN_FILE " in ASSAY_PLUGIN_DIR (%s)", only);
    }
    char dir[PATH_MAX];
    /* A build tree has its programs one folder deep (bench/) or two (trial-runner/train/). An
     * installation may have been moved as a whole. */
    if (exe_dir(dir) && (plugin_in(dir, "", path) || plugin_in(dir, "/../kernels", path) ||
                         plugin_in(dir, "/../../kernels", path) ||
                         plugin_in(dir, "/" ASSAY_PLUGIN_FROM_PROGRAM, path)))
        return AS_OK;
    if (plugin_in(ASSAY_PLUGIN_INSTALL_DIR, "", path))
        return AS_OK;
    return as_fail(err, AS_E_UNSUPPORTED,
                   "back end cuda: no " PLUGIN_FILE " beside the program nor in %s: this build has "
                   "none (ASSAY_PLUGIN_DIR names another folder)",
                   ASSAY_PLUGIN_INSTALL_DIR);
}

/* Can there be a device? Loading the plugin costs 150 ms and 220 MB in each process, so a process
 * that can have none does not load it. Whoever names a plugin gets it loaded: it may be a stand-in
 * that needs no driver. */
static as_status check_device_visible(struct as_err *err)
{
    static const char *const drivers[] = {"/dev/nvidiactl", "/dev/nvhost-ctrl", "/dev/dxg"};
    const char *named = getenv("ASSAY_PLUGIN_DIR"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (named != NULL && named[0] != '\0')
        return AS_OK;
    if (visible != NULL && (visible[0] == '\0' || strcmp(visible, "-1") == 0))
        return as_fail(err, AS_E_UNAVAILABLE,
                       "back end cuda: CUDA_VISIBLE_DEVICES is '%s': it hides every GPU", visible);
    for (size_t i = 0; i < AS_ARRAY_LEN(drivers); i++)
        if (access(drivers[i], F_OK) == 0)
            return AS_OK;
    return as_fail(err, AS_E_UNAVAILABLE, "back end cuda: no driver: there is no %s", drivers[0]);
}

static as_status plugin_load(const struct backend_plugin **ret, void **ret_handle,
                             struct as_err *err)
{
    char path[PATH_MAX];
    as_status st = plugin_find(path, err);
    if (st < 0)
        return st;
    st = check_device_visible(err);
    if (st < 0)
        return st;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return as_fail(err, AS_E_UNAVAILABLE, "back end cuda: the plugin does not load: %s",
                       dlerror());
    const struct backend_plugin *plugin = dlsym(handle, BACKEND_PLUGIN_SYMBOL);
    if (plugin == NULL || plugin->abi != BACKEND_ABI) {
        st = as_fail(err, AS_E_UNSUPPORTED,
                     "back end cuda: %s is of another version (interface %u, wanted %u)", path,
                     plugin == NULL ? 0 : plugin->abi, BACKEND_ABI);
        dlclose(handle);
        return st;
    }
    *ret = plugin;
    *ret_handle = handle;
    return AS_OK;
}

as_status plugin_open(const struct backend_opts *opts, struct backend **ret, struct as_err *err)
{
    const struct backend_plugin *plugin = NULL;
    void *handle = NULL;
    as_status st = plugin_load(&plugin, &handle, err);
    return st < 0 ? st : plugin->open(opts, ret, err);
}

as_status plugin_gpus(struct backend_gpu *ret, size_t most, size_t *ret_n, struct as_err *err)
{
    const struct backend_plugin *plugin = NULL;
    void *handle = NULL;
    as_status st = plugin_load(&plugin, &handle, err);
    return st < 0 ? st : plugin->gpus(ret, most, ret_n, err);
}

as_status plugin_peers(const struct peers_ops **ret, struct as_err *err)
{
    const struct backend_plugin *plugin = NULL;
    void *handle = NULL;
    as_status st = plugin_load(&plugin, &handle, err);
    if (st < 0)
        return st;
    const struct peers_ops *ops = dlsym(handle, PEERS_OPS_SYMBOL);
    if (ops == NULL || ops->abi != PEERS_ABI)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "back end cuda: the plugin has no messages between devices (interface %u, "
                       "wanted %u)",
                       ops == NULL ? 0 : ops->abi, PEERS_ABI);
    *ret = ops;
    return AS_OK;
}
