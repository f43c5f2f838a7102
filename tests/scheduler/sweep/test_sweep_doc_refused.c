/* Sweep documents that are refused: with which status, pointer and message.
 *
 * Most tests edit one field of a valid document, so a row of a table is one rule of the
 * document. */
#include <stdio.h>
#include <string.h>

#include "base/yaml_reader.h"
#include "tests/scheduler/sweep/documents.h"
#include "tests/support/check_main.h"

/* Documents with one edit: see edited(). */
#define PATTERNS_4 "'(?P<l>.)', '(?P<l>.)', '(?P<l>.)', '(?P<l>.)', "
#define PATTERNS_16 PATTERNS_4 PATTERNS_4 PATTERNS_4 PATTERNS_4

/* A sweep over trial.train with early stopping. */
#define STOPPED(train, early)                                                                      \
    "{name: any, metric: {name: val_error, goal: minimize}, parameters: {lr: {type: float, min: "  \
    "0.001, max: 0.1}, e: {type: int, min: 5, max: 9}}, limits: {max_trials: 3}, "                 \
    "early_stopping: {" early "}, trial: {train: {" train "dataset: d}}}"
#define TWO_METRICS(early)                                                                         \
    "{name: any, metrics: [{name: a, goal: minimize}, {name: b, goal: maximize}], parameters: "    \
    "{x: "                                                                                         \
    "{type: float, min: 0, max: 1}}, limits: {max_trials: 3}, early_stopping: {" early "}}"

/* A sweep over trial.train whose trials fork. `aug` decides whether `rows` is active. */
/* The ranks of four shards are the parameter r. */
#define SEARCHED(r, resources)                                                                     \
    "{name: any, metric: {name: val_error, goal: minimize}, parameters: {y: {type: bool}, r: " r   \
    "}, limits: {max_trials: 3}, trial: {train: {dataset: d, epochs: 2, batch_size: 8, "           \
    "micro_batch: 2}}, resources: " resources "}"

#define COSTLY(metrics, more)                                                                      \
    "{name: any, metrics: [" metrics "], parameters: {lr: {type: float, min: 0.1, max: 1}}, "      \
    "limits: {max_trials: 3}, " more                                                               \
    "trial: {train: {dataset: d, epochs: 2, batch_size: 8, micro_batch: 2, optimizer: {kind: sgd," \
    " lr: '${lr}'}}}, resources: {ranks: 2}}"

#define FORKED_OF(early, train)                                                                    \
    "{name: any, metric: {name: val_error, goal: minimize}, parameters: {lr: {type: float, min: "  \
    "0.001, max: 0.1}, width: {type: int, min: 8, max: 16}, aug: {type: bool}, rows: {type: int, " \
    "min: 16, max: 32, when: {aug: true}}}, limits: {max_trials: 30}, early_stopping: {method: "   \
    "pbt, " early "}, trial: {train: {" train ", epochs: 20, dataset: d}}}"
#define FORKED(early)                                                                              \
    FORKED_OF(early, "model: {kind: mlp, layers: ['${width}']}, optimizer: {lr: '${lr}'}, "        \
                     "batch_size: '${rows:-64}'")
#define FORKED_TRAIN(train)                                                                        \
    FORKED_OF("period: 5, explore: [lr]", "optimizer: {lr: '${lr}'}, " train)

