/* assay fit: what it prints at its end. */
#ifndef ASSAY_CLI_COMMANDS_FIT_REPORT_H
#define ASSAY_CLI_COMMANDS_FIT_REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "cli/commands/fit_choice.h"

/* A model that was kept first, and takes too long for a row. */
struct fit_slower {
    json_t *version; /* owned; NULL: there is none */
    double value, row_ms;
};

struct fit_result {
    const struct fit_choice *choice;
    const json_t *sweep; /* as it ended */
    const char *narrow; /* the sweep before it, whose ranges were too narrow; NULL: there is none */
    const char *layer;  /* the sweep of a further layer; NULL: there is none */
    const json_t *version; /* of the model that was kept */
    const json_t *trials;  /* a list: the trials that the model is made of, with their parameters */
    const char *metric;    /* of the sweep, val_… */
    const char *output;    /* the model's file; NULL: none was asked for */
    const char *data;      /* a table to predict, for the commands */
    const json_t *remarks; /* on the table: a list of texts */
    const json_t *doubts;  /* those of them by which the figures may be too good; NULL: none */
    double row_ms;         /* NaN: not measured */
    size_t models;         /* in the model's file */
    int64_t row_time_ms;   /* that it was allowed */
    const struct fit_slower *slower;
    int64_t size_bytes; /* as row_time_ms */
    bool exports;       /* to ONNX */
};

/* Append the report, and below it the commands with which the model is used; they work when they
 * are pasted into a shell. */
void fit_report_format(const struct fit_result *r, struct str *b);

/* The same as one object; new reference, NULL when memory is out. */
json_t *fit_report_json(const struct fit_result *r);

#endif
