/* The built-in trainer on the digits: reading the table, 20 epochs of a 64-64-32-10 MLP alone and
 * as groups of K fused members, on two threads. Run it in the repository's root, or with
 * ASSAY_SOURCE_ROOT set. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench/bench.h"
#include "trial-runner/train/run.h"

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
    struct job job;
    struct control_member trial;
    json_t *doc;
    struct train_data data;
    struct cell_setup cells;
    size_t members;
    struct cell *cell[MAX_MEMBERS];
    struct watch watch;
};

static void load(void *arg)
{
    struct setup *s = arg;
    struct dataset set;
    must(dataset_load(&s->paths, &s->job.info, &set, &err));
    dataset_done(&set);
}

static void started(void *arg, const struct member *m)
{
    (void)arg;
    (void)m;
}

static as_status to_the_end(struct backend *lane, size_t i, void *arg, struct as_err *e)
{
    struct setup *s = arg;
    as_status st = AS_OK;
    while (st == AS_OK && !s->cell[i]->member[0]->ended) {
        atomic_store(&s->watch.meet, false);
        st = run_cell(s->cell[i], lane, &s->watch, e);
    }
    return st;
}

static void train(void *arg)
{
    struct setup *s = arg;
    struct member *m[MAX_MEMBERS] = {NULL};
    for (size_t k = 0; k < s->members; k++) {
        s->trial.seed = k;
        must(member_create(&s->job, &s->trial, &m[k], &err));
        must(cell_create(&s->cells, m[k], 1, &s->cell[k], &err));
        must(cell_join(s->cell[k], m[k], &err));
        cell_settle(s->cell[k]);
    }
    must(backend_for_each(s->cells.be, s->members, to_the_end, s, &err));
    for (size_t k = 0; k < s->members; k++) {
        cell_free(s->cell[k]);
        member_free(m[k]);
    }
}

static void prepare(struct setup *s, const char *path)
{
    static const char doc[] =
        "{\"dataset\":\"digits\",\"model\":{\"layers\":[64,32]},\"epochs\":20}";
    static const atomic_bool go_on;
    struct train_spec spec;
    struct dataset set;
    s->paths.table = path;
    must(json_parse(doc, strlen(doc), &s->doc, &err));
    must(train_spec_parse(s->doc, "", &spec, &err));
    must(
        dataset_inspect(&s->paths, DATASET_CSV, "-1", DATASET_TASK_AUTO, NULL, &s->job.info, &err));
    must(dataset_load(&s->paths, &s->job.info, &set, &err));
    must(train_data_prepare(&set, &s->job.info, &spec, &s->data, &err));
    s->job.data = net_data_of(&s->job.info);
    s->job.digest = "";
    s->trial = (struct control_member){.id = "bench", .train = s->doc};
    s->cells = (struct cell_setup){
        .job = &s->job, .data = &s->data, .loss = train_spec_loss(&spec, s->job.info.task)};
    struct backend_opts opts = {.threads = 2};
    must(backend_open("cpu", &opts, &s->cells.be, &err));
    must(resident_create(s->cells.be, &s->data, true, &s->cells.resident, &err));
    s->watch = (struct watch){
        .stop = &go_on, .fd = -1, .checkpoint_ns = INT64_MAX / 100, .started = started};
    train_spec_done(&spec);
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
    resident_free(s.cells.resident);
    train_data_done(&s.data);
    dataset_info_done(&s.job.info);
    json_decref(s.doc);
    backend_free(s.cells.be);
    return bench_exit();
}
