/* Made from api/openapi.yaml by web/tools/types.mjs (npm run types); a test holds them equal. Do not edit. */

export type Problem = {
  type: string;
  title: string;
  status: number;
  /** invalid, denied, not_found, conflict, stale_attempt, stale_world, stale_epoch, too_large, unsupported, unavailable, … */
  code: string;
  detail: string;
  instance?: string;
  request_id?: string;
  /** The fields at fault. A sweep document has an entry for each of them, other bodies for the first */
  errors?: {
    pointer: string;
    detail: string;
  }[];
};

export type Health = {
  status: string;
  version?: string;
};

/** A number; values that JSON cannot hold are strings */
export type Number = number | "NaN" | "Infinity" | "-Infinity";

/** As Lightning, TensorBoard and W&B write them too: val/acc, train.loss, recall@10, mAP50(B) */
export type MetricName = string;

export type Time = string;

export type SweepState = "running" | "paused" | "finishing" | "completed" | "failed" | "cancelled";

export type TrialState = "queued" | "running" | "paused" | "completed" | "pruned" | "failed" | "cancelled";

/** Values by parameter name; inactive conditional parameters are absent */
export type Params = Record<string, Value>;

/** A value of a parameter; null and lists are values of categorical and constant parameters */
export type Value = number | string | boolean | null | unknown[];

export type Goal = "minimize" | "maximize";

export type Objective = {
  name: MetricName;
  goal: Goal;
};

export type OnlyObjective = {
  name: MetricName;
  goal: Goal;
  /** none: values are exact, so that the best value is the best trial's, and the models take none for noise. auto: the sweep finds out, where it matters by measuring the best configuration once more */
  noise?: "auto" | "none";
};

/** A trial is feasible if the metric lies within the bounds (inclusive). At least one bound is required */
export type OutcomeConstraint = {
  metric: MetricName;
  min?: number;
  max?: number;
};

/** The sweep document, docs/sweep.md. The server checks every field; unknown ones are refused. Exactly one of metric and metrics is required */
export type SweepDocument = {
  name: string;
  description?: string;
  tags?: string[];
  /** The objective. Either this or metrics */
  metric?: OnlyObjective;
  /** Several objectives: the search looks for their Pareto front */
  metrics?: Objective[];
  /** Bounds on metrics of trials */
  constraints?: OutcomeConstraint[];
  /** By name, in the order of the document */
  parameters: Record<string, Parameter>;
  /** Expressions over the parameters that must hold, such as batch * accumulate <= 4096 */
  parameter_constraints?: string[];
  /** A configuration in which every entry of an item matches is never tried */
  forbidden?: Conditions[];
  search?: SearchOptions;
  limits?: SweepLimits;
  early_stopping?: EarlyStopping;
  trial?: TrialProgram;
  resources?: TrialResources;
  priority?: Priority;
  /** false for none */
  ensemble?: boolean | EnsembleOptions;
};

/** A letter or _, then letters, digits, _ . - / @ ( ) [ ] and single blanks inside. Letters are those of every alphabet: each character beyond ASCII that can be seen */
export type ParameterName = string;

/** A parameter that is searched, by its type */
export type Parameter = FloatParameter | IntParameter | CategoricalParameter | OrdinalParameter | BoolParameter | ConstantParameter;

export type Scale = "linear" | "log";

export type FloatParameter = {
  type: "float";
  min: number;
  max: number;
  scale?: Scale;
  /** Only min, min + step, …; not with points */
  step?: number;
  points?: GridPoints;
  prior?: NumberPrior;
  when?: Conditions;
};

export type IntParameter = {
  type: "int";
  min: number;
  max: number;
  scale?: Scale;
  /** Only min, min + step, …; not with points */
  step?: number;
  points?: GridPoints;
  prior?: NumberPrior;
  when?: Conditions;
};

/** Where the good values of a number are likely to be, as a normal distribution. The influence fades with the number of results, and at once where they contradict it. Not with the method grid */
export type NumberPrior = {
  /** From min to max, in the parameter's unit; on a log scale the median */
  mean: number;
  /** In the parameter's unit; on a log scale that of the natural logarithm, where 0.7 is a factor of 2 */
  deviation: number;
};

/** How likely the values are to be good. As NumberPrior */
export type ValuePrior = {
  /** By value: how much likelier it is than one that is not listed, which has 1. A value that is no text is written as JSON: "true", "0.5", "null" */
  weights: Record<string, number>;
};

/** The number of grid cells of a parameter without a step; other methods ignore it */
export type GridPoints = number;

export type CategoricalParameter = {
  type: "categorical";
  /** Distinct values. A list has strings, numbers, booleans, null and lists, at most 1000 in all and 4 lists deep */
  values: Value[];
  prior?: ValuePrior;
  when?: Conditions;
};

export type OrdinalParameter = {
  type: "ordinal";
  /** In their order */
  values: (string | number)[];
  prior?: ValuePrior;
  when?: Conditions;
};

export type BoolParameter = {
  type: "bool";
  prior?: ValuePrior;
  when?: Conditions;
};

export type ConstantParameter = {
  type: "constant";
  value: Value;
  when?: Conditions;
};

/** By parameter: a value, a list of values, or {min, max}; a value that is itself a list stands in a list of values. All of them must match */
export type Conditions = Record<string, Condition>;

export type Condition = string | number | boolean | null | Value[] | ValueRange;

/** Both ends are included, and either may be absent. The ends of an ordinal's range are two of its values */
export type ValueRange = {
  min?: number | string;
  max?: number | string;
};

export type SearchOptions = {
  method?: SearchMethod;
  /** Random when absent */
  seed?: number;
  /** Space-filling trials before the model of gp takes over; chosen from the space when absent */
  initial_trials?: number;
  /** Earlier sweeps of one metric to learn from. A name is replaced by a snapshot of the sweep's trials when this sweep is created, so that it needs the other no more. For methods that learn, and one metric */
  prior?: (string | EarlierSweep)[];
};

/** Trials of a sweep, all or the best 50 and a spread of the others, as far as their parameters fit this one: a value that a parameter cannot take is left out; a trial with a number outside of a range is dropped */
export type EarlierSweep = {
  sweep: string;
  /** Trials that had a value within the sweep's bounds */
  completed: number;
  /** Rows of the best ones that do not fit */
  dropped?: number;
  trials: {
    params: Record<string, Value>;
    /** The metric, negated if it was maximised */
    cost: number;
  }[];
};

export type SearchMethod = "gp" | "tpe" | "forest" | "cmaes" | "evolution" | "coordinate" | "mcmc" | "auto" | "sobol" | "random" | "grid";

/** Such as 30s, 5m, 4h, 1d; or a number of seconds */
export type Duration = number | string;

export type BlobParts = {
  /** Bytes of the whole */
  size: number;
  /** The SHA-256 of each part, in their order */
  parts: string[];
};

export type MissingParts = {
  /** The places of the parts that are not stored, from 0; empty: the content is stored */
  missing: number[];
};

export type SweepLimits = {
  /** Required unless the method is grid */
  max_trials?: number;
  max_concurrent_trials?: number;
  max_failed_trials?: number;
  max_restarts?: number;
  /** A value of the one metric. The sweep ends when a trial completes that is feasible and at least as good, in the direction of the goal; running trials are cancelled */
  target?: number;
  stop_when?: StopWhen;
  trial_timeout?: Duration;
  /** What trial_timeout does to a trial: it fails, or (keep) it completes with the values that it had reported, and `timed_out` says so. A trial without a finite value of every required metric fails either way */
  on_timeout?: "fail" | "keep";
  wall_time?: Duration;
  /** With early_stopping: a budget of steps for all trials together, at least the first rung. A trial begins, and goes on past a rung, only if the steps to its next rung are left beside those of the trials that run. The sweep ends when nothing runs and no trial can begin */
  max_steps?: number;
  grace?: Duration;
};

export type TrialResources = {
  gpus?: number;
  /** Cores of each trial, or of each rank: it runs where so many are free, on cores of its own, with so many threads. A group takes them once. When absent: the trial takes a slot and no more */
  cpus?: number;
  /** Memory of each trial, or of each rank, as text such as 4GiB or 500M, or in bytes: it runs where so much is free. Nothing is enforced while it runs */
  memory?: string | number;
  /** Nothing else runs on the machine of a trial while it runs; for timing. Not with ranks above 1 */
  exclusive?: boolean;
  /** How many processes train one trial together, over all runners; each uses a slot and `gpus` GPUs. 1 that is sent beside a micro_batch trains as one rank, with the bits of several. ${parameter}: each trial has its own number, the value of an unconditional parameter whose values are all whole numbers from 1 to 4096. {min, max} is written as a parameter `ranks` */
  ranks?: number | Template | RanksRange;
  /** Fewer ranks than this wait until others have joined; at most the ranks of any trial. When absent, 1 for trial.train and `ranks` for trial.command, whose world begins again with at least so many when one is lost */
  min_ranks?: number;
  /** How many trials of one shape train in one process; 1: each trial runs alone. When absent: as many as the runner measured to be best, at most 4 for methods that learn */
  group?: number;
};

/** Free slots go to sweeps of a higher priority first; among equals to the one with the fewest running trials, then to the one whose latest turn was longest ago. 0 when absent */
export type Priority = number;

/** Trials are compared at rungs: min_steps, min_steps * eta, min_steps * eta^2 … below max_steps. Those that are behind wait there or end. docs/sweep.md says how */
export type EarlyStopping = {
  /** asha: one in eta of each rung goes on. hyperband: the same, and each trial draws the rung from which it is compared. pasha: as asha, below a rung that rises while the ranks change. median: the better half goes on. curve: a trial goes on whose chance to beat the best one, by its value at the rung, is not below `chance`. pbt (population based training): the rungs are multiples of `period`; a trial that is among the last there is replaced by a fork, which goes on from the checkpoint of one of the best with other parameters. Its fields are metric, max_steps, strict and the last six below; those of the other methods are all but these six */
  method?: "asha" | "hyperband" | "pasha" | "median" | "curve" | "pbt";
  /** One of the sweep's metrics, which alone decides. Absent: of several metrics, dominance decides */
  metric?: string;
  /** The lowest rung. auto: the lowest one from which ranks agree with those of trials that ran in full */
  min_steps?: "auto" | number;
  /** The steps of a full trial. Required, unless trial.train fixes them (epochs; of trees n_estimators) */
  max_steps?: number;
  /** 3 when absent, of median and curve 2 */
  eta?: number;
  /** pause: a trial that is behind waits and may be promoted; a command needs checkpoints. stop: it ends for good. auto: pause if the trials leave checkpoints (trial.train, or checkpoints: true of a command), else stop */
  mode?: "auto" | "pause" | "stop";
  /** Of curve alone; 0.05 when absent */
  chance?: number;
  /** The first report past a rung counts for it; else only a report of the same step */
  late?: boolean;
  /** The sweep fails when its first trial ends and none has a value at a rung below the last, where nobody is compared */
  strict?: boolean;
  /** pbt: trials that the search makes; then there are forks only. Less than limits.max_trials */
  population?: number;
  /** pbt, required: steps between two rungs; at most 32 periods */
  period?: number;
  /** pbt: the share of a rung that is replaced, and the share that is forked */
  quantile?: number;
  /** pbt: a number is multiplied by one of them, on a log scale; on a linear scale it moves by (factor - 1) of its range. One is below 1, one above */
  perturb?: number[];
  /** pbt: the chance that a parameter is drawn anew from its whole range instead */
  resample?: number;
  /** pbt: the parameters that may change in a fork; absent: all but constants. With trial.train they may stand in rates, regularisation and augmentation alone */
  explore?: string[];
};

export type EnsembleOptions = {
  method?: EnsembleMethod;
  /** greedy: steps; stacking, average: the best trials that take part */
  size?: number;
  /** stacking: no coefficient below 0 */
  non_negative?: boolean;
  /** classes: probabilities are calibrated, and of two classes the threshold is chosen by the metric where it counts right classes, of more their weights */
  calibrate?: boolean;
  /** bucketing: the column whose values are buckets. It becomes trial.train.buckets, and is not in the stored document */
  by?: string;
};

/** greedy: members are added one by one, with replacement. stacking: a regularised regression on the members' outputs. average: the mean of the best trials. bucketing: the one trial that is best by cross-validation, or one for each value of a column */
export type EnsembleMethod = "greedy" | "stacking" | "average" | "bucketing";

/** What predictions of held-out rows are worth. Of classes: error, accuracy, log_loss, top5, auc, f1, balanced_accuracy, average_precision, brier; of numbers the others. pinball_90 is the loss of the quantile 0.9 */
export type PredictionMetric = string;

export type EnsembleRequest = {
  method?: EnsembleMethod;
  size?: number;
  non_negative?: boolean;
  /** As in the sweep's document */
  calibrate?: boolean;
  /** bucketing: the column of the data set whose values have a trial each. It is an input, and no cell of it is missing, in the data set of each sweep. The trials may have run without it: its values in the held-out rows are then read from the data set. When absent: trial.train.buckets of the trials, if they have it */
  by?: string;
  /** The ensemble is chosen and measured by this metric, and recommended if it is better by it than the best trial. When absent: the sweep's. The candidates are the best trials by the sweep's metric */
  metric?: PredictionMetric;
  /** Of the files of the members' models together, each once. A trial that does not fit beside those that were chosen is passed over. Not beside `by`. When absent: any */
  max_bytes?: number;
  /** Further sweeps whose trials take part. They have the metric and the held-out rows of the first */
  sweeps?: string[];
};

