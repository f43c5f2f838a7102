/* Models and their versions. Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_MODEL_ROW_H
#define ASSAY_SCHEDULER_ROWS_MODEL_ROW_H

#include <stddef.h>
#include <stdint.h>

struct model_row {
    const char *name;
    int64_t versions;        /* how many exist */
    int64_t default_version; /* that the name alone means: the champion, else the newest; 0: there
                                    is none */
    const char *aliases;     /* JSON {alias: version, …}, by alias */
    int64_t created_ms, changed_ms;
};

struct model_page {
    struct model_row *rows;
    size_t n;
    const char *next_cursor;
};

struct model_version_row {
    const char *model;
    int64_t version;
    const char *sha256; /* of the model file */
    int64_t size;       /* bytes of it */
    const char *kind;   /* trial, ensemble */
    const char *task;   /* of its data set, as `input` */
    const char *input;
    const char *inputs, *outputs, *members; /* JSON; NULL in a list */
    const char *metrics;                    /* JSON {name: number or "NaN" …} */
    const char *measured_on;
    const char *lineage;    /* JSON; NULL in a list */
    const char *sweep;      /* the name of the sweep, of the lineage */
    const char *sweep_id;   /* the sweep may be deleted, and its id may be another's by now */
    const char *trials;     /* JSON [number, …] of the members, without those of other sweeps */
    const char *aliases;    /* JSON [alias, …] */
    const char *created_by; /* the id of a token; NULL: none */
    int64_t created_ms;
};

struct model_version_page {
    struct model_version_row *rows;
    size_t n;
    const char *next_cursor;
};

#endif
