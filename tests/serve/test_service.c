/* The service over real sockets, with models that assay-train made: what it answers, what it
 * refuses, what is computed together, and that a new version takes the place of the old one without
 * a lost request. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/http/listen.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "serve/service.h"
#include "tests/support/check_main.h"
#include "tests/support/raw_http.h"
#include "tests/support/trained.h"

#define WAIT_MS 60000
#define MAX_ROWS 100
#define MAX_BYTES 100000
#define SWAPS 20
#define FIELDS                                                                                     \
    "\"model\":{\"kind\":\"mlp\",\"layers\":[8]},\"epochs\":2,\"batch_size\":32,"                  \
    "\"optimizer\":{\"kind\":\"sgd\",\"lr\":%s}"

static struct as_err err;
static struct child child[2];
static struct model_cache *cache;
static struct batcher *batcher;
static struct service *service;
static int port;

/* ---- models and server ---- */

static void train(struct child *c, const char *rate)
{
    char fields[300], report[512];
    child_setup(c);
    trained_write_table(c, 300, 3);
    AS_AUTO(as_freep) char *table = child_path(c, "t.csv");
    const struct dataset_paths paths = {.table = table};
    (void)snprintf(fields, sizeof fields, FIELDS, rate);
    trained_model(c, &paths, DATASET_CSV, "y", DATASET_CLASSIFICATION, fields, report,
                  sizeof report);
}

static as_status load(const struct child *c, const char *name, size_t cut)
{
    struct file_image image = {0};
    image.at = child_read(c, "artifacts/model.safetensors", &image.len);
    image.len = cut ? cut : image.len;
    return model_cache_load(cache, name, NULL, &image, &err);
}

static void start_with(unsigned max_per_address)
{
    const struct served_options served = {4, 16};
    struct listener_address address;
    struct service_options opts = {.io_threads = 2,
                                   .max_connections = 2000,
                                   .max_per_address = max_per_address,
                                   .max_rows = MAX_ROWS,
                                   .max_bytes = MAX_BYTES,
                                   .deadline_ms = WAIT_MS,
                                   .version = "1"};
    ck_ok(listen_open("127.0.0.1:0", false, &opts.listen_fd, &address, &err), err);
    port = (int)strtol(strrchr(address.url, ':') + 1, NULL, 10);
    ck_ok(model_cache_create(&served, &cache, &err), err);
    ck_ok(model_cache_expect(cache, "m", &err), err);
    ck_ok(batcher_create(2, 2, 1024, &batcher, &err), err);
    ck_ok(service_start(&opts, cache, batcher, &service, &err), err);
}

static void setup(void)
{
    train(&child[0], "0.1");
    train(&child[1], "0.001");
    start_with(0);
}

static void stop(void)
{
    ck_assert(service_stop(service, WAIT_MS));
    batcher_free(batcher);
    model_cache_free(cache);
}

/* Without a model. */
static void setup_few(void)
{
    start_with(4);
}

static void teardown(void)
{
    stop();
    child_teardown(&child[0]);
    child_teardown(&child[1]);
}

/* ---- requests ---- */

