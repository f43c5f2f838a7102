#include "cli/session/verb.h"

void verb_print_help(const struct verb *v, const struct opt *table, FILE *out)
{
    (void)fprintf(out, "assay %s\n\n%s\n", v->synopsis, v->summary);
    if (v->details)
        (void)fprintf(out, "\n%s\n", v->details);
    if (table) {
        (void)fprintf(out, "\nOptions\n");
        opt_help(table, out);
    }
}
