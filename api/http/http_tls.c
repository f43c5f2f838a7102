/* TLS by OpenSSL, for sockets that do not block.
 *
 * libmicrohttpd has TLS of its own (GnuTLS), but reads it past recv(), so our checks would not
 * see the bytes (decision 6002), and it cannot take another certificate while it runs.
 *
 * Its event loop is edge-triggered: after a read that did not fill the buffer it waits for the
 * socket, and what OpenSSL holds back would wait for ever. So a read goes on until the buffer is
 * full or the socket is empty.
 *
 * OpenSSL wants a write that could not be finished repeated with the same bytes. They are kept
 * here, so that a caller may come back with other pieces of what it sends. What was sent of a
 * write before its caller offered it again counts for the next ones (`ahead`). */
#include "api/http/http_tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

#define RECORD 16384 /* bytes of one record of TLS, at most */

struct http_tls {
    char *certificate, *key; /* owned; paths */
    pthread_mutex_t lock;    /* guards ctx */
    SSL_CTX *ctx;            /* connections hold references to theirs */
};

struct http_tls_connection {
    SSL *ssl;
    int fd;
    size_t ahead;
    size_t n_waiting; /* bytes of a write that was not finished */
    char waiting[RECORD];
};

/* ---- certificates ---- */

/* Why OpenSSL refused the last call. */
static const char *reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = ERR_reason_error_string(code);
    ERR_clear_error();
    return text ? text : "not readable as PEM";
}

static as_status check_file(const char *what, const char *path, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    as_status st = file_open_regular(path, &fd, err);
    return st < 0 ? as_err_prefix(err, st, "the %s", what) : AS_OK;
}

static as_status check_time(const X509 *x, const char *path, struct as_err *err)
{
    int days = 0, seconds = 0;
    const ASN1_TIME *end = X509_get0_notAfter(x);
    struct tm tm = {0};
    if (X509_cmp_time(end, NULL) > 0 || !ASN1_TIME_diff(&days, &seconds, NULL, end))
        return AS_OK;
    (void)ASN1_TIME_to_tm(end, &tm);
    return as_fail(err, AS_E_INVAL, "the certificate %.150s has expired on %04d-%02d-%02d", path,
                   tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
}

static as_status use_files(SSL_CTX *ctx, const struct http_tls *t, struct as_err *err)
{
    as_status st = check_file("certificate", t->certificate, err);
    if (st == AS_OK)
        st = check_file("key", t->key, err);
    if (st < 0)
        return st;
    if (SSL_CTX_use_certificate_chain_file(ctx, t->certificate) != 1)
        return as_fail(err, AS_E_INVAL, "the certificate %.150s: %s", t->certificate, reason());
    if (SSL_CTX_use_PrivateKey_file(ctx, t->key, SSL_FILETYPE_PEM) != 1)
        return ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH
                   ? as_fail(err, AS_E_INVAL, "the key %.100s does not fit the certificate %.100s",
                             t->key, t->certificate)
                   : as_fail(err, AS_E_INVAL, "the key %.150s: %s", t->key, reason());
    return check_time(SSL_CTX_get0_certificate(ctx), t->certificate, err);
}

static void ctx_free(SSL_CTX **ctx)
{
    SSL_CTX_free(*ctx);
}

/* A file with a passphrase is refused: nobody is there to be asked. */
static int no_passphrase(char *buf, int size, int is_writing, void *arg)
{
    (void)buf;
    (void)size;
    (void)is_writing;
    (void)arg;
    return -1;
}

static as_status make_ctx(const struct http_tls *t, SSL_CTX **ret, struct as_err *err)
{
    AS_AUTO(ctx_free) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx)
        return as_fail_nomem(err);
    ERR_clear_error();
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                       SSL_OP_CIPHER_SERVER_PREFERENCE |
                                       SSL_OP_IGNORE_UNEXPECTED_EOF);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    as_status st = use_files(ctx, t, err);
    ERR_clear_error();
    if (st == AS_OK)
        *ret = as_steal(ctx);
    return st;
}

as_status http_tls_reload(struct http_tls *t, struct as_err *err)
{
    SSL_CTX *fresh = NULL;
    as_status st = make_ctx(t, &fresh, err);
    if (st < 0)
        return st;
    pthread_mutex_lock(&t->lock);
    SSL_CTX *old = t->ctx;
    t->ctx = fresh;
    pthread_mutex_unlock(&t->lock);
    SSL_CTX_free(old);
    return AS_OK;
}

