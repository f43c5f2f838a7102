/* A lockstep by itself. Its memory is known before it is allocated: lockstep_slot_bytes is the size
 * of the buffers of a slot. */
#include <stdio.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/support/rig.h"
#include "trial-runner/train/checkpoint.h"
#include "trial-runner/train/run.h"
#include "data/dataset_read.h"
#include "model/plan/memory.h"
#include "model/plan/pad.h"
#include "model/prepare/prepare_rule.h"

static struct rig rig;

static size_t bytes_of(struct buf *const *bufs, size_t n)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += bufs[i] ? buf_len(bufs[i]) * 4 : 0;
    return all;
}

/* All that a lockstep has on the device, beside its model's buffers. */
static size_t lockstep_bytes(const struct lockstep *c)
{
    const struct optimizer *o = c->optimizer;
    const struct batches *b = c->batches;
    const struct step_table *t = c->step_table;
    const struct losses *l = c->losses;
    struct buf *all[] = {
        o->m1,         o->m2,           o->sum,        o->average,   o->norms,
        o->step,       o->active,       o->hyper,      o->nesterov,  o->sq_norm,
        o->finite,     b->order,        b->x,          b->codes,     b->y,
        b->augmented,  t->rates,        t->marks,      t->at,        t->steps,
        t->rate,       t->mark,         l->smoothing,  l->delta,     l->class_weights,
        l->row_loss,   l->row_class,    l->train.loss, l->held.loss, l->train.correct,
        l->train.top5, l->held.correct, l->held.top5,  c->seed,      c->rate,
        c->pad,        c->flip,         c->cutout};
    const struct private_rows *p = c->private_rows;
    struct buf *own[] = {p ? p->sum : NULL, p ? p->place : NULL, p ? p->key : NULL,
                         p ? p->one : NULL, p ? p->clip : NULL,  p ? p->not_first : NULL};
    return bytes_of(all, AS_ARRAY_LEN(all)) + bytes_of(own, AS_ARRAY_LEN(own));
}

static struct job digits_job(const char *train)
{
    struct job job = {0};
    const struct trial t = {"m", train, "1"};
    char path[96];
    rig_job(&rig, "t", (const struct trial *[]){&t}, 1, 1);
    (void)snprintf(path, sizeof path, "%s/job.json", rig.dir);
    ck_ok(job_read(path, &job, &rig.err), rig.err);
    return job;
}

static void known_before(const char *train, size_t slots)
{
    AS_AUTO(job_done) struct job job = digits_job(train);
    AS_AUTO(member_freep) struct member *m = NULL;
    AS_AUTO(lockstep_freep) struct lockstep *c = NULL;
    struct dataset_paths paths = job_paths(&job);
    struct dataset set;
    struct train_data data;
    struct lockstep_setup setup = {
        .job = &job, .info = &job.info, .data = &data, .loss = TRAIN_CROSS_ENTROPY};
    ck_ok(member_create(&job, &job.members[0], &m, &rig.err), rig.err);
    ck_ok(dataset_load(&paths, &job.info, &set, &rig.err), rig.err);
    struct preprocess_opts opts = prepare_rule_opts(&m->spec, job.info.task, set.n_rows);
    ck_ok(train_data_prepare(&set, &job.info, &opts, &data, &rig.err), rig.err);
    ck_ok(backend_open("reference", NULL, &setup.be, &rig.err), rig.err);
    ck_ok(device_data_create(setup.be, &data, true, &setup.device, &rig.err), rig.err);
    struct device_data *r = setup.device;
    struct buf *shared[] = {r->x, r->codes, r->y, r->held};
    ck_assert_uint_eq(bytes_of(shared, AS_ARRAY_LEN(shared)), device_data_bytes(&data));
    ck_ok(lockstep_create(&setup, m, slots, &c, &rig.err), rig.err);
    size_t model = network_bytes(setup.be, c->plan, slots, c->max_rows);
    size_t said = slots * lockstep_slot_bytes(&setup, m, slots);
    /* the list of steps is there once, whatever the slots: that much more is said than taken */
    size_t more = (slots - 1) * buf_len(c->step_table->steps) * 4;
    ck_assert_uint_eq(said, lockstep_bytes(c) + model + more);
    /* what the server says without seeing the data set is enough, and not twice too much */
    AS_AUTO(net_plan_freep) struct net_plan *widest = NULL;
    struct net_bytes planned;
    const struct net_data seen = net_data_for(&job.info, &m->spec);
    ck_ok(net_plan_widest(m->plan, &widest, &rig.err), rig.err);
    net_plan_bytes(widest, &m->spec, &seen, widest->buffer_rows, &planned);
    ck_assert_uint_ge(planned.member, said / slots);
    ck_assert_uint_le(planned.member, 2 * lockstep_slot_bytes(&setup, m, 2));
    lockstep_free(as_steal(c));
    device_data_free(setup.device);
    backend_free(setup.be);
    train_data_done(&data);
}