static const struct edit {
    const char *base, *path, *value;
    as_status want;
    const char *pointer, *part;
} edits[] = {
    {"train", "-", "[]", AS_E_INVAL, "", "expected an object"},
    {"train", "naem", "x", AS_E_INVAL, "/naem", "did you mean 'name'"},
    {"train", "name", NULL, AS_E_INVAL, "/name", "missing"},
    {"train", "name", "'Big Name'", AS_E_INVAL, "/name", "found 'Big Name'"},
    {"train", "name", "3", AS_E_INVAL, "/name", "a string"},
    {"train", "tags", "[1]", AS_E_INVAL, "/tags/0", "a string of 1 to"},
    {"train", "metric", NULL, AS_E_INVAL, "/metric", "missing"},
    {"train", "metric", "val_error", AS_E_INVAL, "/metric", "an object"},
    {"train", "metric/goal", NULL, AS_E_INVAL, "/metric/goal", "missing"},
    {"train", "metric/goal", "down", AS_E_INVAL, "/metric/goal", "one of minimize, maximize"},
    {"train", "metric/name", "val err", AS_E_INVAL, "/metric/name", "found 'val err'"},
    {"command", "metric/name", "step", AS_E_INVAL, "/metric/name", "numbers the measurements"},
    {"train", "metric/name", "accuracy", AS_E_INVAL, "/metric/name", "never reports 'accuracy'"},
    {"train", "metric/name", "test_error", AS_E_INVAL, "/metric/name", "no search sees them"},
    {"train", "metric/noise", "much", AS_E_INVAL, "/metric/noise", "one of auto, none"},
    {"train", "metric/max", "3", AS_E_INVAL, "/metric/max", "not a known field"},
    {"train", "metrics", "[]", AS_E_INVAL, "/metrics", "either metric or metrics"},
    {"train", "constraints", "{}", AS_E_INVAL, "/constraints", "a list"},
    {"train", "constraints", "[a <= 3]", AS_E_INVAL, "/constraints/0", "parameter_constraints"},
    {"train", "constraints", "[{metric: val_loss}]", AS_E_INVAL, "/constraints/0", "min, max"},
    {"train", "constraints", "[{max: 3}]", AS_E_INVAL, "/constraints/0/metric", "missing"},
    {"train", "constraints", "[{metric: val_loss, min: 2, max: 1}]", AS_E_INVAL, "/constraints/0",
     "above max"},
    {"train", "constraints", "[{metric: ms, max: 1}]", AS_E_INVAL, "/constraints/0/metric",
     "never reports 'ms'"},
    {"train", "constraints", "[{metric: val_loss, max: 1}, {metric: val_loss, min: 0}]", AS_E_INVAL,
     "/constraints/1", "appears twice"},
    {"command", "constraints", "[{metric: step, max: 1}]", AS_E_INVAL, "/constraints/0/metric",
     "numbers the measurements"},
    {"command", "constraints", "[1, 2, 3, 4, 5, 6, 7, 8, 9]", AS_E_TOO_LARGE, "/constraints",
     "at most 8"},
    {"train", "parameter_constraints", "a < b", AS_E_INVAL, "/parameter_constraints", "a list"},
    {"train", "parameter_constraints", "['lr < 1', 'widht * lr < 3']", AS_E_INVAL,
     "/parameter_constraints/1", "column 1: unknown name 'widht'; did you mean 'width'?"},
    {"train", "parameter_constraints", "['lr < 0']", AS_E_INVAL, "/parameter_constraints/0",
     "no configuration that is allowed was found"},
    {"command", "parameter_constraints", "['x > 3']", AS_E_INVAL, "/parameter_constraints/0",
     "no cell of the grid is allowed"},
    {"train", "forbidden", "[{opt: adam}]", AS_E_INVAL, "/forbidden/0/opt", "never takes"},
    {"train", "forbidden", "[{lr: {min: 0}}]", AS_E_INVAL, "/forbidden/0",
     "no configuration that is allowed was found"},
    {"train", "search", "{initial_trials: 0}", AS_E_INVAL, "/search/initial_trials", "from 1"},
    {"train", "outcome_constraints", "[]", AS_E_INVAL, "/outcome_constraints", "not a known field"},
    {"train", "-", FORKED("period: 20"), AS_E_INVAL, "/early_stopping/period",
     "expected less than max_steps (20)"},
    {"train", "-", FORKED("max_steps: 20"), AS_E_INVAL, "/early_stopping/period", "missing"},
    {"train", "-", FORKED("period: 1, max_steps: 21, explore: [lr]"), AS_E_INVAL,
     "/early_stopping/max_steps", "expected at most the 20 epochs"},
    {"command", "early_stopping", "{method: pbt, period: 2, max_steps: 100}", AS_E_TOO_LARGE,
     "/early_stopping/period", "a period of 4 or more"},
    {"train", "-", FORKED("period: 5, eta: 3"), AS_E_INVAL, "/early_stopping/eta",
     "found beside method pbt"},
    {"train", "-", FORKED("period: 5, mode: pause"), AS_E_INVAL, "/early_stopping/mode",
     "found beside method pbt"},
    {"train", "-", FORKED("period: 5, late: true"), AS_E_INVAL, "/early_stopping/late",
     "found beside method pbt"},
    {"train", "-", FORKED("period: 5, explore: [lr, width]"), AS_E_INVAL, "/early_stopping/explore",
     "'width' changes trial.train/model/layers/0"},
    {"train", "-", FORKED("period: 5, min_steps: 2"), AS_E_INVAL, "/early_stopping/min_steps",
     "found beside method pbt, expected fields of it: max_steps, metric, strict, population"},
    {"train", "-", FORKED("period: 5, perturb: [1.2]"), AS_E_INVAL, "/early_stopping/perturb",
     "found [1.2], expected two factors"},
    {"train", "-", FORKED("period: 5, explore: [aug], resample: 0"), AS_E_INVAL,
     "/early_stopping/resample", "change in no other way"},
    {"train", "early_stopping", "{population: 8}", AS_E_INVAL, "/early_stopping/population",
     "found beside method asha, expected fields of it: max_steps, metric, strict, min_steps"},
    {"train", "early_stopping", "{min_steps: some}", AS_E_INVAL, "/early_stopping/min_steps",
     "found \"some\", expected auto or a whole number"},
    {"train", "early_stopping", "{min_steps: 2, foo: 1}", AS_E_INVAL, "/early_stopping/foo",
     "chance, min_steps, max_steps, eta"},
    {"command", "early_stopping", "{min_steps: 2}", AS_E_INVAL, "/early_stopping/max_steps",
     "is missing, expected the steps of a full trial"},
    {"train", "-", FORKED("period: 5, explore: [aug]"), AS_E_INVAL, "/early_stopping/explore",
     "'aug' changes trial.train/batch_size"},
    {"train", "-", FORKED("period: 5, explore: [rate]"), AS_E_INVAL, "/early_stopping/explore/0",
     "found 'rate', expected the name of a parameter"},
    {"train", "-", FORKED("period: 5, explore: [lr]}, resources: {ranks: 2"), AS_E_INVAL,
     "/resources/ranks", "found 2 with early_stopping.method pbt"},
    {"train", "-", FORKED_TRAIN("patience: 3"), AS_E_INVAL, "/trial/train/patience",
     "found with pbt"},
    {"train", "-", FORKED_TRAIN("schedule: {kind: cosine, cycles: 2, snapshots: 2}"), AS_E_INVAL,
     "/trial/train/schedule/snapshots", "found with pbt"},
    {"train", "-", FORKED_TRAIN("model: {kind: boosted_trees, n_estimators: 20}"), AS_E_INVAL,
     "/trial/train/model/kind", "found boosted_trees with pbt"},
    {"train", "-", FORKED_TRAIN("report_every: 4"), AS_E_INVAL, "/trial/train/report_every",
     "expected a divisor of 5"},
    {"command", "early_stopping", "{method: pbt, period: 2, max_steps: 9}", AS_E_INVAL,
     "/trial/checkpoints", "pbt needs it"},
    {"train", "-", TWO_METRICS("method: pbt, period: 3, max_steps: 9"), AS_E_INVAL,
     "/early_stopping/metric", "pbt compares differences of one metric"},
    {"train", "-",
     "{name: any, metric: {name: a, goal: minimize}, parameters: {x: {type: float, min: 0, max: "
     "1}}, limits: {max_trials: 30}, early_stopping: {method: pbt, period: 3, max_steps: 9}}",
     AS_E_INVAL, "/early_stopping/method", "found pbt in a sweep without trial"},
    {"train", "-",
     "{name: any, metric: {name: a, goal: minimize}, parameters: {x: {type: int, min: 0, max: "
     "99}}, search: {method: grid}, limits: {max_trials: 30}, trial: {command: ['true'], "
     "checkpoints: true}, early_stopping: {method: pbt, period: 3, max_steps: 9}}",
     AS_E_INVAL, "/early_stopping/method", "found pbt with search.method grid"},
    {"train", "early_stopping", "asha", AS_E_INVAL, "/early_stopping", "an object"},
    {"train", "early_stopping", "{method: sha}", AS_E_INVAL, "/early_stopping/method",
     "one of asha, hyperband"},
    {"train", "early_stopping", "{grace: 3}", AS_E_INVAL, "/early_stopping/grace",
     "not a known field"},
    {"train", "early_stopping", "{eta: 1}", AS_E_INVAL, "/early_stopping/eta", "from 2"},
    {"train", "early_stopping", "{min_steps: 0}", AS_E_INVAL, "/early_stopping/min_steps",
     "from 1"},
    {"train", "early_stopping", "{min_steps: some}", AS_E_INVAL, "/early_stopping/min_steps",
     "expected auto or a whole number"},
    {"train", "early_stopping", "{mode: wait}", AS_E_INVAL, "/early_stopping/mode",
     "auto, pause, stop"},
    {"train", "early_stopping", "{min_steps: 20}", AS_E_INVAL, "/early_stopping/max_steps",
     "two rungs at least"},
    {"train", "early_stopping", "{min_steps: 1, max_steps: 9007199254740992, eta: 2}",
     AS_E_TOO_LARGE, "/early_stopping/max_steps", "more than 32 rungs"},
    {"train", "early_stopping", "{metric: val_loss}", AS_E_INVAL, "/early_stopping/metric",
     "expected a metric of the sweep, such as 'val_error'"},
    {"train", "early_stopping", "{max_steps: 21}", AS_E_INVAL, "/early_stopping/max_steps",
     "expected at most the 20 epochs of a trial"},
    {"train", "early_stopping", "{method: pasha, mode: stop}", AS_E_INVAL, "/early_stopping/mode",
     "found stop with pasha"},
    {"train", "early_stopping", "{chance: 0.1}", AS_E_INVAL, "/early_stopping/chance",
     "only curve predicts a chance; found asha"},
    {"train", "early_stopping", "{method: curve, chance: 2}", AS_E_INVAL, "/early_stopping/chance",
     "from 0 to 1"},
    {"train", "-", TWO_METRICS("method: curve, max_steps: 9"), AS_E_INVAL, "/early_stopping/metric",
     "curve compares differences of one metric"},
    {"command", "early_stopping", "{method: asha}", AS_E_INVAL, "/early_stopping/max_steps",
     "missing"},
    {"command", "early_stopping", "{max_steps: 9, mode: pause}", AS_E_INVAL, "/early_stopping/mode",
     "expected stop, or trial.checkpoints: true"},
    {"command", "early_stopping", "{max_steps: 9, method: pasha}", AS_E_INVAL,
     "/early_stopping/mode", "found stop with pasha"},
    {"command", "trial/checkpoints", "3", AS_E_INVAL, "/trial/checkpoints", "true or false"},
    {"train", "trial/checkpoints", "true", AS_E_INVAL, "/trial/checkpoints", "of trial.command"},
    {"train", "-", STOPPED("epochs: 20, report_every: 3, ", "min_steps: 2, max_steps: 18"),
     AS_E_INVAL, "/trial/train/report_every", "found 3, expected a divisor of 2"},
    {"train", "-", STOPPED("epochs: 20, report_every: 3, ", "max_steps: 19"), AS_E_INVAL,
     "/trial/train/report_every", "found 3, expected a divisor of 19"},
    {"command", "-",
     "{name: n, metric: {name: a, goal: minimize}, parameters: {x: {type: float, min: 0, max: 1}}, "
     "trial: "
     "{command: [a]}, limits: {max_trials: 9, max_steps: 2}, early_stopping: {method: asha, "
     "min_steps: 3, max_steps: 9}}",
     AS_E_INVAL, "/limits/max_steps", "found 2, expected at least 3, the first rung"},
    {"train", "-", STOPPED("epochs: '${e}', ", "method: asha"), AS_E_INVAL,
     "/early_stopping/max_steps", "missing"},
    {"train", "-", STOPPED("epochs: '${e}', ", "max_steps: 9"), AS_E_INVAL,
     "/early_stopping/max_steps", "when e is 5: /early_stopping/max_steps: found 9, expected"},
    {"train", "-", STOPPED("epochs: 20, validation: {folds: 3}, ", "method: asha"), AS_E_INVAL,
     "/early_stopping", "are its folds"},
    {"train", "-", STOPPED("epochs: 20, boost: {stage: 1}, ", "method: asha"), AS_E_INVAL,
     "/early_stopping", "a stage of boosting"},
    {"train", "-",
     STOPPED("model: {kind: boosted_trees, n_estimators: 100}, ", "min_steps: 4, max_steps: 100"),
     AS_E_INVAL, "/trial/train/report_every", "found 5, expected a divisor of 4"},
    {"train", "-", TWO_METRICS("method: pasha, max_steps: 9, mode: pause"), AS_E_INVAL,
     "/early_stopping/metric", "compares differences of one metric, and the sweep has 2"},
    {"train", "parameters", NULL, AS_E_INVAL, "/parameters", "missing"},
    {"train", "parameters/lr/min", "7", AS_E_INVAL, "/parameters/lr/min", "above max"},
    {"train", "parameters/momentum/when", "{o: sgd}", AS_E_INVAL, "/parameters/momentum/when/o",
     "no parameter 'o'"},
    {"train", "search", "{method: anneal}", AS_E_INVAL, "/search/method", "one of grid"},
    {"train", "search", "{seed: -1}", AS_E_INVAL, "/search/seed", "a whole number from 0"},
    {"train", "search", "{seed: 9007199254740992}", AS_E_INVAL, "/search/seed",
     "to 9007199254740991"},
    {"train", "parameters/lr/prior", "{mean: 9, deviation: 1}", AS_E_INVAL,
     "/parameters/lr/prior/mean", "expected a number from"},
    {"command", "parameters/x/prior", "{mean: 1, deviation: 1}", AS_E_INVAL, "/parameters/x/prior",
     "the method grid tries every cell"},
    {"train", "search", "{method: grid}", AS_E_INVAL, "/parameters/lr", "'step' or 'points'"},
    {"command", "parameters/x/max", "1000001", AS_E_TOO_LARGE, "/parameters", "4000004 cells"},
    {"train", "limits", NULL, AS_E_INVAL, "/limits/max_trials", "missing"},
    {"train", "limits/max_trials", "0", AS_E_INVAL, "/limits/max_trials", "from 1 to 1000000"},
    {"train", "limits/max_trials", "1000001", AS_E_INVAL, "/limits/max_trials", "to 1000000"},
    {"train", "limits/max_trials", "many", AS_E_INVAL, "/limits/max_trials", "found \"many\""},
    {"train", "limits/max_concurrent_trials", "0", AS_E_INVAL, "/limits/max_concurrent_trials",
     "1"},
    {"train", "limits/max_restarts", "-1", AS_E_INVAL, "/limits/max_restarts", "from 0"},
    {"train", "limits/target", "high", AS_E_INVAL, "/limits/target", "found \"high\""},
    {"train", "limits/stop_when", "0.01", AS_E_INVAL, "/limits/stop_when", "an object"},
    {"train", "limits/stop_when", "{}", AS_E_INVAL, "/limits/stop_when",
     "found neither regret nor relative"},
    {"train", "limits/stop_when", "{min_trials: 30}", AS_E_INVAL, "/limits/stop_when",
     "found neither"},
    {"train", "limits/stop_when", "{regret: 0.1, relative: 0.1}", AS_E_INVAL, "/limits/stop_when",
     "found regret and relative"},
    {"train", "limits/stop_when", "{regret: -0.1}", AS_E_INVAL, "/limits/stop_when/regret",
     "expected a number from 0"},
    {"train", "limits/stop_when", "{regret: 1%}", AS_E_INVAL, "/limits/stop_when/regret",
     "found \"1%\""},
    {"train", "limits/stop_when", "{relative: 1.5}", AS_E_INVAL, "/limits/stop_when/relative",
     "from 0 to 1"},
    {"train", "limits/stop_when", "{regret: 1, min_trials: 0}", AS_E_INVAL,
     "/limits/stop_when/min_trials", "from 1 to 1000000"},
    {"train", "limits/stop_when", "{regert: 1}", AS_E_INVAL, "/limits/stop_when/regert",
     "did you mean 'regret'"},
    {"train", "-",
     "{name: any, metrics: [{name: a, goal: minimize}, {name: b, goal: maximize}], parameters: {x: "
     "{type: float, min: 0, max: 1}}, limits: {max_trials: 3, stop_when: {regret: 1}}}",
     AS_E_INVAL, "/limits/stop_when", "found it beside 2 metrics"},
    {"train", "-",
     "{name: any, metric: {name: a, goal: minimize}, parameters: {x: {type: constant, value: 1}, "
     "y: "
     "{type: categorical, values: [a]}}, limits: {max_trials: 3, stop_when: {regret: 1}}}",
     AS_E_INVAL, "/limits/stop_when", "no parameter has two values"},
    {"train", "limits/on_timeout", "wait", AS_E_INVAL, "/limits/on_timeout", "fail, keep"},
    {"train", "limits", "{max_trials: 3, on_timeout: keep}", AS_E_INVAL, "/limits/on_timeout",
     "keep without trial_timeout"},
    {"train", "limits/trial_timeout", "soon", AS_E_INVAL, "/limits/trial_timeout", "a duration"},
    {"train", "limits/max_trails", "3", AS_E_INVAL, "/limits/max_trails", "did you mean"},
    {"train", "resources", "{ranks: 0}", AS_E_INVAL, "/resources/ranks", "from 1"},
    {"train", "resources", "{ranks: 4097}", AS_E_INVAL, "/resources/ranks", "to 4096"},
    {"train", "resources", "{ranks: 2}", AS_E_INVAL, "/resources/ranks", "shards of a batch"},
    {"train", "-",
     "{name: any, metric: {name: val_error, goal: minimize}, parameters: {k: {type: categorical, "
     "values: [mlp, boosted_trees]}}, limits: {max_trials: 3}, trial: {train: {dataset: d, epochs: "
     "1, batch_size: 8, micro_batch: 4, model: {kind: '${k}'}}}, resources: {ranks: 2}}",
     AS_E_INVAL, "/trial/train/model/kind",
     "found boosted_trees, which trains in one process; expected a kind of network, or no "
     "resources.ranks"},
    {"train", "trial/train/optimizer", "{kind: lbfgs}", AS_E_INVAL, "/trial/train/optimizer/kind",
     "found lbfgs, which is for ranks; expected resources.ranks: 1 or more"},
    {"train", "trial/train",
     "{dataset: d, epochs: 1, model: {kind: linear, solver: cocoa}, "
     "optimizer: {weight_decay: 0.1}}",
     AS_E_INVAL, "/trial/train/model/solver",
     "found cocoa, which is for ranks; expected resources.ranks: 1 or more"},
    {"train", "trial/train", "{dataset: d, model: {kind: kmeans}, optimizer: {lr: 0.1}}",
     AS_E_INVAL, "/trial/train/optimizer",
     "no such field with the kind kmeans: it has no gradients"},
    {"train", "trial/train", "{dataset: d, model: {kind: kmeans}}", AS_E_INVAL, "/metric/name",
     "it reports inertia, val_inertia, val_davies_bouldin"},
    {"shards", "resources", "{ranks: 2, min_ranks: 3}", AS_E_INVAL, "/resources/min_ranks",
     "at most resources.ranks"},
    {"train", "resources", "{min_ranks: 2}", AS_E_INVAL, "/resources/min_ranks",
     "at most resources.ranks"},
    {"command", "resources", "{ranks: 4, min_ranks: 5}", AS_E_INVAL, "/resources/min_ranks",
     "at most resources.ranks"},
    {"shards", "-", SEARCHED("{type: int, min: 1, max: 9}", "{ranks: '${r}'}"), AS_E_INVAL,
     "/resources/ranks", "when r is 9: /resources/ranks: found 9, expected at most the 4 shards"},
    {"shards", "-", SEARCHED("{type: int, min: 0, max: 4}", "{ranks: '${r}'}"), AS_E_INVAL,
     "/resources/ranks", "'r' is not always a whole number from 1 to 4096"},
    {"shards", "-", SEARCHED("{type: categorical, values: [1, two]}", "{ranks: '${r}'}"),
     AS_E_INVAL, "/resources/ranks", "'r' is not always a whole number"},
    {"shards", "-", SEARCHED("{type: float, min: 1, max: 2}", "{ranks: '${r}'}"), AS_E_INVAL,
     "/resources/ranks", "'r' is not always a whole number"},
    {"shards", "-", SEARCHED("{type: int, min: 1, max: 2, when: {y: true}}", "{ranks: '${r}'}"),
     AS_E_INVAL, "/resources/ranks", "'r' has a condition"},
    {"shards", "-", SEARCHED("{type: int, min: 1, max: 2}", "{ranks: '${s}'}"), AS_E_INVAL,
     "/resources/ranks", "there is no parameter 's'"},
    {"shards", "-", SEARCHED("{type: int, min: 1, max: 2}", "{ranks: '2 * ${r}'}"), AS_E_INVAL,
     "/resources/ranks", "found '2 * ${r}', expected a whole number"},
    {"shards", "-", SEARCHED("{type: int, min: 2, max: 4}", "{ranks: '${r}', min_ranks: 3}"),
     AS_E_INVAL, "/resources/min_ranks", "which is 2 in some trials"},
    {"shards", "-", SEARCHED("{type: int, min: 1, max: 2}", "{ranks: '${r}', group: 2}"),
     AS_E_INVAL, "/resources/group", "shares no process"},
    {"shards", "metric", "{name: step_seconds, goal: minimize}", AS_E_INVAL, "/metric/name",
     "is measured in trials with ranks"},
    {"shards", "-",
     COSTLY("{name: step_seconds, goal: minimize}, {name: val_error, goal: minimize}", ""),
     AS_E_INVAL, "/metrics/0/name", "expected that metric first"},
    {"shards", "-",
     COSTLY("{name: val_error, goal: minimize}, {name: step_seconds, goal: minimize}",
            "early_stopping: {method: asha, max_steps: 2}, "),
     AS_E_INVAL, "/metrics/1/name", "no early_stopping beside it"},
    {"command", "trial", "{command: [a], container: i, folder: own}", AS_E_INVAL, "/trial/folder",
     "found own with a container"},
    {"command", "trial", "{command: [a], folder: mine}", AS_E_INVAL, "/trial/folder",
     "shared, auto, own"},
    {"train", "trial", "{train: {dataset: d, epochs: 1}, folder: own}", AS_E_INVAL, "/trial/folder",
     "of trial.command"},
    {"shards", "resources", "{ranks: 2, group: 2}", AS_E_INVAL, "/resources/group",
     "shares no process"},
    {"train", "trial", "{train: {dataset: d, model: {kind: linear}, epochs: 1}, launch: all}",
     AS_E_INVAL, "/trial/launch", "of trial.command"},
    {"command", "trial", "{command: [a], launch: some}", AS_E_INVAL, "/trial/launch", "all, first"},
    {"train", "resources", "{group: 0}", AS_E_INVAL, "/resources/group", "from 1"},
    {"train", "resources", "{group: 65}", AS_E_INVAL, "/resources/group", "to 64"},
    {"command", "resources", "{group: 2}", AS_E_INVAL, "/resources/group", "only trials of"},
    {"train", "resources", "{gpus: -1}", AS_E_INVAL, "/resources/gpus", "from 0"},
    {"train", "resources", "{gpu: 1}", AS_E_INVAL, "/resources/gpu", "did you mean 'gpus'"},
    {"train", "resources", "{cpus: 0}", AS_E_INVAL, "/resources/cpus", "from 1"},
    {"command", "resources", "{cpus: 1.5}", AS_E_INVAL, "/resources/cpus", "from 1 to 4096"},
    {"command", "resources", "{memory: 4 gigabytes}", AS_E_INVAL, "/resources/memory", "4GiB"},
    {"command", "resources", "{memory: 0}", AS_E_INVAL, "/resources/memory", "above 0"},
    {"command", "resources", "{memory: true}", AS_E_INVAL, "/resources/memory", "4GiB"},
    {"command", "resources", "{exclusive: 1}", AS_E_INVAL, "/resources/exclusive", "true or false"},
    {"command", "resources", "{exclusive: true, ranks: 2}", AS_E_UNSUPPORTED,
     "/resources/exclusive", "ranks"},
    {"command", "priority", "101", AS_E_INVAL, "/priority", "from -100 to 100"},
    {"command", "priority", "high", AS_E_INVAL, "/priority", "from -100 to 100"},
    {"train", "ensemble", "{method: stack}", AS_E_INVAL, "/ensemble/method", "one of greedy"},
    {"train", "ensemble", "{method: average, non_negative: true}", AS_E_INVAL,
     "/ensemble/non_negative", "only stacking"},
    {"train", "ensemble", "{method: stacking, non_negative: 1}", AS_E_INVAL,
     "/ensemble/non_negative", "true or false"},
    {"train", "ensemble", "{calibrate: 0.5}", AS_E_INVAL, "/ensemble/calibrate", "true or false"},
    {"train", "ensemble", "{size: 0}", AS_E_INVAL, "/ensemble/size", "from 1 to 100"},
    {"train", "ensemble", "12", AS_E_INVAL, "/ensemble", "an object"},
    {"train", "trial", "{}", AS_E_INVAL, "/trial",
     "exactly one of train and command, found neither"},
    {"train", "trial/command", "[ls]", AS_E_INVAL, "/trial", "found both"},
    {"train", "trial/env", "{A: b}", AS_E_INVAL, "/trial/env", "is a field of trial.command"},
    {"train", "trial/train/dataset", NULL, AS_E_INVAL, "/trial/train/dataset", "missing"},
    {"train", "trial/train/epochs", "'${epochs}'", AS_E_INVAL, "/trial/train/epochs",
     "no parameter 'epochs'"},
    {"train", "trial/train/epochs", "-3", AS_E_INVAL, "/trial/train/epochs", "-3"},
    {"train", "trial/train/colour", "red", AS_E_INVAL, "/trial/train/colour", "not a known field"},
    /* wrong only for one value of a parameter */
    {"train", "parameters/opt/values", "[sgd, adamax]", AS_E_INVAL, "/trial/train/optimizer/kind",
     "when opt is \"adamax\""},
    {"train", "parameters/momentum/max", "1.5", AS_E_INVAL, "/trial/train/optimizer/momentum",
     "when momentum is 1.5"},
    {"train", "parameters/width/min", "0", AS_E_INVAL, "/parameters/width/min", "log scale"},
    {"train", "parameters/width", "{type: int, min: 0, max: 3}", AS_E_INVAL,
     "/trial/train/model/layers/0", "found 0"},
    {"command", "trial/command", "[]", AS_E_INVAL, "/trial/command", "empty"},
    {"command", "trial/command", "['']", AS_E_INVAL, "/trial/command/0", "name is empty"},
    {"command", "trial/command", "python3 x.py", AS_E_INVAL, "/trial/command", "a list"},
    {"command", "trial/command", "[ls, true]", AS_E_INVAL, "/trial/command/1", "a boolean"},
    {"command", "trial/command", "[ls, [[a]]]", AS_E_INVAL, "/trial/command/1/0", "found a list"},
    {"command", "trial/command", "[[ls]]", AS_E_INVAL, "/trial/command/0", "the program's name"},
    {"command", "trial/command", "[ls, '${x?--x}']", AS_E_INVAL, "/trial/command/1", "type bool"},
    {"command", "trial/command", "[ls, 'a${args}']", AS_E_INVAL, "/trial/command/1",
     "an element of its own"},
    {"command", "trial/command", "[ls, '${file:a}']", AS_E_INVAL, "/trial/command/1",
     "trial.files has no 'a'"},
    {"command", "trial/files", "{../x: a}", AS_E_INVAL, "/trial/files/..~1x", "a relative path"},
    {"command", "trial/files", "{x: 3}", AS_E_INVAL, "/trial/files/x", "the file's text"},
    {"command", "trial/files", "{x: '${w}'}", AS_E_INVAL, "/trial/files/x", "no parameter 'w'"},
    {"command", "trial/files", "{x: a, x/y: b}", AS_E_INVAL, "/trial/files", "the folder of"},
    {"train", "trial/files", "{A: b}", AS_E_INVAL, "/trial/files", "is a field of trial.command"},
    {"command", "trial/command", "[ls, '${w}']", AS_E_INVAL, "/trial/command/1",
     "no parameter 'w'"},
    {"command", "trial/command", "[ls, '${x']", AS_E_INVAL, "/trial/command/1", "without its }"},
    {"command", "trial/env", "{'A B': c}", AS_E_INVAL, "/trial/env/A B", "no name for a variable"},
    {"command", "trial/env", "{ASSAY_SEED: c}", AS_E_INVAL, "/trial/env/ASSAY_SEED",
     "set by the runner"},
    {"command", "trial/env", "{A: '${w}'}", AS_E_INVAL, "/trial/env/A", "no parameter 'w'"},
    {"command", "trial/env", "{A: [1]}", AS_E_INVAL, "/trial/env/A", "a string or a number"},
    {"command", "trial/directory", "''", AS_E_INVAL, "/trial/directory", "expected a path"},
    {"command", "trial/directory", "'runs/${w}'", AS_E_INVAL, "/trial/directory",
     "no parameter 'w'"},
    {"command", "trial/report", "x", AS_E_INVAL, "/trial/report", "found a string"},
    {"command", "trial/report", "[]", AS_E_INVAL, "/trial/report", "the list is empty"},
    {"command", "trial/report", "{}", AS_E_INVAL, "/trial/report", "found none of them"},
    {"command", "trial/report", "{cvs: a}", AS_E_INVAL, "/trial/report/cvs", "did you mean 'csv'"},
    {"command", "trial/report", "{stdout: 'l (?P<l>['}", AS_E_INVAL, "/trial/report/stdout",
     "at offset 9"},
    {"command", "trial/report", "{stdout: ['(?P<l>.)', 'x']}", AS_E_INVAL, "/trial/report/stdout/1",
     "no named group"},
    {"command", "trial/report", "{stdout: ['(?P<step>.)']}", AS_E_INVAL, "/trial/report/stdout",
     "only named group is step"},
    {"command", "trial/report", "{stdout: [3]}", AS_E_INVAL, "/trial/report/stdout/0",
     "a whole number"},
    {"command", "trial/report", "{stdout: []}", AS_E_INVAL, "/trial/report/stdout", "0 patterns"},
    {"command", "trial/report", "{stdout: '(?P<l>.)', groups: {k: val/l}}", AS_E_INVAL,
     "/trial/report/groups/k", "no pattern of stdout beside it has a group 'k'"},
    {"command", "trial/report", "[{stdout: '(?P<k>.)'}, {stdout: '(?P<l>.)', groups: {k: val/l}}]",
     AS_E_INVAL, "/trial/report/1/groups/k", "has a group 'k'"},
    {"command", "trial/report", "{stdout: '(?P<l>.)', groups: {l: val l}}", AS_E_INVAL,
     "/trial/report/groups/l", "found val l, expected the name of a metric"},
    {"command", "trial/report", "{stdout: '(?P<l>.)', groups: {l: 3}}", AS_E_INVAL,
     "/trial/report/groups/l", "found a whole number, expected the name of a metric"},
    {"command", "trial/report", "{stdout: '(?P<step>.)(?P<l>.)', groups: {step: val/l}}",
     AS_E_INVAL, "/trial/report/groups/step", "the step and no metric"},
    {"command", "trial/report", "{stdout: ['(?P<k>.)', '(?P<k>.)(?P<l>.)'], groups: {k: l}}",
     AS_E_INVAL, "/trial/report/stdout/1", "the groups 'k' and 'l' are both the metric 'l'"},
    {"command", "trial/report",
     "[{stdout: [" PATTERNS_16 "'(?P<m>.)']}, {stdout: [" PATTERNS_16 "]}]", AS_E_TOO_LARGE,
     "/trial/report", "33 patterns in all, at most 32"},
    {"command", "trial/report", "{csv: a, groups: {}}", AS_E_INVAL, "/trial/report/groups",
     "a field of stdout"},
    {"command", "trial/report", "{csv: ../a}", AS_E_INVAL, "/trial/report/csv", "below the folder"},
    {"command", "trial/report", "{json: '/${x}'}", AS_E_INVAL, "/trial/report/json",
     "below the folder"},
    {"command", "trial/report", "{json: '${x}/../b'}", AS_E_INVAL, "/trial/report/json",
     "below the folder"},
    {"command", "trial/report", "{json: .}", AS_E_INVAL, "/trial/report/json", "below the folder"},
    {"command", "trial/report", "{csv: 'a${w}'}", AS_E_INVAL, "/trial/report/csv",
     "no parameter 'w'"},
    {"command", "trial/report", "{csv: a, step: ''}", AS_E_INVAL, "/trial/report/step", "a name"},
    {"command", "trial/report", "{tensorboard: a, step: b}", AS_E_INVAL, "/trial/report/step",
     "a field of csv and json"},
    {"command", "trial/report", "{csv: a, tags: {}}", AS_E_INVAL, "/trial/report/tags",
     "a field of tensorboard"},
    {"command", "trial/report", "[{csv: a}, {tensorboard: b, tags: {a/b: c d}}]", AS_E_INVAL,
     "/trial/report/1/tags/a~1b", "the name of a metric"},
    {"train", "trial/report", "{csv: a}", AS_E_INVAL, "/trial/report", "a field of trial.command"},
    {"command", "trial/shell", "true", AS_E_INVAL, "/trial/shell", "not a known field"},
};