static int ask(const char *head, const char *body, size_t len, struct str *out)
{
    AS_AUTO(str_done) struct str request = {0};
    str_printf(&request, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n", head);
    if (body)
        str_printf(&request, "Content-Length: %zu\r\n", len);
    str_puts(&request, "\r\n");
    if (body)
        str_add(&request, body, len);
    str_clear(out);
    return raw_request(port, request.s, request.len, WAIT_MS, out);
}

static const char *body_of(const struct str *answer)
{
    const char *end = strstr(str_cstr(answer), "\r\n\r\n");
    ck_assert_ptr_nonnull(end);
    return end + 4;
}

static json_t *json_of(const struct str *answer)
{
    json_t *j = NULL;
    const char *body = body_of(answer);
    ck_ok(json_parse(body, strlen(body), &j, &err), err);
    return j;
}

#define INFER "POST /v2/models/m/infer"
#define ROW(size, weight, colour)                                                                  \
    "{\"id\":\"7\",\"inputs\":[{\"name\":\"colour\",\"shape\":[1],\"datatype\":\"BYTES\","         \
    "\"data\":[" colour                                                                            \
    "]},{\"name\":\"size\",\"shape\":[1,1],\"datatype\":\"FP64\",\"data\":[[" size                 \
    "]]},{\"name\":\"weight\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[" weight "]}]}"
#define GOOD ROW("0.25", "50.5", "\"green\"")

static int infer(const char *body, struct str *out)
{
    return ask(INFER, body, strlen(body), out);
}

/* The answer is an error of this status whose message has the part. */
static void refuses(int status, const char *body, const char *part)
{
    AS_AUTO(str_done) struct str out = {0};
    int got = infer(body, &out);
    JSON_AUTO j = json_of(&out);
    const char *message = json_string_value(json_object_get(j, "error"));
    ck_assert_msg(got == status && message && strstr(message, part), "%s\nanswered %s", body,
                  str_cstr(&out));
}

/* What a predictor of the model file says of the row of GOOD. */
static void expected_of(const struct child *c, float ret[3])
{
    AS_AUTO(as_freep) char *path = child_path(c, "artifacts/model.safetensors");
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    float row[3] = {0.25F, 50.5F, 0};
    ck_ok(model_file_read(path, 1 << 26, &f, &err), err);
    ck_ok(predictor_create(f, 0, &p, &err), err);
    ck_ok(predictor_cell(p, 2, "green", 5, &row[2], &err), err);
    ck_ok(predictor_run(p, row, 1, ret, &err), err);
}

static void check_probabilities(const json_t *answer, const float expected[3])
{
    const json_t *data =
        json_object_get(json_array_get(json_object_get(answer, "outputs"), 1), "data");
    ck_assert_uint_eq(json_array_size(data), 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_float_eq((float)json_number_value(json_array_get(data, i)), expected[i]);
}

/* ---- tests ---- */

START_TEST(test_says_what_it_serves)
{
    AS_AUTO(str_done) struct str out = {0};
    ck_assert_int_eq(ask("GET /v2/health/ready", NULL, 0, &out), 503); /* m is expected */
    ck_assert_int_eq(ask("GET /v2/models/m", NULL, 0, &out), 503);
    ck_assert_int_eq(ask("GET /v2/health/live", NULL, 0, &out), 200);
    ck_ok(load(&child[0], "m", 0), err);
    ck_assert_int_eq(ask("GET /v2/health/ready", NULL, 0, &out), 200);
    ck_assert_int_eq(ask("GET /v2", NULL, 0, &out), 200);
    ck_assert_ptr_nonnull(strstr(out.s, "\"binary_tensor_data\""));
    ck_assert_int_eq(ask("GET /v2/", NULL, 0, &out), 200);
    ck_assert_int_eq(ask("GET /v2/models/m", NULL, 0, &out), 200);
    JSON_AUTO j = json_of(&out);
    const json_t *inputs = json_object_get(j, "inputs");
    ck_assert_uint_eq(json_array_size(inputs), 3);
    const json_t *colour = json_array_get(inputs, 2);
    ck_assert_str_eq(json_string_value(json_object_get(colour, "name")), "colour");
    ck_assert_str_eq(json_string_value(json_object_get(colour, "datatype")), "BYTES");
    char path[120];
    (void)snprintf(path, sizeof path, "GET /v2/models/m/versions/%s/ready",
                   json_string_value(json_array_get(json_object_get(j, "versions"), 0)));
    ck_assert_int_eq(ask(path, NULL, 0, &out), 200);
    ck_assert_int_eq(ask("GET /v2/models/m/versions/2/ready", NULL, 0, &out), 404);
    ck_assert_int_eq(ask("GET /v2/models/n", NULL, 0, &out), 404);
    ck_assert_int_eq(ask("GET /v2/models/$m", NULL, 0, &out), 200);
    ck_assert_int_eq(ask("GET /v2/models/$$m", NULL, 0, &out), 404);
    ck_assert_int_eq(ask("GET /v2/models/m/infer", NULL, 0, &out), 405);
    ck_assert_int_eq(ask("POST /v2/models/m", "{}", 2, &out), 405);
    ck_assert_int_eq(ask("POST /v2/models/n/infer", GOOD, strlen(GOOD), &out), 404);
    ck_assert_int_eq(ask("GET /", NULL, 0, &out), 404);
    ck_assert_int_eq(ask("GET /v2/models/m/x/y/z/a/b/c/d/e/f", NULL, 0, &out), 404);
}
END_TEST

START_TEST(test_predicts_as_the_predictor_does)
{
    AS_AUTO(str_done) struct str out = {0};
    float expected[3];
    ck_ok(load(&child[0], "m", 0), err);
    expected_of(&child[0], expected);
    ck_assert_int_eq(infer(GOOD, &out), 200);
    JSON_AUTO j = json_of(&out);
    ck_assert_str_eq(json_string_value(json_object_get(j, "id")), "7");
    ck_assert_str_eq(json_string_value(json_object_get(j, "model_name")), "m");
    check_probabilities(j, expected);
    /* the label of the largest one */
    const char *names[] = {"high", "low", "middle"};
    size_t best = expected[1] > expected[0] ? 1 : 0;
    best = expected[2] > expected[best] ? 2 : best;
    const json_t *labels =
        json_object_get(json_array_get(json_object_get(j, "outputs"), 0), "data");
    ck_assert_str_eq(json_string_value(json_array_get(labels, 0)), names[best]);
    /* missing and unknown cells */
    ck_assert_int_eq(infer(ROW("null", "50.5", "\"violet\""), &out), 200);
    ck_assert_int_eq(infer(ROW("0.5", "null", "\"red\""), &out), 200); /* training lacked none */
}
END_TEST

/* The log has a line for the first number of a column that is imputed, and none for the next. */
START_TEST(test_says_once_that_a_number_is_imputed)
{
    AS_AUTO(str_done) struct str out = {0};
    AS_AUTO(as_freep) char *path = child_path(&child[0], "log");
    AS_AUTO(as_freep) char *text = NULL;
    AS_AUTO(file_closep) int log = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    AS_AUTO(file_closep) int before = dup(STDERR_FILENO);
    size_t len = 0;
    ck_ok(load(&child[0], "m", 0), err);
    ck_assert(log >= 0 && before >= 0 && dup2(log, STDERR_FILENO) >= 0);
    int complete = infer(GOOD, &out), first = infer(ROW("0.5", "null", "\"red\""), &out);
    int second = infer(ROW("0.5", "null", "\"red\""), &out);
    ck_assert(dup2(before, STDERR_FILENO) >= 0);
    ck_assert(complete == 200 && first == 200 && second == 200);
    ck_ok(file_read(path, 100000, &text, &len, &err), err);
    char *line = strstr(text, "a missing number is imputed");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "model=m version="));
    ck_assert_ptr_nonnull(strstr(line, "column=\"weight\" median="));
    ck_assert_ptr_null(strstr(line + 1, "a missing number is imputed"));
}
END_TEST

