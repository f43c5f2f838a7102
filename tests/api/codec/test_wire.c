/* Encoders against the schemas of api/openapi.yaml, with values that are hard to represent.
 * Decoders with the input that they must refuse, and the field that their error names. */
#include <math.h>
#include <string.h>

#include "api/codec/wire.h"
#include "base/json.h"
#include "tests/api/codec/decode_check.h"
#include "tests/support/nth.h"
#include "tests/support/schema_check.h"
#include "tests/support/check_main.h"

/* Each allocation of an encoder fails before its value is looked at. */
#define ck_schema(schema, call) ck_schema(schema, nth_json(call))

#define HELD "{\"sweep\":\"s\",\"number\":0,\"attempt\":1"
#define BEAT "{\"epoch\":1,\"attempts\":[" HELD
#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct trial_row make_trial(void)
{
    return (struct trial_row){.sweep = "s-2",
                              .number = 7,
                              .state = TRIAL_FAILED,
                              .attempt = 2,
                              .restarts = 1,
                              .params = "{\"lr\":0.1,\"n\":3,\"act\":\"relu\"}",
                              .seed = INT64_MAX,
                              .has_value = true,
                              .value = NAN,
                              .has_step = true,
                              .step = 12,
                              .metrics = "{\"loss\":\"NaN\",\"acc\":0.5,\"n\":3,"
                                         "\"huge\":100000000000000000000000}",
                              .suggestion = "{\"method\":\"random\"}",
                              .runner = "r1",
                              .reason = "exit 1",
                              .created_ms = 1763664423123,
                              .started_ms = 1763664423124,
                              .ended_ran_ms = 1500,
                              .running_since_ms = 1763664423200};
}

START_TEST(test_sweep)
{
    struct sweep_row r = {
        .id = "s-2",
        .name = "s",
        .tags = "[\"a\"]",
        .state = SWEEP_FINISHING,
        .document =
            "{\"name\":\"s\",\"metric\":{\"name\":\"l\",\"goal\":"
            "\"maximize\"},\"parameters\":{\"z\":{\"type\":\"bool\"},\"a\":{\"type\":\"bool\"}},"
            "\"trial\":{\"command\":[\"x\"]}}",
        .metric = "l",
        .maximize = true,
        .method = "sobol",
        .seed = INT64_MAX,
        .planned = 10,
        .created_ms = 1};
    JSON_AUTO plain = ck_schema("Sweep", sweep_encode(&r));
    ck_assert_str_eq(json_string_value(json_object_get(plain, "seed")), "9223372036854775807");
    ck_assert(json_is_null(json_object_get(plain, "best")));
    ck_assert_str_eq(json_string_value(json_object_get(plain, "created_at")),
                     "1970-01-01T00:00:00.001Z");
    r.has_best = true;
    r.best_value = 0.1;
    r.best_params = "{\"z\":true}";
    r.reason = "done";
    r.finished_ms = 5;
    JSON_AUTO best = ck_schema("Sweep", sweep_encode(&r));
    AS_AUTO(as_freep) char *text = json_format_ordered(best);
    ck_assert_ptr_nonnull(strstr(text, "\"value\":0.1,")); /* shortest, not 17 digits */
    ck_assert_ptr_nonnull(strstr(text, "{\"z\":{\"type\":\"bool\"},\"a\":{\"type\":\"bool\"}}"));
    r.best_is_by_model = true;
    r.told_number = 4;
    r.told_value = 0.05;
    r.regret.best_mean = 0.2;
    r.regret.best_deviation = 0.01;
    JSON_AUTO noisy = ck_schema("Sweep", sweep_encode(&r));
    const json_t *expected = json_object_get(json_object_get(noisy, "best"), "expected");
    ck_assert(fabs(json_number_value(json_object_get(expected, "low")) - 0.1804) < 1e-9);
    ck_assert(fabs(json_number_value(json_object_get(expected, "high")) - 0.2196) < 1e-9);
    ck_assert(json_is_null(json_object_get(json_object_get(best, "best"), "expected")));
    const json_t *told = json_object_get(json_object_get(noisy, "best"), "told");
    ck_assert_int_eq(json_integer_value(json_object_get(told, "number")), 4);
    JSON_AUTO page = ck_schema("SweepList", sweep_page_encode(&(struct sweep_page){
                                                .rows = &r, .n = 1, .next_cursor = "abc"}));
    JSON_AUTO none = ck_schema("SweepList", sweep_page_encode(&(struct sweep_page){0}));
    struct sweep_changed changed = {.sweep = r, .notes = {"it stays so"}, .n_notes = 1};
    JSON_AUTO noted = ck_schema("Sweep", sweep_changed_encode(&changed));
    ck_assert_uint_eq(json_array_size(json_object_get(noted, "notes")), 1);
    JSON_AUTO retried = ck_schema(
        "TrialsRetried",
        retried_encode(&(struct retried){.numbers = (int64_t[]){3, 5}, .n = 2, .sweep = r}));
    ck_assert_uint_eq(json_array_size(json_object_get(retried, "numbers")), 2);
    r.document = "not JSON";
    ck_assert_ptr_null(sweep_encode(&r));
    changed.sweep = r;
    ck_assert_ptr_null(sweep_changed_encode(&changed));
}
END_TEST

