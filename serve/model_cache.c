/* A list under a read-write lock: requests take the read lock for the time of a look-up and a
 * reference, a load takes the write lock only to exchange one pointer. Places are never removed, so
 * their counters are used without the lock and survive versions. A name that was configured and is
 * not loaded yet is known but not ready. */
#include "serve/model_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

struct place {
    char *name;
    bool is_expected;
    struct served *version; /* NULL: none now */
    struct stats stats;
};

struct model_cache {
    struct served_options opts;
    pthread_rwlock_t lock; /* guards the list and the version of each place */
    struct place **places; /* places stay until the end: their counters are used without the lock */
    size_t n, cap;
};

as_status model_cache_create(const struct served_options *opts, struct model_cache **ret,
                             struct as_err *err)
{
    struct model_cache *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    s->opts = *opts;
    (void)pthread_rwlock_init(&s->lock, NULL); /* cannot fail with default attributes on Linux */
    *ret = s;
    return AS_OK;
}

void model_cache_free(struct model_cache *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        served_unref(s->places[i]->version);
        free(s->places[i]->name);
        free(s->places[i]);
    }
    free(s->places);
    (void)pthread_rwlock_destroy(&s->lock);
    free(s);
}

static bool is_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n > 0 && n <= 64 && name[n] == '\0' && !strchr("._-", name[0]);
}

static struct place *find_locked(const struct model_cache *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (as_streq(s->places[i]->name, name))
            return s->places[i];
    return NULL;
}

static as_status add_locked(struct model_cache *s, const char *name, struct place **ret,
                            struct as_err *err)
{
    if (!is_name(name))
        return as_fail(err, AS_E_INVAL,
                       "'%.80s' is no name of a model: expected letters, digits, '.', '_' and '-', "
                       "at most 64, a letter or digit first",
                       name);
    as_status st = as_reserve_one(&s->places, s->n, &s->cap, sizeof(struct place *), err);
    if (st < 0)
        return st;
    struct place *p = as_calloc(1, sizeof *p);
    if (p)
        p->name = as_strdup(name);
    if (!p || !p->name) {
        free(p);
        return as_fail_nomem(err);
    }
    s->places[s->n++] = p;
    *ret = p;
    return AS_OK;
}

static as_status place_of(struct model_cache *s, const char *name, struct place **ret,
                          struct as_err *err)
{
    pthread_rwlock_wrlock(&s->lock);
    struct place *p = find_locked(s, name);
    as_status st = p ? AS_OK : add_locked(s, name, &p, err);
    pthread_rwlock_unlock(&s->lock);
    if (st == AS_OK)
        *ret = p;
    return st;
}

as_status model_cache_expect(struct model_cache *s, const char *name, struct as_err *err)
{
    struct place *p = NULL;
    pthread_rwlock_wrlock(&s->lock);
    as_status st = find_locked(s, name)
                       ? as_fail(err, AS_E_INVAL, "two models are to be served as '%.64s'", name)
                       : add_locked(s, name, &p, err);
    if (st == AS_OK)
        p->is_expected = true;
    pthread_rwlock_unlock(&s->lock);
    return st;
}

void model_cache_failed(struct model_cache *s, const char *name, const char *what,
                        const struct as_err *err)
{
    struct place *p = NULL;
    if (place_of(s, name, &p, NULL) == AS_OK)
        (void)atomic_fetch_add(&p->stats.load_failures, 1);
    log_write(LOG_ERROR, "model not loaded", "model=%s from=\"%s\" status=%s detail=\"%s\"", name,
              what, as_status_name(err->code), err->msg);
}

as_status model_cache_load(struct model_cache *s, const char *name, const char *version,
                           struct file_image *image, struct as_err *err)
{
    AS_AUTO(file_image_done) struct file_image owned = *image;
    *image = (struct file_image){0};
    struct served *v = NULL;
    struct place *p = NULL;
    int64_t start = clock_mono_ns();
    as_status st = place_of(s, name, &p, err);
    if (st < 0)
        return st;
    st = served_load(name, version, &owned, &s->opts, &v, err);
    if (st < 0)
        return st;
    v->stats = &p->stats;
    (void)atomic_fetch_add(&p->stats.loads, 1);
    log_write(LOG_INFO, "model loaded", "model=%s version=%s sha256=%s members=%zu seconds=%.3f",
              name, v->version, v->sha256, model_file_n_members(v->file),
              (double)(clock_mono_ns() - start) / 1e9);
    pthread_rwlock_wrlock(&s->lock);
    struct served *old = p->version;
    p->version = v;
    pthread_rwlock_unlock(&s->lock);
    served_unref(old);
    return AS_OK;
}

void model_cache_remove(struct model_cache *s, const char *name)
{
    pthread_rwlock_wrlock(&s->lock);
    struct place *p = find_locked(s, name);
    struct served *old = p ? as_steal(p->version) : NULL;
    pthread_rwlock_unlock(&s->lock);
    if (old)
        log_write(LOG_INFO, "model removed", "model=%s version=%s", name, old->version);
    served_unref(old);
}

struct served *model_cache_take(struct model_cache *s, const char *name, bool *ret_known)
{
    pthread_rwlock_rdlock(&s->lock);
    const struct place *p = find_locked(s, name);
    struct served *v = p && p->version ? served_ref(p->version) : NULL;
    *ret_known = p && (p->version || p->is_expected);
    pthread_rwlock_unlock(&s->lock);
    return v;
}

bool model_cache_is_ready(struct model_cache *s)
{
    bool is_ready = true;
    pthread_rwlock_rdlock(&s->lock);
    for (size_t i = 0; i < s->n; i++)
        is_ready &= !s->places[i]->is_expected || s->places[i]->version;
    pthread_rwlock_unlock(&s->lock);
    return is_ready;
}

void model_cache_write_stats(struct model_cache *s, struct str *out)
{
    pthread_rwlock_rdlock(&s->lock);
    AS_AUTO(as_freep) struct stats_of *models = as_calloc(s->n, sizeof *models);
    for (size_t i = 0; models && i < s->n; i++)
        models[i] = (struct stats_of){s->places[i]->name,
                                      s->places[i]->version ? s->places[i]->version->version : "",
                                      &s->places[i]->stats};
    if (models)
        stats_write(models, s->n, out);
    pthread_rwlock_unlock(&s->lock);
}
