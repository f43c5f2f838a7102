/* The functions of the verbs, in files cmd_<verb>.c. Each takes its row of the table of verbs, and
 * argv that begins with the name of the verb. Each returns the exit code. */
#ifndef ASSAY_CLI_COMMANDS_CMD_H
#define ASSAY_CLI_COMMANDS_CMD_H

#include "cli/session/verb.h"

int cmd_files(const struct verb *v, int argc, char **argv);
int cmd_artifacts(const struct verb *v, int argc, char **argv);
int cmd_ask(const struct verb *v, int argc, char **argv);
int cmd_best(const struct verb *v, int argc, char **argv);
int cmd_cancel(const struct verb *v, int argc, char **argv);
int cmd_compare(const struct verb *v, int argc, char **argv);
int cmd_completion(const struct verb *v, int argc, char **argv);
int cmd_data(const struct verb *v, int argc, char **argv);
int cmd_delete(const struct verb *v, int argc, char **argv);
int cmd_ensemble(const struct verb *v, int argc, char **argv);
int cmd_fit(const struct verb *v, int argc, char **argv);
int cmd_export(const struct verb *v, int argc, char **argv);
int cmd_help(const struct verb *v, int argc, char **argv);
int cmd_importance(const struct verb *v, int argc, char **argv);
int cmd_logs(const struct verb *v, int argc, char **argv);
int cmd_models(const struct verb *v, int argc, char **argv);
int cmd_open(const struct verb *v, int argc, char **argv);
int cmd_pause(const struct verb *v, int argc, char **argv);
int cmd_predict(const struct verb *v, int argc, char **argv);
int cmd_replay(const struct verb *v, int argc, char **argv);
int cmd_report(const struct verb *v, int argc, char **argv);
int cmd_resume(const struct verb *v, int argc, char **argv);
int cmd_retry(const struct verb *v, int argc, char **argv);
int cmd_run(const struct verb *v, int argc, char **argv);
int cmd_launch(const struct verb *v, int argc, char **argv);
int cmd_autoscale(const struct verb *v, int argc, char **argv);
int cmd_demand(const struct verb *v, int argc, char **argv);
int cmd_runners(const struct verb *v, int argc, char **argv);
int cmd_serve(const struct verb *v, int argc, char **argv);
int cmd_set(const struct verb *v, int argc, char **argv);
int cmd_priority(const struct verb *v, int argc, char **argv);
int cmd_show(const struct verb *v, int argc, char **argv);
int cmd_sweeps(const struct verb *v, int argc, char **argv);
int cmd_remark(const struct verb *v, int argc, char **argv);
int cmd_tag(const struct verb *v, int argc, char **argv);
int cmd_tell(const struct verb *v, int argc, char **argv);
int cmd_token(const struct verb *v, int argc, char **argv);
int cmd_trial(const struct verb *v, int argc, char **argv);
int cmd_trials(const struct verb *v, int argc, char **argv);
int cmd_up(const struct verb *v, int argc, char **argv);
int cmd_version(const struct verb *v, int argc, char **argv);
int cmd_watch(const struct verb *v, int argc, char **argv);

#endif
