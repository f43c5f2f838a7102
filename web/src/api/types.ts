/* Made from api/openapi.yaml by web/tools/types.mjs (npm run types); a test holds them equal. Do not edit. */

export type Problem = {
  type: string;
  title: string;
  status: number;
  /** invalid, denied, not_found, conflict, stale_attempt, stale_epoch, too_large, unsupported, unavailable, … */
  code: string;
  detail: string;
  instance?: string;
  request_id?: string;
  errors?: {
    pointer: string;
    detail: string;
  }[];
};

export type Health = {
  status: string;
  version?: string;
};

/** A number, or what JSON cannot hold as text */
export type Number = number | "NaN" | "Infinity" | "-Infinity";

export type MetricName = string;

export type Time = string;

export type SweepState = "running" | "paused" | "finishing" | "completed" | "failed" | "cancelled";

export type TrialState = "queued" | "running" | "paused" | "completed" | "pruned" | "failed" | "cancelled";

/** Values by parameter name; inactive conditional parameters are absent */
export type Params = Record<string, number | string | boolean>;

export type Goal = "minimize" | "maximize";

export type Objective = {
  name: string;
  goal: Goal;
};

/** A trial is feasible when the metric lies within the bounds, ends included; at least one of them is given */
export type OutcomeConstraint = {
  metric: MetricName;
  min?: number;
  max?: number;
};

/** The sweep document, docs/sweep.md. The server checks every field; unknown ones are refused. */
export type SweepDocument = {
  name: string;
  description?: string;
  tags?: string[];
  /** The objective. Either this or metrics */
  metric?: Objective;
  /** Several objectives: the search looks for the front between them */
  metrics?: Objective[];
  /** Bounds on what trials measure */
  constraints?: OutcomeConstraint[];
  /** By name: {type: float, int, ordinal, categorical, bool or constant, …} */
  parameters: Record<string, Record<string, unknown>>;
  /** Expressions over the parameters that must hold, such as batch * accumulate <= 4096 */
  parameter_constraints?: string[];
  forbidden?: Record<string, unknown>[];
  search?: {
    method?: "gp" | "sobol" | "random" | "grid";
    seed?: number;
    /** Space-filling trials before the model of gp takes over; chosen from the space when absent */
    initial_trials?: number;
  };
  limits?: {
    max_trials?: number;
    max_concurrent_trials?: number;
    max_failed_trials?: number;
    max_restarts?: number;
    trial_timeout?: string | number;
    wall_time?: string | number;
    grace?: string | number;
  };
  /** What runners run. Without it the sweep is for ask and tell alone */
  trial?: {
    train?: Record<string, unknown>;
    command?: (string | number)[];
    env?: Record<string, string | number>;
    /** Working directory of the command */
    directory?: string;
  };
  resources?: {
    gpus?: number;
    ranks?: 1;
    /** How many trials of one shape train in one process; 1: each alone. Left out: as many as the runner finds best, 4 at most for methods that learn */
    group?: number;
  };
  /** false for none */
  ensemble?: {
    method?: "greedy";
    size?: number;
  } | boolean;
};

export type SweepPatch = {
  state?: "running" | "paused" | "cancelled";
  limits?: {
    max_trials?: number;
    max_concurrent_trials?: number | null;
    max_failed_trials?: number | null;
  };
};

/** Trials by state, and their sum. queued counts trials that exist and wait; trials not yet made are planned_trials - total. */
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

export type Sweep = {
  id: string;
  name: string;
  state: SweepState;
  /** Why it ended as it did */
  reason?: string | null;
  document: SweepDocument;
  /** The first objective: what value, best and sorting by value go by */
  metric: Objective;
  /** All objectives, one or more */
  metrics: Objective[];
  /** Bounds on what trials measure; possibly none */
  constraints: OutcomeConstraint[];
  method: string;
  /** Decimal; 64 bits do not fit a JavaScript number */
  seed: string;
  /** How many trials there will be: max_trials (or the cells of the grid when fewer), and the known results that were added */
  planned_trials: number;
  /** How many known results were added */
  known_trials: number;
  /** False when the document has no trial: only clients that ask get its trials */
  for_runners: boolean;
  counts: Counts;
  best?: null | {
    number: number;
    value: Number;
    params: Params;
  };
  created_at: Time;
  started_at?: null | Time;
  finished_at?: null | Time;
};

