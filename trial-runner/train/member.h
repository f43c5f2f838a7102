/* One trial of a group: its documents, the paths of its files, and its position.
 *
 * What changes from step to step is in the member's slot (lockstep.h) and in its position here
 * (epoch, micro-step). Everything else is a function of the documents, the seed and the
 * position. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_MEMBER_H
#define ASSAY_TRIAL_RUNNER_TRAIN_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/plan/net.h"
#include "model/network/epoch_layout.h"
#include "model/plan/plan.h"
#include "model/document/train_spec.h"
#include "base/str.h"
#include "trial-runner/train/best_record.h"
#include "trial-runner/train/job.h"
#include "trial-runner/train/report_file.h"
#include "trial-runner/train/snapshot_record.h"

#define CHECKPOINT_NAME "checkpoint.safetensors" /* in the checkpoint folder */

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_TRY_AGAIN = 75 };

/* What the runner has asked of a running member. */
typedef enum member_ask { ASK_NOTHING, ASK_STOP, ASK_CANCEL } member_ask;

struct channel;

struct member {
    char *id;         /* "" in the single form; owned, like the others */
    char *train_text; /* trial.train as canonical JSON */
    struct train_spec spec;
    struct net_plan *plan;   /* in the member's own shape; NULL for trees and k-means */
    struct channel *channel; /* for its log; borrowed; NULL: none */
    char *signature;         /* members with equal signatures may share a group */
    uint64_t seed;
    struct report_file report;
    char *checkpoint;               /* path of the file, or NULL */
    int64_t keep_every, keep_until; /* it keeps its state at multiples of these epochs, below the
                                     * second, for forks; 0: never */
    char *artifacts;                /* folder, or NULL */
    /* SHA-256 of the train document, the data set and the seed. It identifies the job that a
     * checkpoint belongs to. Paths are not part of it, because a trial may continue on another
     * machine. */
    char fingerprint[SHA256_HEX_SIZE];
    /* The same without the fields in which the document of a checkpoint may differ: of trials that
     * are forks of each other it is equal. "": it goes on from its own checkpoints alone. */
    char kin[SHA256_HEX_SIZE];
    dataset_task task;

    struct epoch_layout layout; /* how an epoch is cut into batches; set with the slot */

    /* The position: what comes next; of trees, epoch counts rounds, of k-means iterations, and at
     * is 0. If epoch == spec.epochs, only the artifacts are missing. */
    int64_t epoch;
    size_t at;              /* micro-step of the epoch */
    int64_t tabled;         /* the epoch whose tables are in the slot; -1: none */
    struct str last_report; /* the line reported last, so that a resumed run repeats it */
    const char *judged_by;  /* the metric that `patience` looks at: the sweep's, or val_loss; a view
                             * of the job */
    bool maximizes;         /* more of it is better */
    struct best best;
    struct snapshots snapshots;

    double duality_gap;   /* of the last step, with the solver cocoa */
    bool divides_moments; /* the ranks of the trial divide the optimizer's moments */
    bool divides_layers;  /* they divide the layers of the network (model_parallel) */
    member_ask ask;
    bool started; /* the first step in this process is done */
    bool ended;   /* then `exit` is one of the above, and `error` is set for EXIT_FAILED */
    int exit;
    struct as_err error;
    int64_t saved_ns, save_cost_ns; /* when the last checkpoint was complete; how long it took */
};

/* Check the documents and create the folders. `from` is borrowed for the call, job until
 * member_free. AS_E_INVAL with the pointer of the field ("/train/…", "/metric/name");
 * AS_E_TOO_LARGE, AS_E_IO, AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status member_create(const struct job *job, const struct control_member *from,
                                      struct member **ret, struct as_err *err);
void member_free(struct member *m);
AS_DEFINE_FREEP(struct member, member_free)

/* Is it a rank that holds some partitions of the rows alone (partitions.h)? */
bool member_holds_partitions(const struct member *m, const struct job *job);

/* Mark the member as ended. err is the reason for EXIT_FAILED and EXIT_TRY_AGAIN; it may be NULL.
 * Only the first call counts. */
void member_end(struct member *m, int exit, const struct as_err *err);

#endif