START_TEST(test_changes_and_additions)
{
    struct sweep_change_row rows[] = {
        {.changed_ms = 1,
         .by = "tok1",
         .changes =
             "{\"max_trials\":{\"from\":2,\"to\":7},\"wall_time\":{\"from\":null,\"to\":1.5}}"},
        {.changed_ms = 2, .changes = "{\"state\":{\"from\":\"running\",\"to\":\"paused\"}}"}};
    JSON_AUTO list = ck_schema(
        "SweepChangeList", sweep_changes_encode(&(struct sweep_change_list){.rows = rows, .n = 2}));
    ck_assert_uint_eq(json_array_size(json_object_get(list, "items")), 2);
    JSON_AUTO added = ck_schema(
        "TrialsAdded", trials_added_encode(&(struct trials_added){
                           .sweep = "s", .numbers = (int64_t[]){7, 8}, .n = 2, .n_added = 1}));
    ck_assert_int_eq(json_integer_value(json_object_get(added, "added")), 1);
    struct trial_row r = make_trial();
    r.retries = "[{\"state\":\"failed\",\"finish_seq\":3,\"retry_seq\":5,\"reason\":null}]";
    JSON_AUTO trial = ck_schema("Trial", trial_encode(&r));
    ck_assert_uint_eq(json_array_size(json_object_get(trial, "retries")), 1);
}
END_TEST

START_TEST(test_trial)
{
    struct trial_row r = make_trial();
    JSON_AUTO full = ck_schema("Trial", trial_encode(&r));
    ck_assert_str_eq(json_string_value(json_object_get(full, "value")), "NaN");
    ck_assert_int_eq(json_integer_value(json_object_get(full, "ran_ms")), 1500);
    ck_assert_str_eq(json_string_value(json_object_get(full, "running_since")),
                     "2025-11-20T18:47:03.200Z");
    const json_t *metrics = json_object_get(full, "metrics");
    ck_assert(json_number_value(json_object_get(metrics, "huge")) == 1e23); /* as jsonb writes it */
    struct attempt_row attempts[] = {
        {.attempt = 1, .runner = "r", .started_ms = 1, .ended_ms = 2, .outcome = "lost"},
        {.attempt = 2, .runner = "r", .started_ms = 3, .has_exit_code = true, .exit_code = -9}};
    struct trial_detail d = {.trial = r, .attempts = attempts, .n_attempts = 2};
    JSON_AUTO detail = ck_schema("TrialDetail", trial_detail_encode(&d));
    r.has_value = r.has_step = false;
    r.runner = r.reason = NULL;
    JSON_AUTO bare =
        ck_schema("TrialList", trial_page_encode(&(struct trial_page){.rows = &r, .n = 1}));
    int64_t steps[] = {1, INT64_C(1) << 52, INT64_MAX};
    double values[] = {0.1, INFINITY, -INFINITY};
    struct series_row series = {.metric = "a.b", .steps = steps, .values = values, .n = 3};
    JSON_AUTO all =
        ck_schema("Series", series_encode(&(struct series_list){.rows = &series, .n = 1}));
    JSON_AUTO no = ck_schema("Series", series_encode(&(struct series_list){0}));
    JSON_AUTO log = ck_schema("TrialLog", log_encode(&(struct log_row){.text = "\x1b[31m\n"}));
    struct file_row file = {.path = "a/b", .size = INT64_MAX, .sha256 = SHA};
    JSON_AUTO files =
        ck_schema("FileList", file_list_encode(&(struct file_list){.rows = &file, .n = 1}));
}
END_TEST

