/* Texts that the trainer writes to its report (docs/trials.md) and that the runner understands. */
#ifndef ASSAY_TRIAL_RUNNER_PROTOCOL_NOTES_H
#define ASSAY_TRIAL_RUNNER_PROTOCOL_NOTES_H

/* Why the checkpoint that the attempt was given cannot be used: the trial begins again. */
#define NOTE_CHECKPOINT_LOST "checkpoint_lost"

#endif
