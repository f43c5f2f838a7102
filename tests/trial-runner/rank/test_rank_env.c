/* What a rank of a user's program sees: torchrun's environment, the hostfile, its address. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "trial-runner/process/rank_address.h"
#include "trial-runner/rank/rank_env.h"

/* Seats 0, 2, 3, 7 on the runners a, b, a, c; a and c are on one host. */
static const char four[] =
    "{\"epoch\":1,\"state\":\"running\",\"restart\":2,\"max_restarts\":5,\"members\":["
    "{\"seat\":0,\"runner\":\"a\",\"host\":\"h1\",\"address\":\"10.0.0.1\",\"port\":4001,"
    "\"endpoint\":\"10.0.0.1:4001 rendezvous=4100\"},"
    "{\"seat\":2,\"runner\":\"b\",\"host\":\"h2\",\"address\":\"10.0.0.2\",\"port\":4002},"
    "{\"seat\":3,\"runner\":\"a\",\"host\":\"h1\",\"address\":\"10.0.0.1\",\"port\":4003},"
    "{\"seat\":7,\"runner\":\"c\",\"host\":\"h1\",\"address\":\"10.0.0.1\",\"port\":4004}]}";

static void read_world(const char *text, struct rank_world *w)
{
    struct as_err err = {0};
    JSON_AUTO j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    ck_ok(rank_world_parse(j, w, &err), err);
}

START_TEST(the_environment_is_that_of_torchrun)
{
    static const struct {
        int64_t seat;
        const char *name, *value;
    } cases[] = {
        {0, "RANK", "0"},
        {0, "LOCAL_RANK", "0"},
        {0, "LOCAL_WORLD_SIZE", "2"},
        {0, "GROUP_RANK", "0"},
        {2, "RANK", "1"},
        {2, "LOCAL_RANK", "0"},
        {2, "LOCAL_WORLD_SIZE", "1"},
        {2, "GROUP_RANK", "1"},
        {3, "RANK", "2"},
        {3, "LOCAL_RANK", "1"},
        {3, "LOCAL_WORLD_SIZE", "2"},
        {3, "GROUP_RANK", "0"},
        {7, "RANK", "3"},
        {7, "LOCAL_RANK", "0"},
        {7, "GROUP_RANK", "2"},
        {7, "WORLD_SIZE", "4"},
        {7, "GROUP_WORLD_SIZE", "3"},
        {7, "ROLE_RANK", "3"},
        {7, "ROLE_WORLD_SIZE", "4"},
        {7, "ROLE_NAME", "default"},
        {7, "MASTER_ADDR", "10.0.0.1"},
        {7, "MASTER_PORT", "4001"},
        {7, "TORCHELASTIC_RUN_ID", "s/12.3"},
        {7, "TORCHELASTIC_RESTART_COUNT", "2"},
        {7, "TORCHELASTIC_MAX_RESTARTS", "5"},
        {0, "HOROVOD_CROSS_RANK", "0"},
        {0, "HOROVOD_CROSS_SIZE", "3"}, /* a, b and c have a local rank 0 */
        {2, "HOROVOD_CROSS_RANK", "1"},
        {3, "HOROVOD_RANK", "2"},
        {3, "HOROVOD_SIZE", "4"},
        {3, "HOROVOD_LOCAL_RANK", "1"},
        {3, "HOROVOD_LOCAL_SIZE", "2"},
        {3, "HOROVOD_CROSS_RANK", "0"},
        {3, "HOROVOD_CROSS_SIZE", "1"}, /* a alone has a local rank 1 */
        {7, "HOROVOD_CROSS_RANK", "2"},
        {7, "HOROVOD_CONTROLLER", "gloo"},
        {7, "HOROVOD_CPU_OPERATIONS", "gloo"},
        {7, "HOROVOD_HOSTNAME", "c"},
        {7, "HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.0.0.1"},
        {7, "HOROVOD_GLOO_RENDEZVOUS_PORT", "4100"},
        {7, "ASSAY_RANK", "3"},
        {7, "ASSAY_RANKS", "4"},
        {7, "ASSAY_HOSTFILE", "/w/hostfile"},
    };
    struct rank_world w = {0};
    struct as_err err = {0};
    read_world(four, &w);
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char *base[] = {NULL};
        AS_AUTO(child_env_done) struct child_env e = {0};
        struct attempt_id id = {.sweep = "s", .number = 12, .attempt = 3, .seat = cases[i].seat};
        ck_ok(child_env_init(&e, base, &err), err);
        ck_ok(rank_env_set(&e, &w, &id, "/w/hostfile", false, &err), err);
        ck_assert_msg(as_streq(child_env_get(&e, cases[i].name), cases[i].value), "%s of seat %d",
                      cases[i].name, (int)cases[i].seat);
    }
    rank_world_done(&w);
}
END_TEST

