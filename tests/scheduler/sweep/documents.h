/* Valid sweep documents, for tests that read them or change one field. */
#ifndef ASSAY_TESTS_SCHEDULER_SWEEP_DOCUMENTS_H
#define ASSAY_TESTS_SCHEDULER_SWEEP_DOCUMENTS_H

#include <jansson.h>

#include "scheduler/sweep/sweep_doc.h"

extern const char train_yaml[], command_yaml[];
extern const char shards_yaml[];     /* a batch has 4,096 shards */
extern const char program_yaml[];    /* the fields before `trial` */
extern const char objectives_yaml[]; /* two metrics, constraints, no trial */

/* Read a document, which may have no seed, and a range of ranks. */
as_status parse_text(const char *yaml, struct sweep_doc **ret, struct as_err *err);

/* A document with one edit; owned by the caller.
 *   whole  "train", "shards" or "command"
 *   path   the field, its parents before it with "/" between; "-" replaces the whole document
 *   edit   its new value as YAML; NULL removes it */
json_t *edited(const char *whole, const char *path, const char *edit);

/* A rule that makes another document of one: split_rule_choose(), buckets_rule_apply(). */
typedef as_status document_rule(const json_t *doc, json_t **ret, struct as_err *err);

/* Fails unless the rule makes `expected` of the document `from` (JSON), which stays as it was. */
void document_becomes(document_rule *rule, const char *from, const char *expected);

/* Fails unless the rule refuses the document at a field, with a message that has `part`. */
void document_is_refused(document_rule *rule, const char *from, const char *pointer,
                         const char *part);

#endif