export type AskedEnsemble = {
  /** Among those of the sweep, from 1 */
  number: number;
  created_at: string;
  request: {
    method: EnsembleMethod;
    size: number;
    non_negative?: boolean;
    calibrate?: boolean;
    by?: string;
    metric?: PredictionMetric;
    max_bytes?: number;
    /** All of them */
    sweeps: string[];
  };
  ensemble: Ensemble;
};

export type AskedEnsembleList = {
  items: AskedEnsemble[];
};

/** What runners run. Without it the sweep is for ask and tell only */
export type TrialProgram = CommandTrial | TrainTrial;

export type CommandTrial = {
  /** The program and its arguments, with ${name} of parameters. A list is left out as a whole when a name in it is inactive; ${args} stands for --name=value of all active parameters: docs/trials.md */
  command: (string | number | (string | number)[])[];
  env?: Record<string, string | number>;
  /** Files that are written for each trial: a relative path, and the text with ${name} of parameters. ${file:PATH} in the command and in env is where the file stands */
  files?: Record<string, string>;
  /** Working directory of the command */
  directory?: string;
  /** Where measurements come from, besides $ASSAY_REPORT: docs/trials.md */
  report?: ReportSource | ReportSource[];
  /** Variables of the shell in which the sweep was created; only runners on that machine set them. `assay run` adds it. Not beside container */
  environment?: {
    /** A digest that stands for the machine */
    host: string;
    variables: Record<string, string>;
  };
  /** A virtual environment of Python on the runner; relative to directory */
  venv?: string;
  /** A file with lines NAME=VALUE on the runner, read when a trial starts; relative to directory */
  env_file?: string;
  /** Modules of Lmod or Environment Modules that are loaded before the command starts */
  modules?: string[];
  /** The image that the command runs in, with podman or apptainer: docs/trials.md */
  container?: string | {
    image: string;
    /** Absent: the first that is installed */
    engine?: "podman" | "apptainer";
    /** Options of the engine, before the image */
    options?: string[];
  };
  /** The program goes on from what it left in $ASSAY_CHECKPOINTS, so that early_stopping may pause its trials */
  checkpoints?: boolean;
  /** With resources.ranks above 1: the command starts on every rank, or on the first alone (not with container) */
  launch?: "all" | "first";
  /** Where the command runs: in `directory` with all trials, or in a folder of its trial below it (.assay/SWEEP/NUMBER), which has a link to each entry of `directory`. auto: the same, but where none can be made, in `directory`. auto for commands on every rank of several (launch: all) without a container; else shared */
  folder?: "shared" | "auto" | "own";
};

/** Where a program's measurements are: in what it prints, or in files that it writes. Paths are below the folder where it runs, and may have ${name} of parameters */
export type ReportSource = {
  /** Regular expressions (PCRE2) for lines of its output. The named group `step` is the step, every other one a metric */
  stdout?: string | string[];
  /** Named groups of the patterns of stdout whose metric has another name, such as val_acc: val/acc; each has to be in a pattern */
  groups?: Record<string, MetricName>;
  /** A CSV file: a header, then rows as they are appended */
  csv?: string;
  /** A file with one JSON object in each line */
  json?: string;
  /** The column or field with the step, of csv and json; when absent: step */
  step?: string;
  /** A folder with event files of TensorBoard */
  tensorboard?: string;
  /** Which scalars of tensorboard are read, and as which metric. When absent: all, with _ for characters that a metric's name cannot have */
  tags?: Record<string, MetricName>;
};

export type TrainTrial = {
  train: TrainDocument;
};

/** A text with ${name} of a parameter, whose value takes its place: docs/sweep.md */
export type Template = string;

/** What the built-in trainer does, docs/sweep.md */
export type TrainDocument = {
  dataset: string;
  /** Required, except where model.kind is a kind of trees, knn or naive_bayes */
  epochs?: number | Template;
  batch_size?: number | Template;
  micro_batch?: number | Template;
  report_every?: number | Template;
  /** 0: all training rows. K: the K-th bootstrap sample of them */
  resample?: number | Template;
  standardize?: boolean | Template;
  /** How the columns of numbers of a table become inputs of a network or a linear model */
  numbers?: {
    /** none: standardised. piecewise_linear: a value for each bin of the column, whose edges are quantiles of the training rows */
    encode?: "none" | "piecewise_linear" | Template;
    /** Of each column, with piecewise_linear; when absent: 16 */
    bins?: number | Template;
  };
  /** What is done to the targets of a regression */
  target?: {
    /** Before they are standardised; metrics and predictions are in their own unit. log needs targets above 0, log1p targets above -1; quantile gives each the normal score of its rank */
    transform?: "none" | "log" | "log1p" | "quantile" | Template;
  };
  precision?: "float32" | "bfloat16" | Template;
  loss?: "auto" | "cross_entropy" | "mse" | "huber" | "bce" | Template;
  label_smoothing?: number | Template;
  huber_delta?: number | Template;
  /** balanced, or a number for each class */
  class_weights?: "balanced" | (number | Template)[] | Template;
  /** The column of a table with the weights of the rows, 0 or more, in the loss and in metrics */
  weights?: string;
  /** The column of a table whose values say which bucket a row is in, for ensembles by bucketing */
  buckets?: string;
  /** This trial is one stage of a model that is a sum: stage 0 is a training like any other, a later one fits what the model of the stages before misses. Stage S goes on from trial S - 1 of its sweep */
  boost?: {
    stage?: number | Template;
    rate?: number | Template;
  };
  /** Trials with folds, of the same data set, SWEEP/NUMBER. What they predicted of the rows that they held out stands behind the columns of the data set; the model has theirs in it. Needs validation.folds */
  stack?: string[];
  /** So many reports without a better one, by the sweep's metric, end the training; the weights of the best report are kept. Default: it never ends early */
  patience?: number | Template;
  model?: TrainModel;
  optimizer?: TrainOptimizer;
  schedule?: TrainSchedule;
  augment?: TrainAugment;
  validation?: TrainValidation;
  distributed?: TrainDistributed;
  privacy?: TrainPrivacy;
  /** Reported in addition to those that are always reported */
  metrics?: (TrainMetric | Template)[];
};

/** Differentially private training (DP-SGD): the gradient of each row is clipped, and the sum of a batch gets noise. Trials report epsilon */
export type TrainPrivacy = {
  /** The largest norm of a row's gradient */
  clip: number | Template;
  /** Deviation of the noise of a batch, as a multiple of clip */
  noise: number | Template;
  /** Of the epsilon that is reported; default 0.00001 */
  delta?: number | Template;
};

/** How the ranks of a trial with resources.ranks above 1 work together, docs/distributed.md */
export type TrainDistributed = {
  /** Default: that of the section that is given, else allreduce */
  strategy?: "allreduce" | "local_sgd" | "server" | "groups" | "gossip" | "model_parallel" | Template;
  /** How sums over ranks are made. tree (default): equal bits for any number of ranks */
  allreduce?: "tree" | "ring" | "halving_doubling" | "auto" | Template;
  /** lineage: a rank holds the rows of its own shards alone, and reads those of a lost rank again. Default none */
  partitions?: "none" | "lineage" | Template;
  /** Gradients of linear layers travel as the factors of outer products. auto: where that sends less. Default never */
  sufficient_factors?: "never" | "auto" | "always" | Template;
  compress?: "none" | "fp16" | "one_bit" | "top_k" | "powersgd" | Template | TrainCodec;
  /** What compressing has lost is added to the next message; default true */
  error_feedback?: boolean | Template;
  local_sgd?: TrainLocalSgd;
  server?: TrainServer;
  /** All-reduce inside a group, a server between groups; 0 (default): no groups */
  groups?: number | Template;
  gossip?: TrainGossip;
  /** Layers lie on different ranks: auto, or all layers in blocks that stay together, by the names of their weights */
  model_parallel?: "auto" | Template | string[][];
  /** The optimizer's moments are divided among the ranks; default false */
  shard_state?: boolean | Template;
  /** What ranks send to ranks of other hosts is encrypted; default false */
  encrypt?: boolean | Template;
  /** On how many ranks each moment is, with shard_state, or each block of model_parallel; default 2 */
  state_copies?: number | Template;
};

export type TrainCodec = {
  kind: "none" | "fp16" | "one_bit" | "top_k" | "powersgd" | Template;
  /** top_k: the share of the values that is sent; default 0.01 */
  fraction?: number | Template;
  /** powersgd; default 2 */
  rank?: number | Template;
  /** powersgd: its factors travel in half precision; default false */
  half?: boolean | Template;
  /** So many steps are not compressed; default 0 */
  warmup_steps?: number | Template;
};

export type TrainLocalSgd = {
  /** Local steps between two exchanges; required if the strategy is local_sgd */
  steps?: number | Template;
  /** What the optimizer's moments are at the start of a block; default average */
  moments?: "reset" | "average" | Template;
  block_momentum?: number | Template | TrainBlockMomentum;
  outer?: TrainOuter;
};

export type TrainBlockMomentum = {
  momentum?: number | Template;
  lr?: number | Template;
  nesterov?: boolean | Template;
};

export type TrainOuter = {
  kind?: "sgd" | "nesterov" | Template;
  lr?: number | Template;
  momentum?: number | Template;
};

export type TrainServer = {
  mode?: "sync" | "async" | "ssp" | Template;
  /** ssp: by how many steps a rank may lead the slowest; default 3 */
  staleness?: number | Template;
  /** Slices of the parameters; 0 (default): as many as ranks */
  shards?: number | Template;
  /** ssp, with the optimizer sgd: what moves a weight by less than this part of it is held back; default 0 */
  significance?: number | Template;
  /** sync, ssp: sparse: zeros of gradients, such as rows of embeddings that no row touched, do not travel */
  rows?: "dense" | "sparse" | Template;
  /** async, groups: so many steps are made by one worker alone; default 0 */
  warm_start?: number | Template;
  /** sync: who is done computes shards that are missing, and the first result counts; default false */
  backup_copies?: boolean | Template;
  /** sync, ssp: the last so many gradients of a step do not count; default 0 */
  backup?: number | Template;
};

export type TrainGossip = {
  /** Partners of a rank in each step; default 1 */
  peers?: number | Template;
  /** By how many steps a rank may lead a peer to whom it gives its model; default 4 */
  staleness?: number | Template;
};

/** val_pinball_Q: the pinball loss at the quantile of Q per cent */
export type TrainMetric = "train_loss" | "val_loss" | "val_error" | "val_accuracy" | "val_rmse" | "val_mae" | "val_r2" | "lr" | "val_top5" | "val_auc" | "val_average_precision" | "val_balanced_accuracy" | "val_f1" | "val_log_loss" | "val_brier" | "val_mape" | "inertia" | "val_inertia" | "val_davies_bouldin" | string;

export type TrainModel = {
  kind?: "mlp" | "linear" | "logistic" | "cnn" | "transformer" | "boosted_trees" | "random_forest" | "extra_trees" | "knn" | "naive_bayes" | "kmeans" | Template;
  /** knn: of each row; default 5 */
  neighbours?: number | Template;
  /** naive_bayes: added to each count of a category's value and of a word; default 1 */
  smoothing?: number | Template;
  /** naive_bayes: part of a column's variance that is added to that of each class; default 0.001 */
  var_smoothing?: number | Template;
  /** naive_bayes: a class is judged by the words of all others, or by its own. Default complement */
  words?: "complement" | "multinomial" | Template;
  /** knn: what a neighbour counts: alike, or 1 / distance. Default uniform */
  weights?: "uniform" | "distance" | Template;
  /** linear, with resources.ranks: cocoa ascends the dual, and reports the duality gap. Default sgd, the optimizer */
  solver?: "sgd" | "cocoa" | Template;
  activation?: "relu" | "tanh" | "gelu" | Template;
  /** mlp: widths; cnn: layers */
  layers?: (number | Template | TrainLayer)[];
  /** cnn: instead of layers */
  preset?: "lenet" | "vgg8" | "resnet8" | "resnet18" | Template;
  norm?: TrainNorm;
  dropout?: number | Template;
  width?: number | Template;
  depth?: number | Template;
  heads?: number | Template;
  context?: number | Template;
  embedding?: number | Template;
  n_estimators?: number | Template;
  max_depth?: number | Template;
  max_leaves?: number | Template;
  max_bin?: number | Template;
  max_cat_to_onehot?: number | Template;
  early_stopping_rounds?: number | Template;
  learning_rate?: number | Template;
  min_child_weight?: number | Template;
  gamma?: number | Template;
  max_delta_step?: number | Template;
  reg_lambda?: number | Template;
  reg_alpha?: number | Template;
  subsample?: number | Template;
  colsample_bytree?: number | Template;
  colsample_bylevel?: number | Template;
  colsample_bynode?: number | Template;
  clusters?: number | Template;
  init?: "k-means++" | "random" | Template;
  tolerance?: number | Template;
  tree_method?: "hist" | Template;
  grow_policy?: "depthwise" | "lossguide" | Template;
};

export type TrainNorm = "none" | "batch" | Template;

/** A layer of a cnn, by its first field */
export type TrainLayer = ConvLayer | PoolLayer | ResidualLayer | DenseLayer | DropoutLayer;

