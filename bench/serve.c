/* Serving: requests per second and their times over loopback with 8 clients, one row at a time and
 * 64 rows at a time, with an MLP of three hidden layers. The floor is the same HTTP transport that
 * answers the same requests with a fixed body of the same size, in the same run. */
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/http/http.h"
#include "api/http/listen.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/opt.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "bench/serve/load.h"
#include "data/formats/npy.h"
#include "tests/support/roots.h"
#include "tests/support/trained.h"

#define COLUMNS 30
#define CLASSES 10
#define ROWS 4000
#define CLIENTS 8
#define MODEL                                                                                      \
    "\"model\":{\"kind\":\"mlp\",\"layers\":[64,64,64]},\"epochs\":2,\"batch_size\":64,"           \
    "\"optimizer\":{\"kind\":\"adamw\",\"lr\":0.001}"

static struct as_err err;

static void must(as_status st)
{
    if (st == AS_OK)
        return;
    (void)fprintf(stderr, "serve: %s\n", err.msg);
    exit(EXIT_FAILURE);
}

/* ---- the servers ---- */

struct process {
    pid_t pid;
    int port;
};

static int read_port(const char *address_file, pid_t pid)
{
    for (int i = 0; i < 2000; i++) {
        AS_AUTO(as_freep) char *text = NULL;
        size_t len = 0;
        if (file_read(address_file, 4096, &text, &len, NULL) == AS_OK && strchr(text, '\n'))
            return (int)strtol(strrchr(text, ':') + 1, NULL, 10);
        if (waitpid(pid, NULL, WNOHANG) == pid)
            break;
        clock_sleep_ms(10);
    }
    (void)fprintf(stderr, "serve: the server did not start\n");
    exit(EXIT_FAILURE);
}

static struct process start_program(const char *dir, const char *model)
{
    char program[600], address[300], argument[600];
    (void)snprintf(program, sizeof program, "%s/serve/assay-serve", build_root());
    (void)snprintf(address, sizeof address, "%s/address", dir);
    (void)snprintf(argument, sizeof argument, "m=%s", model);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl(program, "assay-serve", argument, "--listen", "127.0.0.1:0", "--address-file",
                    address, "--die-with-parent", "--log-level", "warn", (char *)NULL);
        _exit(127);
    }
    return (struct process){pid, read_port(address, pid)};
}

/* ---- the floor: a fixed body ---- */

static char fixed[1 << 20];
static size_t fixed_len;

static void floor_head(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    x->body_kind = HTTP_BODY_MEMORY;
    x->body_max = 32 << 20;
}

static void floor_request(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    x->answer.status = 200;
    x->answer.content_type = "application/json";
    x->answer.bytes = fixed;
    x->answer.len = fixed_len;
    http_release(x);
}

static void floor_refusal(void *ctx, struct http_exchange *x, const struct as_err *why)
{
    (void)ctx;
    (void)why;
    x->answer.status = 400;
}

static void floor_end(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    (void)x;
}

static void floor_gone(void *ctx)
{
    (void)ctx;
}

static struct process start_floor(size_t answer_len)
{
    struct listener_address address;
    struct http_options opts = http_options_default();
    struct http_server *server = NULL;
    const struct http_app app = {NULL,          floor_head, floor_request,
                                 floor_refusal, floor_end,  floor_gone};
    must(listen_open("127.0.0.1:0", false, &opts.listen_fd, &address, &err));
    fixed_len = answer_len < sizeof fixed ? answer_len : sizeof fixed;
    memset(fixed, 'x', fixed_len);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        must(http_start(&opts, &app, &server, &err));
        for (;;)
            (void)pause();
    }
    (void)close(opts.listen_fd);
    return (struct process){pid, (int)strtol(strrchr(address.url, ':') + 1, NULL, 10)};
}

static void stop(struct process p)
{
    (void)kill(p.pid, SIGTERM);
    (void)waitpid(p.pid, NULL, 0);
}

/* ---- requests ---- */

static void add_values(struct str *b, size_t rows)
{
    struct rng r;
    rng_init(&r, 1, 9);
    for (size_t i = 0; i < rows * COLUMNS; i++)
        str_printf(b, "%s%.4f", i ? "," : "", rng_uniform(&r) - 0.5);
}

static void json_request(struct str *b, size_t rows)
{
    AS_AUTO(str_done) struct str body = {0};
    str_printf(
        &body,
        "{\"inputs\":[{\"name\":\"input\",\"shape\":[%zu,%d],\"datatype\":\"FP32\",\"data\":[",
        rows, COLUMNS);
    add_values(&body, rows);
    str_puts(&body, "]}]}");
    str_printf(b,
               "POST /v2/models/m/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
               "application/json\r\nContent-Length: %zu\r\n\r\n%s",
               body.len, body.s);
}