START_TEST(refuses)
{
    const struct edit *e = &edits[_i];
    struct sweep_doc *d = NULL;
    struct as_err err = {0};
    JSON_AUTO doc = edited(e->base, e->path, e->value);
    as_status st = sweep_doc_parse(doc, 0, &d, &err);
    ck_assert_msg(st == e->want, "%s = %s: got %s: %s", e->path, e->value ? e->value : "(gone)",
                  as_status_name(st), err.msg);
    ck_assert_msg(strstr(err.msg, e->part) != NULL, "'%s' is not in: %s", e->part, err.msg);
    ck_assert_str_eq(err.pointer, e->pointer);
    ck_assert_ptr_null(d);
    /* one thing is wrong: the list has it, and nothing that only follows from it */
    AS_AUTO(faults_done) struct faults faults = {0};
    struct as_err first = {0};
    ck_assert_int_eq(sweep_doc_parse_noting(doc, 0, &faults, &d, &first), st);
    for (size_t i = 1; i < faults.n; i++)
        ck_assert_msg(false, "%s brings: %s", e->path, faults.list[i].msg);
    ck_assert_uint_eq(faults.n, 1);
    ck_assert_str_eq(first.pointer, err.pointer);
    ck_assert_str_eq(first.msg, err.msg);
}
END_TEST