as_status http_tls_create(const char *certificate, const char *key, struct http_tls **ret,
                          struct as_err *err)
{
    AS_AUTO(http_tls_freep) struct http_tls *t = as_calloc(1, sizeof *t);
    if (!t)
        return as_fail_nomem(err);
    (void)pthread_mutex_init(&t->lock, NULL);
    t->certificate = as_strdup(certificate);
    t->key = as_strdup(key);
    if (!t->certificate || !t->key)
        return as_fail_nomem(err);
    as_status st = http_tls_reload(t, err);
    if (st == AS_OK)
        *ret = as_steal(t);
    return st;
}

void http_tls_free(struct http_tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    (void)pthread_mutex_destroy(&t->lock);
    free(t->certificate);
    free(t->key);
    free(t);
}

int http_tls_await_signal(struct http_tls *t, const sigset_t *signals)
{
    for (int sig = 0;;) {
        struct as_err err = {0};
        if (sigwait(signals, &sig) != 0)
            continue;
        if (sig != SIGHUP || !t)
            return sig;
        if (http_tls_reload(t, &err) < 0)
            log_write(LOG_ERROR, "the old certificate stays", "detail=\"%s\"", err.msg);
        else
            log_write(LOG_INFO, "certificate read", "path=%s", t->certificate);
    }
}

/* ---- one connection ---- */

struct http_tls_connection *http_tls_open(struct http_tls *t, int fd)
{
    struct http_tls_connection *c = as_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    pthread_mutex_lock(&t->lock);
    c->ssl = SSL_new(t->ctx);
    pthread_mutex_unlock(&t->lock);
    c->fd = fd;
    if (!c->ssl || SSL_set_fd(c->ssl, fd) != 1) {
        http_tls_close(c);
        return NULL;
    }
    SSL_set_accept_state(c->ssl);
    return c;
}

void http_tls_close(struct http_tls_connection *c)
{
    if (!c)
        return;
    if (c->ssl && SSL_is_init_finished(c->ssl))
        (void)SSL_shutdown(c->ssl);
    ERR_clear_error(); /* of the thread, which has other connections */
    SSL_free(c->ssl);
    free(c);
}

void http_tls_end(struct http_tls_connection *c)
{
    (void)SSL_shutdown(c->ssl);
    ERR_clear_error();
    (void)shutdown(c->fd, SHUT_WR);
}

/* What the socket would have returned. */
static ssize_t failed(const struct http_tls_connection *c, int n)
{
    int kind = SSL_get_error(c->ssl, n), number = errno;
    ERR_clear_error();
    if (kind == SSL_ERROR_ZERO_RETURN || (kind == SSL_ERROR_SYSCALL && number == 0))
        return 0; /* the peer's end of data */
    errno = kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE ? EAGAIN
            : kind == SSL_ERROR_SYSCALL                                 ? number
                                                                        : ECONNRESET;
    return -1;
}

ssize_t http_tls_recv(struct http_tls_connection *c, void *buf, size_t len, int flags)
{
    size_t got = 0;
    if (flags & MSG_PEEK) /* is it the end of data? */
        return SSL_pending(c->ssl) > 0 ? 1 : recvfrom(c->fd, buf, len, flags, NULL, NULL);
    len = len < INT32_MAX ? len : INT32_MAX;
    while (got < len) {
        errno = 0;
        int n = SSL_read(c->ssl, (char *)buf + got, (int)(len - got));
        if (n <= 0)
            return got > 0 ? (ssize_t)got : failed(c, n); /* an error comes again with the next */
        got += (size_t)n;
    }
    return (ssize_t)got;
}

/* Copy at most a record's bytes. */
static size_t gather(const struct iovec *v, size_t n, char *ret)
{
    size_t len = 0;
    for (size_t i = 0; i < n && len < RECORD; i++) {
        size_t take = v[i].iov_len < RECORD - len ? v[i].iov_len : RECORD - len;
        if (take > 0)
            memcpy(ret + len, v[i].iov_base, take);
        len += take;
    }
    return len;
}

ssize_t http_tls_send(struct http_tls_connection *c, const struct iovec *v, size_t n)
{
    char now[RECORD];
    size_t len = gather(v, n, now);
    if (c->ahead > 0) {
        size_t done = len < c->ahead ? len : c->ahead;
        c->ahead -= done;
        return (ssize_t)done;
    }
    bool is_again = c->n_waiting > 0;
    if (len == 0 && !is_again)
        return 0;
    errno = 0;
    int sent = SSL_write(c->ssl, is_again ? c->waiting : now, (int)(is_again ? c->n_waiting : len));
    if (sent <= 0) {
        ssize_t r = failed(c, sent);
        if (r < 0 && errno == EAGAIN && !is_again) {
            memcpy(c->waiting, now, len);
            c->n_waiting = len;
        }
        if (r == 0)
            errno = EPIPE;
        return -1;
    }
    c->n_waiting = 0;
    if ((size_t)sent <= len)
        return sent;
    c->ahead = (size_t)sent - len;
    return (ssize_t)len;
}
