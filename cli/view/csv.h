/* One cell of CSV (RFC 4180), safe to open in a spreadsheet. */
#ifndef ASSAY_CLI_VIEW_CSV_H
#define ASSAY_CLI_VIEW_CSV_H

#include "base/str.h"

typedef enum csv_kind {
    CSV_NUMBER, /* our own digits, or nothing */
    CSV_TEXT, /* from outside: a text that starts with = + - @, a tab or a carriage return gets a '
                 before it, or a spreadsheet would run it as a formula */
} csv_kind;

/* Append one cell, quoted where needed, with a comma before it unless it is the first of its line.
 */
void csv_cell(struct str *b, bool first, csv_kind kind, const char *text);

#endif
