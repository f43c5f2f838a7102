/* assay models show: one model, or one version of it. */
#ifndef ASSAY_CLI_COMMANDS_MODELS_SHOW_H
#define ASSAY_CLI_COMMANDS_MODELS_SHOW_H

#include "base/status.h"
#include "cli/files/model_ref.h"
#include "cli/session/session.h"

/* Print the model with a table of its versions; with ref->has_version that version, with a table of
 * its inputs. Errors are those of the requests and of printing. */
AS_MUST_CHECK as_status models_show(const struct session *s, const struct model_ref *ref,
                                    struct as_err *err);

/* GET a version. The answer is owned by the caller. */
AS_MUST_CHECK as_status models_get_version(const struct session *s, const struct model_ref *ref,
                                           json_t **ret, struct as_err *err);

/* Append "champion 3, candidate 4" of the object of aliases, or "champion, best" of a list. */
void models_format_aliases(struct str *b, const json_t *aliases);

/* Append "digits-mlp/12", or "digits-mlp/3, 5, 9" of an ensemble: where a version comes from. */
void models_format_origin(struct str *b, const json_t *version);

/* Append "val_error 0.02, val_loss 0.1". */
void models_format_metrics(struct str *b, const json_t *version, bool tty);

#endif
