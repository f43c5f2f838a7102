/* The files where `trial.report` says that measurements are: CSV, lines of JSON, TensorBoard's
 * event files. One thread uses them. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECT_SOURCES_H
#define ASSAY_TRIAL_RUNNER_COLLECT_SOURCES_H

#include "base/str.h"
#include "trial-runner/collect/folder_watch.h"
#include "trial-runner/reports/measured.h"

#define SOURCES_MAX 16

struct sources;

/* Prepare the sources of `report` (a list, the names in its paths replaced), and remember what is
 * there now: it is not the program's.
 *   dir        descriptor of the program's folder; borrowed
 *   trial_dir  path of the trial's own folder, which paths may also be below; NULL: none; borrowed
 *              for the call
 *   marker     ASSAY_REPORT of the program's environment, by which its processes are known;
 *              borrowed
 *   sink       where measurements go; on_bad hears texts that name the source, with line 0; copied
 *   ret        owned by the caller; report outlives it
 * AS_E_INVAL: a path leads out of the folders; AS_E_IO: the trial's folder cannot be opened;
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status sources_create(const json_t *report, int dir, const char *trial_dir,
                                       const char *marker, const struct report_fns *sink,
                                       struct sources **ret, struct as_err *err);
void sources_free(struct sources *s);

/* Call on_write(arg) from w's thread when a CSV or JSON file is written. Their folders may not be
 * there yet: call this again and again. Event files are not listened to: what writes them keeps
 * measurements back for seconds. w outlives the sources. */
void sources_listen(struct sources *s, struct folder_watch *w, void (*on_write)(void *arg),
                    void *arg);

/* Read what is new. `last`: the program has ended, so a last line without a newline counts. A file
 * that cannot be read is told to on_bad once. AS_E_NOMEM, or the status of the sink. */
AS_MUST_CHECK as_status sources_read(struct sources *s, bool last, struct as_err *err);

/* Append which sources had nothing, and why. */
void sources_explain(const struct sources *s, struct str *b);

#endif