START_TEST(test_answers_the_outputs_that_are_asked_for)
{
    AS_AUTO(str_done) struct str out = {0}, head = {0};
    float expected[3], got[3];
    ck_ok(load(&child[0], "m", 0), err);
    expected_of(&child[0], expected);
    const char json[] =
        "{\"inputs\":[{\"name\":\"size\",\"shape\":[1],\"datatype\":\"FP32\",\"parameters\":"
        "{\"binary_data_size\":4}},{\"name\":\"weight\",\"shape\":[1],\"datatype\":\"FP64\","
        "\"data\":[50.5]},{\"name\":\"colour\",\"shape\":[1],\"datatype\":\"BYTES\",\"parameters\":"
        "{\"binary_data_size\":9}}],\"outputs\":[{\"name\":\"probabilities\",\"parameters\":"
        "{\"binary_data\":true}}]}";
    const float size = 0.25F;
    char body[sizeof json + 13];
    memcpy(body, json, sizeof json - 1);
    memcpy(body + sizeof json - 1, &size, 4);
    memcpy(body + sizeof json + 3, "\5\0\0\0green", 9);
    str_printf(&head,
               INFER " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                     "Inference-Header-Content-Length: %zu\r\nContent-Length: %zu\r\n\r\n",
               sizeof json - 1, sizeof json + 12);
    str_add(&head, body, sizeof json + 12);
    ck_assert_int_eq(raw_request(port, head.s, head.len, WAIT_MS, &out), 200);
    const char *n = strstr(out.s, "Inference-Header-Content-Length: ");
    ck_assert_ptr_nonnull(n);
    size_t json_len = strtoul(n + 33, NULL, 10);
    const char *answer = body_of(&out);
    ck_assert_uint_eq((size_t)(out.s + out.len - answer), json_len + sizeof got);
    memcpy(got, answer + json_len, sizeof got);
    ck_assert_mem_eq(got, expected, sizeof got);
    refuses(400,
            "{\"inputs\":[{\"name\":\"size\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]}],"
            "\"outputs\":[{\"name\":\"scores\"}]}",
            "no output 'scores', expected 'predictions' or 'probabilities'");
}
END_TEST

