/* The parser of `trial.train.distributed` (distributed_spec.h).
 *
 * Fields are read first, each with its bounds; what they mean together is checked after that. The
 * document is checked once for the server and once by the trainer, so a combination that passes
 * here must run. */
#include "model/document/distributed_spec.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>

#include "model/document/train_spec_priv.h"

#define LARGEST_OUTER_RATE 100
#define LARGEST_SIGNIFICANCE 1000

/* In the order of distributed_strategy; the last one is a form of `server`. */
static const char *const strategy_words[] = {"allreduce",      "local_sgd", "server", "gossip",
                                             "model_parallel", "groups",    NULL};
#define GROUPS_WORD (DISTRIBUTED_MODEL_PARALLEL + 1)
static const char *const sum_words[] = {"tree", "ring", "halving_doubling", "auto", NULL};
static const char *const factors_words[] = {"never", "auto", "always", NULL};
static const char *const codec_words[] = {"none", "fp16", "one_bit", "top_k", "powersgd", NULL};
static const char *const moments_words[] = {"average", "reset", NULL};
static const char *const mode_words[] = {"sync", "async", "ssp", NULL};
static const char *const partitions_words[] = {"none", "lineage", NULL};
static const char *const rows_words[] = {"dense", "sparse", NULL};
static const char *const outer_words[] = {"sgd", "nesterov", NULL};

const char *distributed_strategy_name(distributed_strategy s)
{
    return strategy_words[s];
}

const char *distributed_codec_name(distributed_codec c)
{
    return codec_words[c];
}

static bool is_given(const struct json_fields *f, const char *name)
{
    const json_t *j = json_object_get(f->obj, name);
    return j && !json_is_null(j);
}

/* `name` may be a path below the section: its words need no escapes. */
static as_status refuse(const struct json_fields *f, const char *name, const char *why,
                        struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    (void)snprintf(at, sizeof at, "%s/%s", f->pointer, name);
    return as_fail_at(err, AS_E_INVAL, at, "%s: %s", at, why);
}

/* ---- compress ---- */

static as_status parse_compress_object(struct json_fields *parent, struct distributed_spec *d,
                                       struct as_err *err)
{
    struct json_fields f;
    bool there;
    int kind = 0;
    as_status st = train_spec_section(parent, "compress", &f, &there, err);
    if (st < 0 || !there)
        return st;
    const struct train_number fraction = {"fraction", 1e-6, 1, &d->fraction};
    const struct train_integer integers[] = {
        {"rank", 1, DISTRIBUTED_MAX_POWERSGD_RANK, &d->rank},
        {"warmup_steps", 0, DISTRIBUTED_MAX_WARMUP, &d->warmup_steps}};
    if ((st = json_fields_word(&f, "kind", JSON_REQUIRED, codec_words, &kind, err)) != AS_OK ||
        (st = train_spec_numbers(&f, &fraction, 1, err)) != AS_OK ||
        (st = train_spec_integers(&f, integers, AS_ARRAY_LEN(integers), err)) != AS_OK ||
        (st = json_fields_bool(&f, "half", JSON_OPTIONAL, &d->half, err)) != AS_OK)
        return st;
    d->codec = (distributed_codec)kind;
    return json_fields_end(&f, err);
}

/* `compress`: a word, or an object with the kind and its parameters. */
static as_status parse_compress(struct json_fields *f, struct distributed_spec *d,
                                struct as_err *err)
{
    int kind = 0;
    as_status st;
    if (json_is_object(json_object_get(f->obj, "compress")))
        return parse_compress_object(f, d, err);
    st = json_fields_word(f, "compress", JSON_OPTIONAL, codec_words, &kind, err);
    d->codec = (distributed_codec)kind;
    return st;
}

/* ---- local_sgd ---- */

/* Momentum, and the rate that goes with it. */
static as_status parse_rate(struct json_fields *f, struct distributed_outer *o, struct as_err *err)
{
    const struct train_number momentum = {"momentum", 0, TRAIN_BELOW_ONE, &o->momentum};
    const struct train_number lr = {"lr", FLT_MIN, LARGEST_OUTER_RATE, &o->lr};
    as_status st = train_spec_numbers(f, &momentum, 1, err);
    o->lr = 1 - o->momentum;
    return st == AS_OK ? train_spec_numbers(f, &lr, 1, err) : st;
}

