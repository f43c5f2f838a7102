#include "tests/cli/view/whole_csv.h"

as_status whole_csv(const json_t *sweep, const json_t *items, struct str *b, struct as_err *err)
{
    AS_AUTO(trial_facts_done) struct trial_facts f = {0};
    as_status st = trial_facts_init(&f, sweep, err);
    if (st == AS_OK)
        st = trial_facts_add(&f, items, err);
    if (st == AS_OK)
        st = export_csv_head(&f, b, err);
    return st < 0 ? st : export_csv_rows(&f, items, b, err);
}
