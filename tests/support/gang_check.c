#include "tests/support/gang_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/formats/npy.h"
#include "tests/support/check_main.h"

void gang_pictures(struct rig *rig)
{
    enum { N = 600, SIDE = 8, CHANNELS = 2, PIXELS = SIDE * SIDE * CHANNELS };
    static float x[N * PIXELS];
    static int64_t y[N];
    AS_AUTO(as_freep) char *xp = file_join(rig->dir, "x.npy");
    AS_AUTO(as_freep) char *yp = file_join(rig->dir, "y.npy");
    struct rng r;
    rng_init(&r, 11, 0);
    for (size_t i = 0; i < N; i++) {
        y[i] = (int64_t)rng_below(&r, 2);
        for (size_t k = 0; k < PIXELS; k++) {
            bool left = k / CHANNELS % SIDE < SIDE / 2;
            x[i * PIXELS + k] = (float)(rng_normal(&r) + (left == (y[i] == 0) ? 1 : 0));
        }
    }
    size_t shape[] = {N, SIDE, SIDE, CHANNELS};
    ck_ok(npy_write(xp, NPY_F4, shape, 4, x, &rig->err), rig->err);
    ck_ok(npy_write(yp, NPY_I8, shape, 1, y, &rig->err), rig->err);
    struct dataset_paths paths = {.features = xp, .targets = yp};
    rig_data(rig, "pictures", &paths, DATASET_NPY, DATASET_TASK_AUTO);
}

static void use_table(struct rig *rig, const char *name, struct str *text)
{
    char path[200];
    const struct iovec part = {text->s, text->len};
    const struct dataset_paths paths = {.table = path};
    (void)snprintf(path, sizeof path, "%s/%s.csv", rig->dir, name);
    ck_ok(file_publishv(path, &part, 1, 0644, &rig->err), rig->err);
    rig_data(rig, name, &paths, DATASET_CSV, DATASET_TASK_AUTO);
}

void gang_cloud(struct rig *rig)
{
    AS_AUTO(str_done) struct str text = {0};
    struct rng r;
    rng_init(&r, 11, 0);
    str_puts(&text, "a,b,c,d,e,f,none\n");
    for (size_t i = 0; i < 40000; i++) {
        for (size_t c = 0; c < 6; c++)
            str_printf(&text, "%.4f,", rng_uniform(&r));
        str_printf(&text, "%zu\n", i % 2);
    }
    use_table(rig, "cloud", &text);
}

void gang_categories(struct rig *rig)
{
    enum { ROWS = 1200, KINDS = 300 };
    AS_AUTO(str_done) struct str text = {0};
    struct rng r;
    rng_init(&r, 9, 1);
    str_puts(&text, "a,b,c\n");
    for (int i = 0; i < ROWS; i++) {
        unsigned a = (unsigned)rng_below(&r, KINDS), b = (unsigned)rng_below(&r, KINDS);
        str_printf(&text, "w%u,v%u,%s\n", a, b, a + b < KINDS ? "low" : "high");
    }
    use_table(rig, "words", &text);
}

char *gang_read(const struct rig *rig, const char *tag, const char *folder, const char *name,
                size_t *ret_len)
{
    char *bytes = rig_read(rig, tag, folder, name, ret_len);
    ck_assert_msg(bytes != NULL, "%s/%s/%s is missing", tag, folder, name);
    return bytes;
}

void gang_same_file(const struct rig *rig, const char *a, const char *b, const char *folder,
                    const char *name)
{
    size_t n, m;
    AS_AUTO(as_freep) char *x = gang_read(rig, a, folder, name, &n);
    AS_AUTO(as_freep) char *y = gang_read(rig, b, folder, name, &m);
    ck_assert_uint_eq(n, m);
    ck_assert_msg(memcmp(x, y, n) == 0, "%s/%s differs from %s's", b, name, a);
}

void gang_same_results(const struct rig *rig, const char *a, const char *b)
{
    gang_same_file(rig, a, b, "artifacts", "model.safetensors");
    gang_same_file(rig, a, b, "artifacts", "predictions.npy");
}

void gang_same_reports(const char *calm, const struct gang *g)
{
    size_t len;
    AS_AUTO(as_freep) char *all = gang_read(g->rig, calm, "r0", "report", &len);
    for (size_t i = 0; i < g->n; i++) {
        char folder[24], *rest = NULL;
        (void)snprintf(folder, sizeof folder, "r%zu", i);
        AS_AUTO(as_freep) char *own = rig_read(g->rig, g->tag, folder, "report", &len);
        for (char *line = own ? strtok_r(own, "\n", &rest) : NULL; line;
             line = strtok_r(NULL, "\n", &rest))
            ck_assert_msg(strstr(all, line) != NULL, "%s/%s reports %s", g->tag, folder, line);
    }
}

static void show_errors(const struct gang *g, size_t place)
{
    char folder[24];
    size_t len;
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    AS_AUTO(as_freep) char *err = rig_read(g->rig, g->tag, folder, "err", &len);
    AS_AUTO(as_freep) char *out = rig_read(g->rig, g->tag, folder, "out", &len);
    (void)fprintf(stderr, "%s/%s ended with %d:\n%s%s", g->tag, folder, g->ended[place],
                  out ? out : "", err ? err : "");
}

void gang_ended_well(const struct gang *g, int signal)
{
    size_t well = 0, ill = 0;
    for (size_t i = 0; i < g->n; i++) {
        bool as_expected = g->ended[i] == 0 || (signal != 0 && g->ended[i] == -signal);
        well += g->ended[i] == 0;
        ill += !as_expected;
        if (!as_expected)
            show_errors(g, i);
    }
    ck_assert_msg(well > 0 && ill == 0, "%s: %zu ranks ended well, %zu as they must not", g->tag,
                  well, ill);
}

void gang_run_calm(struct rig *rig, const char *tag, const struct trial *t, size_t n)
{
    struct gang g;
    gang_start(&g, rig, tag, t, n);
    gang_run(&g);
    gang_ended_well(&g, 0);
    gang_done(&g);
}