/** none, or the activation of the model */
export type LayerActivation = "none" | "relu" | "tanh" | "gelu" | Template;

export type LayerSize = number | Template;

export type LayerPadding = number | "same" | "valid" | Template;

export type ConvLayer = {
  /** Channels; 0 for a depthwise convolution: as many as the input has */
  conv: number | Template;
  kernel?: LayerSize;
  stride?: LayerSize;
  padding?: LayerPadding;
  depthwise?: boolean | Template;
  norm?: TrainNorm;
  activation?: LayerActivation;
};

export type PoolLayer = {
  pool: "max" | "avg" | "global" | Template;
  size?: LayerSize;
  stride?: LayerSize;
  padding?: LayerPadding;
};

export type ResidualLayer = {
  /** conv, pool and dropout layers */
  residual: TrainLayer[];
};

export type DenseLayer = {
  dense: number | Template;
  norm?: TrainNorm;
  activation?: LayerActivation;
};

export type DropoutLayer = {
  dropout: true | Template;
};

export type TrainOptimizer = {
  kind?: "sgd" | "adam" | "adamw" | "rmsprop" | "lamb" | "lion" | "adagrad" | "lbfgs" | Template;
  lr?: number | Template;
  momentum?: number | Template;
  nesterov?: boolean | Template;
  beta1?: number | Template;
  beta2?: number | Template;
  alpha?: number | Template;
  /** lbfgs: the steps that it remembers; default 10 */
  history?: number | Template;
  eps?: number | Template;
  weight_decay?: number | Template;
  clip_norm?: number | Template;
  ema?: number | Template;
};

export type TrainSchedule = {
  kind?: "constant" | "cosine" | "one_cycle" | "step" | Template;
  warmup_epochs?: number | Template;
  pct_start?: number | Template;
  min_lr?: number | Template;
  /** cosine: the rate falls so many times, in equal parts of the epochs */
  cycles?: number | Template;
  /** cosine: the model is the mean of the predictions of the weights at the ends of the last so many cycles, and so is the last report */
  snapshots?: number | Template;
  step_epochs?: number | Template;
  gamma?: number | Template;
};

/** Images only */
export type TrainAugment = {
  pad?: number | Template;
  flip?: number | Template;
  cutout?: number | Template;
};

export type TrainValidation = {
  /** The column of a table that says which rows are held out: 1, true, validation (or test, if no row says validation); 0, false, train. With column, order or groups the column is no input of the model */
  column?: string;
  /** The column of numbers or of dates whose last rows are held out */
  order?: string;
  /** With order: the share of the rows that is held out; default 0.25 */
  last?: number | Template;
  /** So many trainings, each of which holds out another part of the rows: predictions are out-of-fold for all rows, metrics are means over the folds, the model is the mean of the models. With seed and split */
  folds?: number | Template;
  /** With folds: the model is one more training, on all rows, as long as those of the folds were on average; all figures stay those of the folds */
  refit?: boolean | Template;
  /** The column whose equal cells stay on one side; fraction and seed as without */
  groups?: string;
  fraction?: number | Template;
  seed?: number | Template;
  /** How rows are held out: of each class in proportion (stratified, what a new sweep gets), or without regard to classes (random, what sweeps from before have) */
  split?: "stratified" | "random" | Template;
};

export type SweepPatch = {
  state?: "running" | "paused" | "cancelled";
  limits?: {
    max_trials?: number;
    max_concurrent_trials?: number | null;
    max_failed_trials?: number | null;
    max_steps?: number | null;
    /** null: the default */
    max_restarts?: number | null;
    target?: number | null;
    /** As a whole: what it does not name has its default */
    stop_when?: null | StopWhen;
    trial_timeout?: string | number | null;
    /** null: the default */
    on_timeout?: "fail" | "keep" | null;
    wall_time?: string | number | null;
    /** null: the default */
    grace?: string | number | null;
  };
  priority?: Priority;
  /** All tags that the sweep has from now on, those of its document too */
  tags?: string[];
  /** Markdown; null or an empty text: none any more */
  remarks?: string | null;
};

export type SweepChange = {
  changed_at: Time;
  /** The id of the token; null if there was none */
  changed_by: string | null;
  /** By the name of a limit (durations in seconds), priority, tags (with commas between them), remarks or state: the value before and after; of long texts the beginning */
  changes: Record<string, {
    /** null: there was no limit */
    from: number | string | null | StopWhen;
    /** null: the limit was removed */
    to: number | string | null | StopWhen;
  }>;
};

export type SweepChangeList = {
  items: SweepChange[];
};

export type TrialsRetry = {
  /** Which trials are tried again */
  state: "failed" | "cancelled";
};

export type TrialsRetried = {
  numbers: number[];
  sweep: Sweep;
};

/** Trials by state, and their sum. queued counts trials that exist and wait. The trials that are not created yet are planned_trials - total. */
export type Counts = {
  queued: number;
  running: number;
  paused: number;
  completed: number;
  pruned: number;
  failed: number;
  cancelled: number;
  total: number;
};

/** A sweep in a list. It has its document only with include=document */
export type SweepSummary = {
  id: string;
  name: string;
  state: SweepState;
  /** Why the sweep ended */
  reason?: string | null;
  document?: SweepDocument;
  /** The first objective. value, best and the sorting by value use it */
  metric: Objective;
  /** All objectives, one or more */
  metrics: Objective[];
  /** Bounds on metrics of trials; may be empty */
  constraints: OutcomeConstraint[];
  method: string;
  /** Decimal; 64 bits do not fit a JavaScript number */
  seed: string;
  /** The planned number of trials: max_trials (or the cells of the grid if they are fewer), plus the known results that were added; the number of trials that exist, if max_trials was lowered below it */
  planned_trials: number;
  /** How many known results were added */
  known_trials: number;
  /** False when the document has no trial: only clients that ask get its trials */
  for_runners: boolean;
  /** Those of the document, until they are changed */
  tags: string[];
  /** What people noted about it: Markdown. Absent in lists without documents */
  remarks?: string | null;
  /** Higher goes first */
  priority?: number;
  /** Why no live runner is large enough for a trial, such as: no runner has 64 cpus (largest: 8). Null: one is, or none is live */
  note?: string | null;
  /** Only in the answer of changeSweep: what the change did not do, or does later */
  notes?: string[];
  /** Values that people keep with the sweep; only of getSweep */
  user_attrs?: UserAttrs;
  counts: Counts;
  best?: null | {
    /** Of the trial that is best: by its value; where one configuration was measured twice with different values, by the mean of a model of all trials, as of the latest kept bound (regret): while results come fast it may lack the last sixteenth of them; soon after the last one it knows all */
    number: number;
    /** As told */
    value: Number;
    params: Params;
    /** What that model expects of it without noise. Null: values count as told */
    expected: null | Expected;
    /** The trial of the best value as told, which may be luck */
    told: {
      number: number;
      value: Number;
    };
  };
  /** What it can still gain at most, by the latest bound that was kept. Null: too few trials have completed, or there are several metrics */
  regret?: null | RegretCheck;
  created_at: Time;
  started_at?: null | Time;
  finished_at?: null | Time;
};

/** A sweep with its document */
export type Sweep = SweepSummary & {
  document: SweepDocument;
  /** What early stopping has done; null: the document asks for none */
  early_stopping?: null | StoppingReport;
  /** What the search has learned of parameters that declare no condition (gp), by its newest suggestion; absent: nothing */
  learned?: LearnedParameter[];
};

export type LearnedParameter = {
  parameter: string;
  /** Where it has no effect */
  no_effect: {
    /** One choice and its value */
    where: Record<string, Value>;
    /** That it was learned from */
    trials: number;
  }[];
  /** The condition that would declare this: the values that are left. Absent: none is */
  when?: Record<string, Value[]>;
};

export type StoppingReport = {
  /** From the lowest */
  rungs: {
    step: number;
    /** Trials with a result at this rung */
    reached: number;
    /** Trials that were pruned here, at once or after they had waited */
    stopped: number;
    /** Trials that wait here */
    paused: number;
    /** Decisions to prune or pause after which the attempt ended as it was told */
    obeyed: number;
    /** Decisions to prune or pause after which the attempt went on to another end, had to be killed, or was lost */
    disobeyed: number;
  }[];
  /** The sum over all trials of the latest step; of a fork without its parent's */
  steps_spent: number;
  /** How many more steps the trials that were pruned would have had; 0 with pbt, where a fork goes on in the place of each */
  steps_saved: number;
  /** Why early stopping has no effect, or that no trial reaches the last rung, with the steps that were reported; null: nothing is wrong */
  warning: string | null;
};

export type SweepList = {
  items: SweepSummary[];
  next_cursor: string | null;
};

export type Trial = {
  /** Values that people keep with the trial; in lists with ?include=user_attrs */
  user_attrs?: UserAttrs;
  sweep: string;
  number: number;
  state: TrialState;
  /** The latest attempt; 0 before the first claim */
  attempt: number;
  /** How many restarts were used up */
  restarts: number;
  params: Params;
  seed: string;
  tags?: TrialTag[];
  /** The metric of the sweep: its final value if the trial completed, else the latest one */
  value?: null | Number;
  /** The latest step measured */
  step?: number | null;
  /** The latest value of every metric */
  metrics?: Record<string, Number>;
  suggestion?: SuggestionReason;
  origin: Origin;
  /** The trial that this one goes on from (early_stopping pbt); null: it is no fork */
  parent?: number | null;
  /** The step of its parent where it goes on */
  fork_step?: number | null;
  /** How many suggestions the search had made before this one; null unless origin is suggested */
  index?: number | null;
  /** The suggestion was computed from every result with finish_seq up to this one; null for methods that do not learn, and for trials that people added */
  seen?: number | null;
  /** 1, 2, … in the order in which the trials of the sweep ended or were retried; null until then */
  finish_seq?: number | null;
  /** The earlier ends of a trial that was retried, in their order; null: it was not */
  retries?: ({
    state: "failed" | "cancelled";
    reason?: string | null;
    /** The latest attempt at that end */
    attempt?: number;
    /** The place of that end */
    finish_seq: number;
    /** The place of the retry: the search saw the end until then */
    retry_seq: number;
    retried_at?: Time;
    /** The id of the token */
    retried_by?: string | null;
  })[] | null;
  /** Whether the trial satisfies all constraints of the sweep (true if it has none); null unless the trial completed */
  feasible?: boolean | null;
  /** It completed with what it had reported when trial_timeout ended it (limits.on_timeout is keep) */
  timed_out?: boolean;
  /** Its value is what it had reported when it was stopped: it timed out and counts, or it was cancelled and does not count. The search does not learn from a cancelled trial */
  partial?: boolean;
  /** The signature of its tensors; null unless the built-in trainer runs it */
  shape?: string | null;
  /** The group that the latest attempt ran in; null when it ran alone */
  group?: string | null;
  /** The runner of the latest attempt; null if a client or a gang ran it */
  runner?: string | null;
  /** The client that asked for the latest attempt; null if a runner ran it */
  client?: string | null;
  /** Its results at the rungs of early stopping, from the lowest; null: it has none */
  rungs?: null | RungResult[];
  /** Why it failed, was cancelled or was requeued; of a running trial, what early stopping decided */
  reason?: string | null;
  created_at: Time;
  started_at?: null | Time;
  finished_at?: null | Time;
  /** For so long its attempts ran that have ended, since started_at: without the time in which it waited at a rung, or in the queue for another attempt. A running trial has run since running_since, too. null: it has not started */
  ran_ms?: number | null;
  /** When its present attempt was handed out to its runner or client; null: it does not run. A trial that its runner has claimed ahead waits there for its slot, 250 ms at most (`assay-runner --ahead`), which count until its end says so: then started_at, ran_ms and attempts count from when it had its slot */
  running_since?: null | Time;
};

/** Where the parameters come from: suggested by the search; enqueued, known: see addTrial; forked: from those of `parent` */
export type Origin = "suggested" | "enqueued" | "known" | "forked";

/** Values of any JSON by name */
export type UserAttrs = Record<string, unknown>;

export type UserAttrsNow = {
  user_attrs: UserAttrs;
};