static void binary_request(struct str *b, size_t rows)
{
    AS_AUTO(str_done) struct str json = {0};
    struct rng r;
    size_t size = rows * COLUMNS * sizeof(float);
    str_printf(&json,
               "{\"inputs\":[{\"name\":\"input\",\"shape\":[%zu,%d],\"datatype\":\"FP32\","
               "\"parameters\":{\"binary_data_size\":%zu}}],\"parameters\":{\"binary_data_output\":"
               "true}}",
               rows, COLUMNS, size);
    str_printf(b,
               "POST /v2/models/m/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
               "application/octet-stream\r\nInference-Header-Content-Length: %zu\r\n"
               "Content-Length: %zu\r\n\r\n%s",
               json.len, json.len + size, json.s);
    rng_init(&r, 1, 9);
    for (size_t i = 0; i < rows * COLUMNS; i++) {
        float v = (float)(rng_uniform(&r) - 0.5);
        str_add(b, (const char *)&v, sizeof v);
    }
}

/* ---- cases ---- */

/* Processor time that a process has used, in microseconds: unlike rates, it does not depend on what
 * else the machine does. */
static double used_us(pid_t pid)
{
    clockid_t clock;
    struct timespec ts = {0};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
        return NAN;
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

struct measured {
    struct load_result load;
    double us;         /* processor time of the server for each request */
    double clients_us; /* and of the clients, which are this process */
};

static struct measured load(struct process p, const struct str *request, double seconds)
{
    double before = used_us(p.pid), mine = used_us(getpid());
    struct load_result r = load_run(p.port, request->s, request->len, CLIENTS, seconds);
    return (struct measured){r, (used_us(p.pid) - before) / (double)r.n_all,
                             (used_us(getpid()) - mine) / (double)r.n_all};
}

static void measure(const char *name, struct process p, const struct str *request, size_t rows,
                    size_t answer_len, double seconds)
{
    char text[80], note[120];
    struct process bare = start_floor(answer_len);
    struct measured floor = load(bare, request, seconds);
    stop(bare);
    struct measured r = load(p, request, seconds);
    (void)snprintf(note, sizeof note, "p50 %.2f ms, longest %.2f ms", r.load.p50_ms, r.load.max_ms);
    (void)snprintf(text, sizeof text, "%s, %d clients", name, CLIENTS);
    bench_report(text, r.load.per_second * (double)rows, rows == 1 ? "requests/s" : "rows/s",
                 floor.load.per_second * (double)rows, NAN, NULL, note);
    (void)snprintf(text, sizeof text, "%s, p99", name);
    bench_report(text, r.load.p99_ms, "ms", floor.load.p99_ms, NAN, NULL, NULL);
    (void)snprintf(text, sizeof text, "%s, processor time of a request", name);
    bench_report(text, r.us, "us", floor.us, NAN, NULL, NULL);
    (void)snprintf(text, sizeof text, "%s, processor time of the clients", name);
    bench_report(text, r.clients_us, "us", floor.clients_us, NAN, NULL, NULL);
}

static void write_data(const struct child *c, const char *x_path, const char *y_path)
{
    const size_t shape[] = {ROWS, COLUMNS}, n = ROWS;
    AS_AUTO(as_freep) float *x = as_calloc(ROWS * COLUMNS, sizeof *x);
    AS_AUTO(as_freep) int32_t *y = as_calloc(ROWS, sizeof *y);
    struct rng r;
    (void)c;
    rng_init(&r, 1, 4);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(rng_uniform(&r) - 0.5);
    for (size_t i = 0; i < ROWS; i++)
        y[i] = (int32_t)(i % CLASSES);
    must(npy_write(x_path, NPY_F4, shape, 2, x, &err));
    must(npy_write(y_path, NPY_I4, &n, 1, y, &err));
}

int main(int argc, char **argv)
{
    double seconds = 5;
    const struct opt more[] = {
        {"seconds", 0, OPT_DOUBLE, &seconds, "N", NULL, "time of each case (5)"}, {0}};
    if (!bench_start_with("serve", "requests per second of assay-serve over loopback", more, argc,
                          argv))
        return bench_exit();
    struct child child;
    char report[512];
    child_setup(&child);
    AS_AUTO(as_freep) char *x = child_path(&child, "x.npy");
    AS_AUTO(as_freep) char *y = child_path(&child, "y.npy");
    AS_AUTO(as_freep) char *model = child_path(&child, "artifacts/model.safetensors");
    const struct dataset_paths paths = {.features = x, .targets = y};
    write_data(&child, x, y);
    trained_model(&child, &paths, DATASET_NPY, NULL, DATASET_CLASSIFICATION, MODEL, report,
                  sizeof report);
    struct process p = start_program(child.dir, model);
    AS_AUTO(str_done) struct str one = {0}, many = {0}, binary = {0};
    json_request(&one, 1);
    json_request(&many, 64);
    binary_request(&binary, 64);
    measure("one row", p, &one, 1, 400, seconds);
    measure("64 rows, JSON", p, &many, 64, 9000, seconds);
    measure("64 rows, binary", p, &binary, 64, 3200, seconds);
    stop(p);
    child_teardown(&child);
    return bench_exit();
}
