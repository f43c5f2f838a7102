/* What a document says about the rows of its data set: which are held out, and how all are encoded.
 * The trainer and the server both ask here, so the rows that the server finds are those that the
 * trainer held out. */
#ifndef ASSAY_MODEL_PREPARE_PREPARE_RULE_H
#define ASSAY_MODEL_PREPARE_PREPARE_RULE_H

#include "data/dataset.h"
#include "data/preprocess/preprocess.h"
#include "model/document/train_spec.h"

/* The options of preprocessing for `spec`, without `part` and `weights`.
 *   task    of the data set; not AUTO
 *   n_rows  of the data set, at least 2: n_validation follows from it */
struct preprocess_opts prepare_rule_opts(const struct train_spec *spec, dataset_task task,
                                         size_t n_rows);

/* The part of each row (data/preprocess/holdout.h), where a column of the table decides it: by
 * order, by groups or by words.
 *   paths, info  the files of the table, and its record with all columns; borrowed
 *   ret          [info->n_rows], owned by the caller; NULL if the document names no such column:
 *                then folds (prepare_rule_fold) or chance decide. Untouched on failure
 * AS_E_INVAL naming column, row, what was found and what was expected; AS_E_NOMEM; else as
 * dataset_read_cells(). Reads the whole table. */
AS_MUST_CHECK as_status prepare_rule_part(const struct train_spec *spec,
                                          const struct dataset_paths *paths,
                                          const struct dataset_info *info, unsigned char **ret,
                                          struct as_err *err);

/* The part of each row in one of the folds of `spec`, which has folds.
 *   set   the loaded rows, with their classes if there are any; borrowed
 *   fold  in [0, spec->folds]; spec->folds: all rows are trained on, and those of fold 0 are
 *         measured on, too
 *   ret   [set->n_rows], owned by the caller; untouched on failure
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status prepare_rule_fold(const struct train_spec *spec, const struct dataset *set,
                                          size_t fold, unsigned char **ret, struct as_err *err);

#endif
