#include "cli/session/verb.h"

static verb_reader_fn reader;
static void *reader_arg;

void verb_set_reader(verb_reader_fn fn, void *arg)
{
    reader = fn;
    reader_arg = arg;
}

void verb_print_help(const struct verb *v, const struct opt *table, FILE *out)
{
    if (reader) {
        reader(reader_arg, v, table);
        return;
    }
    (void)fprintf(out, "assay %s\n\n%s\n", v->synopsis, v->summary);
    if (v->details)
        (void)fprintf(out, "\n%s\n", v->details);
    if (table) {
        (void)fprintf(out, "\nOptions\n");
        opt_help(table, out);
    }
}