/* Documents with several faults, and the pointers of all of them. */
static const struct {
    const char *yaml;
    const char *pointers[24]; /* NULL-terminated, in the order of the list */
} faulty[] = {
    {"name: Bad Name\n"
     "tags: [ok, 3, '']\n"
     "metric: {name: 7x, goal: up, weight: 1}\n"
     "parameters:\n"
     "  lr: {type: float, min: 1, max: 0.1, scal: log}\n"
     "  width: {type: int, min: a, max: b, step: 0}\n"
     "  opt: {type: categorical, values: [a, a, {c: 1}]}\n"
     "  depth: {type: integer, min: 1, max: 2}\n"
     "  drop: {type: float, min: 0, max: 1, when: {opt: sgd, nobody: 1}}\n"
     "parameter_constraints: ['lr < widht', 'drop <', 'drop < nothing']\n"
     "forbidden: [{}, {lr: 3}, {drop: 4}]\n"
     "search: {method: gird, seed: -1}\n"
     "limits: {max_trial: 3, wall_time: soon}\n"
     "resources: {gpus: -1, ranks: 0, min_ranks: 2}\n"
     "ensemble: {size: 0, sort: up}\n"
     "nonsense: 1\n",
     {"/name",
      "/tags/1",
      "/tags/2",
      "/metric/goal",
      "/metric/name",
      "/metric/weight",
      "/parameters/lr/min",
      "/parameters/lr/scal",
      "/parameters/width/min",
      "/parameters/width/max",
      "/parameters/opt/values/1",
      "/parameters/opt/values/2",
      "/parameters/depth/type",
      "/parameters/drop/when/nobody",
      "/parameter_constraints/1",
      "/parameter_constraints/2",
      "/forbidden/0",
      "/forbidden/2/drop",
      "/search/seed",
      "/search/method",
      "/limits/wall_time",
      "/limits/max_trial"}},
    /* a train document beside a parameter at fault: what does not depend on that is checked */
    {"name: a\n"
     "metric: {name: val_error, goal: minimize}\n"
     "parameters:\n"
     "  lr: {type: float, min: 2, max: 1}\n"
     "  width: {type: int, min: 8, max: 16}\n"
     "limits: {max_trials: 3}\n"
     "trial:\n"
     "  train:\n"
     "    dataset: Big Data\n"
     "    epochs: none\n"
     "    model: {kind: mlp, layers: ['${width}', 0, x], dropout: 2}\n"
     "    optimizer: {kind: adamw, lr: '${lr}', momentun: 1}\n"
     "    schedule: {kind: cosine, min_lr: 0.5}\n"
     "    metrics: [val_auc, accuracy]\n",
     {"/parameters/lr/min", "/trial/train/dataset", "/trial/train/epochs",
      "/trial/train/model/layers/1", "/trial/train/model/layers/2", "/trial/train/model/dropout",
      "/trial/train/optimizer/momentun", "/trial/train/metrics/1"}},
    /* of a train document alone, also for single values of parameters */
    {"name: a\n"
     "metric: {name: val_error, goal: minimize}\n"
     "parameters:\n"
     "  kind: {type: categorical, values: [sgd, adamax]}\n"
     "  rate: {type: float, min: 0, max: 1.5}\n"
     "limits: {max_trials: 3}\n"
     "trial:\n"
     "  train:\n"
     "    dataset: digits\n"
     "    epochs: 3\n"
     "    batch_size: 0\n"
     "    model: {kind: cnn, layers: [{conv: 0, kernel: 99}, {poll: max}, {pool: max, size: 0}], "
     "dropout: '${rate}'}\n"
     "    optimizer: {kind: '${kind}'}\n",
     {"/trial/train/batch_size", "/trial/train/model/layers/0/conv",
      "/trial/train/model/layers/0/kernel", "/trial/train/model/layers/1",
      "/trial/train/model/layers/2/size", "/trial/train/optimizer/kind",
      "/trial/train/model/dropout"}},
    {"name: a\n"
     "metric: {name: score, goal: maximize}\n"
     "parameters: {x: {type: bool}}\n"
     "limits: [1]\n"
     "trial: {command: [run, '${y}', [true], '${x'], env: {ASSAY_A: 1, b c: 2, D: '${z}'}, "
     "directory: '${w}'}\n"
     "resources: {group: 2}\n",
     {"/limits", "/trial/command/1", "/trial/command/2/0", "/trial/command/3", "/trial/env/ASSAY_A",
      "/trial/env/b c", "/trial/env/D", "/trial/directory", "/resources/group"}},
    /* names that may be inactive: refused when sent, read when stored */
    {"name: a\n"
     "metric: {name: score, goal: maximize}\n"
     "parameters: {x: {type: bool}, z: {type: int, min: 1, max: 3, when: {x: true}}}\n"
     "limits: {max_trials: 3}\n"
     "trial: {command: [run, '--z=${z}', ['--z', '${z}'], '${z:-1}', '${args}'], "
     "env: {Z: '${z}', Y: '${z:-}'}, files: {c: 'z: ${z}'}, directory: 'runs/${z}'}\n",
     {"/trial/files/c", "/trial/command/1", "/trial/env/Z", "/trial/directory"}},
    /* two parameters with one variable; a_b has the one that a.b would have, β and γ have none */
    {"name: a\n"
     "metric: {name: score, goal: maximize}\n"
     "parameters: {opt/lr: {type: bool}, opt lr: {type: bool}, a.b: {type: bool}, a_b: {type: "
     "bool}, "
     "β: {type: bool}, γ: {type: bool}}\n"
     "limits: {max_trials: 3}\n"
     "trial: {command: [run, '${args}', '${nobody here}']}\n",
     {"/parameters/opt lr", "/trial/command/2"}},
    /* the kind of the trial is not known: nothing is said about what depends on it */
    {"name: a\n"
     "metric: {name: score, goal: maximize}\n"
     "parameters: 3\n"
     "limits: {max_trials: 3}\n"
     "trial: {}\n"
     "resources: {group: 2}\n"
     "ensemble: true\n",
     {"/parameters", "/trial"}},
};