START_TEST(test_runner_and_claim)
{
    struct runner_row r = {
        .name = "r", .state = "live", .slots = 2, .epoch = 3, .registered_ms = 1};
    JSON_AUTO page =
        ck_schema("RunnerList", runner_page_encode(&(struct runner_page){.rows = &r, .n = 1}));
    struct directive_row stop = {{"s", 1, 2}, "gone"};
    struct registration reg = {1, 15000, 3000, {&stop, 1}};
    JSON_AUTO registered = ck_schema("Registration", registration_encode("r", "5ec7e7", &reg));
    JSON_AUTO beat = ck_schema("HeartbeatResult", heartbeat_encode(15000, &reg.directives));
    JSON_AUTO report = ck_schema("ReportResult", report_encode(5, NULL));
    static const char *const actions[] = {"stop", "prune", "pause"};
    for (directive_action action = DIRECTIVE_STOP; action <= DIRECTIVE_PAUSE; action++) {
        stop.action = action;
        JSON_AUTO told = ck_schema("ReportResult", report_encode(5, &stop));
        const json_t *asked = json_array_get(json_object_get(told, "directives"), 0);
        ck_assert_str_eq(json_string_value(json_object_get(asked, "action")), actions[action]);
    }
    const char *inactive[] = {"momentum"};
    struct dataset_row data = {.name = "d",
                               .format = "csv",
                               .task = "classification",
                               .input = "table",
                               .options = "{\"x\":\"a\"}",
                               .columns = "[{\"name\":\"a\",\"kind\":\"numeric\",\"missing\":1}]",
                               .expected_sha256 = SHA,
                               .target = "\"class\"",
                               .classes = "[\"a\",\"b\"]",
                               .sha256 = SHA,
                               .files = {{"table", SHA, 9}},
                               .n_files = 1,
                               .created_ms = 1};
    struct claimed_row row = {.sweep = "s",
                              .seed = INT64_MAX,
                              .params = "{}",
                              .inactive = inactive,
                              .n_inactive = 1,
                              .trial = "{\"command\":[\"x\"]}",
                              .metric = "l",
                              .dataset = &data,
                              .grace_ms = 30000};
    JSON_AUTO claims =
        ck_schema("ClaimResult", claims_encode(&(struct claim_list){.rows = &row, .n = 1}));
    row.dataset = NULL;
    row.timeout_ms = 5;
    row.early_stopping = row.gives_ahead = true;
    JSON_AUTO bare =
        ck_schema("ClaimResult", claims_encode(&(struct claim_list){.rows = &row, .n = 1}));
    json_t *first = json_array_get(json_object_get(claims, "trials"), 0),
           *second = json_array_get(json_object_get(bare, "trials"), 0);
    ck_assert(json_is_false(json_object_get(first, "early_stopping")));
    ck_assert(json_is_true(json_object_get(second, "early_stopping")));
    ck_assert(json_is_false(json_object_get(first, "gives_ahead")));
    ck_assert(json_is_true(json_object_get(second, "gives_ahead")));
    row.group = "0123456789abcdef";
    row.shape = "mlp";
    row.bytes_per_member = INT64_C(1) << 40;
    row.max_members = 32;
    JSON_AUTO grouped =
        ck_schema("ClaimResult", claims_encode(&(struct claim_list){.rows = &row, .n = 1}));
    json_t *g = json_object_get(json_array_get(json_object_get(grouped, "trials"), 0), "group");
    ck_assert_int_eq(json_integer_value(json_object_get(g, "bytes_per_member")), INT64_C(1) << 40);
    ck_assert_int_eq(json_integer_value(json_object_get(g, "max_members")), 32);
    JSON_AUTO none = ck_schema("ClaimResult", claims_encode(&(struct claim_list){0}));
    data.classes = NULL;
    data.task = "regression";
    data.input = "image";
    data.image = "{\"height\":1,\"width\":2,\"channels\":3}";
    data.expected_sha256 = NULL;
    data.target = "-1";
    JSON_AUTO list = ck_schema("DatasetList",
                               dataset_page_encode(&(struct dataset_page){.rows = &data, .n = 1}));
}
END_TEST

START_TEST(test_event_and_token)
{
    struct event_row e = {.id = INT64_MAX, .type = "trial.measured", .time_ms = 1};
    JSON_AUTO bare = ck_schema("Event", event_encode(&e));
    e.sweep = "s";
    e.has_number = e.has_value = true;
    e.value = -INFINITY;
    e.attempt = 1;
    e.state = "running";
    e.reason = "r";
    e.runner = "x";
    e.model = "m";
    e.dataset = "d";
    JSON_AUTO full = ck_schema("Event", event_encode(&e));
    ck_assert_str_eq(json_string_value(json_object_get(full, "dataset")), "d");
    ck_assert_str_eq(json_string_value(json_object_get(full, "id")), "9223372036854775807");
    struct token_row t = {.id = "t", .role = ROLE_RUNNER, .created_ms = 1};
    JSON_AUTO page =
        ck_schema("TokenList", token_page_encode(&(struct token_page){.rows = &t, .n = 1}));
}
END_TEST