static as_status parse_outer(struct json_fields *parent, struct distributed_outer *o,
                             struct as_err *err)
{
    struct json_fields f;
    bool there;
    int kind = 1;
    as_status st = train_spec_section(parent, "outer", &f, &there, err);
    if (st < 0 || !there)
        return st;
    *o = (struct distributed_outer){.momentum = 0.3};
    if ((st = json_fields_word(&f, "kind", JSON_OPTIONAL, outer_words, &kind, err)) != AS_OK ||
        (st = parse_rate(&f, o, err)) != AS_OK)
        return st;
    o->nesterov = kind == 1;
    return json_fields_end(&f, err);
}

/* `block_momentum`: the momentum, or an object. */
static as_status parse_block_momentum(struct json_fields *parent, struct distributed_outer *o,
                                      struct as_err *err)
{
    const json_t *found = json_object_get(parent->obj, "block_momentum");
    const struct train_number plain = {"block_momentum", 0, TRAIN_BELOW_ONE, &o->momentum};
    struct json_fields f;
    bool there;
    as_status st;
    if (!is_given(parent, "block_momentum"))
        return train_spec_numbers(parent, &plain, 1, err);
    o->block = true;
    if (!json_is_object(found)) {
        st = train_spec_numbers(parent, &plain, 1, err);
        o->lr = 1 - o->momentum;
        return st;
    }
    st = train_spec_section(parent, "block_momentum", &f, &there, err);
    if (st < 0 || !there)
        return st;
    if ((st = parse_rate(&f, o, err)) != AS_OK ||
        (st = json_fields_bool(&f, "nesterov", JSON_OPTIONAL, &o->nesterov, err)) != AS_OK)
        return st;
    return json_fields_end(&f, err);
}

static as_status parse_local_sgd(struct json_fields *parent, struct distributed_spec *d,
                                 struct as_err *err)
{
    struct json_fields f;
    bool there;
    int moments = 0;
    as_status st = train_spec_section(parent, "local_sgd", &f, &there, err);
    if (st < 0 || !there)
        return st;
    if ((st = json_fields_i64(&f, "steps", JSON_OPTIONAL, 1, DISTRIBUTED_MAX_STEPS, &d->local_steps,
                              err)) != AS_OK ||
        (st = json_fields_word(&f, "moments", JSON_OPTIONAL, moments_words, &moments, err)) !=
            AS_OK ||
        (st = json_fields_note(&f, parse_block_momentum(&f, &d->outer, err), err)) != AS_OK)
        return st;
    d->moments = (distributed_moments)moments;
    const bool both = is_given(&f, "block_momentum") && is_given(&f, "outer");
    if ((st = json_fields_note(&f, parse_outer(&f, &d->outer, err), err)) != AS_OK ||
        (st = json_fields_end(&f, err)) != AS_OK)
        return st;
    return both ? refuse(&f, "outer",
                         "found beside block_momentum, expected one of them: both are a momentum "
                         "of blocks",
                         err)
                : AS_OK;
}

/* ---- server, gossip ---- */

static as_status parse_server(struct json_fields *parent, struct distributed_spec *d,
                              struct as_err *err)
{
    struct json_fields f;
    bool there;
    int mode = 0, rows = 0;
    as_status st = train_spec_section(parent, "server", &f, &there, err);
    if (st < 0 || !there)
        return st;
    const struct train_integer numbers[] = {
        {"staleness", 0, DISTRIBUTED_MAX_STALENESS, &d->staleness},
        {"shards", 0, DISTRIBUTED_MAX_RANKS, &d->server_shards},
        {"backup", 0, DISTRIBUTED_MAX_RANKS, &d->backup},
        {"warm_start", 0, DISTRIBUTED_MAX_WARMUP, &d->warm_start},
    };
    const struct train_number significance = {"significance", 0, LARGEST_SIGNIFICANCE,
                                              &d->significance};
    if ((st = json_fields_word(&f, "mode", JSON_OPTIONAL, mode_words, &mode, err)) != AS_OK ||
        (st = train_spec_integers(&f, numbers, AS_ARRAY_LEN(numbers), err)) != AS_OK ||
        (st = train_spec_numbers(&f, &significance, 1, err)) != AS_OK ||
        (st = json_fields_word(&f, "rows", JSON_OPTIONAL, rows_words, &rows, err)) != AS_OK ||
        (st = json_fields_bool(&f, "backup_copies", JSON_OPTIONAL, &d->backup_copies, err)) !=
            AS_OK)
        return st;
    d->sparse_rows = rows == 1;
    d->mode = (distributed_mode)mode;
    return json_fields_end(&f, err);
}