/** The reason for these parameters: at least {method}. Suggestions of gp name the model and the acquisition that chose them, its value, the prediction of the model, the incumbent at that time, and the number of known results; docs/search.md lists the fields. It is {method: enqueued} or {method: known} for trials that people added, with the `key` of their row if it had one, and {method: pbt, parent, replaces, step} for forks. */
export type SuggestionReason = {
  method: "gp" | "tpe" | "forest" | "cmaes" | "evolution" | "coordinate" | "mcmc" | "sobol" | "random" | "grid" | "enqueued" | "known" | "pbt";
  /** The sweep's method is auto, which chose this one */
  chosen_by?: "auto";
  /** enqueued, known: the key that its row was added with */
  key?: string;
  /** Its number among the suggestions of the search */
  index?: number;
  /** Results up to this finish_seq were known */
  seen?: number;
  /** model: gp; search: tpe, forest, cmaes, evolution, coordinate, mcmc */
  phase?: "initial" | "model" | "search";
  /** sobol, and the initial phase: point of the design that fills the space */
  point?: number;
  /** Why there was no model, or no proposal */
  fallback?: string;
  /** gp */
  acquisition?: "ucb" | "logei" | "quadratic" | "pe" | "ehvi" | "feasibility" | "repeat" | "nearby" | "spread";
  /** gp: of the acquisition; tpe: logarithm of the ratio of densities; forest: logarithm of the expected improvement */
  value?: Number;
  /** tpe: how many of the best trials it is like */
  good?: number;
  /** evolution, mcmc: the trial that was changed; pbt: the trial that it goes on from */
  parent?: number;
  /** pbt: the trial whose place it took */
  replaces?: number;
  /** evolution, coordinate, mcmc: the parameters that were changed */
  changed?: string[];
  /** cmaes: of the run */
  generation?: number;
  /** cmaes, coordinate: runs that ended before */
  restarts?: number;
  /** coordinate: how often all parameters were searched before, in this run */
  cycle?: number;
  /** mcmc: which of its chains, from 0 */
  chain?: number;
  /** mcmc: in the unit of the metric */
  temperature?: Number;
  /** mcmc: the share of the chain's steps that were accepted; null: it has made none */
  acceptance?: null | Number;
  /** cmaes, coordinate: in units of the parameters' ranges; pbt: where it goes on from its parent */
  step?: Number;
  /** gp */
  model?: string;
  /** gp: how many were compared */
  candidates?: number;
  runner_up?: null | Number;
  fit?: {
    refitted: boolean;
    rows: number;
  };
  /** gp: the best trial, which is tried once more, because its value may be luck */
  repeat?: number;
  /** gp: the trial around whose place it was made, while trials crowd around the best one */
  basin?: number;
  /** gp: the side of a threshold of one number that was searched, because numbers have no effect on the other side, where the best trial is */
  part?: {
    parameter: string;
    from: number;
    to: number;
    /** That lay in it */
    trials: number;
  };
  /** gp, with part: the numbers that have no effect outside of it */
  idle?: string[];
  /** gp: the side of the region that was searched */
  trust_region?: number;
  /** gp: the numbers that could change; all others are as in the best trial, or as in the best one of the branch */
  free?: string[];
  /** gp: the part of the space that was searched, so that its own parameters are tuned before it is judged */
  branch?: {
    parameter: string;
    value: Value;
    /** That it had before this one */
    trials: number;
    /** What its best trial may still reach; null: unknown */
    optimistic: null | Number;
    /** True: everything that the best trial also has is as in the best trial; otherwise absent */
    crossing?: boolean;
    /** True: a model of the branch's trials alone chose it; otherwise absent */
    own_model?: boolean;
  };
  /** How much the parameters' priors still count. gp, forest: the factor of their logarithm in the acquisition; tpe: their share of the draws that are not near a good trial. Absent: not at all */
  prior?: number;
  /** gp: how much each earlier sweep counts; absent ones do not */
  prior_sweeps?: {
    sweep: string;
    /** The factor of the logarithm of its best trials' density in the acquisition */
    weight: number;
    /** The weight of its predictions in the model's mean: 1 where its values are these ones */
    mean?: number;
  }[];
  /** gp: what came of the predictions of each model (warped, plain, smooth); absent: nothing yet */
  calibration?: Record<string, {
    /** Results within three deviations of the prediction */
    within: number;
    /** Newest predictions of which the results were known */
    of: number;
    /** Too few were within: the model has no turns before there are so many results */
    until?: number;
  }>;
  /** gp: what it has learned of parameters that declare no condition; absent: nothing */
  no_effect?: {
    /** It has no effect there */
    parameter: string;
    /** One choice and its value, as a `when` would name them */
    where: Record<string, Value>;
    /** That it was learned from */
    trials: number;
  }[];
  /** gp: numbers that act on a logarithmic scale which the document does not give; absent: none */
  scales?: {
    parameter: string;
    /** r of ln(1 + r u), u the distance from the lower end as a share of the range; negative: from the upper end */
    rate: number;
  }[];
  /** gp: recent trials improved almost nothing, so it looks elsewhere */
  stagnant?: boolean;
  /** gp: of the objective, or a list in the order of the objectives */
  predicted?: Prediction | Prediction[];
  /** gp: the best trial at that time */
  incumbent?: {
    number: number;
    value: Number;
  };
  /** Completed trials that were known */
  observed?: number;
  /** Trials that were running */
  pending?: number;
  /** Failed trials that were known */
  failed?: number;
  /** grid */
  cell?: number;
  /** grid */
  cells?: number;
  /** sobol, random: points that the constraints excluded */
  redraws?: number;
};

export type Prediction = {
  mean: Number;
  deviation: Number;
};

export type TrialCreate = {
  params: Params;
  /** The result, when it is known; finite numbers */
  metrics?: Record<string, number>;
  /** The outcome of a known result; completed when there are metrics. Without state and metrics the trial is enqueued */
  state?: "completed" | "failed";
  /** The reason of a known failure, for people */
  reason?: string | null;
};

/** A TrialCreate with a key */
export type TrialCreateRow = {
  params: Params;
  metrics?: Record<string, number>;
  state?: "completed" | "failed";
  reason?: string | null;
  /** Makes the row safe to send again; all rows of a list have one, or none has */
  key?: string | null;
};

export type TrialCreateList = TrialCreateRow[];

export type TrialsAdded = {
  sweep: string;
  /** The number of the trial of each row */
  numbers: number[];
  /** How many rows were new */
  added: number;
};

/** Values by name */
export type MetricValues = Record<string, Number>;

/** A name of your choice for the program that runs the trials, the same in every request. Two loops that run in parallel need two names */
export type Client = string;

/** How long the server holds a trial for a silent client: 1 s to 7 days */
export type LeaseMs = number;

export type Ask = {
  client: Client;
  params?: Params;
  /** How many trials the client wants to hold in all */
  count?: number;
  lease_ms?: LeaseMs;
  /** How long to wait for a trial */
  wait_ms?: number;
};

export type Suggestion = {
  sweep: string;
  /** Names the trial in the requests that follow */
  number: number;
  /** Above 1 if the trial was begun before: by this client, which gets it back, or by another client that returned it */
  attempt: number;
  params: Params;
  /** Names of conditional parameters that are not active here */
  inactive: string[];
  /** For the trial's own random numbers; decimal, 64 bits do not fit a JavaScript number */
  seed: string;
  origin: Origin;
  reason: SuggestionReason;
  lease_until: Time;
};

export type AskResult = {
  items: Suggestion[];
  state: SweepState;
  /** The sweep has ended (or its ensemble is being computed): leave the loop */
  done: boolean;
};

/** The attempt of the suggestion, for clients that want to name it. When absent: the latest attempt that the client has held */
export type HeldAttempt = number;

export type SuggestionMeasurements = {
  client: Client;
  attempt?: HeldAttempt;
  items: Measurement[];
};

export type SuggestionReport = {
  /** How many points were new */
  recorded: number;
  /** What early stopping decided about this trial: prune or pause; empty: go on */
  directives: Directive[];
};

export type SuggestionCompletion = {
  client: Client;
  attempt?: HeldAttempt;
  outcome?: "completed" | "failed" | "released" | "paused" | "pruned";
  metrics?: MetricValues;
  /** The step at which the metrics are recorded */
  step?: number;
  reason?: string | null;
};

export type SuggestionHeartbeat = {
  client: Client;
  attempt?: HeldAttempt;
  lease_ms?: LeaseMs;
};

export type SuggestionLease = {
  lease_until: Time;
};

export type Pareto = {
  /** Set if the trials of the front pass the budget of a page */
  next_cursor: string | null;
  metrics: Objective[];
  items: Trial[];
  /** A value for each objective, in the order of metrics */
  reference: null | Number[];
  hypervolume: null | Number;
};

/** The sweep ends when an upper bound of what it can still gain is within this limit, three times in a row: see listRegretChecks. Exactly one of regret and relative. For one metric, and where at least one parameter has two values */
export type StopWhen = {
  /** In units of the metric */
  regret?: number;
  /** As a share of what separates the median of the completed trials from the best one */
  relative?: number;
  /** It does not end the sweep before so many trials have completed */
  min_trials?: number;
};

/** What the sweep could still gain at most when so many trials had completed */
export type RegretCheck = {
  /** Completed trials */
  completed: number;
  /** The place of the last of them in the sweep's order: what it knows */
  finish_seq: number;
  /** In the metric's unit; null: there was no model */
  bound: number | null;
  /** Its share in what separates the median trial from the best one; null: nothing does */
  relative: number | null;
  /** Ten trials had completed, and one more for each parameter */
  enough: boolean;
  /** The trial that was best by the mean of a model; absent: values counted as told */
  best?: {
    number: number;
    mean: Number;
    /** Of the mean */
    deviation: Number;
    noise: Number;
  };
  made_at: Time;
};

export type RegretBound = {
  metric: MetricName;
  /** The last result, end or retry in the sweep's order that it knows */
  finish_seq: number;
  /** There are later results, and the new bound is being computed for another request: ask again */
  stale: boolean;
  /** Ten trials have completed, and one more for each parameter */
  enough: boolean;
  /** In the metric's unit; null: there is no model yet, or there are several metrics */
  bound: number | null;
  /** Its share in what separates the median trial from the best one */
  relative: number | null;
};

export type TrialTagging = {
  numbers: number[];
  add?: TrialTag[];
  /** One of both has a tag; none is in both */
  remove?: TrialTag[];
};

/** No comma, no control character, and no blank at its ends */
export type TrialTag = string;

export type TrialsTagged = {
  changed: number;
};

export type Surfaces = {
  metric: MetricName;
  /** Completed trials with a value; the model has at most 1,000 of them */
  trials: number;
  /** More trials have ended since then: ask again */
  stale: boolean;
  /** As in Importance: how well the model predicts trials that it has not seen */
  r2: number | null;
  /** Why there is no model; null: there is one */
  reason: string | null;
  surfaces: Surface[];
};

export type SurfaceAxis = {
  name: string;
  values: Value[];
};

export type Surface = {
  x: SurfaceAxis;
  /** null: along x alone */
  y: SurfaceAxis | null;
  /** The values of the other parameters; null: no trial has the parameters of the axes */
  base: Params | null;
  /** The trial that has these values */
  base_trial: number | null;
  /** Row by row: the cell of the i-th x and the k-th y is number k * (values of x) + i */
  mean: (number | null)[];
  /** Of the function, without the noise of a trial; in the same order */
  deviation: (number | null)[];
  /** Why there are no cells */
  reason: string | null;
};

export type SweepPreview = {
  /** `createSweep` would take the document */
  valid: boolean;
  /** The fields at fault; empty if the document is valid */
  errors: {
    pointer: string;
    detail: string;
  }[];
  /** null, as all below, if the document is not valid */
  name: string | null;
  method: string | null;
  /** Of the document, or the one that the suggestions were drawn with */
  seed: string | null;
  /** limits.max_trials */
  planned_trials: number | null;
  /** How many configurations a grid has; null: the method has no list */
  cells: number | null;
  suggestions: {
    params: Params;
    /** The reason in words */
    why: string;
  }[];
};

export type Importance = {
  metric: MetricName;
  /** The number of completed trials that the model was fitted to */
  trials: number;
  /** Only every so-many-th trial, by number from 0, was read; 1: all trials */
  every?: number;
  /** More trials have ended since then, and the new indices are being computed for another request, or these are not older than `max_age` allows: ask again */
  stale: boolean;
  /** 1: the model predicts unseen trials without error; 0: no better than their mean; null: too few trials */
  r2: number | null;
  /** How it was computed */
  method: string;
  parameters: ({
    name: string;
    first: number | null;
    first_low: number | null;
    first_high: number | null;
    total: number | null;
    total_low: number | null;
    total_high: number | null;
    /** Share of what separates the best tenth of the trials from all trials */
    top: number | null;
    /** The parameter is not always active: its shares count only where it is */
    conditional: boolean;
  })[];
  /** Why there are no indices */
  reason?: string | null;
};

export type TrialDetail = Trial & {
  /** The reason for its parameters in words, which the search method gives: a sentence without capital and full stop. Its fields are in suggestion */
  why: string;
  /** Texts that the trial wrote beside its numbers, the last one of each name */
  notes: Record<string, string>;
  /** What its model is worth on the data set's test rows, from its artifact test.json; null without one. No search, early stopping or ensemble sees it, and trials are not listed by it */
  test?: null | TrialTest;
  /** Trials that go on from this one (early_stopping pbt), by number */
  forks: {
    number: number;
    /** The step of this trial where it goes on */
    step: number;
  }[];
  attempts: ({
    attempt: number;
    /** Null for an attempt of a client or of a gang */
    runner?: string | null;
    /** The client that asked for it; null for an attempt of a runner */
    client?: string | null;
    /** The group that it was a member of; null when it ran alone */
    group?: string | null;
    /** Its ranks; null unless resources.ranks is above 1 and runners run it */
    gang?: null | GangSummary;
    started_at: Time;
    ended_at?: null | Time;
    /** completed, failed, retry, released, lost, cancelled, timeout, paused, pruned */
    outcome?: string | null;
    reason?: string | null;
    exit_code?: number | null;
    /** How long its process ran, by its runner's clock; null when the runner did not say it */
    ran_ms?: number | null;
    walls?: Walls;
  })[];
};