START_TEST(test_model)
{
    struct model_row m = {.name = "m", .aliases = "{}", .created_ms = 1, .changed_ms = 2};
    JSON_AUTO bare = ck_schema("Model", model_encode(&m));
    ck_assert(json_is_null(json_object_get(bare, "default_version")));
    m.default_version = 3;
    m.aliases = "{\"champion\": 3}";
    JSON_AUTO list =
        ck_schema("ModelList",
                  model_page_encode(&(struct model_page){.rows = &m, .n = 1, .next_cursor = "c"}));
    struct model_version_row v = {.model = "m",
                                  .version = 3,
                                  .sha256 = "00",
                                  .size = 5,
                                  .kind = "ensemble",
                                  .task = "regression",
                                  .input = "image",
                                  .metrics = "{\"rmse\": 1e300, \"val_r2\": \"NaN\"}",
                                  .measured_on = "held-out rows",
                                  .sweep = "s",
                                  .sweep_id = "s-2",
                                  .trials = "[4]",
                                  .aliases = "[\"champion\"]",
                                  .created_ms = 1};
    JSON_AUTO versions =
        ck_schema("ModelVersionList",
                  model_version_page_encode(&(struct model_version_page){.rows = &v, .n = 1}));
    v.inputs = "[{\"name\":\"image\",\"kind\":\"image\",\"missing\":false,\"shape\":[1,2,3]}]";
    v.outputs = "{\"targets\":[\"a\"]}";
    v.members = "[{\"trial\":4,\"attempt\":1,\"seed\":\"9\",\"weight\":1.0}]";
    v.lineage = "{\"sweep\":\"s\",\"sweep_id\":\"s-2\",\"document\":{\"name\":\"s\",\"parameters\":"
                "{\"x\":{\"type\":"
                "\"float\",\"min\":0,\"max\":1}}},\"dataset\":{\"name\":\"d\",\"sha256\":null}}";
    JSON_AUTO whole = ck_schema("ModelVersion", model_version_encode(&v));
    ck_assert_ptr_nonnull(json_object_get(whole, "lineage"));
}
END_TEST

static as_status try_register(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct runner_register r;
    return runner_register_decode(doc, a, &r, err);
}

static as_status try_claim(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct claim_request r;
    int64_t wait = 0;
    return claim_decode(doc, a, &r, &wait, err);
}

static as_status try_heartbeat(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct heartbeat r;
    return heartbeat_decode(doc, a, &r, err);
}

static as_status try_leave(const json_t *doc, struct arena *a, struct as_err *err)
{
    int64_t epoch = 0;
    (void)a;
    return leave_decode(doc, &epoch, err);
}

static as_status try_measure(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct measurement_batch r;
    return measurements_decode(doc, a, &r, err);
}

static as_status try_log(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct log_request r;
    (void)a;
    return log_decode(doc, &r, err);
}

static as_status try_files(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct files_request r;
    return files_decode(doc, a, &r, err);
}

static as_status try_complete(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct completion r;
    return completion_decode(doc, a, &r, err);
}

static as_status try_token(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct token_request r;
    (void)a;
    return token_decode(doc, &r, err);
}

static as_status try_retry(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct retry_request req;
    (void)a;
    return retry_request_decode(doc, &req, err);
}

static as_status try_listening(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct seat_address r;
    (void)a;
    return seat_listening_decode(doc, &r, err);
}

static as_status try_joined(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct seat_joined r;
    (void)a;
    return seat_joined_decode(doc, &r, err);
}

static as_status try_seat_end(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct seat_end r;
    (void)a;
    return seat_end_decode(doc, &r, err);
}

static as_status try_change(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct world_change r;
    return world_change_decode(doc, a, &r, err);
}

static as_status try_version(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct model_request r;
    (void)a;
    return model_request_decode(doc, &r, err);
}

static as_status try_alias(const json_t *doc, struct arena *a, struct as_err *err)
{
    int64_t version;
    (void)a;
    return alias_request_decode(doc, &version, err);
}