static as_status parse_gossip(struct json_fields *parent, struct distributed_spec *d,
                              struct as_err *err)
{
    struct json_fields f;
    bool there;
    as_status st = train_spec_section(parent, "gossip", &f, &there, err);
    if (st < 0 || !there)
        return st;
    const struct train_integer numbers[] = {
        {"peers", 1, DISTRIBUTED_MAX_RANKS - 1, &d->peers},
        {"staleness", 1, DISTRIBUTED_MAX_STEPS, &d->gossip_staleness}};
    if ((st = train_spec_integers(&f, numbers, AS_ARRAY_LEN(numbers), err)) != AS_OK)
        return st;
    return json_fields_end(&f, err);
}

/* ---- what the fields mean together ---- */

/* Sets the strategy: the word, or that of the only section. */
static as_status choose_strategy(const struct json_fields *f, int word, struct distributed_spec *d,
                                 struct as_err *err)
{
    static const struct {
        const char *section;
        distributed_strategy strategy;
    } of[] = {{"local_sgd", DISTRIBUTED_LOCAL_SGD},
              {"server", DISTRIBUTED_SERVER},
              {"groups", DISTRIBUTED_SERVER},
              {"gossip", DISTRIBUTED_GOSSIP},
              {"model_parallel", DISTRIBUTED_MODEL_PARALLEL}};
    if (word == GROUPS_WORD && d->groups == 0)
        return refuse(f, "groups", "missing, expected the number of groups: the strategy is groups",
                      err);
    if (word >= 0) {
        d->strategy = word == GROUPS_WORD ? DISTRIBUTED_SERVER : (distributed_strategy)word;
        d->groups = word == GROUPS_WORD ? d->groups : 0;
        return AS_OK;
    }
    const char *first = NULL;
    for (size_t i = 0; i < AS_ARRAY_LEN(of); i++) {
        char why[120];
        if (!is_given(f, of[i].section) || (as_streq(of[i].section, "groups") && d->groups == 0))
            continue;
        if (!first || d->strategy == of[i].strategy) {
            first = first ? first : of[i].section;
            d->strategy = of[i].strategy;
            continue;
        }
        (void)snprintf(why, sizeof why,
                       "found beside %s, expected one of them, or `strategy` that chooses", first);
        return refuse(f, of[i].section, why, err);
    }
    return AS_OK;
}

/* The chosen strategy needs its section. In one that is not chosen `steps` may be missing, because
 * its parameter is not active in the trial. */
static as_status check_section(const struct json_fields *f, const struct distributed_spec *d,
                               struct as_err *err)
{
    if (d->strategy != DISTRIBUTED_LOCAL_SGD || d->local_steps > 0)
        return AS_OK;
    return refuse(f, "local_sgd/steps",
                  "missing, expected the number of local steps: the strategy is local_sgd", err);
}

static as_status check_compress(const struct json_fields *f, const struct distributed_spec *d,
                                struct as_err *err)
{
    char why[160];
    if (d->codec == DISTRIBUTED_POWERSGD &&
        (d->strategy == DISTRIBUTED_SERVER || d->strategy == DISTRIBUTED_GOSSIP)) {
        (void)snprintf(why, sizeof why,
                       "found powersgd with the strategy %s, expected allreduce or local_sgd: it "
                       "sums its factors over all ranks",
                       distributed_strategy_name(d->strategy));
        return refuse(f, "compress", why, err);
    }
    if (d->half && d->codec != DISTRIBUTED_POWERSGD) {
        (void)snprintf(why, sizeof why,
                       "found true with %s, expected powersgd: it is the precision of its factors",
                       distributed_codec_name(d->codec));
        return refuse(f, "compress/half", why, err);
    }
    if (d->codec != DISTRIBUTED_PLAIN && d->strategy == DISTRIBUTED_GOSSIP)
        return refuse(f, "compress",
                      "found a codec with the strategy gossip, expected none: its sums of weights "
                      "must be kept exactly",
                      err);
    if (d->codec != DISTRIBUTED_PLAIN && d->shard_state)
        return refuse(f, "shard_state", "found true with `compress`, expected one of them", err);
    return AS_OK;
}

/* What is held back is a part of a gradient, and what it would do to a weight is known for SGD
 * alone. */