export type RungResult = {
  /** 0 is the lowest */
  rung: number;
  /** The step of the measurement that reached it */
  step: number;
  /** Of the first metric that early stopping compares; null: it was not finite */
  value: null | Number;
  /** Of the objectives, in their order. null: none, or NaN; the search takes infinite ones for none too */
  values?: (null | Number)[];
  /** 1 is the best of those that had reached the rung; null: not ranked */
  rank: number | null;
  /** How many had reached it, this one with them */
  of: number | null;
  decision: "go_on" | "prune" | "pause";
  /** Why, in words */
  reason: string;
  /** Its place in the order of rung results, promotions, ends and retries of the sweep (finish_seq) */
  seq: number;
  /** That of the promotion that took its pause back; null: none */
  promoted_seq?: number | null;
  /** Why it was promoted, in words; null: it was not */
  promoted_reason?: string | null;
  /** No constrained metric that was reported at the step was out of its bounds */
  feasible?: boolean;
};

export type TrialTest = {
  rows: number;
  /** By the names of the reports without val_: error, log_loss, rmse */
  metrics: Record<string, Number>;
};

/** Where the value lies, from the influences of the held-out rows on it; absent below 30 rows, and in results from before 2026-11-28 */
export type Interval = {
  low: Number;
  high: Number;
  probability: number;
};

export type TestFigure = {
  value: Number;
  low?: Number;
  high?: Number;
  /** How likely the interval from low to high holds the value; absent below 30 rows */
  probability?: number;
  /** The interval of the gain contains 0, or there is none */
  within_noise?: boolean;
};

/** gathering: the ranks start, epoch 0. waiting: fewer than min_ranks live, so they do not train. over: the attempt has ended */
export type GangState = "gathering" | "running" | "waiting" | "over";

export type RanksRange = {
  min: number;
  max: number;
  scale?: "linear" | "log";
  step?: number;
};

export type GangSummary = {
  ranks: number;
  state: GangState;
  /** 0 until all ranks listen */
  epoch: number;
  /** Ranks that were lost */
  deaths: number;
  /** Ranks that hold a seat now */
  live: number;
};

export type Gang = {
  ranks: number;
  min_ranks: number;
  /** The ranks may change while the trial goes on (trial.train) */
  elastic: boolean;
  state: GangState;
  epoch: number;
  /** The highest step that a rank has reported */
  step: number | null;
  deaths: number;
  /** The sum over all seats */
  sent_bytes: number;
  started_at: Time;
  seats: GangSeat[];
};

export type GangSeat = {
  seat: number;
  /** Its place in the current epoch; null: it is no member */
  rank: number | null;
  runner: string;
  host: string | null;
  state: "seated" | "listening" | "running" | "left" | "lost" | "ended";
  /** The latest epoch in which it was connected to all */
  joined_epoch: number | null;
  step: number | null;
  sent_bytes: number;
  since: Time;
  ended_at: null | Time;
  reason: string | null;
};

export type World = {
  /** 0 until all ranks listen */
  epoch: number;
  state: GangState;
  /** What ranks show to each other; only for runners that hold a seat, and for administrators */
  secret?: string;
  /** How many restarts the trial has used */
  restart: number;
  /** How many it may use */
  max_restarts: number;
  /** In the order of their ranks: the first one leads. Empty in epoch 0 */
  members: WorldMember[];
};

export type WorldMember = {
  seat: number;
  runner: string;
  host: string | null;
  endpoint: string;
  address: string;
  port: number;
  /** Its process has completed; only in gangs that are not elastic */
  ended: boolean;
};

export type SeatListening = {
  /** Where ranks connect, as the trainer writes it */
  endpoint: string;
  /** Numeric, IPv4 or IPv6 */
  address: string;
  port: number;
};

export type SeatJoined = {
  epoch: number;
  step: number;
};

export type SeatEnd = {
  outcome: "completed" | "failed" | "retry" | "released" | "timeout" | "paused" | "pruned";
  /** Negative: the signal that ended it */
  exit_code?: number | null;
  /** The signal that ended it */
  signal?: number | null;
  reason?: string | null;
  ran_ms?: number | null;
  step?: number | null;
  /** What this rank has sent to other ranks */
  sent_bytes?: number | null;
  /** The last epoch that the rank has joined. When it completed before it joined the current one, the others would wait for it: the next epoch begins without it. Without this field, what the server has heard counts. */
  epoch?: number | null;
};

export type WorldChange = {
  /** The current epoch: the next one begins */
  epoch: number;
  /** Who asks */
  seat: number;
  lost?: number[];
  left?: number[];
  /** The last step that the asker has completed */
  step?: number | null;
};

export type TrialList = {
  items: Trial[];
  next_cursor: string | null;
};

export type BestTrials = {
  items: Trial[];
  next_cursor: string | null;
  /** What a model expects of the first trial without noise, by the bound that made it the first. Null: values count as told, or the page is not the first */
  expected: null | Expected;
};

export type Expected = {
  mean: Number;
  /** The lower end of the 95% interval of the mean */
  low: Number;
  high: Number;
  /** The deviation of single values about the mean, there */
  noise: Number;
};

export type Series = {
  next_cursor: string | null;
  series: Record<string, {
    steps: number[];
    values: Number[];
  }>;
};

export type TrialUsage = {
  items: AttemptUsage[];
};

/** What stands around the processes of a trial: `no_new_privileges`, `no_capabilities`, `private_tmp`, `cgroup` (a control group of its own, which is killed as a whole), `processes`, `memory`, `cpu`, `files`, `file_size` (they are limited). A container has its engine's instead of the first two. Null: its runner did not say, or it has none */
export type Walls = string[] | null;

export type AttemptUsage = {
  attempt: number;
  /** Of a rank; null: the attempt is no gang's */
  seat: number | null;
  /** The time of one sample; the first begins with the process */
  every_ms: number;
  /** Cores, on average; null: not known */
  cpu: (number | null)[];
  /** Resident, the most */
  memory_bytes?: (number | null)[];
  /** Busy GPUs, on average: 1.5 is one busy all the time and one for half of it. Absent: it has none */
  gpu?: (number | null)[];
  /** Of all its GPUs, the most */
  gpu_memory_bytes?: (number | null)[];
};

export type TrialLog = {
  /** 0 if nothing is stored yet */
  attempt: number;
  text: string;
  /** The beginning was removed */
  truncated: boolean;
};

export type File = {
  path: string;
  size: number;
  sha256: string;
};

export type FileList = {
  items: File[];
};

export type FileSet = {
  kind: "artifact" | "checkpoint" | "log";
  files: File[];
  lost?: null;
} | {
  kind: "kept";
  files: File[];
  /** Where forks begin from these files */
  step: number;
} | {
  kind: "checkpoint";
  files: File[];
  /** Why the checkpoint that the attempt was given cannot be used, so that the trial begins again. An event trial.changed has the text as its reason */
  lost: string;
};

/** How the outputs of the members become those of the ensemble. mean: the sum of weight times output; the weights sum to 1. linear: sum of weight times input, plus a bias for each output; for classes the inputs are the natural logarithms of the probabilities, clipped to 1e-7 and 1, and the outputs are the softmax of that. by: each row is predicted by the trial of its value in a column, and the weights are shares of the rows */
export type EnsembleCombine = {
  kind: "mean" | "linear" | "by";
  /** by: the column whose values have a trial each */
  column?: string;
  /** by: the trial of each value of the column in the held-out rows */
  buckets?: {
    value: string;
    /** The sweep of this trial, if there are several */
    sweep?: string;
    number: number;
  }[];
  /** by: the trial of any other value, which is the best on all rows */
  other?: {
    sweep?: string;
    number: number;
  };
  inputs?: "log" | "outputs";
  biases?: number[];
  /** The strength of the regularisation, chosen by cross-validation */
  penalty?: Number;
  /** What follows the combination of classes that was calibrated: the softmax over the classes of slope times the logarithm of the probability, with the bias added for the second of two classes */
  calibration?: {
    slope: number;
    /** Of two classes */
    bias?: number;
  };
  /** Of two classes, where the metric counts right ones: the second is predicted where its probability is above this */
  threshold?: number;
  /** Of more classes, where the metric is f1 or balanced_accuracy: that class is predicted whose probability times its weight is the highest */
  class_weights?: number[];
};

export type Ensemble = {
  /** none: the sweep asked for none, or too few trials left predictions */
  state: "pending" | "ready" | "none";
  reason?: string | null;
  method?: EnsembleMethod;
  /** As it was asked for */
  size?: number;
  non_negative?: boolean;
  calibrate?: boolean;
  /** The metric of predictions by which the ensemble is chosen and reported: what was asked for, else the sweep's metric, if it can be computed from predictions and targets */
  metric?: PredictionMetric;
  goal?: "minimize" | "maximize";
  /** It is the sweep's metric */
  is_sweep_metric?: boolean;
  /** Why this metric, unless it is the sweep's and one of the built-in trainer's */
  metric_reason?: string;
  /** Held-out rows */
  rows?: number;
  /** Parts of the rows, each of which is predicted by what was chosen on the others; 2 in results from before 2026-11-23 */
  folds?: number;
  /** Results from before 2026-11-22: held-out rows used to choose the members */
  rows_select?: number;
  /** Results from before 2026-11-22: the other held-out rows, used for every figure */
  rows_report?: number;
  /** On all held-out rows, cross-fitted: the rows of each fold are predicted by an ensemble chosen on the other rows */
  value?: Number;
  interval?: Interval;
  /** The value of the members on the rows that chose them: too good */
  value_select?: Number;
  best_single?: {
    /** The sweep of this trial, if there are several */
    sweep?: string;
    /** The best trial on all held-out rows */
    number: number;
    /** Cross-fitted as the ensemble's: the rows of each fold are predicted by the trial that is best on the other rows */
    value: Number;
    interval?: Interval;
    /** The value of this trial on the rows that chose it */
    value_select?: Number;
    /** The trials that are best outside of a fold; of several sweeps: SWEEP/NUMBER */
    picked?: (number | string)[];
  };
  /** How much better the ensemble is than the best single trial, both cross-fitted; positive is better */
  gain?: {
    value: Number;
    low?: Number;
    high?: Number;
    /** How likely the interval from low to high holds the value; without one, the rows are too few */
    probability?: number;
    /** The interval contains 0, or there is none */
    within_noise: boolean;
  };
  /** Which of them to use: the ensemble if its gain is above 0 */
  recommended?: "ensemble" | "single";
  combine?: EnsembleCombine;
  members?: {
    /** The sweep of this trial, if there are several */
    sweep?: string;
    number: number;
    /** The share in a mean, or the coefficient of stacking */
    weight: number;
    count: number;
    /** The value of this trial alone on all held-out rows */
    value: Number;
    value_select?: Number;
    params?: Params;
  }[];
  /** Both on the test rows of the data set, which chose nothing: the ensemble's members combined as they are here, and the best single trial, by the same metric. Absent if the trials left no test predictions; with `reason` alone if these cannot be measured */
  test?: {
    reason?: string;
    rows?: number;
    ensemble?: TestFigure;
    best_single?: TestFigure;
    gain?: TestFigure;
  };
  /** How many trials left predictions; absent where there is none because the sweep failed or was cancelled */
  candidates?: number;
  /** The held-out rows have weights: all values are weighted as the trials' metrics, and what is chosen is chosen by them */
  weighted?: boolean;
  /** Further candidates that were left out because all predictions together have more than 2^27 values */
  left_out?: number;
};

export type Event = {
  id: string;
  type: "sweep.created" | "sweep.changed" | "trial.changed" | "trial.measured" | "trial.rung" | "ensemble.ready" | "runner.changed" | "gang.changed" | "model.changed" | "dataset.changed";
  time: Time;
  sweep?: string;
  number?: number;
  state?: string;
  attempt?: number;
  value?: Number;
  reason?: string;
  runner?: string;
  /** gang.changed: the epoch of the world; state is that of the gang */
  epoch?: number;
  /** gang.changed: the rank that joined, left or was lost */
  seat?: number;
  /** model.changed: its name */
  model?: string;
  /** dataset.changed: its name; it was added or deleted */
  dataset?: string;
};

export type DatasetCreate = {
  name: string;
  format: "csv" | "npy" | "npz" | "idx" | "cifar" | "safetensors" | "text" | "tokens";
  /** Digests by role: table (csv, npy, npz, cifar, safetensors, text, tokens), or features and targets (idx, npy). With test rows, which no search, early stopping or selection sees, also test beside table, or test_features and test_targets: files of the same form, read by what the other files say of columns, classes and categories */
  files: {
    table?: string;
    features?: string;
    targets?: string;
    test?: string;
    test_features?: string;
    test_targets?: string;
  };
  /** Column of the target in a csv or npy table: its name, or its index (negative: from the end). Several columns, separated by commas, make a regression with several outputs */
  target?: string | number;
  task?: "auto" | "classification" | "regression" | "language_modeling" | "clustering";
  options?: DatasetOptions;
  description?: string;
};