export type SweepList = {
  items: Sweep[];
  next_cursor: string | null;
};

export type Trial = {
  sweep: string;
  number: number;
  state: TrialState;
  /** The latest attempt; 0 before the first claim */
  attempt: number;
  /** How many restarts were used up */
  restarts: number;
  params: Params;
  seed: string;
  /** The metric of the sweep when the trial completed, else its latest */
  value?: null | Number;
  /** The latest step measured */
  step?: number | null;
  /** The latest value of every metric */
  metrics?: Record<string, Number>;
  suggestion?: SuggestionReason;
  origin: Origin;
  /** How many suggestions the search had made before this one; null unless origin is suggested */
  index?: number | null;
  /** The suggestion was made from every result with finish_seq up to this one; null for methods that do not learn, and for trials that people added */
  seen?: number | null;
  /** 1, 2, … in the order in which the trials of the sweep ended; null until then */
  finish_seq?: number | null;
  /** Whether it keeps all constraints of the sweep (true when it has none); null unless it completed */
  feasible?: boolean | null;
  /** The signature of its tensors; null when it is not the built-in trainer's */
  shape?: string | null;
  /** The group that the latest attempt ran in; null when it ran alone */
  group?: string | null;
  /** The runner of the latest attempt; null when it was a client's */
  runner?: string | null;
  /** The client of the latest attempt, which asked for it; null when it was a runner's */
  client?: string | null;
  /** Why it failed, was cancelled or was requeued */
  reason?: string | null;
  created_at: Time;
  started_at?: null | Time;
  finished_at?: null | Time;
};

/** Where the parameters come from: suggested by the search; enqueued, known: see addTrial */
export type Origin = "suggested" | "enqueued" | "known";

/** Why these parameters: at least {method}. Suggestions of gp say which model and acquisition chose them, its value, what the model predicted there, the incumbent that it was chosen against, and how much was known; docs/search.md lists the fields. {method: enqueued} and {method: known} for trials that people added. */
export type SuggestionReason = Record<string, unknown>;

export type TrialCreate = {
  params: Params;
  /** The result, when it is known; finite numbers */
  metrics?: Record<string, number>;
  /** What became of a known result; completed when there are metrics. Without both the trial is enqueued */
  state?: "completed" | "failed";
  /** Of a known failure, for people */
  reason?: string | null;
};

/** Values by name */
export type MetricValues = Record<string, Number>;

/** A name of your choice for whoever runs the trials, the same in every request; two loops that run side by side need two names */
export type Client = string;

/** How long a trial is held for the client without a sign of life: 1 s to 7 days */
export type LeaseMs = number;

export type Ask = {
  client: Client;
  /** How many trials the client wants to hold in all */
  count?: number;
  lease_ms?: LeaseMs;
  /** How long to wait for something to hand out */
  wait_ms?: number;
};

export type Suggestion = {
  sweep: string;
  /** Names the trial in the requests that follow */
  number: number;
  /** Above 1 when it was begun before: by this client, which gets it back, or by another that gave it up */
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
  /** The sweep has ended (or is finishing: its ensemble is being made): leave the loop */
  done: boolean;
};

/** The suggestion's attempt, for clients that want to be sure that they speak of the same one; the latest that the client has held when absent */
export type HeldAttempt = number;

export type SuggestionMeasurements = {
  client: Client;
  attempt?: HeldAttempt;
  items: Measurement[];
};

export type SuggestionReport = {
  /** How many points were new */
  recorded: number;
};

export type SuggestionCompletion = {
  client: Client;
  attempt?: HeldAttempt;
  outcome?: "completed" | "failed" | "released";
  metrics?: MetricValues;
  /** Where metrics are recorded */
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
  metrics: Objective[];
  items: Trial[];
  /** A value for each objective, in the order of metrics */
  reference: null | Number[];
  hypervolume: null | Number;
};

