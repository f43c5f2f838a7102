/* dlopen() once per process, under a lock; a table of names and offsets fills struct xgboost, so a
 * function that is missing is named. xgboost_opening_begin() loads the library in a thread while
 * the data are read, which hides 6 ms (decision 2007); the environment is set before that thread
 * begins, because setenv() beside getenv() in another thread is not safe. */
#include "model/trees/xgboost.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "model/trees/ubjson.h"

#define LIBRARY "libxgboost.so.0"
#define LIBRARY_ELSEWHERE "libxgboost.so"

static const struct {
    const char *name;
    size_t at;
} symbols[] = {
#define XGBOOST_SYMBOL(type, name, symbol, parameters) {#symbol, offsetof(struct xgboost, name)},
    XGBOOST_FUNCTIONS(XGBOOST_SYMBOL)
#undef XGBOOST_SYMBOL
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xgboost library; /* guarded by lock until is_open; constant from then on */
static bool is_open;

/* GNU's OpenMP reads these variables when it is loaded, which is now. By default its threads spin
 * while they wait for each other, and on a machine that has other work, as a runner's has, each of
 * the many short loops then costs a time slice: 60 rounds of small trees took 17 s instead of 0.9
 * s. A user's own setting stays. */
static void let_threads_sleep(void)
{
    if (!getenv("GOMP_SPINCOUNT"))
        (void)setenv("OMP_WAIT_POLICY", "passive", 0);
}

static as_status open_library(const char **ret_name, void **ret, struct as_err *err)
{
    const char *named = getenv("ASSAY_XGBOOST");
    *ret_name = named && *named ? named : LIBRARY;
    let_threads_sleep();
    *ret = dlopen(*ret_name, RTLD_NOW | RTLD_LOCAL);
    if (*ret)
        return AS_OK;
    AS_AUTO(as_freep) char *why = as_strdup(dlerror());
    if (!named || !*named)
        *ret = dlopen(LIBRARY_ELSEWHERE, RTLD_NOW | RTLD_LOCAL);
    if (*ret)
        return AS_OK;
    return as_fail(err, AS_E_UNSUPPORTED,
                   "models of trees need XGBoost's library, which does not open: %.120s (install "
                   "libxgboost0, or name the file in ASSAY_XGBOOST)",
                   why ? why : *ret_name);
}

static as_status find_functions(const char *name, void *handle, struct xgboost *x,
                                struct as_err *err)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(symbols); i++) {
        void *f = dlsym(handle, symbols[i].name);
        if (!f)
            return as_fail(err, AS_E_UNSUPPORTED,
                           "XGBoost (%.80s) has no %s, expected a version from 1.7 to 2.x", name,
                           symbols[i].name);
        memcpy((char *)x + symbols[i].at, &f, sizeof f);
    }
    x->version(&x->major, &x->minor, &x->patch);
    if ((x->major == 1 && x->minor >= 7) || x->major == 2)
        return AS_OK;
    return as_fail(err, AS_E_UNSUPPORTED,
                   "XGBoost (%.80s) has version %d.%d.%d, expected one from 1.7 to 2.x", name,
                   x->major, x->minor, x->patch);
}

static as_status open_locked(struct as_err *err)
{
    const char *name = NULL;
    void *handle = NULL;
    struct xgboost x = {0};
    as_status st = open_library(&name, &handle, err);
    if (st != AS_OK)
        return st;
    st = find_functions(name, handle, &x, err);
    if (st == AS_OK)
        st = xgboost_check(&x, x.set_global("{\"verbosity\": 0}"), "its configuration", err);
    if (st != AS_OK) {
        (void)dlclose(handle);
        return st;
    }
    library = x;
    is_open = true;
    return AS_OK;
}

as_status xgboost_open(const struct xgboost **ret, struct as_err *err)
{
    (void)pthread_mutex_lock(&lock);
    as_status st = is_open ? AS_OK : open_locked(err);
    (void)pthread_mutex_unlock(&lock);
    if (st == AS_OK)
        *ret = &library;
    return st;
}

/* Only what takes time: the configuration that xgboost_open() sets is one of the calling thread. */
static void *open_in_thread(void *arg)
{
    const char *name;
    void *handle;
    struct as_err why;
    (void)arg;
    (void)open_library(&name, &handle, &why); /* if it fails, xgboost_open() fails too */
    return NULL;
}

void xgboost_opening_begin(struct xgboost_opening *o)
{
    let_threads_sleep(); /* another thread must not change the environment */
    o->is_running = pthread_create(&o->thread, NULL, open_in_thread, NULL) == 0;
}

void xgboost_opening_wait(struct xgboost_opening *o)
{
    if (o->is_running)
        (void)pthread_join(o->thread, NULL);
    o->is_running = false;
}

as_status xgboost_check(const struct xgboost *x, int result, const char *what, struct as_err *err)
{
    if (result == 0)
        return AS_OK;
    const char *why = x->last_error();
    bool memory = why && (strstr(why, "bad_alloc") || strstr(why, "bad_array_new_length"));
    return as_fail(err, memory ? AS_E_NOMEM : AS_E_INTERNAL, "XGBoost: %s: %.160s", what,
                   why && *why ? why : "unknown error");
}

as_status xgboost_load(const struct xgboost *x, xgb_booster b, const void *bytes, size_t len,
                       struct as_err *err)
{
    const struct ubjson *model = NULL;
    AS_AUTO(arena_done) struct arena memory = {0};
    as_status st = ubjson_parse(&memory, bytes, len, &model, err);
    if (st == AS_OK && model->kind != UBJSON_OBJECT)
        st = as_fail(err, AS_E_INVAL, "expected an object");
    if (st == AS_OK)
        st = xgboost_check(x, x->booster_load(b, bytes, len), "the trees cannot be read", err);
    if (st == AS_E_INTERNAL || st == AS_E_INVAL)
        return as_err_prefix(err, AS_E_INVAL, "no model of trees");
    return st;
}

void xgboost_array(const float *data, size_t rows, size_t columns, char ret[XGBOOST_ARRAY_MAX])
{
    char second[32] = "";
    if (columns > 0)
        (void)snprintf(second, sizeof second, ", %zu", columns);
    (void)snprintf(ret, XGBOOST_ARRAY_MAX,
                   "{\"data\": [%" PRIuPTR ", true], \"shape\": [%zu%s], \"typestr\": \"<f4\", "
                   "\"version\": 3}",
                   (uintptr_t)data, rows, second);
}