START_TEST(names_all_faults)
{
    AS_AUTO(faults_done) struct faults faults = {0};
    struct sweep_doc *d = NULL;
    struct as_err err = {0};
    JSON_AUTO doc = NULL;
    ck_ok(yaml_parse(faulty[_i].yaml, strlen(faulty[_i].yaml), &doc, &err), err);
    as_status st = sweep_doc_parse_noting(doc, 0, &faults, &d, &err);
    ck_assert_int_eq(st, faults.list[0].code);
    ck_assert_str_eq(err.msg, faults.list[0].msg);
    ck_assert_ptr_null(d);
    size_t i = 0;
    for (; i < faults.n && i < 22 && faulty[_i].pointers[i]; i++)
        ck_assert_msg(as_streq(faults.list[i].pointer, faulty[_i].pointers[i]),
                      "%zu: expected %s, found: %s", i, faulty[_i].pointers[i], faults.list[i].msg);
    ck_assert_msg(i == 22 || !faulty[_i].pointers[i], "%s is missing", faulty[_i].pointers[i]);
    ck_assert_msg(i == faults.n || i == 22, "too many: %s", i < faults.n ? faults.list[i].msg : "");
}
END_TEST

/* A fault that the document has with every value of its parameters names none of them. */
START_TEST(a_fault_of_any_value_names_no_value)
{
    static const struct {
        const char *path, *value;
    } general[] = {{"trial/train/epochs", "-3"},
                   {"trial/train/colour", "red"},
                   {"trial/train/optimizer/momentum", "2"}};
    for (size_t i = 0; i < AS_ARRAY_LEN(general); i++) {
        struct sweep_doc *d = NULL;
        struct as_err err = {0};
        JSON_AUTO doc = edited("train", general[i].path, general[i].value);
        ck_assert_int_eq(sweep_doc_parse(doc, 0, &d, &err), AS_E_INVAL);
        ck_assert_msg(!strstr(err.msg, "when "), "%s", err.msg);
        ck_assert_ptr_null(d);
    }
}
END_TEST