static as_status check_significance(const struct json_fields *f, const struct distributed_spec *d,
                                    const struct train_spec *spec, struct as_err *err)
{
    const char *why =
        d->significance <= 0         ? NULL
        : d->mode != DISTRIBUTED_SSP ? "found without mode ssp, expected it: updates are held back"
        : d->groups > 0              ? "found with groups, expected none"
        : d->backup > 0
            ? "found with backup, expected one of them: what came too late would never travel"
        : d->codec != DISTRIBUTED_PLAIN ? "found with compress, expected one of them"
        : spec->optimizer.kind != TRAIN_SGD
            ? "found with another optimizer than sgd, whose step is the rate times the gradient"
            : NULL;
    return why ? refuse(f, "server/significance", why, err) : AS_OK;
}

/* What comes back from a server without a common step are weights, which are not 0. */
static as_status check_rows(const struct json_fields *f, const struct distributed_spec *d,
                            struct as_err *err)
{
    const char *with = !d->sparse_rows                 ? NULL
                       : d->mode == DISTRIBUTED_ASYNC  ? "mode async"
                       : d->groups > 0                 ? "groups"
                       : d->codec != DISTRIBUTED_PLAIN ? "compress"
                       : d->significance > 0           ? "significance"
                                                       : NULL;
    char why[120];
    if (!with)
        return AS_OK;
    (void)snprintf(why, sizeof why, "found sparse with %s, expected mode sync or ssp alone", with);
    return refuse(f, "server/rows", why, err);
}

/* Whoever computes a shard sends it by itself, as float32; late ones are not left out. */
static as_status check_copies(const struct json_fields *f, const struct distributed_spec *d,
                              struct as_err *err)
{
    const struct train_clash list[] = {
        {d->mode != DISTRIBUTED_SYNC, "another mode than sync", "expected sync"},
        {d->groups > 0, "groups", "expected none"},
        {d->backup > 0, "backup", "expected one of them: it leaves out what is late"},
        {d->codec != DISTRIBUTED_PLAIN, "compress",
         "expected one of them: what a message loses would stay with who computed it"},
        {d->sparse_rows, "rows sparse", "expected one of them"},
    };
    char at[AS_ERR_POINTER_MAX];
    (void)snprintf(at, sizeof at, "%s/server/backup_copies", f->pointer);
    return d->backup_copies ? train_spec_refuse_clash(list, AS_ARRAY_LEN(list), at, "true", err)
                            : AS_OK;
}

static as_status check_server(const struct json_fields *f, const struct distributed_spec *d,
                              const struct train_spec *spec, struct as_err *err)
{
    if (d->strategy != DISTRIBUTED_SERVER)
        return AS_OK;
    as_status st = check_significance(f, d, spec, err);
    if (st != AS_OK || (st = check_rows(f, d, err)) != AS_OK ||
        (st = check_copies(f, d, err)) != AS_OK)
        return st;
    if (d->backup > 0 && (d->groups > 0 || d->mode == DISTRIBUTED_ASYNC))
        return refuse(
            f, d->groups > 0 ? "groups" : "server",
            "found with server.backup, which is for the modes sync and ssp without groups", err);
    if (d->groups > 0 && d->mode == DISTRIBUTED_SSP)
        return refuse(f, "groups", "found with server.mode ssp, expected sync or async", err);
    if (d->groups == 0 && d->mode != DISTRIBUTED_ASYNC)
        return d->warm_start > 0
                   ? refuse(f, "server/warm_start",
                            "found with a common step, expected mode async, or groups: elsewhere "
                            "no gradient is of older weights than the mode allows",
                            err)
                   : AS_OK;
    /* Slices are updated one by one: what needs the whole vector in one step cannot be done. */
    const char *what = spec->optimizer.kind == TRAIN_LAMB ? "the optimizer lamb"
                       : spec->optimizer.clip_norm > 0    ? "optimizer.clip_norm"
                       : spec->optimizer.ema > 0          ? "optimizer.ema"
                                                          : NULL;
    if (!what)
        return AS_OK;
    char why[200];
    (void)snprintf(why, sizeof why,
                   "found with %s: without a common step (mode async, or groups), slices of the "
                   "weights are updated by themselves; expected mode sync or ssp without groups",
                   what);
    return refuse(f, d->groups > 0 ? "groups" : "server", why, err);
}