/** How to read the files, where the format leaves it open */
export type DatasetOptions = {
  /** npy, npz, safetensors: images are (rows, channels, height, width) */
  channels_first?: boolean;
  /** tokens: uint16 from the first byte, no header */
  raw?: boolean;
  /** tokens: by default the largest token + 1 */
  vocab?: number;
  /** npz, safetensors: name of the features, by default x */
  x?: string;
  /** npz, safetensors: name of the targets, by default y */
  y?: string;
  /** The one of two classes that metrics such as val_f1 measure. It becomes the last one of classes, which it is by default */
  positive?: string;
  /** csv: between cells; by default what the first records show (comma, tab, ; or |) */
  separator?: "," | "\t" | ";" | "|" | ":" | "^" | "~";
  /** csv: the sign before the fraction of a number; by default what the first records show */
  decimal?: "." | ",";
  /** csv: lines that begin with this character are skipped */
  comment?: string;
  /** csv: the columns that are inputs; * stands for any text, ? for any character */
  select?: string[];
  /** csv: columns that are no inputs; * and ? as in select */
  drop?: string[];
  /** csv: columns of free text, whose words are hashed into numbers; * and ? as in select */
  text?: string[];
  /** csv: columns of numbers, which may have a sign between thousands, one of a currency or of percent (88,139; $5; 3 %), where a cell that is no number, an infinite one, or one too large for float32 is missing; * and ? as in select */
  numeric?: string[];
  /** csv: numbers that mean that a value is missing, such as -999, in every column that is an input */
  missing?: number[];
  /** csv: rows that lack the target (of several, one of them) are none of the rows */
  drop_unlabelled?: boolean;
  /** csv: the numbers that a text becomes, by default 256 */
  buckets?: number;
};

export type DatasetColumn = {
  /** The header's, or the index of the column */
  name: string;
  kind: "numeric" | "categorical" | "date" | "text";
  /** Rows without a value */
  missing: number;
  /** date: the day that counts as 0, in days since 1970-01-01 */
  since?: number;
  /** date: the cycles that are inputs beside the days, because they vary */
  cycles?: ("week" | "month" | "hour")[];
  /** text: the numbers that it becomes */
  buckets?: number;
  /** categorical: rows whose value occurs in no other row */
  other?: number;
  /** categorical: values that occur in two rows or more */
  values?: string[];
};

export type Dataset = {
  name: string;
  format: "csv" | "npy" | "npz" | "idx" | "cifar" | "safetensors" | "text" | "tokens";
  task: "classification" | "regression" | "language_modeling" | "clustering";
  input: "table" | "image" | "tokens";
  target?: string | number | null;
  /** tokens: their number */
  rows: number;
  /** Columns of a table without the target; numbers of an image; 1 for tokens */
  features: number;
  /** Classes, columns of the target, or the vocabulary */
  outputs: number;
  classes?: string[];
  options?: DatasetOptions;
  image?: {
    height: number;
    width: number;
    channels: number;
  };
  /** For a table with a header, categories or missing values; absent in lists */
  columns?: DatasetColumn[];
  /** In a claim only: the content that the sweep was created with, if the name has other content now. The trial must fail */
  expected?: {
    sha256: string;
    rows: number;
    features: number;
  };
  /** The test rows, if it has any. The other fields are of the other rows alone */
  test?: {
    rows: number;
    /** The digest that the data set would have without its test rows */
    train_sha256: string;
  };
  /** Digest of the files and of the options for reading them */
  sha256: string;
  files: ({
    role: "table" | "features" | "targets" | "test" | "test_features" | "test_targets";
    sha256: string;
    size: number;
  })[];
  description?: string | null;
  created_at: Time;
};

export type DatasetPreview = {
  /** The distributions are of so many rows, the first ones */
  rows_looked_at: number;
  /** Of which at most 256 are described */
  columns_in_all: number;
  /** The targets first. Of images one column, all of their numbers */
  columns: ({
    name: string;
    kind: "numeric" | "categorical" | "date" | "text";
    target: boolean;
    /** Rows without a value, of those looked at */
    missing: number;
    /** Of numbers; of dates the days since 1970-01-01; of texts their bytes. Absent if all are missing */
    numbers?: {
      least: number;
      most: number;
      mean: number;
      /** Standard deviation of the numbers themselves */
      deviation: number;
      /** Where the first bin begins */
      from: number;
      /** Of a bin, a power of two */
      width: number;
      counts: number[];
    };
    /** Of categories */
    values?: {
      /** How many values there are */
      different: number;
      /** The most frequent ones, by their rows */
      top: {
        value: string;
        rows: number;
      }[];
      /** Rows with other values */
      other: number;
    };
  })[];
  /** Cells in the order of columns, as they are in the file, at most 100 bytes of each. None of images and tokens */
  first_rows: string[][];
};

export type DatasetList = {
  items: Dataset[];
  next_cursor: string | null;
};

export type ModelVersionCreate = {
  /** Id of the sweep */
  sweep: string;
  /** Number of the trial; absent: what `use` says */
  trial?: number;
  /** For a sweep that has ended: what it recommends, its ensemble, or its best trial. Not beside `trial` */
  use?: "recommended" | "ensemble" | "single";
  /** Number of an ensemble that was asked for after the end (askEnsemble). Beside neither `trial` nor `use` */
  ensemble?: number;
};

export type ModelAlias = {
  version: number;
};

export type Model = {
  name: string;
  /** How many there are */
  versions: number;
  /** The version that the name alone means: the champion, else the newest */
  default_version: number | null;
  /** Versions by alias */
  aliases: Record<string, number>;
  created_at: Time;
  changed_at: Time;
};

export type ModelList = {
  items: Model[];
  next_cursor: string | null;
};

export type ModelInput = {
  /** The name of a column; features, image or tokens for input that has no columns */
  name: string;
  kind: "number" | "category" | "date" | "text" | "numbers" | "image" | "tokens";
  /** category: the values that have an input of their own */
  values?: string[];
  /** numbers: how many; tokens: the vocabulary */
  size?: number;
  /** image: height, width, channels */
  shape?: number[];
  /** The data had missing values here, so they may be missing */
  missing: boolean;
};

/** classes of a classification, targets of a regression, or the size of a vocabulary */
export type ModelOutputs = {
  /** The column of the classes */
  target?: string;
  /** In the order of the probabilities */
  classes?: string[];
  /** The last one of two classes, which metrics such as val_f1 measure */
  positive?: string;
  /** Numbers in the unit of the data set */
  targets?: string[];
  size?: number;
};

export type ModelMember = {
  /** Id of its sweep, if that is not `sweep_id` of the version */
  sweep?: string;
  trial: number;
  attempt: number;
  seed: string;
  /** In a mean they add up to 1; in a linear combination (lineage.ensemble.combine) they are any numbers; by a column they are shares of the rows, 0 for a trial that only rows with other values have */
  weight: number;
  /** model.kind of its training document */
  kind?: string;
};

export type ModelLineage = {
  sweep: string;
  sweep_id: string;
  document: SweepDocument;
  dataset: {
    name: string;
    /** SHA-256 of its content when the sweep was created */
    sha256: string | null;
  };
  /** How an ensemble was made */
  ensemble?: {
    method?: EnsembleMethod;
    /** As it was asked for */
    size?: number;
    /** The number of one that was asked for after the end; absent: that of the sweep's end */
    number?: number;
    combine?: EnsembleCombine;
  };
  /** For an ensemble of several sweeps: those of its members that are not `sweep_id` */
  sweeps?: {
    sweep: string;
    sweep_id: string;
    document: SweepDocument;
  }[];
};

export type ModelVersion = {
  model: string;
  /** From 1; never given again */
  version: number;
  aliases: string[];
  kind: "trial" | "ensemble";
  /** Name of the sweep that found it */
  sweep: string;
  /** Its id then. The sweep may be deleted */
  sweep_id: string;
  /** Numbers of the trials of its members; of an ensemble of several sweeps, those of `sweep_id` */
  trials: number[];
  task: "classification" | "regression" | "language_modeling" | "clustering";
  input: "table" | "image" | "tokens";
  metrics: Record<string, Number>;
  /** On which rows the metrics were measured */
  measured_on: string;
  /** One for each column of a table; absent in lists, as outputs, members and lineage */
  inputs?: ModelInput[];
  outputs?: ModelOutputs;
  members?: ModelMember[];
  lineage?: ModelLineage;
  /** SHA-256 of its file */
  sha256: string;
  /** Bytes of its file */
  size: number;
  /** Id of the token that added it */
  created_by: string | null;
  created_at: Time;
};

export type ModelVersionList = {
  items: ModelVersion[];
  next_cursor: string | null;
};

export type GpuFault = {
  gpu: string;
  reason: string;
};

export type RunnerRegister = {
  name: string;
  slots: number;
  gpus?: string[];
  gpu_faults?: GpuFault[];
  /** Cores that trials may use; absent: not known */
  cpus?: number;
  /** Memory that trials may use; absent: not known */
  memory_bytes?: number;
  /** The same text for all runners of one machine, and for no others */
  machine?: string;
  /** cpus and memory_bytes are those of the whole machine: all its runners that say so use them together */
  shares_machine?: boolean;
  /** The job of a batch system or cluster that it belongs to, such as slurm/1234_7 or kubernetes/NAMESPACE/POD */
  job?: string;
  /** The fleet that it belongs to */
  fleet?: string;
  /** What stands around the processes of its trials; see Walls */
  walls?: string[];
  host?: string;
  version?: string;
  /** Attempts that this runner still holds (after a lost connection) */
  resume?: RunnerAttempt[];
};

export type Registration = {
  name: string;
  epoch: number;
  /** The secret of this runner; only if the request showed none. It is not shown again */
  secret?: string;
  lease_ms: number;
  heartbeat_ms: number;
  directives?: Directive[];
};

export type AttemptRef = {
  sweep: string;
  number: number;
  attempt: number;
  /** Only ranks of gangs have one */
  seat?: number | null;
};

/** An attempt that a runner holds. limits.trial_timeout is the runner's to keep. The server fails a trial only when its runner still runs it a grace period and a lease later. It counts from the claim, or, when the runner says it, from the begin of the process. A process that ended within trial_timeout is never a timeout, however late its result arrives */
export type RunnerAttempt = {
  sweep: string;
  number: number;
  attempt: number;
  /** Where its process is: not begun (data and checkpoints are fetched), running, or ended, with its result on the way. An earlier phase than one that was said before changes nothing */
  phase?: "preparing" | "running" | "ended";
  /** With running and ended: for how long it has run, or did run, by the runner's monotonic clock */
  ran_ms?: number;
  /** Only ranks of gangs have one */
  seat?: number | null;
  /** The last step that this rank has completed */
  step?: number | null;
  /** What this rank has sent to other ranks */
  sent_bytes?: number | null;
};

export type Directive = {
  sweep: string;
  number: number;
  attempt: number;
  /** The rank of a gang; absent for other attempts */
  seat?: number;
  /** stop: end the process (SIGTERM, the grace period, SIGKILL), and write nothing more for this attempt: it is not current. prune and pause are decisions of early stopping, which are repeated in each answer until the attempt has ended: end the process in the same way, send what it has measured, of a pause its checkpoints too, and end the attempt with the outcome pruned or paused. A later directive of the server replaces neither of them, except stop */
  action: "stop" | "prune" | "pause";
  reason?: string;
};

export type Runner = {
  name: string;
  state: "live" | "lost" | "left";
  host?: string | null;
  version?: string | null;
  slots: number;
  gpus?: string[];
  /** GPUs of the list `gpus` that failed. The runner hands them out no more until it is started again */
  gpu_faults?: GpuFault[];
  /** Cores that trials may use; null: not known */
  cpus?: number | null;
  /** Memory that trials may use; null: not known */
  memory_bytes?: number | null;
  /** What trials that said resources.cpus take of them */
  used_cpus?: number;
  /** What trials that said resources.memory take of it */
  used_memory_bytes?: number;
  /** Equal for runners of one machine; null: not known */
  machine?: string | null;
  /** The job that it belongs to, such as slurm/1234_7; null: not said */
  job?: string | null;
  /** The fleet that it belongs to; null: none */
  fleet?: string | null;
  walls?: Walls;
  /** It is to leave (drainRunner), and hears it with its next heartbeat */
  draining?: boolean;
  /** Attempts that the runner holds */
  running: number;
  /** Slots that they use: a group uses one slot, whatever its number of members */
  used_slots?: number;
  epoch: number;
  registered_at: Time;
  seen_at?: Time;
};

export type Demand = {
  as_of: Time;
  /** Slots that wait, of all kinds */
  slots: number;
  /** Of the kind that waits longest */
  since: Time | null;
  /** Live runners */
  runners: number;
  /** Their slots in which nothing of what waits fits */
  free_slots: number;
  /** In the order in which they are served. Slots of more than 256 kinds are in `slots` alone */
  kinds: DemandKind[];
};

export type DemandKind = {
  /** That wait. Of a gang that gathers, those that it lacks */
  slots: number;
  /** Slots that one trial needs together (resources.ranks) */
  ranks: number;
  /** Of each slot */
  gpus: number;
  /** Of each slot; 0: not said */
  cpus: number;
  /** Of each slot; 0: not said */
  memory_bytes: number;
  /** Each slot needs a machine for itself */
  exclusive: boolean;
  /** Whose trials they are */
  sweeps: number;
  /** Of the sweep that waits longest: the latest of when it was created, ran on after an end, was changed by people, and began its newest trial */
  since: Time;
};

export type RunnerList = {
  items: Runner[];
  next_cursor: string | null;
};