START_TEST(who_is_no_member_gets_none)
{
    char *base[] = {NULL};
    struct rank_world w = {0};
    struct as_err err = {0};
    AS_AUTO(child_env_done) struct child_env e = {0};
    struct attempt_id id = {.sweep = "s", .number = 1, .attempt = 1, .seat = 1};
    read_world(four, &w);
    ck_ok(child_env_init(&e, base, &err), err);
    ck_fails(rank_env_set(&e, &w, &id, "f", false, &err), AS_E_INVAL, err, "seat 1");
    rank_world_done(&w);
    read_world("{\"epoch\":1,\"state\":\"running\",\"members\":[{\"seat\":1}]}", &w);
    ck_fails(rank_env_set(&e, &w, &id, "f", false, &err), AS_E_INVAL, err, "address");
    rank_world_done(&w);
}
END_TEST

/* mpirun passes its own environment on: horovodrun's processes would all believe to be rank 0. */
START_TEST(a_launcher_gets_no_ranks_of_horovod)
{
    char *base[] = {NULL};
    struct rank_world w = {0};
    struct as_err err = {0};
    AS_AUTO(child_env_done) struct child_env e = {0};
    struct attempt_id id = {.sweep = "s", .number = 1, .attempt = 1, .seat = 0};
    read_world(four, &w);
    ck_ok(child_env_init(&e, base, &err), err);
    ck_ok(rank_env_set(&e, &w, &id, "f", true, &err), err);
    ck_assert_ptr_null(child_env_get(&e, "HOROVOD_RANK"));
    ck_assert_str_eq(child_env_get(&e, "WORLD_SIZE"), "4");
    rank_world_done(&w);
}
END_TEST

START_TEST(a_hostfile_has_a_line_for_each_host)
{
    AS_AUTO(str_done) struct str text = {0};
    struct rank_world w = {0};
    read_world(four, &w);
    rank_env_hostfile(&w, &text);
    ck_assert_str_eq(str_cstr(&text), "h1 slots=3\nh2 slots=1\n");
    rank_world_done(&w);
    read_world("{\"epoch\":1,\"state\":\"running\",\"members\":["
               "{\"seat\":1,\"host\":null,\"address\":\"10.0.0.9\",\"port\":1}]}",
               &w);
    str_clear(&text);
    rank_env_hostfile(&w, &text);
    ck_assert_str_eq(str_cstr(&text), "10.0.0.9 slots=1\n");
    rank_world_done(&w);
}
END_TEST

START_TEST(the_address_is_that_of_the_way_to_the_server)
{
    char address[RANK_ADDRESS_MAX];
    struct as_err err = {0};
    ck_ok(rank_address_find("http://127.0.0.1:7117", address, &err), err);
    ck_assert_str_eq(address, "127.0.0.1");
    ck_ok(rank_address_find("http://user:word@127.0.0.9/prefix", address, &err), err);
    ck_assert_str_eq(address, "127.0.0.1");
    ck_fails(rank_address_find("http:///x", address, &err), AS_E_INVAL, err, "names no host");
    ck_fails(rank_address_find("http://no-such-host.invalid", address, &err), AS_E_UNAVAILABLE, err,
             "no-such-host");
    if (rank_address_find("http://[::1]:7117", address, &err) == AS_OK) /* a machine with IPv6 */
        ck_assert_str_eq(address, "::1");
    ck_assert(rank_address_valid("10.1.2.3") && rank_address_valid("fe80::1"));
    ck_assert(!rank_address_valid("localhost") && !rank_address_valid("") &&
              !rank_address_valid("10.1.2") && !rank_address_valid("fe80::1%eth0"));
}
END_TEST

START_TEST(a_free_port_can_be_bound)
{
    struct as_err err = {0};
    int64_t port = 0;
    ck_ok(rank_address_free_port("127.0.0.1", &port, &err), err);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    ck_assert(port > 0 && inet_pton(AF_INET, "127.0.0.1", &at.sin_addr) == 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    (void)close(fd);
    ck_assert_int_eq(rank_address_free_port("203.0.113.7", &port, &err), AS_E_IO);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("rank_env");
    TCase *t = tcase_create("rank_env");
    tcase_add_test(t, the_environment_is_that_of_torchrun);
    tcase_add_test(t, who_is_no_member_gets_none);
    tcase_add_test(t, a_launcher_gets_no_ranks_of_horovod);
    tcase_add_test(t, a_hostfile_has_a_line_for_each_host);
    tcase_add_test(t, the_address_is_that_of_the_way_to_the_server);
    tcase_add_test(t, a_free_port_can_be_bound);
    suite_add_tcase(s, t);
    return s;
}