static as_status check_shard_state(const struct json_fields *f, const struct distributed_spec *d,
                                   const struct train_spec *spec, struct as_err *err)
{
    char why[160];
    if (!d->shard_state)
        return AS_OK;
    if (d->strategy != DISTRIBUTED_ALLREDUCE) {
        (void)snprintf(why, sizeof why,
                       "found true with the strategy %s, expected the strategy allreduce",
                       distributed_strategy_name(d->strategy));
        return refuse(f, "shard_state", why, err);
    }
    if (spec->optimizer.kind == TRAIN_LAMB)
        return refuse(f, "shard_state",
                      "found true with the optimizer lamb, whose rate needs the norms of whole "
                      "tensors; expected another optimizer",
                      err);
    return AS_OK;
}

/* Factors are of the gradient by a layer's weight as a batch has made it, for who applies sums. */
static as_status check_factors(const struct json_fields *f, const struct distributed_spec *d,
                               const struct train_spec *spec, struct as_err *err)
{
    const char *with = d->factors == DISTRIBUTED_FACTORS_NEVER ? NULL
                       : d->strategy != DISTRIBUTED_ALLREDUCE
                           ? distributed_strategy_name(d->strategy)
                       : d->codec != DISTRIBUTED_PLAIN       ? "compress"
                       : d->shard_state                      ? "shard_state"
                       : spec->optimizer.kind == TRAIN_LBFGS ? "the optimizer lbfgs"
                                                             : NULL;
    char why[160];
    if (!with)
        return AS_OK;
    (void)snprintf(why, sizeof why,
                   "found %s with %s, expected the strategy allreduce without compress and "
                   "shard_state",
                   factors_words[d->factors], with);
    return refuse(f, "sufficient_factors", why, err);
}

static as_status check_together(const struct json_fields *f, int word, struct distributed_spec *d,
                                const struct train_spec *spec, struct as_err *err)
{
    as_status st = choose_strategy(f, word, d, err);
    d->significance = d->strategy == DISTRIBUTED_SERVER ? d->significance : 0;
    d->backup_copies = d->backup_copies && d->strategy == DISTRIBUTED_SERVER;
    d->error_feedback = d->error_feedback && (d->codec != DISTRIBUTED_PLAIN || d->significance > 0);
    if (st != AS_OK || (st = check_section(f, d, err)) != AS_OK ||
        (st = check_compress(f, d, err)) != AS_OK || (st = check_server(f, d, spec, err)) != AS_OK)
        return st;
    st = check_factors(f, d, spec, err);
    return st != AS_OK ? st : check_shard_state(f, d, spec, err);
}

/* ---- the section ---- */

static as_status parse_fields(struct json_fields *f, struct distributed_spec *d, int *ret_word,
                              struct as_err *err)
{
    int sum = 0, factors = 0, partitions = 0, word = -1;
    const struct train_integer groups = {"groups", 0, DISTRIBUTED_MAX_RANKS, &d->groups};
    as_status st = json_fields_word(f, "strategy", JSON_OPTIONAL, strategy_words, &word, err);
    if (st != AS_OK ||
        (st = json_fields_word(f, "allreduce", JSON_OPTIONAL, sum_words, &sum, err)) != AS_OK ||
        (st = json_fields_word(f, "sufficient_factors", JSON_OPTIONAL, factors_words, &factors,
                               err)) != AS_OK ||
        (st = json_fields_note(f, parse_compress(f, d, err), err)) != AS_OK)
        return st;
    d->sum = (distributed_sum)sum;
    d->factors = (distributed_factors)factors;
    *ret_word = word;
    bool feedback = true;
    if ((st = json_fields_bool(f, "error_feedback", JSON_OPTIONAL, &feedback, err)) != AS_OK ||
        (st = json_fields_note(f, parse_local_sgd(f, d, err), err)) != AS_OK ||
        (st = json_fields_note(f, parse_server(f, d, err), err)) != AS_OK ||
        (st = json_fields_note(f, parse_gossip(f, d, err), err)) != AS_OK ||
        (st = json_fields_note(f, train_spec_parse_model_parallel(f, d, err), err)) != AS_OK ||
        (st = train_spec_integers(f, &groups, 1, err)) != AS_OK)
        return st;
    d->error_feedback = feedback; /* check_together(): of something that is lost */
    const struct train_integer copies = {"state_copies", 1, 2, &d->state_copies};
    if ((st = train_spec_integers(f, &copies, 1, err)) != AS_OK ||
        (st = json_fields_word(f, "partitions", JSON_OPTIONAL, partitions_words, &partitions,
                               err)) != AS_OK ||
        (st = json_fields_bool(f, "encrypt", JSON_OPTIONAL, &d->encrypt, err)) != AS_OK)
        return st;
    d->lineage = partitions == 1;
    return json_fields_bool(f, "shard_state", JSON_OPTIONAL, &d->shard_state, err);
}