START_TEST(bytes_are_known)
{
    rig_open(&rig);
    known_before("\"epochs\":1", 1);
    known_before(
        "\"epochs\":1,\"optimizer\":{\"kind\":\"lamb\",\"ema\":0.9,\"clip_norm\":1},\"micro_"
        "batch\":8,\"batch_size\":32,\"model\":{\"layers\":[30,20],\"dropout\":0.1}",
        1);
    known_before("\"epochs\":1,\"optimizer\":{\"kind\":\"sgd\"}", 1);
    known_before("\"epochs\":1,\"privacy\":{\"clip\":1,\"noise\":1}", 3);
    known_before("\"epochs\":1,\"model\":{\"layers\":[30,20],\"activation\":\"gelu\"}", 5);
    rig_close(&rig);
}
END_TEST

static void started(void *arg, const struct member *m)
{
    ck_assert(!m->ended);
    ++*(int *)arg;
}

/* Clipping freezes a member whose gradient is not finite, even if its loss still is. The member
 * ends as diverged at the end of the epoch, also if it was stopped in between. */
START_TEST(a_frozen_member_has_diverged)
{
    static const char train[] = "\"epochs\":5,\"optimizer\":{\"clip_norm\":1}";
    rig_open(&rig);
    AS_AUTO(job_done) struct job job = digits_job(train);
    struct dataset_paths paths = job_paths(&job);
    struct dataset set;
    struct train_data data = {0};
    struct lockstep_setup setup = {
        .job = &job, .info = &job.info, .data = &data, .loss = TRAIN_CROSS_ENTROPY};
    atomic_bool stop = true;
    int starts = 0;
    struct watch w = {.stop = &stop,
                      .fd = -1,
                      .checkpoint_ns = INT64_MAX / 100,
                      .started = started,
                      .arg = &starts};
    ck_ok(backend_open("reference", NULL, &setup.be, &rig.err), rig.err);
    for (int round = 0; round < 2; round++) {
        AS_AUTO(member_freep) struct member *m = NULL;
        AS_AUTO(lockstep_freep) struct lockstep *c = NULL;
        bool found = false;
        ck_ok(member_create(&job, &job.members[0], &m, &rig.err), rig.err);
        if (round == 0) {
            ck_ok(dataset_load(&paths, &job.info, &set, &rig.err), rig.err);
            struct preprocess_opts opts = prepare_rule_opts(&m->spec, job.info.task, set.n_rows);
            ck_ok(train_data_prepare(&set, &job.info, &opts, &data, &rig.err), rig.err);
            ck_ok(device_data_create(setup.be, &data, true, &setup.device, &rig.err), rig.err);
        }
        ck_ok(lockstep_create(&setup, m, 1, &c, &rig.err), rig.err);
        ck_ok(lockstep_join(c, m, &rig.err), rig.err);
        ck_ok(checkpoint_read(c, 0, &found, &rig.err), rig.err);
        ck_assert_int_eq(found, round);
        lockstep_settle(c);
        if (round == 0)
            ck_ok(lockstep_freeze(c, 0, &rig.err), rig.err);
        atomic_store(&stop, round == 0);
        while (!m->ended) {
            atomic_store(&w.meet, false);
            ck_ok(run_lockstep(c, setup.be, &w, &rig.err), rig.err);
        }
        ck_assert_int_eq(m->exit, round == 0 ? EXIT_TRY_AGAIN : EXIT_FAILED);
        if (round == 1)
            ck_assert_ptr_nonnull(strstr(m->error.msg, "diverged"));
    }
    ck_assert_int_eq(starts, 1); /* the first was stopped before its first step */
    device_data_free(setup.device);
    backend_free(setup.be);
    train_data_done(&data);
    rig_close(&rig);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("lockstep");
    TCase *t = tcase_create("lockstep");
    tcase_add_test(t, bytes_are_known);
    tcase_add_test(t, a_frozen_member_has_diverged);
    suite_add_tcase(s, t);
    return s;
}