static const struct decode_case cases[] = {
    {try_version, "{\"sweep\":\"s\"}", NULL},
    {try_version, "{\"sweep\":\"s\",\"trial\":0}", NULL},
    {try_version, "{\"sweep\":\"s\",\"use\":\"single\"}", NULL},
    {try_version, "{\"trial\":0}", "/sweep"},
    {try_version, "{\"sweep\":\"\"}", "/sweep"},
    {try_version, "{\"sweep\":\"s\",\"trial\":-1}", "/trial"},
    {try_version, "{\"sweep\":\"s\",\"use\":\"best\"}", "/use"},
    {try_version, "{\"sweep\":\"s\",\"trial\":1,\"use\":\"single\"}", "/use"},
    {try_version, "{\"sweep\":\"s\",\"alias\":\"a\"}", "/alias"},
    {try_alias, "{\"version\":1}", NULL},
    {try_alias, "{\"version\":0}", "/version"},
    {try_alias, "{\"version\":\"1\"}", "/version"},
    {try_alias, "{}", "/version"},
    {try_listening, "{\"endpoint\":\"e\",\"address\":\"10.0.0.1\",\"port\":1}", NULL},
    {try_listening, "{\"endpoint\":\"e\",\"address\":\"fd00::1\",\"port\":65535}", NULL},
    {try_listening, "{\"endpoint\":\"e\",\"address\":\"localhost\",\"port\":1}", "/address"},
    {try_listening, "{\"endpoint\":\"\",\"address\":\"10.0.0.1\",\"port\":1}", "/endpoint"},
    {try_listening, "{\"endpoint\":\"e\",\"address\":\"10.0.0.1\",\"port\":0}", "/port"},
    {try_listening, "{\"endpoint\":\"e\",\"address\":\"10.0.0.1\"}", "/port"},
    {try_joined, "{\"epoch\":1,\"step\":0}", NULL},
    {try_joined, "{\"epoch\":0,\"step\":0}", "/epoch"},
    {try_joined, "{\"epoch\":1,\"step\":-1}", "/step"},
    {try_seat_end, "{\"outcome\":\"retry\",\"signal\":9,\"ran_ms\":null,\"step\":null}", NULL},
    {try_seat_end, "{\"outcome\":\"paused\",\"step\":3}", NULL},
    {try_seat_end, "{\"outcome\":\"pruned\"}", NULL},
    {try_seat_end, "{\"outcome\":\"lost\"}", "/outcome"},
    {try_seat_end, "{\"outcome\":\"retry\",\"signal\":0}", "/signal"},
    {try_seat_end, "{\"outcome\":\"retry\",\"metrics\":{}}", "/metrics"},
    {try_change, "{\"epoch\":1,\"seat\":0,\"lost\":[1,2],\"left\":[],\"step\":3}", NULL},
    {try_change, "{\"epoch\":1,\"seat\":0}", NULL},
    {try_change, "{\"epoch\":1,\"seat\":0,\"lost\":[-1]}", "/lost/0"},
    {try_change, "{\"epoch\":1,\"seat\":0,\"left\":[1,\"2\"]}", "/left/1"},
    {try_change, "{\"epoch\":1,\"lost\":[1]}", "/seat"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"max_trials\":2,\"seats\":2}", NULL},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"max_trials\":2,\"seats\":3}", "/seats"},
    {try_heartbeat,
     "{\"epoch\":1,\"attempts\":[{\"sweep\":\"s\",\"number\":0,\"attempt\":1,\"step\":3}]}",
     "/attempts/0"},
    {try_heartbeat,
     "{\"epoch\":1,\"attempts\":[{\"sweep\":\"s\",\"number\":0,\"attempt\":1,\"seat\":-2}]}",
     "/attempts/0/seat"},
    {try_register, "{\"name\":\"r\",\"slots\":1}", NULL},
    {try_register,
     "{\"name\":\"r\",\"slots\":1,\"gpus\":[\"a\"],\"host\":\"h\",\"version\":\"1\","
     "\"resume\":[{\"sweep\":\"s\",\"number\":0,\"attempt\":1}]}",
     NULL},
    {try_register, "{\"slots\":1}", "/name"},
    {try_register, "{\"name\":\"R!\",\"slots\":1}", "/name"},
    {try_register, "{\"name\":\"r\",\"slots\":0}", "/slots"},
    {try_register, "{\"name\":\"r\",\"slots\":1.5}", "/slots"},
    {try_register, "{\"name\":\"r\",\"slots\":1,\"gpus\":[1]}", "/gpus/0"},
    {try_register, "{\"name\":\"r\",\"slots\":1,\"gpu\":[]}", "/gpu"},
    {try_register, "{\"name\":\"r\",\"slots\":1,\"resume\":[{\"sweep\":\"s\",\"number\":0}]}",
     "/resume/0/attempt"},
    {try_register,
     "{\"name\":\"r\",\"slots\":1,\"resume\":[{\"sweep\":\"s\",\"number\":0,"
     "\"attempt\":1,\"x\":1}]}",
     "/resume/0/x"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\"}", NULL},
    {try_claim,
     "{\"epoch\":1,\"claim_id\":\"c\",\"ending\":[{\"sweep\":\"s\",\"number\":0,\"attempt\":1}]}",
     NULL},
    {try_claim,
     "{\"epoch\":1,\"claim_id\":\"c\",\"ending\":[{\"sweep\":\"s\",\"number\":0,\"attempt\":0}]}",
     "/ending/0/attempt"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"ending\":{}}", "/ending"},
    {try_claim, "{\"epoch\":0,\"claim_id\":\"c\"}", "/epoch"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"\"}", "/claim_id"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"wait_ms\":60001}", "/wait_ms"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"max_trials\":0}", "/max_trials"},
    {try_claim,
     "{\"epoch\":1,\"claim_id\":\"c\",\"members\":32,\"memory_bytes\":null,\"fit\":null,"
     "\"measured\":"
     "[{\"shape\":\"mlp\",\"members\":16}]}",
     NULL},
    {try_claim,
     "{\"epoch\":1,\"claim_id\":\"c\",\"memory_bytes\":1,\"fit\":{\"group\":\"g\",\"members\":64}}",
     NULL},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"members\":65}", "/members"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"memory_bytes\":0}", "/memory_bytes"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"fit\":{\"members\":1}}", "/fit/group"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"fit\":{\"group\":\"g\",\"members\":0}}",
     "/fit/members"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"fit\":{\"group\":\"g\",\"members\":1,\"n\":1}}",
     "/fit/n"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"measured\":[{\"shape\":\"\",\"members\":1}]}",
     "/measured/0/shape"},
    {try_claim,
     "{\"epoch\":1,\"claim_id\":\"c\",\"measured\":[{\"shape\":\"s\",\"members\":1,\"x\":1}]}",
     "/measured/0/x"},
    {try_heartbeat, "{\"epoch\":1,\"attempts\":[]}", NULL},
    {try_heartbeat, "{\"epoch\":1}", "/attempts"},
    {try_heartbeat,
     "{\"epoch\":1,\"attempts\":[],\"gpu_faults\":[{\"gpu\":\"GPU-1\",\"reason\":\"r\"}]}", NULL},
    {try_heartbeat, "{\"epoch\":1,\"attempts\":[],\"gpu_faults\":[{\"gpu\":\"GPU-1\"}]}",
     "/gpu_faults/0/reason"},
    {try_heartbeat,
     "{\"epoch\":1,\"attempts\":[],\"gpu_faults\":[{\"gpu\":\"\",\"reason\":\"r\"}]}",
     "/gpu_faults/0/gpu"},
    {try_register, "{\"name\":\"r\",\"slots\":1,\"gpu_faults\":{}}", "/gpu_faults"},
    {try_register, "{\"name\":\"r\",\"slots\":1,\"walls\":[\"cgroup\",\"of_a_later_runner\"]}",
     NULL},
    {try_register, "{\"name\":\"r\",\"slots\":1,\"walls\":\"cgroup\"}", "/walls"},
    {try_register, "{\"name\":\"r\",\"slots\":1,\"walls\":[\"cgroup\",\"No Way\"]}", "/walls/1"},
    {try_register, "{\"name\":\"r\",\"slots\":1,\"walls\":[7]}", "/walls/0"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"gpu_memory_bytes\":0}", "/gpu_memory_bytes"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"gpu_memory_bytes\":5}", NULL},
    {try_heartbeat, "{\"epoch\":1,\"attempts\":{}}", "/attempts"},
    {try_heartbeat, BEAT "}]}", NULL},
    {try_heartbeat, BEAT ",\"phase\":\"preparing\"}]}", NULL},
    {try_heartbeat, BEAT ",\"phase\":\"ended\",\"ran_ms\":0}]}", NULL},
    {try_heartbeat, BEAT ",\"phase\":\"ended\"}]}", NULL},
    {try_heartbeat, BEAT ",\"phase\":\"over\"}]}", "/attempts/0/phase"},
    {try_heartbeat, BEAT ",\"ran_ms\":5}]}", NULL},
    {try_heartbeat, BEAT ",\"phase\":\"preparing\",\"ran_ms\":5}]}", NULL},
    {try_heartbeat, BEAT ",\"phase\":\"running\",\"ran_ms\":-1}]}", "/attempts/0/ran_ms"},
    {try_heartbeat, BEAT ",\"phase\":\"running\",\"ran_ms\":99999999999999999999}]}",
     "/attempts/0/ran_ms"},
    {try_claim, "{\"epoch\":1,\"claim_id\":\"c\",\"ending\":[" HELD ",\"phase\":\"ended\"}]}",
     "/ending/0/phase"},
    {try_leave, "{\"epoch\":1}", NULL},
    {try_leave, "{\"epoch\":\"1\"}", "/epoch"},
    {try_measure, "{\"items\":[]}", NULL},
    {try_measure, "{\"items\":[{\"step\":1,\"metrics\":{\"a\":1,\"b\":\"Infinity\"}}]}", NULL},
    {try_measure, "{\"items\":[{\"step\":1,\"metrics\":{\"a\":\"inf\"}}]}", "/items/0/metrics/a"},
    {try_measure, "{\"items\":[{\"step\":1,\"metrics\":{\"a/b\":null}}]}", "/items/0/metrics/a~1b"},
    {try_measure, "{\"items\":[{\"step\":-1,\"metrics\":{}}]}", "/items/0/step"},
    {try_measure, "{\"items\":[{\"step\":1,\"metrics\":{},\"time\":1}]}", "/items/0/time"},
    {try_measure, "{\"items\":[7]}", "/items/0"},
    {try_measure, "{\"items\":[],\"notes\":{\"phase\":\"warm\"}}", NULL},
    {try_measure, "{\"items\":[],\"notes\":{\"phase\":3}}", "/notes/phase"},
    {try_measure, "{\"items\":[],\"notes\":[]}", "/notes"},
    {try_log, "{\"text\":\"\"}", NULL},
    {try_log, "{\"text\":\"\",\"truncated\":1}", "/truncated"},
    {try_files,
     "{\"kind\":\"artifact\",\"files\":[{\"path\":\"a\",\"size\":1,\"sha256\":\"" SHA "\"}]}",
     NULL},
    {try_files, "{\"kind\":\"other\",\"files\":[]}", "/kind"},
    {try_files, "{\"kind\":\"checkpoint\",\"files\":[],\"lost\":\"gone\"}", NULL},
    {try_files, "{\"kind\":\"checkpoint\",\"files\":[],\"lost\":null}", NULL},
    {try_files, "{\"kind\":\"log\",\"files\":[]}", NULL},
    {try_files, "{\"kind\":\"log\",\"files\":[],\"step\":5}", "/step"},
    {try_files, "{\"kind\":\"log\",\"files\":[],\"lost\":\"gone\"}", "/lost"},
    {try_files, "{\"kind\":\"artifact\",\"files\":[],\"lost\":\"gone\"}", "/lost"},
    {try_files, "{\"kind\":\"checkpoint\",\"files\":[],\"lost\":\"\"}", "/lost"},
    {try_files,
     "{\"kind\":\"artifact\",\"files\":[{\"path\":\"a\",\"size\":-1,\"sha256\":\"" SHA "\"}]}",
     "/files/0/size"},
    {try_files, "{\"kind\":\"artifact\",\"files\":[{\"path\":\"a\",\"size\":1,\"sha256\":\"A\"}]}",
     "/files/0/sha256"},
    {try_complete, "{\"outcome\":\"completed\"}", NULL},
    {try_complete, "{\"outcome\":\"failed\",\"exit_code\":null,\"reason\":null}", NULL},
    {try_complete, "{\"outcome\":\"paused\"}", NULL},
    {try_complete, "{\"outcome\":\"pruned\",\"metrics\":{\"a\":1}}", NULL},
    {try_complete, "{\"outcome\":\"lost\"}", "/outcome"},
    {try_complete, "{\"outcome\":\"failed\",\"exit_code\":\"1\"}", "/exit_code"},
    {try_complete, "{\"outcome\":\"completed\",\"ran_ms\":1,\"metrics\":{\"a\":1},\"step\":2}",
     NULL},
    {try_complete, "{\"outcome\":\"completed\",\"ran_ms\":1.5}", "/ran_ms"},
    {try_complete, "{\"outcome\":\"completed\",\"ran_ms\":1,\"waited_ms\":200}", NULL},
    {try_complete, "{\"outcome\":\"completed\",\"waited_ms\":-1}", "/waited_ms"},
    {try_complete, "{\"outcome\":\"completed\",\"metrics\":{\"a\":null}}", "/metrics/a"},
    {try_complete, "{\"outcome\":\"completed\",\"step\":99999999999999999999}", "/step"},
    {try_token, "{\"role\":\"admin\",\"name\":\"n\",\"ttl\":\"30d\"}", NULL},
    {try_token, "{\"role\":\"root\"}", "/role"},
    {try_retry, "{\"state\":\"failed\"}", NULL},
    {try_retry, "{\"state\":\"cancelled\"}", NULL},
    {try_retry, "{\"state\":\"running\"}", "/state"},
    {try_retry, "{\"number\":1}", "/state"},
};