START_TEST(stops_at_the_most_faults)
{
    AS_AUTO(faults_done) struct faults faults = {0};
    struct sweep_doc *d = NULL;
    struct as_err err = {0};
    JSON_AUTO doc = json_object();
    for (int i = 0; i < 1000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "field%d", i);
        ck_assert_int_eq(json_object_set_new(doc, name, json_null()), 0);
    }
    ck_assert_int_eq(sweep_doc_parse_noting(doc, 0, &faults, &d, &err), AS_E_INVAL);
    ck_assert_uint_eq(faults.n, FAULTS_MAX);
    ck_assert_str_eq(err.pointer, "/name");
}
END_TEST

static const struct {
    const char *field, *value, *pointer, *part;
} objective_edits[] = {
    {"metrics", "[{name: a, goal: minimize}]", "/metrics", "1 metrics, expected 2 to 4"},
    {"metrics",
     "[{name: a, goal: minimize}, {name: b, goal: minimize}, {name: c, goal: minimize}, {name: d, "
     "goal: minimize}, {name: e, goal: minimize}]",
     "/metrics", "5 metrics"},
    {"metrics", "[{name: a, goal: minimize}, {name: a, goal: maximize}]", "/metrics/1",
     "'a' appears twice"},
    {"metrics", "[{name: a, goal: minimize}, {name: step, goal: maximize}]", "/metrics/1/name",
     "numbers the measurements"},
    {"metrics", "[{name: a, goal: minimize}, {name: b}]", "/metrics/1/goal", "missing"},
    {"ensemble", "{size: 3}", "/ensemble", "without trial"},
    {"trial", "{train: {dataset: digits, epochs: 3}}", "/metrics/0/name", "never reports 'error'"},
};