export type Importance = {
  metric: MetricName;
  /** How many completed trials the model saw */
  trials: number;
  /** More trials have ended since, and the answer that knows them is being computed for somebody else: ask again */
  stale: boolean;
  /** 1: it foretells trials that it did not see without error; 0: no better than their mean. null: too few trials */
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
    /** Share of what tells the best tenth of the trials from all */
    top: number | null;
    /** It is not always active: its shares are those where it is */
    conditional: boolean;
  })[];
  /** Why there are no figures */
  reason?: string | null;
};

export type TrialDetail = Trial & {
  attempts: ({
    attempt: number;
    /** Null for an attempt of a client */
    runner?: string | null;
    /** Who asked for it; null for an attempt of a runner */
    client?: string | null;
    /** The group that it was a member of; null when it ran alone */
    group?: string | null;
    started_at: Time;
    ended_at?: null | Time;
    /** completed, failed, retry, released, lost, cancelled, timeout */
    outcome?: string | null;
    reason?: string | null;
    exit_code?: number | null;
  })[];
};

export type TrialList = {
  items: Trial[];
  next_cursor: string | null;
};

export type Series = {
  series: Record<string, {
    steps: number[];
    values: Number[];
  }>;
};

export type TrialLog = {
  /** 0 when nothing was kept yet */
  attempt: number;
  text: string;
  /** The beginning was dropped */
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
  kind: "artifact" | "checkpoint";
  files: File[];
};

export type Ensemble = {
  /** none: the sweep asked for none, or too few trials left predictions */
  state: "pending" | "ready" | "none";
  reason?: string | null;
  /** What selection minimises or maximises and what is reported: error, accuracy, log_loss, rmse */
  metric?: string;
  goal?: "minimize" | "maximize";
  /** Held-out rows used to choose the members */
  rows_select?: number;
  /** The other held-out rows, used for every figure here */
  rows_report?: number;
  value?: Number;
  value_select?: Number;
  best_single?: {
    number: number;
    value: Number;
    value_select?: Number;
  };
  members?: {
    number: number;
    weight: number;
    count: number;
    value: Number;
    value_select?: Number;
    params?: Params;
  }[];
  candidates?: number;
};

export type Event = {
  id: string;
  type: "sweep.created" | "sweep.changed" | "trial.changed" | "trial.measured" | "ensemble.ready" | "runner.changed";
  time: Time;
  sweep?: string;
  number?: number;
  state?: string;
  attempt?: number;
  value?: Number;
  reason?: string;
  runner?: string;
};

export type DatasetCreate = {
  name: string;
  format: "csv" | "npy" | "npz" | "idx" | "cifar" | "safetensors" | "text" | "tokens";
  /** Digests by role: table (csv, npy, npz, cifar, safetensors, text, tokens), or features and targets (idx, npy) */
  files: {
    table?: string;
    features?: string;
    targets?: string;
  };
  /** Column of the target in a csv or npy table: its name, or its index (negative from the end); several, separated by commas, are a regression of several outputs */
  target?: string | number;
  task?: "auto" | "classification" | "regression" | "language_modeling";
  options?: DatasetOptions;
  description?: string;
};

/** How the files are to be read, where they do not say it themselves */
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
};

export type DatasetColumn = {
  /** The header's, or the index of the column */
  name: string;
  kind: "numeric" | "categorical";
  /** Rows without a value */
  missing: number;
  /** categorical: rows whose value is in one row alone */
  other?: number;
  /** categorical: values of two rows or more */
  values?: string[];
};

export type Dataset = {
  name: string;
  format: "csv" | "npy" | "npz" | "idx" | "cifar" | "safetensors" | "text" | "tokens";
  task: "classification" | "regression" | "language_modeling";
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
  /** Of a table with a header, categories or missing values; not in lists */
  columns?: DatasetColumn[];
  /** In a claim only: what the sweep was made with, when the name holds other content by now; the trial is to fail */
  expected?: {
    sha256: string;
    rows: number;
    features: number;
  };
  /** Digest over the files and how they are read */
  sha256: string;
  files: ({
    role: "table" | "features" | "targets";
    sha256: string;
    size: number;
  })[];
  description?: string | null;
  created_at: Time;
};

export type DatasetList = {
  items: Dataset[];
  next_cursor: string | null;
};