export type Claim = {
  epoch: number;
  /** A new id for each claim; the same id when the claim is repeated */
  claim_id: string;
  /** Free slots. A group uses one slot, whatever its number of members */
  max_trials?: number;
  /** How many of the slots may hold ranks of gangs; at most max_trials. While a gang gathers, the server keeps slots free for it, and this claim goes on waiting; when the gang begins, its ranks are in the answer. When all slots of the claim may hold ranks, slots that came free after it was made are kept too, and the next claim gets their ranks */
  seats?: number;
  /** Free GPUs. A group uses the GPUs of one trial */
  gpus?: number;
  /** How many trials of one shape may share a slot; no effect with `fit` */
  members?: number;
  /** Memory that a group may use in total; null: no limit */
  memory_bytes?: number | null;
  /** The same for groups of trials with GPUs, in place of memory_bytes: the memory of the smallest free GPU. null: not known */
  gpu_memory_bytes?: number | null;
  /** Only trials that fit this open group of the runner, at most this many. max_trials, gpus and members have no effect then */
  fit?: null | {
    group: string;
    members: number;
  };
  /** How many members the runner wants in a group of that shape, from its measurements of throughput; 8 for other shapes. resources.group overrides it */
  measured?: {
    shape: string;
    members: number;
  }[];
  /** Attempts that the runner holds but no longer runs, whose ends it is about to report. Their slots are free. A sweep whose method learns hands out nothing before they have ended */
  ending?: AttemptRef[];
  /** The claim is for slots that are not free yet: `ending` names attempts, too, that still run and are about to end. It gets trials only if it is the turn of a sweep whose trials have `gives_ahead`, and afterwards at least as many of them are left as run or wait, so that none waits while a slot is idle. The runner prepares such a trial, starts it when a slot comes free, says with its end how long it has waited (`waited_ms`), and releases it if that takes longer than expected */
  ahead?: boolean;
  wait_ms?: number;
};

/** Trials with one id train as members of one process */
export type TrialGroup = {
  id: string;
  /** The signature of the tensors: equal texts may share a group */
  shape: string;
  bytes_per_member: number;
  /** The most members at a time: resources.group, or else measured; within Claim.members and memory_bytes / bytes_per_member */
  max_members: number;
};

export type ClaimedTrial = {
  sweep: string;
  number: number;
  attempt: number;
  seed: string;
  params: Params;
  /** Names of conditional parameters that are not active here */
  inactive?: string[];
  /** The section `trial` of the document, templates not yet substituted */
  trial: TrialProgram;
  metric: Objective;
  gpus?: number;
  /** resources.cpus; null: it takes a slot and no more */
  cpus?: number | null;
  dataset?: null | Dataset;
  /** The files of the checkpoint folder */
  files: File[];
  timeout_ms?: number | null;
  grace_ms?: number;
  /** The sweep has it. Then a measurement may decide what becomes of the trial, and is sent before the end; else the last one may be the `metrics` of the end. Absent: as true */
  early_stopping?: boolean;
  /** The sweep's next trial may be claimed while this one runs (`ahead` of the claim): the method does not learn, and a trial that waits keeps no GPU, core, memory or place of a limit from others. Absent: as false */
  gives_ahead?: boolean;
  /** Null: the trial runs in its own process */
  group?: null | TrialGroup;
  /** Null: the runner gets the whole trial. Else one rank of it; another item may be another rank */
  gang?: null | ClaimedRank;
  /** Null: nothing is kept for forks */
  forks?: null | KeptForForks;
  /** What the trial's process may show to this API: good for this attempt alone, while it runs */
  token?: string | null;
};

/** Before a runner sends a measurement at a multiple of `every` steps below `until`, it stores what the checkpoint folder holds then (putFiles, kind kept): forks of the trial begin from it */
export type KeptForForks = {
  every: number;
  until: number;
  /** JSON pointers of the fields of trial.train in which a fork and its parent may differ; null: a command */
  may_differ: string[] | null;
};

export type ClaimedRank = {
  seat: number;
  ranks: number;
  min_ranks: number;
  elastic: boolean;
  launch: "all" | "first";
};

export type ClaimResult = {
  trials: ClaimedTrial[];
  /** No trial now, but a suggestion is being computed or waits for results: ask again */
  pending: boolean;
};

export type Heartbeat = {
  epoch: number;
  attempts: RunnerAttempt[];
  /** All GPUs that are set aside now; without this field the server keeps what it knows */
  gpu_faults?: GpuFault[];
};

export type HeartbeatResult = {
  lease_ms: number;
  /** The runner itself is to hand its trials back and to leave (drainRunner) */
  drain?: boolean;
  directives: Directive[];
};

export type Leave = {
  epoch: number;
};

export type Measurement = {
  step: number;
  metrics: MetricValues;
};

export type MeasurementBatch = {
  items: Measurement[];
  /** Texts that the trial wrote: the last one of each name is kept, of the first 64 names */
  notes?: Record<string, string>;
};

export type ReportResult = {
  recorded: number;
  directives: Directive[];
};

export type Usage = {
  /** The time of one sample; the first begins with the process */
  every_ms: number;
  /** Cores, on average; null: not known */
  cpu: (number | null)[];
  /** Resident, the most */
  memory_bytes?: (number | null)[];
  /** Busy GPUs, on average: 1.5 is one busy all the time and one for half of it. Absent: it has none */
  gpu?: (number | null)[];
  /** Of all its GPUs, the most */
  gpu_memory_bytes?: (number | null)[];
};

export type Drain = {
  /** false: it may stay, if it has not heard it yet */
  draining?: boolean;
};

export type LogTail = {
  text: string;
  truncated?: boolean;
};

export type Completion = {
  outcome: "completed" | "failed" | "retry" | "released" | "timeout" | "paused" | "pruned";
  /** Negative: the signal that ended it */
  exit_code?: number | null;
  /** For how long the process ran, by the runner's monotonic clock */
  ran_ms?: number | null;
  /** How long an attempt that was claimed ahead waited for a slot: it started so long after its claim. Absent: it started with its claim */
  waited_ms?: number | null;
  metrics?: MetricValues;
  /** The step at which the metrics are recorded */
  step?: number;
  reason?: string | null;
  rank?: null | RankProgress;
};

/** How far the rank of a gang came that ends the attempt for all */
export type RankProgress = {
  step: number;
  /** To other ranks */
  sent_bytes: number;
  /** The mean time of its steps in this attempt. It is recorded as the metric step_seconds where that is an objective or a constraint of the sweep */
  step_seconds?: number | null;
};

export type Batch = {
  measurements?: BatchMeasurements[];
  ends?: BatchEnd[];
  claim?: null | Claim;
};

/** A MeasurementBatch of one attempt */
export type BatchMeasurements = {
  sweep: string;
  number: number;
  attempt: number;
  /** Of the rank that writes, as in Assay-Seat; with world_epoch */
  seat?: number;
  /** The epoch that it knows, as in Assay-World-Epoch */
  world_epoch?: number;
  items: Measurement[];
  notes?: Record<string, string>;
};

/** The Completion of one attempt */
export type BatchEnd = {
  sweep: string;
  number: number;
  attempt: number;
  /** Of the rank that writes, as in Assay-Seat; with world_epoch */
  seat?: number;
  /** The epoch that it knows, as in Assay-World-Epoch */
  world_epoch?: number;
  outcome: "completed" | "failed" | "retry" | "released" | "timeout" | "paused" | "pruned";
  /** Negative: the signal that ended it */
  exit_code?: number | null;
  ran_ms?: number | null;
  waited_ms?: number | null;
  metrics?: MetricValues;
  /** The step at which the metrics are recorded */
  step?: number;
  reason?: string | null;
  rank?: null | RankProgress;
};

/** The answers, each at the place of its part */
export type BatchResult = {
  ends: ({
    status: 200;
    state: TrialState;
  } | BatchProblem)[];
  measurements: ({
    status: 200;
    recorded: number;
    directives: Directive[];
  } | BatchProblem)[];
  claim: null | {
    status: 200;
    trials: ClaimedTrial[];
    /** As in ClaimResult */
    pending: boolean;
  } | BatchProblem;
};

export type BatchProblem = {
  /** The status that the single operation would have */
  status: number;
  problem: Problem;
};

export type TokenCreate = {
  role: "viewer" | "user" | "runner" | "admin";
  name?: string;
  /** Such as 30d, or a number of seconds; it never expires when absent */
  ttl?: string | number;
};

export type Token = {
  id: string;
  role: string;
  name?: string | null;
  created_at: Time;
  expires_at?: null | Time;
  last_used_at?: null | Time;
};

export type TokenCreated = Token & {
  token: string;
};

export type TokenList = {
  items: Token[];
  next_cursor: string | null;
};

