/* The library that replaces NCCL in emulated tests: ranks of this host, connected by sockets. As
 * the real one it does not block while ranks meet, reports the end of a peer as an error of the
 * communicator, and moves messages when the stream comes to them, which goes on when all have come.
 * EMU_NCCL_FAILS: no communicator opens. EMU_NCCL_COUNT=FILE gets a byte for each group of
 * messages. It links a copy of runtime.cu and uses only emu_enqueue from it. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "kernels/cuda/nccl.cuh"
#include "tests/kernels/emu/emu.cuh"

#define VISIBLE extern "C" __attribute__((visibility("default")))
#define REMOTE_ERROR 6
#define INVALID_USAGE 5

/* What messages on a stream may still look at when the communicator is aborted. */
struct wires {
    std::vector<int> fd; /* by rank; -1: not connected yet */
    nccl_result error;
    bool aborted;
};

struct nccl_comm {
    int n, rank, listening;
    struct nccl_id id;
    std::shared_ptr<struct wires> wires;
};

struct message {
    std::shared_ptr<struct wires> wires;
    int peer;
    bool sends;
    char *at;
    size_t bytes, done;
    cudaStream_t stream;
};

static std::vector<struct message> group; /* between group_start and group_end */

VISIBLE nccl_result ncclGetVersion(int *version)
{
    const char *other = getenv("EMU_NCCL_VERSION");
    *version = other ? (int)strtol(other, NULL, 10) : 22809;
    return NCCL_SUCCESS;
}

VISIBLE const char *ncclGetErrorString(nccl_result r)
{
    return r == REMOTE_ERROR    ? "remote process exited or there was a network error"
           : r == INVALID_USAGE ? "invalid usage"
                                : "unhandled error";
}

VISIBLE nccl_result ncclGetUniqueId(struct nccl_id *id)
{
    memset(id, 0, sizeof *id);
    return getrandom(id->internal, sizeof id->internal, 0) == sizeof id->internal
               ? (nccl_result)NCCL_SUCCESS
               : REMOTE_ERROR;
}

/* ---- meeting ---- */

/* A name without a file. */
static socklen_t address_of(const nccl_comm_t c, int rank, struct sockaddr_un *ret)
{
    uint64_t words[2];
    memcpy(words, c->id.internal, sizeof words);
    *ret = {};
    ret->sun_family = AF_UNIX;
    int n = snprintf(ret->sun_path + 1, sizeof ret->sun_path - 1, "emu-nccl-%016llx%016llx-%d",
                     (unsigned long long)words[0], (unsigned long long)words[1], rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void dial(nccl_comm_t c, int peer)
{
    struct sockaddr_un at;
    socklen_t len = address_of(c, peer, &at);
    int32_t rank = c->rank;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, len) == 0 &&
        write(fd, &rank, sizeof rank) == sizeof rank)
        c->wires->fd[(size_t)peer] = fd;
    else
        (void)close(fd);
}

