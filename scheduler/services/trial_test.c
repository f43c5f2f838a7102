#include "scheduler/services/trial_test.h"

#include "base/json.h"
#include "base/str.h"
#include "scheduler/content/blobs.h"

#define MAX_BYTES 65536
#define MAX_METRICS 64

static const struct file_row *find_file(const struct file_list *artifacts)
{
    for (size_t i = 0; i < artifacts->n; i++)
        if (as_streq(artifacts->rows[i].path, TRIAL_TEST_NAME))
            return &artifacts->rows[i];
    return NULL;
}

/* Is it what the trainer writes? */
static bool is_valid(const json_t *j)
{
    const json_t *rows = json_object_get(j, "rows"), *metrics = json_object_get(j, "metrics");
    const char *name;
    json_t *value;
    double v;
    if (json_object_size(j) != 2 || json_integer_value(rows) < 1 || !json_is_object(metrics) ||
        json_object_size(metrics) > MAX_METRICS)
        return false;
    json_object_foreach((json_t *)metrics, name, value)
    {
        if (!json_number_get(value, &v))
            return false;
    }
    return true;
}

static as_status read_all(struct store *db, const struct file_row *f, char *buf, struct as_err *err)
{
    size_t size = (size_t)f->size, n = 0;
    as_status st = AS_OK;
    for (size_t at = 0; st == AS_OK && at < size; at += n) {
        st = blob_read(db, f->sha256, (int64_t)at, buf + at, size - at, &n, err);
        if (st == AS_OK && n == 0)
            return as_fail(err, AS_E_IO, "content %s is shorter than its size", f->sha256);
    }
    return st;
}

as_status trial_test_read(struct store *db, struct arena *a, const struct file_list *artifacts,
                          const char **ret, struct as_err *err)
{
    const struct file_row *f = find_file(artifacts);
    JSON_AUTO j = NULL;
    struct as_err why = {0};
    *ret = NULL;
    if (!f || f->size < 1 || f->size > MAX_BYTES)
        return AS_OK;
    AS_AUTO(as_freep) char *text = as_calloc((size_t)f->size, 1);
    if (!text)
        return as_fail_nomem(err);
    as_status st = read_all(db, f, text, &why);
    if (st == AS_E_UNAVAILABLE)
        return as_fail(err, st, "%s", why.msg);
    if (st != AS_OK || json_parse(text, (size_t)f->size, &j, NULL) != AS_OK || !is_valid(j))
        return AS_OK;
    AS_AUTO(as_freep) char *own = json_format(j);
    *ret = arena_strdup(a, own);
    return *ret ? AS_OK : as_fail_nomem(err);
}