export type RunnerRegister = {
  name: string;
  slots: number;
  gpus?: string[];
  host?: string;
  version?: string;
  /** Attempts that this runner still runs (after a lost connection) */
  resume?: AttemptRef[];
};

export type Registration = {
  name: string;
  epoch: number;
  lease_ms: number;
  heartbeat_ms: number;
  directives?: Directive[];
};

export type AttemptRef = {
  sweep: string;
  number: number;
  attempt: number;
};

export type Directive = {
  sweep: string;
  number: number;
  attempt: number;
  /** SIGTERM, grace, SIGKILL; then write nothing more for this attempt, it is not current */
  action: "stop";
  reason?: string;
};

export type Runner = {
  name: string;
  state: "live" | "lost" | "left";
  host?: string | null;
  version?: string | null;
  slots: number;
  gpus?: string[];
  /** Attempts it holds */
  running: number;
  /** Slots that they take: a group takes one, whatever its members */
  used_slots?: number;
  epoch: number;
  registered_at: Time;
  seen_at?: Time;
};

export type RunnerList = {
  items: Runner[];
  next_cursor: string | null;
};

export type Claim = {
  epoch: number;
  /** New for each claim, the same when it is repeated */
  claim_id: string;
  /** Free slots. A group takes one slot, whatever its members */
  max_trials?: number;
  /** Free GPUs. A group uses the GPUs of one trial */
  gpus?: number;
  /** How many trials of one shape may share a slot; of no meaning with `fit` */
  members?: number;
  /** What a group may use in all; null: no bound */
  memory_bytes?: number | null;
  /** Only trials that fit this open group of the runner, at most so many; max_trials, gpus and members do not matter then */
  fit?: null | {
    group: string;
    members: number;
  };
  /** How many members the runner wants in a group of that shape, by the throughput that it measured; 8 for others. resources.group overrules it */
  measured?: {
    shape: string;
    members: number;
  }[];
  /** Attempts that the runner holds and no longer runs, whose ends are under way. Their slots are free. A sweep whose method learns gives nothing before they have ended */
  ending?: AttemptRef[];
  wait_ms?: number;
};

/** Trials with one id train as members of one process */
export type TrialGroup = {
  id: string;
  /** The signature of the tensors: equal texts may share a group */
  shape: string;
  bytes_per_member: number;
  /** At most so many at a time: resources.group, else measured; within Claim.members and memory_bytes / bytes_per_member */
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
  trial: Record<string, unknown>;
  metric: {
    name: string;
    goal: string;
  };
  gpus?: number;
  dataset?: null | Dataset;
  /** What belongs in the checkpoint folder */
  files: File[];
  timeout_ms?: number | null;
  grace_ms?: number;
  /** Null: it runs in a process of its own */
  group?: null | TrialGroup;
};

export type ClaimResult = {
  trials: ClaimedTrial[];
  /** Nothing now, but a suggestion is being computed, or waits for results: ask again */
  pending: boolean;
};

export type Heartbeat = {
  epoch: number;
  attempts: AttemptRef[];
};

export type HeartbeatResult = {
  lease_ms: number;
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
};

export type ReportResult = {
  recorded: number;
  directives: Directive[];
};

export type LogTail = {
  text: string;
  truncated?: boolean;
};

export type Completion = {
  outcome: "completed" | "failed" | "retry" | "released" | "timeout";
  /** Negative: the signal that ended it */
  exit_code?: number | null;
  reason?: string | null;
};

