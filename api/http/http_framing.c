/* One function for each part of a message takes one byte and may move to another part. A line ends
 * with CRLF and nothing else: a CR must be followed by LF, and an LF must follow a CR.
 *
 * Only headers that say where a message ends are read: Content-Length and
 * Transfer-Encoding. http_filter.c judges all of them later, when libmicrohttpd has parsed them. */
#include "api/http/http_framing.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define LINE_REST 40 /* bytes of a request line that are not its target: method, version, blanks */

static void refuse(struct http_framing *f, const char *problem)
{
    if (!f->problem)
        f->problem = problem;
}

static void refuse_size(struct http_framing *f, http_refusal kind, const char *problem)
{
    if (!f->problem)
        f->refusal = kind;
    refuse(f, problem);
}

static void enter(struct http_framing *f, http_framing_part part)
{
    f->part = part;
    f->line_bytes = 0;
}

static void begin_message(struct http_framing *f)
{
    *f = (struct http_framing){.part = HTTP_FRAMING_START};
}

static bool is_text(char c)
{
    return ((unsigned char)c >= 0x20 && c != 0x7f) || c == '\t';
}

/* Take a byte of a line. Returns whether the byte belongs to its text. *ret_ended: it was the LF of
 * its CRLF. */
static bool take_line_byte(struct http_framing *f, char c, bool *ret_ended)
{
    bool was_cr = f->is_after_cr;
    f->is_after_cr = c == '\r';
    *ret_ended = was_cr && c == '\n';
    if (*ret_ended || (c == '\r' && !was_cr))
        return false;
    if (was_cr || c == '\n')
        refuse(f, "a line ends with CR or LF alone, expected CRLF");
    else if (!is_text(c))
        refuse(f, "a control character or a NUL is in the head or between chunks");
    f->line_bytes++;
    return !f->problem;
}

static bool name_is(const struct http_framing *f, const char *name)
{
    return f->name_len == strlen(name) && strncasecmp(f->name, name, f->name_len) == 0;
}

static void read_length(struct http_framing *f)
{
    int64_t n = 0;
    bool ok = !f->has_length && f->value_len > 0 && f->value_len <= 18;
    for (size_t i = 0; i < f->value_len && ok; i++) {
        ok = isdigit((unsigned char)f->value[i]);
        n = n * 10 + (f->value[i] - '0');
    }
    if (!ok)
        refuse(f, "Content-Length must be one decimal number");
    f->has_length = true;
    f->length = n;
}

static void end_header(struct http_framing *f)
{
    if (name_is(f, "Content-Length"))
        read_length(f);
    if (name_is(f, "Transfer-Encoding")) {
        if (f->is_chunked || f->value_len != 7 || strncasecmp(f->value, "chunked", 7) != 0)
            refuse(f, "the only Transfer-Encoding known here is chunked");
        f->is_chunked = true;
    }
    if (f->has_length && f->is_chunked)
        refuse(f, "Content-Length and Transfer-Encoding exclude each other");
    f->name_len = f->value_len = f->blanks = 0;
    enter(f, HTTP_FRAMING_NAME);
}

static void end_head(struct http_framing *f)
{
    f->part_bytes = 0;
    f->left = f->length;
    if (f->is_chunked)
        enter(f, HTTP_FRAMING_CHUNK_SIZE);
    else if (f->left > 0)
        enter(f, HTTP_FRAMING_BODY);
    else
        begin_message(f);
}

static void count_head(struct http_framing *f)
{
    if (++f->part_bytes > HTTP_HEAD_MAX)
        refuse_size(f, HTTP_REFUSAL_HEAD, "the head of the request is too large");
}

static void take_name(struct http_framing *f, char c)
{
    bool ended;
    if (f->line_bytes == 0 && (c == ' ' || c == '\t'))
        refuse(f, "a header is continued on a second line");
    if (c == ' ' || c == '\t')
        refuse(f, "a header's name is not a token");
    if (f->line_bytes == 0 && ++f->n_headers > HTTP_HEADERS_MAX + 1) /* 1: the empty line */
        refuse_size(f, HTTP_REFUSAL_HEAD, "the request has too many header lines");
    if (c == ':' && !f->is_after_cr) {
        enter(f, HTTP_FRAMING_VALUE);
        return;
    }
    if (take_line_byte(f, c, &ended)) {
        if (f->name_len < sizeof f->name)
            f->name[f->name_len] = c;
        f->name_len++;
    }
    if (!ended)
        return;
    if (f->line_bytes > 0)
        refuse(f, "a header has no colon");
    else
        end_head(f);
}

/* Keep the value without the blanks around it. A longer value keeps its length only: no header that
 * is read here has such a value. */
static void take_value(struct http_framing *f, char c)
{
    bool ended;
    if (take_line_byte(f, c, &ended)) {
        if (c == ' ' || c == '\t') {
            f->blanks += f->value_len > 0;
            return;
        }
        f->value_len += f->blanks;
        if (f->blanks > 0)
            f->value[0] = ' '; /* blanks inside: no such value is allowed */
        f->blanks = 0;
        if (f->value_len < sizeof f->value)
            f->value[f->value_len] = c;
        f->value_len++;
    }
    if (ended)
        end_header(f);
}