static void accept_all(nccl_comm_t c)
{
    int fd;
    while ((fd = accept4(c->listening, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        int32_t rank = -1;
        if (read(fd, &rank, sizeof rank) == sizeof rank && rank > c->rank && rank < c->n)
            c->wires->fd[(size_t)rank] = fd;
        else
            (void)close(fd);
    }
}

VISIBLE nccl_result ncclCommInitRank(nccl_comm_t *ret, int n, struct nccl_id id, int rank)
{
    struct sockaddr_un at;
    if (getenv("NCCL_COMM_BLOCKING") == NULL || strcmp(getenv("NCCL_COMM_BLOCKING"), "0") != 0)
        return INVALID_USAGE; /* the real one would block */
    if (getenv("EMU_NCCL_FAILS") != NULL)
        return REMOTE_ERROR;
    std::shared_ptr<struct wires> wires = std::make_shared<struct wires>();
    *wires = {std::vector<int>((size_t)n, -1), NCCL_SUCCESS, false};
    nccl_comm_t c = new nccl_comm{n, rank, -1, id, wires};
    socklen_t len = address_of(c, rank, &at);
    c->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(c->listening, (struct sockaddr *)&at, len) != 0 || listen(c->listening, n) != 0)
        c->wires->error = REMOTE_ERROR;
    *ret = c;
    return NCCL_IN_PROGRESS;
}

VISIBLE nccl_result ncclCommGetAsyncError(nccl_comm_t c, nccl_result *error)
{
    *error = c->wires->error;
    if (c->wires->error != NCCL_SUCCESS)
        return NCCL_SUCCESS;
    accept_all(c);
    for (int r = 0; r < c->n; r++) {
        if (r < c->rank && c->wires->fd[(size_t)r] < 0)
            dial(c, r);
        if (r != c->rank && c->wires->fd[(size_t)r] < 0)
            *error = NCCL_IN_PROGRESS;
    }
    return NCCL_SUCCESS;
}

/* What is on a stream ends, as the real one's kernels do. With EMU_NCCL_ABORT=hangs it never
 * returns. */
VISIBLE nccl_result ncclCommAbort(nccl_comm_t c)
{
    const char *how = getenv("EMU_NCCL_ABORT");
    while (how != NULL && strcmp(how, "hangs") == 0)
        (void)pause();
    c->wires->aborted = true;
    for (int fd : c->wires->fd)
        if (fd >= 0)
            (void)close(fd);
    (void)close(c->listening);
    delete c;
    return NCCL_SUCCESS;
}

/* ---- messages ---- */

static bool is_first(const std::vector<struct message> &all, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (all[k].peer == all[i].peer && all[k].sends == all[i].sends &&
            all[k].done < all[k].bytes)
            return false;
    return true;
}

static bool move_message(struct message *m)
{
    int fd = m->wires->fd[(size_t)m->peer];
    ssize_t got = m->sends
                      ? send(fd, m->at + m->done, m->bytes - m->done, MSG_DONTWAIT | MSG_NOSIGNAL)
                      : recv(fd, m->at + m->done, m->bytes - m->done, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        return false;
    m->done += got > 0 ? (size_t)got : 0;
    return true;
}

/* Moves what can be moved now. Returns whether the stream may go on: all has come, or never
 * will. */
static bool move_some(std::vector<struct message> &all)
{
    bool moved = true, complete = false;
    while (moved && !complete) {
        moved = false;
        complete = true;
        for (size_t i = 0; i < all.size(); i++) {
            struct message *m = &all[i];
            if (m->wires->aborted || m->wires->error != NCCL_SUCCESS)
                return true;
            if (m->done == m->bytes)
                continue;
            size_t before = m->done;
            if (is_first(all, i) && !move_message(m))
                m->wires->error = REMOTE_ERROR;
            moved = moved || m->done > before || m->wires->error != NCCL_SUCCESS;
            complete = complete && m->done == m->bytes;
        }
    }
    return complete;
}

static void count_group(void)
{
    const char *path = getenv("EMU_NCCL_COUNT");
    int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    ssize_t n = fd >= 0 ? write(fd, "+", 1) : 0;
    (void)n;
    if (fd >= 0)
        (void)close(fd);
}

VISIBLE nccl_result ncclGroupStart(void)
{
    group.clear();
    return NCCL_SUCCESS;
}

VISIBLE nccl_result ncclGroupEnd(void)
{
    if (group.empty())
        return NCCL_SUCCESS;
    std::shared_ptr<std::vector<struct message>> all =
        std::make_shared<std::vector<struct message>>();
    all->swap(group);
    count_group();
    emu_enqueue_until((*all)[0].stream, [all] { return move_some(*all); });
    return NCCL_IN_PROGRESS;
}

static nccl_result add(char *at, size_t count, int type, int peer, bool sends, nccl_comm_t c,
                       cudaStream_t stream)
{
    if (type != NCCL_FLOAT32 || peer < 0 || peer >= c->n || peer == c->rank)
        return INVALID_USAGE;
    group.push_back({c->wires, peer, sends, at, count * sizeof(float), 0, stream});
    return NCCL_SUCCESS;
}

VISIBLE nccl_result ncclSend(const void *from, size_t count, int type, int peer, nccl_comm_t c,
                             cudaStream_t stream)
{
    return add((char *)from, count, type, peer, true, c, stream);
}

VISIBLE nccl_result ncclRecv(void *to, size_t count, int type, int peer, nccl_comm_t c,
                             cudaStream_t stream)
{
    return add((char *)to, count, type, peer, false, c, stream);
}
