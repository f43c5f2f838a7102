/* The training of K members as a state that can be left and taken up again at any step.
 *
 * What changes from step to step is: parameters, moments, step counters, the epoch's sum of losses,
 * and the position (epoch, step). All else is a function of the documents, the seeds and the
 * position. checkpoint.h saves and restores that, so a run that was killed ends with the bits of
 * one that was not (on the same back end and machine). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_LOOP_H
#define ASSAY_TRIAL_RUNNER_TRAIN_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "trial-runner/train/batches.h"
#include "trial-runner/train/evaluate.h"
#include "trial-runner/train/model_mlp.h"
#include "trial-runner/train/optimizer.h"

/* One trial of the group. Members of a group may differ in seed, dropout rate, schedule and the
 * optimizer's numbers; model, epochs, batch size and optimizer kind are those of member 0. */
struct loop_member {
    const struct train_spec *spec; /* borrowed until loop_free */
    uint64_t seed;
    const char *report; /* path (report.h); borrowed */
};

struct loop_opts {
    const char *checkpoint;  /* path; NULL: none is written. Borrowed until loop_free */
    const char *fingerprint; /* of the group; borrowed until loop_free */
    int64_t checkpoint_ns;   /* least time between two checkpoints at epoch ends */
};

struct loop {
    struct backend *be;            /* borrowed */
    const struct train_data *data; /* borrowed */
    struct loop_opts opts;
    size_t members;
    struct loop_member *member; /* [K] */
    struct str *last_report;    /* [K]: the line reported last, so that a resumed run repeats it */
    bool classify;
    size_t batch_size;
    int64_t epochs, steps_per_epoch;

    struct model *model;
    struct optimizer *optimizer;
    struct batches *batches;
    struct evaluator *evaluator;
    bool dropout;
    struct buf *lr;          /* [steps_per_epoch, K]: the rates of this epoch */
    struct buf *rate, *seed; /* dropout: [K]; [K, 2] */
    struct buf *loss_sum;    /* [K]: of this epoch's rows so far */
    struct buf *correct;     /* [K]: the kernel wants a place for it; nobody reads it */

    int64_t epoch, step; /* what comes next: epoch < epochs, or epoch == epochs and step 0 */
    int64_t saved_ns, save_cost_ns; /* when the last checkpoint ended, and how long it took */
};

/* Everything for training from the start. The arguments are borrowed until loop_free, `members` for
 * the call. AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status loop_create(struct backend *be, const struct train_data *data,
                                    const struct loop_member *members, size_t n_members,
                                    const struct loop_opts *opts, struct loop **ret,
                                    struct as_err *err);
void loop_free(struct loop *l);
AS_DEFINE_FREEP(struct loop, loop_free)

typedef enum loop_end {
    LOOP_DONE,    /* all epochs */
    LOOP_STOPPED, /* *stop was set: the checkpoint is written */
    LOOP_DIVERGED /* no member's loss is finite; the last report says so */
} loop_end;

/* Train on from the position until the end, or until *stop is not 0. Reports each epoch that is due
 * and writes checkpoints as it goes. AS_E_IO; AS_E_INTERNAL from the device. */
AS_MUST_CHECK as_status loop_run(struct loop *l, const volatile sig_atomic_t *stop, loop_end *ret,
                                 struct as_err *err);

#endif
