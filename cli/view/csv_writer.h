/* One cell of CSV (RFC 4180), safe to open in a spreadsheet. */
#ifndef ASSAY_CLI_VIEW_CSV_WRITER_H
#define ASSAY_CLI_VIEW_CSV_WRITER_H

#include "base/str.h"

typedef enum csv_kind {
    CSV_NUMBER, /* digits that this program wrote, or nothing */
    CSV_TEXT,   /* text from outside. A text that starts with = + - @, a tab or a carriage return
                   gets a ' before it; without it a spreadsheet would run the text as a formula */
} csv_kind;

/* Append one cell, quoted where needed, with a comma before it unless it is the first of its line.
 */
void csv_cell(struct str *b, bool first, csv_kind kind, const char *text);

#endif