START_TEST(test_refuses_what_the_model_does_not_take)
{
    AS_AUTO(str_done) struct str b = {0}, out = {0};
    ck_ok(load(&child[0], "m", 0), err);
    refuses(400,
            "{\"inputs\":[{\"name\":\"size\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]}]}",
            "no tensor for column 'weight'");
    refuses(400,
            "{\"inputs\":[{\"name\":\"wieght\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]}]}",
            "no column 'wieght': expected one tensor for each of its 3 columns, such as 'weight'");
    refuses(400, ROW("0.5", "1", "7"), "is a number, expected a string");
    refuses(
        400,
        "{\"inputs\":[{\"name\":\"colour\",\"shape\":[1],\"datatype\":\"INT32\",\"data\":[7]}]}",
        "tensor 'colour' has the datatype INT32, expected BYTES");
    refuses(
        400,
        "{\"inputs\":[{\"name\":\"size\",\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2]}]}",
        "the shape [1, 2], expected [n] or [n, 1]");
    refuses(400,
            "{\"inputs\":[{\"name\":\"size\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]},"
            "{\"name\":\"weight\",\"shape\":[2],\"datatype\":\"FP32\",\"data\":[1,2]}]}",
            "'weight' has 2 rows, but the first tensor has 1");
    refuses(400,
            "{\"inputs\":[{\"name\":\"size\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]},"
            "{\"name\":\"size\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]}]}",
            "stands twice");
    /* texts of numbers are read as cells of a file */
    refuses(400,
            "{\"inputs\":[{\"name\":\"size\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]},"
            "{\"name\":\"weight\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[\"heavy\"]},"
            "{\"name\":\"colour\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[\"red\"]}]}",
            "weight");
    str_puts(&b,
             "{\"inputs\":[{\"name\":\"size\",\"shape\":[101],\"datatype\":\"FP32\",\"data\":[0");
    for (int i = 0; i < 100; i++)
        str_puts(&b, ",1");
    str_puts(&b, "]}]}");
    refuses(413, b.s, "101 rows, at most 100");
    str_clear(&b);
    for (int i = 0; i < MAX_BYTES + 10; i++)
        str_putc(&b, ' ');
    ck_assert_int_eq(ask(INFER, b.s, b.len, &out), 413);
    ck_assert_ptr_nonnull(strstr(body_of(&out), "\"error\""));
    ck_assert_int_eq(infer(GOOD, &out), 200);
}
END_TEST

/* A body past what I/O threads parse goes through the workers. */
START_TEST(test_large_requests_are_answered)
{
    AS_AUTO(str_done) struct str b = {0}, out = {0};
    float expected[3];
    ck_ok(load(&child[0], "m", 0), err);
    expected_of(&child[0], expected);
    str_puts(&b, GOOD);
    while (b.len < 90000)
        str_putc(&b, ' ');
    ck_assert_int_eq(infer(b.s, &out), 200);
    JSON_AUTO j = json_of(&out);
    check_probabilities(j, expected);
}
END_TEST