as_status train_spec_parse_distributed(struct json_fields *doc, struct train_spec *spec,
                                       struct as_err *err)
{
    struct distributed_spec d = {.fraction = 0.01,
                                 .rank = 2,
                                 .outer = {.lr = 1},
                                 .staleness = 3,
                                 .peers = 1,
                                 .gossip_staleness = 4,
                                 .state_copies = 2};
    struct json_fields f;
    bool there;
    int word = -1;
    as_status st = train_spec_section(doc, "distributed", &f, &there, err);
    spec->distributed = d;
    if (st < 0 || !there)
        return st;
    d.given = true;
    st = parse_fields(&f, &d, &word, err);
    spec->distributed.blocks = d.blocks; /* now it is the document's, whatever else is wrong */
    if (st != AS_OK || (st = json_fields_end(&f, err)) != AS_OK)
        return st;
    if (f.faults && f.faults->n > 0)
        return AS_OK; /* a field that the rules below read may be at fault */
    if ((st = check_together(&f, word, &d, spec, err)) == AS_OK)
        spec->distributed = d;
    return st;
}

/* ---- ranks ---- */

as_status distributed_check_ranks(const struct train_spec *spec, int64_t ranks,
                                  const char *at_ranks, const char *pointer, struct as_err *err)
{
    const struct distributed_spec *d = &spec->distributed;
    int64_t shards = spec->batch_size / spec->micro_batch;
    char at[AS_ERR_POINTER_MAX];
    if (ranks > 1 && spec->folds > 0) {
        (void)snprintf(at, sizeof at, "%s/validation/folds", pointer);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %" PRId64 " with %" PRId64 " ranks, expected no folds", at,
                          spec->folds, ranks);
    }
    if (ranks > 1 && spec->patience > 0) {
        json_pointer_child(pointer, "patience", at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %" PRId64 " with %" PRId64
                          " ranks, expected no patience: ranks "
                          "end together after the same step",
                          at, spec->patience, ranks);
    }
    if (ranks > 1 && spec->boost.given) {
        json_pointer_child(pointer, "boost", at);
        return as_fail_at(err, AS_E_INVAL, at, "%s: found with %" PRId64 " ranks, expected one", at,
                          ranks);
    }
    if (ranks > 1 && train_spec_snapshots(spec) > 0) {
        (void)snprintf(at, sizeof at, "%s/schedule/snapshots", pointer);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %" PRId64 " with %" PRId64 " ranks, expected no snapshots", at,
                          spec->schedule.snapshots, ranks);
    }
    if (train_model_is_kmeans(&spec->model)) /* its shards follow from the rows */
        return AS_OK;
    if (d->strategy == DISTRIBUTED_MODEL_PARALLEL)
        return train_spec_check_block_ranks(spec, ranks, at_ranks, err);
    if (ranks > shards)
        return as_fail_at(err, AS_E_INVAL, at_ranks,
                          "%s: found %" PRId64 ", expected at most the %" PRId64
                          " shards of a batch (batch_size %" PRId64 " / micro_batch %" PRId64 ")",
                          at_ranks, ranks, shards, spec->batch_size, spec->micro_batch);
    if (d->strategy == DISTRIBUTED_SERVER && d->groups > ranks) {
        (void)snprintf(at, sizeof at, "%s/distributed/groups", pointer);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %" PRId64 ", expected at most the %" PRId64 " ranks", at,
                          d->groups, ranks);
    }
    if (d->strategy == DISTRIBUTED_SERVER && d->backup > 0 && d->backup >= ranks) {
        (void)snprintf(at, sizeof at, "%s/distributed/server/backup", pointer);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %" PRId64 ", expected less than the %" PRId64 " ranks", at,
                          d->backup, ranks);
    }
    if (d->strategy == DISTRIBUTED_GOSSIP && ranks > 1 && d->peers >= ranks) {
        (void)snprintf(at, sizeof at, "%s/distributed/gossip/peers", pointer);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %" PRId64 ", expected less than the %" PRId64 " ranks", at,
                          d->peers, ranks);
    }
    return AS_OK;
}
