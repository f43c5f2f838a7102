/* Texts that a trial wrote beside its numbers (attempt_keep_notes of attempts.h). */
#include "base/json.h"
#include "base/metric_name.h"
#include "base/utf8.h"
#include "scheduler/lifecycle/attempts_priv.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/store/note_store.h"

static as_status notes_check(const struct trial_note *notes, size_t n, struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child("/notes", notes[i].name, at);
        if (!metric_name_valid(notes[i].name))
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: '%.80s' is no name, expected " METRIC_NAME_RULE, at,
                              notes[i].name);
        if (as_utf8_length(notes[i].text) > TRIAL_NOTE_TEXT_MAX)
            return as_fail_at(err, AS_E_INVAL, at, "%s: %zu characters, at most %d are allowed", at,
                              as_utf8_length(notes[i].text), TRIAL_NOTE_TEXT_MAX);
    }
    return AS_OK;
}

static as_status put_notes(struct tx *t, const struct attempt_ref *ref,
                           const struct attempt_writer *by, const struct trial_note *notes,
                           size_t n, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct trial_head x;
    as_status st = attempt_lock_fenced(t, &a, ref, by, &x, err);
    if (st != AS_OK)
        return st;
    return store_note_put(t, x.sweep_key, x.number, notes, n, err);
}

as_status attempt_keep_notes(struct store *db, const struct attempt_ref *ref,
                             const struct attempt_writer *by, const struct trial_note *notes,
                             size_t n, struct as_err *err)
{
    as_status st = notes_check(notes, n, err);
    if (st != AS_OK || n == 0)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = put_notes(run.tx, ref, by, notes, n, err);
    return run.status;
}