/* Dates and texts are BYTES, one tensor for each column of the file. */
START_TEST(test_dates_and_texts)
{
    static const struct dataset_options options = {.comment = '#'};
    static const char date[] =
        "{\"inputs\":[{\"name\":\"when\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":"
        "[\"9.3.2024 10:30\"]},{\"name\":\"note\",\"shape\":[1],\"datatype\":\"BYTES\","
        "\"data\":[\"very good tea\"]},{\"name\":\"colour\",\"shape\":[1],\"datatype\":"
        "\"BYTES\",\"data\":[\"red\"]},{\"name\":\"amount\",\"shape\":[1],\"datatype\":"
        "\"FP32\",\"data\":[1.5]}]}";
    static const char *const cells[] = {"9.3.2024 10:30", "very good tea", "red", "1.5"};
    AS_AUTO(str_done) struct str out = {0};
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    AS_AUTO(as_freep) char *table = child_path(&child[1], "t.csv");
    AS_AUTO(as_freep) char *path = child_path(&child[1], "artifacts/model.safetensors");
    char report[512];
    float expected;
    trained_write_mixed(&child[1], 150, 0);
    trained_model_with(&child[1], &(struct dataset_paths){.table = table}, DATASET_CSV, &options,
                       "y", DATASET_REGRESSION, "\"epochs\":1,\"model\":{\"layers\":[3]}", report,
                       sizeof report);
    ck_ok(load(&child[1], "m", 0), err);
    ck_ok(model_file_read(path, 1 << 26, &f, &err), err);
    ck_ok(predictor_create(f, 0, &p, &err), err);
    AS_AUTO(as_freep) float *row = as_calloc(predictor_inputs(p), sizeof *row);
    for (size_t i = 0, k = 0; i < 4; k = dataset_next_column(model_file_data(f), k), i++)
        ck_ok(predictor_cell(p, k, cells[i], strlen(cells[i]), &row[k], &err), err);
    ck_ok(predictor_run(p, row, 1, &expected, &err), err);
    ck_assert_int_eq(ask("GET /v2/models/m", NULL, 0, &out), 200);
    JSON_AUTO metadata = json_of(&out);
    json_t *inputs = json_object_get(metadata, "inputs");
    ck_assert_uint_eq(json_array_size(inputs), 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(json_string_value(json_object_get(json_array_get(inputs, i), "datatype")),
                         i < 3 ? "BYTES" : "FP32");
    ck_assert_int_eq(infer(date, &out), 200);
    JSON_AUTO j = json_of(&out);
    json_t *data = json_object_get(json_array_get(json_object_get(j, "outputs"), 0), "data");
    ck_assert_float_eq((float)json_number_value(json_array_get(data, 0)), expected);
    refuses(400,
            "{\"inputs\":[{\"name\":\"when\",\"shape\":[1],\"datatype\":\"FP32\","
            "\"data\":[7]}]}",
            "expected BYTES: the column holds dates");
    refuses(400,
            "{\"inputs\":[{\"name\":\"when\",\"shape\":[1],\"datatype\":\"BYTES\","
            "\"data\":[\"2024-01-01\"]}]}",
            "no tensor for column 'note': found 1 tensors, expected one for each of 4");
}
END_TEST

START_TEST(test_a_damaged_version_changes_nothing)
{
    AS_AUTO(str_done) struct str out = {0};
    float expected[3];
    ck_ok(load(&child[0], "m", 0), err);
    expected_of(&child[0], expected);
    ck_assert_int_lt(load(&child[1], "m", 2000), 0);
    model_cache_failed(cache, "m", "a file", &err);
    ck_assert_int_eq(infer(GOOD, &out), 200);
    JSON_AUTO j = json_of(&out);
    check_probabilities(j, expected);
    ck_assert_int_eq(ask("GET /metrics", NULL, 0, &out), 200);
    ck_assert_ptr_nonnull(strstr(out.s, "assay_serve_load_failures_total{model=\"m\"} 1\n"));
    ck_assert_ptr_nonnull(
        strstr(out.s, "assay_serve_requests_total{model=\"m\",code=\"200\"} 1\n"));
}
END_TEST

/* ---- swaps under load ---- */

static atomic_bool is_over;
static atomic_int n_answers;

struct expected {
    char version[2][16];
    float probabilities[2][3];
};

/* One connection after the other, until the swaps are over. */
static void *keep_asking(void *arg)
{
    const struct expected *e = arg;
    AS_AUTO(str_done) struct str out = {0};
    while (!atomic_load(&is_over)) {
        ck_assert_int_eq(infer(GOOD, &out), 200);
        JSON_AUTO j = json_of(&out);
        const char *version = json_string_value(json_object_get(j, "model_version"));
        int which = strcmp(version, e->version[1]) == 0;
        ck_assert_str_eq(version, e->version[which]);
        check_probabilities(j, e->probabilities[which]);
        (void)atomic_fetch_add(&n_answers, 1);
    }
    return NULL;
}

START_TEST(test_swaps_lose_no_request)
{
    struct expected e;
    pthread_t threads[4];
    bool known;
    for (int i = 0; i < 2; i++) {
        expected_of(&child[i], e.probabilities[i]);
        ck_ok(load(&child[i], "m", 0), err);
        struct served *v = model_cache_take(cache, "m", &known);
        (void)snprintf(e.version[i], sizeof e.version[i], "%s", v->version);
        served_unref(v);
    }
    ck_assert_str_ne(e.version[0], e.version[1]);
    ck_assert_float_ne(e.probabilities[0][0], e.probabilities[1][0]);
    for (size_t i = 0; i < AS_ARRAY_LEN(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, keep_asking, &e), 0);
    for (int i = 0; i < SWAPS; i++) {
        ck_ok(load(&child[i % 2], "m", 0), err);
        for (int seen = atomic_load(&n_answers); atomic_load(&n_answers) < seen + 20;)
            clock_sleep_ms(1);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < AS_ARRAY_LEN(threads); i++)
        (void)pthread_join(threads[i], NULL);
}
END_TEST

/* ---- the batcher ---- */

static sem_t gate, n_done;

struct test_job {
    struct batch_job job;
    as_status st;
    float out[3];
    bool waits;
};

static void on_done(struct batch_job *job, as_status st, const float *out, const struct as_err *why)
{
    struct test_job *t = (struct test_job *)(void *)job;
    (void)why;
    t->st = st;
    if (st == AS_OK)
        memcpy(t->out, out, sizeof t->out);
    (void)sem_post(&n_done);
    if (t->waits)
        (void)sem_wait(&gate); /* the worker stands still until the test goes on */
}

START_TEST(test_requests_that_wait_are_computed_together)
{
    struct batcher *b = NULL;
    struct test_job jobs[7];
    static const float row[3] = {0.25F, 50.5F, 1};
    bool known;
    ck_ok(load(&child[0], "m", 0), err);
    struct served *v = model_cache_take(cache, "m", &known);
    (void)sem_init(&gate, 0, 0);
    (void)sem_init(&n_done, 0, 0);
    ck_ok(batcher_create(1, 0, 5, &b, &err), err);
    for (size_t i = 0; i < AS_ARRAY_LEN(jobs); i++)
        jobs[i] = (struct test_job){.job = {.version = v,
                                            .raw = row,
                                            .rows = 1,
                                            .done = on_done,
                                            .deadline_ns = i == 5 ? 1 : INT64_MAX},
                                    .waits = i == 0};
    ck_assert(batcher_submit(b, &jobs[0].job));
    (void)sem_wait(&n_done);
    for (size_t i = 1; i < 6; i++)
        ck_assert(batcher_submit(b, &jobs[i].job));
    ck_assert(!batcher_submit(b, &jobs[6].job)); /* five wait: the queue is full */
    (void)sem_post(&gate);
    for (size_t i = 1; i < 6; i++)
        (void)sem_wait(&n_done);
    batcher_free(b);
    for (size_t i = 1; i < 5; i++) {
        ck_assert_int_eq(jobs[i].st, AS_OK);
        ck_assert_mem_eq(jobs[i].out, jobs[0].out, sizeof jobs[0].out);
    }
    ck_assert_int_eq(jobs[5].st, AS_E_TIMEOUT);
    AS_AUTO(str_done) struct str out = {0};
    model_cache_write_stats(cache, &out);
    ck_assert_ptr_nonnull(strstr(out.s, "batch_rows_sum{model=\"m\"} 5\n"));
    ck_assert_ptr_nonnull(strstr(out.s, "batch_rows_count{model=\"m\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(out.s, "queue_requests{model=\"m\"} 0\n"));
    served_unref(v);
}
END_TEST

/* Silent connections of an address keep none of its requests out. */
START_TEST(test_silent_connections)
{
    AS_AUTO(str_done) struct str out = {0};
    int fds[20];
    for (size_t i = 0; i < AS_ARRAY_LEN(fds); i++)
        fds[i] = raw_connect(port);
    ck_assert_int_eq(ask("GET /v2/health/live", NULL, 0, &out), 200);
    ck_assert(raw_read(fds[0], &out, NULL, WAIT_MS)); /* closed for a newer one */
    for (size_t i = 0; i < AS_ARRAY_LEN(fds); i++)
        (void)close(fds[i]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("serve/service");
    TCase *t = tcase_create("service");
    tcase_set_timeout(t, 0);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_says_what_it_serves);
    tcase_add_test(t, test_predicts_as_the_predictor_does);
    tcase_add_test(t, test_says_once_that_a_number_is_imputed);
    tcase_add_test(t, test_answers_the_outputs_that_are_asked_for);
    tcase_add_test(t, test_refuses_what_the_model_does_not_take);
    tcase_add_test(t, test_large_requests_are_answered);
    tcase_add_test(t, test_dates_and_texts);
    tcase_add_test(t, test_a_damaged_version_changes_nothing);
    tcase_add_test(t, test_swaps_lose_no_request);
    tcase_add_test(t, test_requests_that_wait_are_computed_together);
    suite_add_tcase(s, t);
    t = tcase_create("few connections");
    tcase_add_checked_fixture(t, setup_few, stop);
    tcase_add_test(t, test_silent_connections);
    suite_add_tcase(s, t);
    return s;
}