export interface Operations {
  /** Is the process alive? */
  "GET /healthz": {
    path: undefined;
    query: undefined;
    body: undefined;
    result: Health;
  };
  /** Can it serve (database reached and writable, room on its disk, migrations applied, not draining)? */
  "GET /readyz": {
    path: undefined;
    query: undefined;
    body: undefined;
    result: Health;
  };
  /** Prometheus text format */
  "GET /metrics": {
    path: undefined;
    query: undefined;
    body: undefined;
    result: string;
  };
  /** This document as JSON */
  "GET /openapi.json": {
    path: undefined;
    query: undefined;
    body: undefined;
    result: Record<string, unknown>;
  };
  /** List sweeps, newest first */
  "GET /v1/sweeps": {
    path: undefined;
    query: {state?: SweepState; tag?: string; dataset?: string; include?: "document"; cursor?: string; page_size?: number};
    body: undefined;
    result: SweepList;
  };
  /** Create a sweep; it starts at once, or paused */
  "POST /v1/sweeps": {
    path: undefined;
    query: {paused?: boolean; unique?: boolean};
    body: SweepDocument;
    result: Sweep;
  };
  /** What would become of a sweep document: its faults, or its first trials; creates nothing */
  "POST /v1/preview": {
    path: undefined;
    query: {suggestions?: number};
    body: SweepDocument;
    result: SweepPreview;
  };
  /** One sweep with its counts and its best trial */
  "GET /v1/sweeps/{sweep}": {
    path: {sweep: string};
    query: undefined;
    body: undefined;
    result: Sweep;
  };
  /** Pause, resume, cancel, or change limits, tags or remarks (JSON merge patch) */
  "PATCH /v1/sweeps/{sweep}": {
    path: {sweep: string};
    query: {if_state?: SweepState; if_max_trials?: number};
    body: SweepPatch;
    result: Sweep;
  };
  /** Delete a sweep that has ended, with its trials and artifacts */
  "DELETE /v1/sweeps/{sweep}": {
    path: {sweep: string};
    query: undefined;
    body: undefined;
    result: undefined;
  };
  /** Set values of your own that are kept with the sweep (JSON merge patch) */
  "PATCH /v1/sweeps/{sweep}/user_attrs": {
    path: {sweep: string};
    query: undefined;
    body: UserAttrs;
    result: UserAttrsNow;
  };
  /** What people changed: limits and states, when, and with which token */
  "GET /v1/sweeps/{sweep}/changes": {
    path: {sweep: string};
    query: undefined;
    body: undefined;
    result: SweepChangeList;
  };
  /** Try all failed, or all cancelled, trials of a sweep again */
  "POST /v1/sweeps/{sweep}/retry": {
    path: {sweep: string};
    query: undefined;
    body: TrialsRetry;
    result: TrialsRetried;
  };
  /** The best completed trials by the metric of the sweep */
  "GET /v1/sweeps/{sweep}/best": {
    path: {sweep: string};
    query: {top?: number; cursor?: string};
    body: undefined;
    result: BestTrials;
  };
  /** The Pareto front: the trials that no other trial dominates */
  "GET /v1/sweeps/{sweep}/pareto": {
    path: {sweep: string};
    query: {cursor?: string};
    body: undefined;
    result: Pareto;
  };
  /** How much each parameter matters for a metric of the sweep */
  "GET /v1/sweeps/{sweep}/importance": {
    path: {sweep: string};
    query: {metric?: MetricName; max_age?: number};
    body: undefined;
    result: Importance;
  };
  /** What a model of the trials predicts along a parameter, or over two of them */
  "GET /v1/sweeps/{sweep}/surface": {
    path: {sweep: string};
    query: {x?: string; y?: string; metric?: MetricName; n?: number; max_age?: number};
    body: undefined;
    result: Surfaces;
  };
  /** How much better than its best trial a configuration of the space may still be, at most */
  "GET /v1/sweeps/{sweep}/regret": {
    path: {sweep: string};
    query: undefined;
    body: undefined;
    result: RegretBound;
  };
  /** What the sweep could still gain at most, as its trials completed */
  "GET /v1/sweeps/{sweep}/regret/checks": {
    path: {sweep: string};
    query: undefined;
    body: undefined;
    result: {
  items: RegretCheck[];
};
  };
  /** All trials of a sweep as columns of numbers, and which of them changed since */
  "GET /v1/sweeps/{sweep}/table": {
    path: {sweep: string};
    query: {columns?: string; precision?: "double" | "single"; layout?: "values" | "planes"; since?: number};
    body: undefined;
    result: Blob;
  };
  /** The curves of all trials: a metric's points, thinned, as columns of numbers */
  "GET /v1/sweeps/{sweep}/points": {
    path: {sweep: string};
    query: {metric?: MetricName; max_points?: number; precision?: "double" | "single"; layout?: "values" | "planes"; since?: number};
    body: undefined;
    result: Blob;
  };
  /** The attempts of all trials as columns of numbers, for a timeline */
  "GET /v1/sweeps/{sweep}/attempts": {
    path: {sweep: string};
    query: {layout?: "values" | "planes"; since?: number};
    body: undefined;
    result: Blob;
  };
  /** The ensemble of the best trials, made when the sweep ends */
  "GET /v1/sweeps/{sweep}/ensemble": {
    path: {sweep: string};
    query: undefined;
    body: undefined;
    result: Ensemble;
  };
  /** The ensembles that were asked for after the end of the sweep */
  "GET /v1/sweeps/{sweep}/ensembles": {
    path: {sweep: string};
    query: undefined;
    body: undefined;
    result: AskedEnsembleList;
  };
  /** Combine the models of sweeps that have ended by another method */
  "POST /v1/sweeps/{sweep}/ensembles": {
    path: {sweep: string};
    query: undefined;
    body: EnsembleRequest;
    result: AskedEnsemble;
  };
  /** One ensemble that was asked for */
  "GET /v1/sweeps/{sweep}/ensembles/{ensemble}": {
    path: {sweep: string; ensemble: number};
    query: undefined;
    body: undefined;
    result: AskedEnsemble;
  };
  /** Events of one sweep as server-sent events */
  "GET /v1/sweeps/{sweep}/events": {
    path: {sweep: string};
    query: {after?: number};
    body: undefined;
    result: Event;
  };
  /** Events of all sweeps as server-sent events */
  "GET /v1/events": {
    path: undefined;
    query: {after?: number};
    body: undefined;
    result: Event;
  };
  /** Ask what to try next (long-poll) */
  "POST /v1/sweeps/{sweep}/suggestions": {
    path: {sweep: string};
    query: undefined;
    body: Ask;
    result: AskResult;
  };
  /** Report measurements of a trial that this client runs */
  "POST /v1/sweeps/{sweep}/suggestions/{number}/measurements": {
    path: {sweep: string; number: number};
    query: undefined;
    body: SuggestionMeasurements;
    result: SuggestionReport;
  };
  /** Report the result of a trial */
  "POST /v1/sweeps/{sweep}/suggestions/{number}/complete": {
    path: {sweep: string; number: number};
    query: undefined;
    body: SuggestionCompletion;
    result: Trial;
  };
  /** Extend the lease of a trial that this client runs */
  "POST /v1/sweeps/{sweep}/suggestions/{number}/heartbeat": {
    path: {sweep: string; number: number};
    query: undefined;
    body: SuggestionHeartbeat;
    result: SuggestionLease;
  };
  /** List the trials of a sweep */
  "GET /v1/sweeps/{sweep}/trials": {
    path: {sweep: string};
    query: {state?: TrialState; group?: string; sort?: "number" | "value" | "started_at" | "finished_at" | "duration" | "created_at" | "state" | string | string; order?: "asc" | "desc"; include?: "user_attrs"; cursor?: string; page_size?: number};
    body: undefined;
    result: TrialList;
  };
  /** Enqueue a configuration, or add a known result */
  "POST /v1/sweeps/{sweep}/trials": {
    path: {sweep: string};
    query: undefined;
    body: TrialCreate | TrialCreateList;
    result: Trial | TrialsAdded;
  };
  /** Add tags to trials of a sweep, and remove others */
  "POST /v1/sweeps/{sweep}/tags": {
    path: {sweep: string};
    query: undefined;
    body: TrialTagging;
    result: TrialsTagged;
  };
  /** One trial with its attempts */
  "GET /v1/sweeps/{sweep}/trials/{number}": {
    path: {sweep: string; number: number};
    query: undefined;
    body: undefined;
    result: TrialDetail;
  };
  /** Set values of your own that are kept with the trial (JSON merge patch) */
  "PATCH /v1/sweeps/{sweep}/trials/{number}/user_attrs": {
    path: {sweep: string; number: number};
    query: undefined;
    body: UserAttrs;
    result: UserAttrsNow;
  };
  /** Cancel a trial that has not ended */
  "POST /v1/sweeps/{sweep}/trials/{number}/cancel": {
    path: {sweep: string; number: number};
    query: undefined;
    body: undefined;
    result: Trial;
  };
  /** Try a trial again that failed or was cancelled */
  "POST /v1/sweeps/{sweep}/trials/{number}/retry": {
    path: {sweep: string; number: number};
    query: undefined;
    body: undefined;
    result: Trial;
  };
  /** All series of a trial, in step order */
  "GET /v1/sweeps/{sweep}/trials/{number}/measurements": {
    path: {sweep: string; number: number};
    query: {metric?: MetricName; cursor?: string};
    body: undefined;
    result: Series;
  };
  /** The last lines of output of an attempt */
  "GET /v1/sweeps/{sweep}/trials/{number}/log": {
    path: {sweep: string; number: number};
    query: {attempt?: number};
    body: undefined;
    result: TrialLog;
  };
  /** What an attempt used of its machine over time: processor, memory, GPUs */
  "GET /v1/sweeps/{sweep}/trials/{number}/usage": {
    path: {sweep: string; number: number};
    query: {attempt?: number};
    body: undefined;
    result: TrialUsage;
  };
  /** Files that a trial stored; fetch their content by digest from /v1/blobs */
  "GET /v1/sweeps/{sweep}/trials/{number}/artifacts": {
    path: {sweep: string; number: number};
    query: {kind?: "artifact" | "checkpoint" | "log"};
    body: undefined;
    result: FileList;
  };
  /** Download content */
  "GET /v1/blobs/{sha256}": {
    path: {sha256: string};
    query: undefined;
    body: undefined;
    result: Blob;
  };
  /** Upload content under its own SHA-256 */
  "PUT /v1/blobs/{sha256}": {
    path: {sha256: string};
    query: undefined;
    body: Blob;
    result: undefined;
  };
  /** Is this content stored? */
  "HEAD /v1/blobs/{sha256}": {
    path: {sha256: string};
    query: undefined;
    body: undefined;
    result: undefined;
  };
  /** Store content whose parts are stored */
  "PUT /v1/blobs/{sha256}/parts": {
    path: {sha256: string};
    query: undefined;
    body: BlobParts;
    result: MissingParts;
  };
  /** List data sets by name */
  "GET /v1/datasets": {
    path: undefined;
    query: {cursor?: string; page_size?: number};
    body: undefined;
    result: DatasetList;
  };
  /** Register uploaded blobs as a data set under a name */
  "POST /v1/datasets": {
    path: undefined;
    query: undefined;
    body: DatasetCreate;
    result: Dataset;
  };
  /** One data set */
  "GET /v1/datasets/{dataset}": {
    path: {dataset: string};
    query: undefined;
    body: undefined;
    result: Dataset;
  };
  /** Remove a data set that no unfinished sweep uses */
  "DELETE /v1/datasets/{dataset}": {
    path: {dataset: string};
    query: undefined;
    body: undefined;
    result: undefined;
  };
  /** How the values of a data set are distributed, and its first rows */
  "GET /v1/datasets/{dataset}/preview": {
    path: {dataset: string};
    query: undefined;
    body: undefined;
    result: DatasetPreview;
  };
  /** The versions of models that learned from a data set of this name */
  "GET /v1/datasets/{dataset}/models": {
    path: {dataset: string};
    query: {cursor?: string; page_size?: number};
    body: undefined;
    result: ModelVersionList;
  };
  /** List models by name */
  "GET /v1/models": {
    path: undefined;
    query: {cursor?: string; page_size?: number};
    body: undefined;
    result: ModelList;
  };
  /** One model: its aliases, and the version that its name alone means */
  "GET /v1/models/{model}": {
    path: {model: string};
    query: undefined;
    body: undefined;
    result: Model;
  };
  /** Delete a model with all its versions and aliases */
  "DELETE /v1/models/{model}": {
    path: {model: string};
    query: undefined;
    body: undefined;
    result: undefined;
  };
  /** List the versions of a model, newest first */
  "GET /v1/models/{model}/versions": {
    path: {model: string};
    query: {cursor?: string; page_size?: number};
    body: undefined;
    result: ModelVersionList;
  };
  /** Keep what a sweep found as the next version of a model */
  "POST /v1/models/{model}/versions": {
    path: {model: string};
    query: undefined;
    body: ModelVersionCreate;
    result: ModelVersion;
  };
  /** One version: what it takes and gives, how good it is, where it comes from */
  "GET /v1/models/{model}/versions/{version}": {
    path: {model: string; version: string};
    query: undefined;
    body: undefined;
    result: ModelVersion;
  };
  /** Delete a version that no alias means */
  "DELETE /v1/models/{model}/versions/{version}": {
    path: {model: string; version: string};
    query: undefined;
    body: undefined;
    result: undefined;
  };
  /** Download the file of a version */
  "GET /v1/models/{model}/versions/{version}/content": {
    path: {model: string; version: string};
    query: undefined;
    body: undefined;
    result: Blob;
  };
  /** Let an alias mean a version */
  "PUT /v1/models/{model}/aliases/{alias}": {
    path: {model: string; alias: string};
    query: undefined;
    body: ModelAlias;
    result: Model;
  };
  /** Remove an alias; the version stays */
  "DELETE /v1/models/{model}/aliases/{alias}": {
    path: {model: string; alias: string};
    query: undefined;
    body: undefined;
    result: undefined;
  };
  /** How many slots wait for runners, of which kind, and for how long */
  "GET /v1/demand": {
    path: undefined;
    query: undefined;
    body: undefined;
    result: Demand;
  };
  /** List runners, the live ones first */
  "GET /v1/runners": {
    path: undefined;
    query: {cursor?: string; page_size?: number};
    body: undefined;
    result: RunnerList;
  };
  /** Register a runner, or register it again after a restart */
  "POST /v1/runners": {
    path: undefined;
    query: undefined;
    body: RunnerRegister;
    result: Registration;
  };
  /** Forget a runner */
  "DELETE /v1/runners/{runner}": {
    path: {runner: string};
    query: undefined;
    body: undefined;
    result: undefined;
  };
  /** Tell a runner to hand its trials back and to leave, or no longer */
  "POST /v1/runners/{runner}/drain": {
    path: {runner: string};
    query: undefined;
    body: Drain;
    result: undefined;
  };
  /** Take trials to run (long-poll) */
  "POST /v1/runners/{runner}/claim": {
    path: {runner: string};
    query: undefined;
    body: Claim;
    result: ClaimResult;
  };
  /** Many ends and measurements, and a claim, in one request */
  "POST /v1/runners/{runner}/batch": {
    path: {runner: string};
    query: undefined;
    body: Batch;
    result: BatchResult;
  };
  /** Extend the lease of a runner, and get the attempts to stop */
  "POST /v1/runners/{runner}/heartbeat": {
    path: {runner: string};
    query: undefined;
    body: Heartbeat;
    result: HeartbeatResult;
  };
  /** Leave; attempts that the runner still holds return to the queue without using up a restart */
  "POST /v1/runners/{runner}/leave": {
    path: {runner: string};
    query: undefined;
    body: Leave;
    result: undefined;
  };
  /** Record measurements */
  "POST /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/measurements": {
    path: {sweep: string; number: number; attempt: number};
    query: undefined;
    body: MeasurementBatch;
    result: ReportResult;
  };
  /** Replace the stored tail of the output of this attempt */
  "PUT /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/log": {
    path: {sweep: string; number: number; attempt: number};
    query: undefined;
    body: LogTail;
    result: undefined;
  };
  /** Replace what is stored of this attempt's use of its machine */
  "PUT /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/usage": {
    path: {sweep: string; number: number; attempt: number};
    query: undefined;
    body: Usage;
    result: undefined;
  };
  /** Replace the set of files of one kind (upload their content as blobs first) */
  "PUT /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/files": {
    path: {sweep: string; number: number; attempt: number};
    query: undefined;
    body: FileSet;
    result: undefined;
  };
  /** End an attempt */
  "POST /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/complete": {
    path: {sweep: string; number: number; attempt: number};
    query: undefined;
    body: Completion;
    result: Trial;
  };
  /** A rank of a gang listens */
  "PUT /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/seats/{seat}": {
    path: {sweep: string; number: number; attempt: number; seat: number};
    query: undefined;
    body: SeatListening;
    result: World;
  };
  /** A rank is connected to all members of an epoch */
  "POST /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/seats/{seat}/joined": {
    path: {sweep: string; number: number; attempt: number; seat: number};
    query: undefined;
    body: SeatJoined;
    result: World;
  };
  /** The process of a rank has ended */
  "POST /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/seats/{seat}/end": {
    path: {sweep: string; number: number; attempt: number; seat: number};
    query: undefined;
    body: SeatEnd;
    result: World;
  };
  /** The members and the epoch of a gang (long-poll) */
  "GET /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/world": {
    path: {sweep: string; number: number; attempt: number};
    query: {after?: number; wait_ms?: number};
    body: undefined;
    result: World;
  };
  /** Begin the next epoch without ranks that are lost or leave */
  "POST /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/world": {
    path: {sweep: string; number: number; attempt: number};
    query: undefined;
    body: WorldChange;
    result: World;
  };
  /** The ranks of an attempt, with all that were lost */
  "GET /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/gang": {
    path: {sweep: string; number: number; attempt: number};
    query: undefined;
    body: undefined;
    result: Gang;
  };
  /** List tokens without their secrets */
  "GET /v1/tokens": {
    path: undefined;
    query: {cursor?: string; page_size?: number};
    body: undefined;
    result: TokenList;
  };
  /** Create a token; its text is returned only once */
  "POST /v1/tokens": {
    path: undefined;
    query: undefined;
    body: TokenCreate;
    result: TokenCreated;
  };
  /** Revoke a token */
  "DELETE /v1/tokens/{token}": {
    path: {token: string};
    query: undefined;
    body: undefined;
    result: undefined;
  };
}