static void take_request_line(struct http_framing *f, char c)
{
    bool ended;
    (void)take_line_byte(f, c, &ended);
    f->is_in_query |= c == '?';
    f->n_parameters += f->is_in_query && (c == '?' || c == '&');
    if (f->n_parameters > HTTP_QUERY_MAX)
        refuse_size(f, HTTP_REFUSAL_TARGET, "the request target has too many parameters");
    if (f->line_bytes > HTTP_TARGET_MAX + LINE_REST)
        refuse_size(f, HTTP_REFUSAL_TARGET, "the request target is too long");
    if (ended)
        enter(f, HTTP_FRAMING_NAME);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void end_chunk_line(struct http_framing *f)
{
    f->part_bytes = 0;
    enter(f, f->left > 0 ? HTTP_FRAMING_CHUNK_DATA : HTTP_FRAMING_TRAILER);
}

static void take_chunk_ext(struct http_framing *f, char c)
{
    bool ended;
    (void)take_line_byte(f, c, &ended);
    if (f->line_bytes > HTTP_CHUNK_LINE_MAX)
        refuse(f, "the extension of a chunk is too long");
    if (ended)
        end_chunk_line(f);
}

static void take_chunk_size(struct http_framing *f, char c)
{
    int digit = f->is_after_cr ? -1 : hex_digit(c);
    if (digit >= 0) {
        if (++f->line_bytes > 15)
            refuse(f, "the size of a chunk is too large");
        else
            f->left = f->left * 16 + digit;
        return;
    }
    if (f->line_bytes == 0 || (c != '\r' && c != ';' && c != ' ' && c != '\t'))
        refuse(f, "the size of a chunk is not a hexadecimal number");
    f->part = HTTP_FRAMING_CHUNK_EXT;
    take_chunk_ext(f, c);
}

static void take_chunk_end(struct http_framing *f, char c)
{
    if (f->is_after_cr ? c != '\n' : c != '\r')
        refuse(f, "a chunk is longer than its size");
    f->is_after_cr = c == '\r';
    if (c == '\n') {
        f->left = 0;
        enter(f, HTTP_FRAMING_CHUNK_SIZE);
    }
}

static void take_trailer(struct http_framing *f, char c)
{
    bool ended;
    (void)take_line_byte(f, c, &ended);
    if (++f->part_bytes > HTTP_TRAILER_MAX)
        refuse(f, "the trailer is too large");
    if (!ended)
        return;
    if (f->line_bytes == 0)
        begin_message(f);
    else
        f->line_bytes = 0;
}

/* Empty lines between messages are skipped. */
static void take_start(struct http_framing *f, char c)
{
    if (f->is_after_cr && c != '\n')
        refuse(f, "a line ends with CR or LF alone, expected CRLF");
    if (c == '\r' || (c == '\n' && f->is_after_cr)) {
        f->is_after_cr = c == '\r';
        return;
    }
    enter(f, HTTP_FRAMING_LINE);
    take_request_line(f, c);
}

static void take_byte(struct http_framing *f, char c)
{
    switch (f->part) {
    case HTTP_FRAMING_START:
        take_start(f, c);
        break;
    case HTTP_FRAMING_LINE:
        take_request_line(f, c);
        break;
    case HTTP_FRAMING_NAME:
        take_name(f, c);
        break;
    case HTTP_FRAMING_VALUE:
        take_value(f, c);
        break;
    case HTTP_FRAMING_CHUNK_SIZE:
        take_chunk_size(f, c);
        break;
    case HTTP_FRAMING_CHUNK_EXT:
        take_chunk_ext(f, c);
        break;
    case HTTP_FRAMING_CHUNK_END:
        take_chunk_end(f, c);
        break;
    case HTTP_FRAMING_TRAILER:
        take_trailer(f, c);
        break;
    case HTTP_FRAMING_BODY:
    case HTTP_FRAMING_CHUNK_DATA:
        break; /* skip_body() */
    }
}

/* Skip bytes of a body; returns how many. */
static size_t skip_body(struct http_framing *f, size_t len)
{
    size_t n = (uint64_t)f->left < len ? (size_t)f->left : len;
    f->left -= (int64_t)n;
    if (f->left == 0 && f->part == HTTP_FRAMING_BODY)
        begin_message(f);
    else if (f->left == 0)
        enter(f, HTTP_FRAMING_CHUNK_END);
    return n;
}

size_t http_framing_follow(struct http_framing *f, const char *bytes, size_t len)
{
    size_t begun = 0; /* where the last message that is whole ended in these bytes */
    for (size_t i = 0; i < len;) {
        bool was_between = f->part == HTTP_FRAMING_START;
        if (f->part == HTTP_FRAMING_BODY || f->part == HTTP_FRAMING_CHUNK_DATA) {
            i += skip_body(f, len - i);
        } else {
            take_byte(f, bytes[i++]);
            if (f->part >= HTTP_FRAMING_LINE && f->part <= HTTP_FRAMING_VALUE)
                count_head(f);
        }
        if (f->problem)
            return begun;
        if (f->part == HTTP_FRAMING_START && !was_between)
            begun = i;
    }
    return len;
}
