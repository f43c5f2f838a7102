/* The verbs, one per file cmd_<verb>.c. Each takes argv from its own name on and answers the exit
 * code. */
#ifndef ASSAY_CLI_CMD_H
#define ASSAY_CLI_CMD_H

int cmd_ask(int argc, char **argv);
int cmd_best(int argc, char **argv);
int cmd_cancel(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_data(int argc, char **argv);
int cmd_delete(int argc, char **argv);
int cmd_ensemble(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_importance(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_runners(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_sweeps(int argc, char **argv);
int cmd_tell(int argc, char **argv);
int cmd_token(int argc, char **argv);
int cmd_trial(int argc, char **argv);
int cmd_trials(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_watch(int argc, char **argv);

#endif