START_TEST(test_decode)
{
    decode_check(&cases[_i], false);
}
END_TEST

START_TEST(test_decode_values)
{
    struct arena a = {0};
    struct as_err err;
    struct measurement_batch batch;
    struct completion c;
    JSON_AUTO items = decode_parse("{\"items\":[{\"step\":3,\"metrics\":{\"a\":1,\"b\":\"NaN\"}},"
                                   "{\"step\":4,\"metrics\":{\"a\":\"-Infinity\"}}]}");
    ck_ok(measurements_decode(items, &a, &batch, &err), err);
    const struct measurement_list m = batch.points;
    ck_assert_uint_eq(m.n, 3);
    ck_assert_int_eq(m.rows[0].step, 3);
    ck_assert_double_eq(m.rows[0].value, 1.0);
    ck_assert(isnan(m.rows[1].value));
    ck_assert(isinf(m.rows[2].value) && m.rows[2].value < 0);
    JSON_AUTO end = decode_parse("{\"outcome\":\"retry\",\"exit_code\":-9,\"reason\":\"r\"}");
    ck_ok(completion_decode(end, &a, &c, &err), err);
    ck_assert_int_eq(c.outcome, OUTCOME_RETRY);
    ck_assert(c.has_exit_code && c.exit_code == -9);
    JSON_AUTO null = decode_parse("{\"outcome\":\"released\",\"exit_code\":null}");
    ck_ok(completion_decode(null, &a, &c, &err), err);
    ck_assert(!c.has_exit_code && !c.reason && !c.has_ran && c.n_metrics == 0);
    JSON_AUTO full = decode_parse("{\"outcome\":\"completed\",\"ran_ms\":0,\"metrics\":{\"a\":2}}");
    ck_ok(completion_decode(full, &a, &c, &err), err);
    ck_assert(c.has_ran && c.ran_ms == 0 && c.n_metrics == 1 && c.metrics[0].value == 2);
    ck_assert(!c.has_rank);
    JSON_AUTO led =
        decode_parse("{\"outcome\":\"completed\",\"rank\":{\"step\":9,\"sent_bytes\":70}}");
    ck_ok(completion_decode(led, &a, &c, &err), err);
    ck_assert(c.has_rank && c.rank_step == 9 && c.rank_sent_bytes == 70);
    struct heartbeat beat;
    JSON_AUTO said = decode_parse(
        "{\"epoch\":1,\"attempts\":[{\"sweep\":\"a\",\"number\":0,\"attempt\":1},"
        "{\"sweep\":\"a\",\"number\":1,\"attempt\":2,\"phase\":\"ended\",\"ran_ms\":7},"
        "{\"sweep\":\"a\",\"number\":2,\"attempt\":1,\"phase\":\"preparing\"}]}");
    ck_ok(heartbeat_decode(said, &a, &beat, &err), err);
    ck_assert(beat.n == 3 && beat.n_said == 2);
    ck_assert(beat.said[0].phase == RUN_ENDED && beat.said[0].ran_ms == 7);
    ck_assert(beat.said[0].ref.number == 1 && beat.said[0].ref.attempt == 2);
    ck_assert_int_eq(beat.said[1].phase, RUN_PREPARING);
    JSON_AUTO ranks =
        decode_parse("{\"epoch\":1,\"attempts\":[{\"sweep\":\"a\",\"number\":0,\"attempt\":1},"
                     "{\"sweep\":\"a\",\"number\":1,\"attempt\":2,\"seat\":0,\"phase\":\"running\","
                     "\"ran_ms\":7,\"step\":5,\"sent_bytes\":900}]}");
    ck_ok(heartbeat_decode(ranks, &a, &beat, &err), err);
    ck_assert(beat.n == 1 && beat.n_said == 0 && beat.n_seats == 1);
    ck_assert(beat.seats[0].ref.seat == 0 && beat.seats[0].ref.attempt.number == 1);
    ck_assert(beat.seats[0].has_phase && beat.seats[0].phase == RUN_RUNNING);
    ck_assert(beat.seats[0].step == 5 && beat.seats[0].sent_bytes == 900);
    struct seat_end gone;
    JSON_AUTO killed = decode_parse("{\"outcome\":\"retry\",\"signal\":9}");
    ck_ok(seat_end_decode(killed, &gone, &err), err);
    ck_assert(gone.has_exit_code && gone.exit_code == -9 && !gone.has_step && !gone.has_ran);
    JSON_AUTO done = decode_parse("{\"outcome\":\"completed\",\"step\":9,\"sent_bytes\":70}");
    ck_ok(seat_end_decode(done, &gone, &err), err);
    ck_assert(gone.has_step && gone.step == 9 && gone.sent_bytes == 70);
    arena_done(&a);
}
END_TEST

TEST_SUITE()
{
    json_fail_with_mem();
    Suite *s = suite_create("api_codec");
    TCase *tc = tcase_create("codec");
    tcase_add_test(tc, test_sweep);
    tcase_add_test(tc, test_changes_and_additions);
    tcase_add_test(tc, test_trial);
    tcase_add_test(tc, test_runner_and_claim);
    tcase_add_test(tc, test_event_and_token);
    tcase_add_test(tc, test_model);
    tcase_add_loop_test(tc, test_decode, 0, AS_ARRAY_LEN(cases));
    tcase_add_test(tc, test_decode_values);
    suite_add_tcase(s, tc);
    return s;
}
