#include "scheduler/store/sql_columns_priv.h"

void column_text(struct reader *rd, const char **ret)
{
    *ret = read_str(rd);
}

void column_i64(struct reader *rd, int64_t *ret)
{
    *ret = read_i64(rd);
}

void column_f64(struct reader *rd, double *ret)
{
    *ret = read_f64(rd);
}

void column_bool(struct reader *rd, bool *ret)
{
    *ret = read_bool(rd);
}

void column_trial_state(struct reader *rd, trial_state *ret)
{
    const char *word = read_view(rd);
    if (trial_state_parse(word, ret, NULL) != AS_OK)
        rd->unknown = word;
}

void column_sweep_state(struct reader *rd, sweep_state *ret)
{
    const char *word = read_view(rd);
    if (sweep_state_parse(word, ret, NULL) != AS_OK)
        rd->unknown = word;
}

void column_decision(struct reader *rd, trial_decision *ret)
{
    *ret = (trial_decision)word_place(trial_decision_words, read_view(rd));
}
