/* Texts that a trial wrote beside its numbers (attempt_record of attempts.h). */
#include "base/json.h"
#include "base/metric_name.h"
#include "base/utf8.h"
#include "scheduler/lifecycle/attempt_rules.h"

as_status attempt_notes_check(const struct trial_note *notes, size_t n, struct as_err *err)
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