START_TEST(refuses_objectives)
{
    JSON_AUTO doc = NULL;
    json_t *value = NULL;
    struct as_err err = {0};
    struct sweep_doc *d = NULL;
    const char *text = objective_edits[_i].value;
    ck_ok(yaml_parse(objectives_yaml, strlen(objectives_yaml), &doc, &err), err);
    ck_ok(yaml_parse(text, strlen(text), &value, &err), err);
    json_object_set_new(doc, objective_edits[_i].field, value);
    ck_fails(sweep_doc_parse(doc, 0, &d, &err), AS_E_INVAL, err, objective_edits[_i].part);
    ck_assert_str_eq(err.pointer, objective_edits[_i].pointer);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("scheduler/sweep/sweep_doc_refused");
    TCase *t = tcase_create("refused");
    tcase_add_loop_test(t, refuses, 0, AS_ARRAY_LEN(edits));
    tcase_add_loop_test(t, names_all_faults, 0, (int)AS_ARRAY_LEN(faulty));
    tcase_add_test(t, a_fault_of_any_value_names_no_value);
    tcase_add_test(t, stops_at_the_most_faults);
    tcase_add_loop_test(t, refuses_objectives, 0, AS_ARRAY_LEN(objective_edits));
    suite_add_tcase(s, t);
    return s;
}
