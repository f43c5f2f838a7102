/* The built-in trainer on the digits: reading the table, 20 epochs of a 64-64-32-10 MLP alone and
 * as groups of K fused members. Run it in the repository's root, or with ASSAY_SOURCE_ROOT set. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench/bench.h"
#include "trial-runner/train/loop.h"

#define MAX_MEMBERS 32

static struct as_err err;

/* A benchmark that cannot run ends. */
static void must(as_status st)
{
    if (st == AS_OK)
        return;
    (void)fprintf(stderr, "bench/train: %s\n", err.msg);
    exit(EXIT_FAILURE);
}

struct setup {
    struct dataset_paths paths;
    struct dataset_info info;
    struct train_spec spec;
    struct train_data data;
    struct backend *be;
    size_t members;
};

static void load(void *arg)
{
    struct setup *s = arg;
    struct dataset set;
    must(dataset_load(&s->paths, &s->info, &set, &err));
    dataset_done(&set);
}

static void train(void *arg)
{
    struct setup *s = arg;
    static const volatile sig_atomic_t go_on = 0;
    struct loop_member members[MAX_MEMBERS];
    struct loop_opts opts = {.fingerprint = ""};
    AS_AUTO(loop_freep) struct loop *l = NULL;
    loop_end end;
    for (size_t k = 0; k < s->members; k++)
        members[k] = (struct loop_member){&s->spec, k, NULL};
    must(loop_create(s->be, &s->data, members, s->members, &opts, &l, &err));
    must(loop_run(l, &go_on, &end, &err));
}

static void prepare(struct setup *s, const char *path)
{
    static const char doc[] =
        "{\"dataset\":\"digits\",\"model\":{\"layers\":[64,32]},\"epochs\":20}";
    JSON_AUTO j = NULL;
    struct dataset set;
    s->paths.table = path;
    must(json_parse(doc, strlen(doc), &j, &err));
    must(train_spec_parse(j, "", &s->spec, &err));
    must(dataset_inspect(&s->paths, DATASET_CSV, "-1", DATASET_TASK_AUTO, NULL, &s->info, &err));
    must(dataset_load(&s->paths, &s->info, &set, &err));
    must(train_data_prepare(&set, &s->info, &s->spec, &s->data, &err));
    must(backend_open("cpu", NULL, &s->be, &err));
}

int main(int argc, char **argv)
{
    static const size_t groups[] = {1, 4, 16, MAX_MEMBERS};
    if (!bench_start("train", "the built-in trainer on data/digits.csv", argc, argv))
        return bench_exit();
    struct setup s = {0};
    char path[512];
    const char *root = getenv("ASSAY_SOURCE_ROOT");
    (void)snprintf(path, sizeof path, "%s/data/digits.csv", root ? root : ".");
    prepare(&s, path);
    bench_report("read digits.csv", 1e3 * bench_seconds(load, NULL, &s), "ms", NAN, NAN, NULL,
                 "1797 rows of 65 cells");
    for (size_t i = 0; i < AS_ARRAY_LEN(groups); i++) {
        char name[64];
        s.members = groups[i];
        (void)snprintf(name, sizeof name, "20 epochs, K=%zu, per member", s.members);
        bench_report(name, 1e3 * bench_seconds(train, NULL, &s) / (double)s.members, "ms", NAN, NAN,
                     NULL, "64-64-32-10, batch 32, AdamW, validation each epoch");
    }
    train_data_done(&s.data);
    dataset_info_done(&s.info);
    backend_free(s.be);
    return bench_exit();
}