export type TokenCreate = {
  role: "viewer" | "user" | "runner" | "admin";
  name?: string;
  /** Such as 30d, or a number of seconds; for ever when absent */
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
  /** Can it serve (database reached, migrations applied, not draining)? */
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
    query: {state?: SweepState; cursor?: string; page_size?: number};
    body: undefined;
    result: SweepList;
  };
  /** Create a sweep; it starts at once, or paused */
  "POST /v1/sweeps": {
    path: undefined;
    query: {paused?: boolean};
    body: SweepDocument;
    result: Sweep;
  };
  /** One sweep with its counts and its best trial */
  "GET /v1/sweeps/{sweep}": {
    path: {sweep: string};
    query: undefined;
    body: undefined;
    result: Sweep;
  };
  /** Pause, resume, cancel, or change limits (JSON merge patch) */
  "PATCH /v1/sweeps/{sweep}": {
    path: {sweep: string};
    query: undefined;
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
  /** The best completed trials by the metric of the sweep */
  "GET /v1/sweeps/{sweep}/best": {
    path: {sweep: string};
    query: {top?: number};
    body: undefined;
    result: TrialList;
  };
  /** The trials that no other trial beats in every objective */
  "GET /v1/sweeps/{sweep}/pareto": {
    path: {sweep: string};
    query: undefined;
    body: undefined;
    result: Pareto;
  };
  /** How much each parameter matters for a metric of the sweep */
  "GET /v1/sweeps/{sweep}/importance": {
    path: {sweep: string};
    query: {metric?: MetricName};
    body: undefined;
    result: Importance;
  };
  /** The ensemble of the best trials, made when the sweep ends */
  "GET /v1/sweeps/{sweep}/ensemble": {
    path: {sweep: string};
    query: undefined;
    body: undefined;
    result: Ensemble;
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
  /** Tell what came of a trial */
  "POST /v1/sweeps/{sweep}/suggestions/{number}/complete": {
    path: {sweep: string; number: number};
    query: undefined;
    body: SuggestionCompletion;
    result: Trial;
  };
  /** Keep a trial that this client runs */
  "POST /v1/sweeps/{sweep}/suggestions/{number}/heartbeat": {
    path: {sweep: string; number: number};
    query: undefined;
    body: SuggestionHeartbeat;
    result: SuggestionLease;
  };
  /** List the trials of a sweep */
  "GET /v1/sweeps/{sweep}/trials": {
    path: {sweep: string};
    query: {state?: TrialState; group?: string; sort?: "number" | "value" | "started_at" | "finished_at" | "duration"; order?: "asc" | "desc"; cursor?: string; page_size?: number};
    body: undefined;
    result: TrialList;
  };
  /** Enqueue a configuration, or add a result that is known already */
  "POST /v1/sweeps/{sweep}/trials": {
    path: {sweep: string};
    query: undefined;
    body: TrialCreate;
    result: Trial;
  };
  /** One trial with its attempts */
  "GET /v1/sweeps/{sweep}/trials/{number}": {
    path: {sweep: string; number: number};
    query: undefined;
    body: undefined;
    result: TrialDetail;
  };
  /** Cancel a trial that has not ended */
  "POST /v1/sweeps/{sweep}/trials/{number}/cancel": {
    path: {sweep: string; number: number};
    query: undefined;
    body: undefined;
    result: Trial;
  };
  /** All series of a trial, in step order */
  "GET /v1/sweeps/{sweep}/trials/{number}/measurements": {
    path: {sweep: string; number: number};
    query: {metric?: MetricName};
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
  /** Files that a trial left; fetch content by its digest from /v1/blobs */
  "GET /v1/sweeps/{sweep}/trials/{number}/artifacts": {
    path: {sweep: string; number: number};
    query: undefined;
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
  /** Is this content here? */
  "HEAD /v1/blobs/{sha256}": {
    path: {sha256: string};
    query: undefined;
    body: undefined;
    result: undefined;
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
  /** Take trials to run (long-poll) */
  "POST /v1/runners/{runner}/claim": {
    path: {runner: string};
    query: undefined;
    body: Claim;
    result: ClaimResult;
  };
  /** Extend the leases of a runner and learn what to stop */
  "POST /v1/runners/{runner}/heartbeat": {
    path: {runner: string};
    query: undefined;
    body: Heartbeat;
    result: HeartbeatResult;
  };
  /** Say goodbye; attempts still held go back to the queue without using up a restart */
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
  /** Replace the kept tail of output of this attempt */
  "PUT /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/log": {
    path: {sweep: string; number: number; attempt: number};
    query: undefined;
    body: LogTail;
    result: undefined;
  };
  /** Replace the set of files of one kind (their content uploaded as blobs before) */
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
  /** List tokens without their secrets */
  "GET /v1/tokens": {
    path: undefined;
    query: {cursor?: string; page_size?: number};
    body: undefined;
    result: TokenList;
  };
  /** Make a token; its text is shown this once */
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
