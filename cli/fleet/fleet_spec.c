/* One table has all fields, so that what is stored, read and checked cannot differ. What a text may
 * be is a set of characters and a form: no set has a quote, a blank, a line end or a control
 * character, but for paths, which the scripts quote. */
#include "cli/fleet/fleet_spec.h"

#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

const char *const fleet_engine_words[] = {"slurm", "kubernetes", "ssh", NULL};

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"
#define ALPHANUMERIC LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS

typedef enum field_form {
    FORM_NUMBER,
    FORM_NAME, /* of Kubernetes: begins and ends with a letter or digit */
    FORM_WORD, /* does not begin with '-' */
    FORM_URL,
    FORM_PATH, /* absolute, or a name that is looked up */
    FORM_SLURM_PATH
} field_form;

struct field {
    const char *name; /* of the option, and in JSON */
    size_t offset;
    field_form form;
    const char *set;     /* of characters; NULL: all printable ones */
    int64_t least, most; /* of a number; of the length of a text */
};

#define TEXT(member, option, form, set, most)                                                      \
    {                                                                                              \
        option, offsetof(struct fleet_spec, member), form, set, 1, most                            \
    }
#define NUMBER(member, option, least, most)                                                        \
    {                                                                                              \
        option, offsetof(struct fleet_spec, member), FORM_NUMBER, NULL, least, most                \
    }
#define SLURM_SET ALPHANUMERIC "_.,:|&*+=@/()[]-"

static const struct field fields[] = {
    NUMBER(engine, "engine", FLEET_SLURM, FLEET_SSH),
    TEXT(name, "name", FORM_NAME, LOWER DIGITS "-", 40),
    TEXT(server, "runner-server", FORM_URL, ALPHANUMERIC ":/._~%?=&@+[]-", 400),
    TEXT(token_file, "runner-token", FORM_PATH, NULL, 1000),
    TEXT(program, "program", FORM_PATH, NULL, 1000),
    TEXT(work, "work", FORM_PATH, NULL, 1000),
    NUMBER(slots, "slots", 1, 1024),
    NUMBER(cpus, "cpus", 0, 4096),
    NUMBER(gpus, "gpus", 0, 64),
    NUMBER(memory_bytes, "memory", 0, INT64_C(1) << 52),
    NUMBER(ranks, "ranks", 1, 1024),
    NUMBER(time_ms, "time", 0, INT64_C(366) * 86400 * 1000),
    NUMBER(idle_exit_ms, "idle-exit", 0, INT64_C(366) * 86400 * 1000),
    TEXT(partition, "partition", FORM_WORD, SLURM_SET, 200),
    TEXT(account, "account", FORM_WORD, SLURM_SET, 200),
    TEXT(qos, "qos", FORM_WORD, SLURM_SET, 200),
    TEXT(constraint, "constraint", FORM_WORD, SLURM_SET, 400),
    TEXT(logs, "logs", FORM_SLURM_PATH, ALPHANUMERIC "_.,:+=@/-", 1000),
    TEXT(image, "image", FORM_WORD, ALPHANUMERIC "._:/@-", 400),
    TEXT(namespace, "namespace", FORM_NAME, LOWER DIGITS "-", 63),
    TEXT(context, "context", FORM_WORD, ALPHANUMERIC "_.,:+=@/-", 400),
    TEXT(pull_secret, "pull-secret", FORM_NAME, LOWER DIGITS "-.", 253),
    TEXT(queue, "queue", FORM_NAME, LOWER DIGITS "-", 63),
};

static const char *text_of(const struct fleet_spec *s, const struct field *f)
{
    return *(const char *const *)(const void *)((const char *)s + f->offset);
}

static int64_t number_of(const struct fleet_spec *s, const struct field *f)
{
    return *(const int64_t *)(const void *)((const char *)s + f->offset);
}

static bool is_edge(char c)
{
    return c && strchr(LOWER DIGITS, c);
}

static bool has_form(const char *text, field_form form)
{
    size_t n = strlen(text);
    switch (form) {
    case FORM_NAME:
        return is_edge(text[0]) && is_edge(text[n - 1]);
    case FORM_URL:
        return as_starts_with(text, "http://") || as_starts_with(text, "https://");
    case FORM_SLURM_PATH:
        return text[0] == '/';
    case FORM_PATH:
        return text[0] == '/' || (!strchr(text, '/') && text[0] != '-');
    case FORM_WORD:
        return text[0] != '-';
    case FORM_NUMBER:
        break;
    }
    return false;
}

/* No control character, and valid UTF-8. */
static bool is_printable(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return false;
    return as_utf8_valid(text, strlen(text));
}

static const char *expected(const struct field *f)
{
    static const char *const forms[] = {
        [FORM_NUMBER] = "a number",
        [FORM_NAME] = "small letters, digits and '-', with a letter or digit at both ends",
        [FORM_WORD] = "letters, digits and punctuation without quotes and blanks, no '-' first",
        [FORM_URL] = "http://… or https://…",
        [FORM_PATH] = "an absolute path, or a name",
        [FORM_SLURM_PATH] = "an absolute path without blanks, quotes and '%'"};
    return forms[f->form];
}

static as_status check_field(const struct fleet_spec *s, const struct field *f, struct as_err *err)
{
    if (f->form == FORM_NUMBER) {
        int64_t v = number_of(s, f);
        return v >= f->least && v <= f->most
                   ? AS_OK
                   : as_fail(err, AS_E_USAGE, "--%s is %lld, expected %lld to %lld", f->name,
                             (long long)v, (long long)f->least, (long long)f->most);
    }
    const char *text = text_of(s, f);
    if (!text)
        return AS_OK;
    size_t n = strlen(text);
    if (n < 1 || n > (size_t)f->most || !is_printable(text) || !has_form(text, f->form) ||
        (f->set && strspn(text, f->set) != n))
        return as_fail(err, AS_E_USAGE, "--%s is '%.80s', expected %s, at most %lld bytes", f->name,
                       is_printable(text) ? text : "(not printable)", expected(f),
                       (long long)f->most);
    return AS_OK;
}

/* A host's name is an argument of ssh: what begins with '-' would be an option. */
static as_status check_hosts(const struct fleet_spec *s, struct as_err *err)
{
    for (size_t i = 0; i < s->n_hosts; i++) {
        const char *h = s->hosts[i];
        size_t n = strlen(h);
        if (n < 1 || n > 255 || h[0] == '-' || strspn(h, ALPHANUMERIC "._@:[]%-") != n)
            return as_fail(err, AS_E_USAGE, "'%.80s' is no host: expected [USER@]NAME", h);
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->hosts[k], h) == 0)
                return as_fail(err, AS_E_USAGE, "the host %.80s is there twice", h);
    }
    return AS_OK;
}

static as_status check_needed(const struct fleet_spec *s, struct as_err *err)
{
    if (!s->name || !s->server)
        return as_fail(err, AS_E_USAGE, "expected --%s", s->name ? "runner-server" : "name");
    if (s->engine == FLEET_KUBERNETES && !s->image)
        return as_fail(err, AS_E_USAGE, "expected --image, the container image of the runners");
    if (s->engine == FLEET_SSH && s->n_hosts == 0)
        return as_fail(err, AS_E_USAGE, "expected hosts: assay launch ssh --name NAME HOST…");
    if (s->engine == FLEET_SSH && s->ranks > 1)
        return as_fail(err, AS_E_USAGE,
                       "--ranks is for slurm and kubernetes: each host has one "
                       "runner, and gangs gather on them");
    return AS_OK;
}

as_status fleet_spec_check(const struct fleet_spec *s, struct as_err *err)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++) {
        as_status st = check_field(s, &fields[i], err);
        if (st < 0)
            return st;
    }
    as_status st = check_hosts(s, err);
    return st < 0 ? st : check_needed(s, err);
}

as_status fleet_spec_json(const struct fleet_spec *s, json_t **ret, struct as_err *err)
{
    JSON_AUTO tree = json_object();
    json_t *hosts = json_array();
    int bad = !tree || !hosts;
    for (size_t i = 0; !bad && i < s->n_hosts; i++)
        bad |= json_array_append_new(hosts, json_string(s->hosts[i]));
    for (size_t i = 0; !bad && i < AS_ARRAY_LEN(fields); i++) {
        const struct field *f = &fields[i];
        const char *text = f->form == FORM_NUMBER ? NULL : text_of(s, f);
        if (f->form == FORM_NUMBER)
            bad |= json_object_set_new(tree, f->name, json_integer((json_int_t)number_of(s, f)));
        else if (text)
            bad |= json_object_set_new(tree, f->name, json_string(text));
    }
    if (!bad && s->n_hosts > 0)
        bad |= json_object_set(tree, "hosts", hosts);
    json_decref(hosts);
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(tree);
    return AS_OK;
}

static as_status parse_field(struct json_fields *from, const struct field *f, struct fleet_spec *s,
                             struct as_err *err)
{
    char *at = (char *)s + f->offset;
    if (f->form == FORM_NUMBER)
        return json_fields_i64(from, f->name, JSON_OPTIONAL, f->least, f->most,
                               (int64_t *)(void *)at, err);
    return json_fields_str(from, f->name, JSON_OPTIONAL, (const char **)(void *)at, err);
}

static as_status parse_hosts(struct json_fields *from, struct fleet_spec *s, struct as_err *err)
{
    json_t *list = NULL;
    size_t i;
    const json_t *host;
    as_status st = json_fields_array(from, "hosts", JSON_OPTIONAL, &list, err);
    if (st < 0)
        return st;
    if (json_array_size(list) > FLEET_HOSTS_MAX)
        return as_fail(err, AS_E_INVAL, "%zu hosts, at most %d", json_array_size(list),
                       FLEET_HOSTS_MAX);
    json_array_foreach(list, i, host)
    {
        if (!json_is_string(host))
            return as_fail_at(err, AS_E_INVAL, "/hosts", "a host is no text");
        s->hosts[s->n_hosts++] = json_string_value(host);
    }
    return AS_OK;
}

as_status fleet_spec_parse(const json_t *tree, struct fleet_spec *ret, struct as_err *err)
{
    struct json_fields from;
    struct fleet_spec s = {.slots = 1, .ranks = 1};
    as_status st = json_fields_init(&from, tree, "", err);
    for (size_t i = 0; st == AS_OK && i < AS_ARRAY_LEN(fields); i++)
        st = parse_field(&from, &fields[i], &s, err);
    if (st == AS_OK)
        st = parse_hosts(&from, &s, err);
    if (st == AS_OK)
        st = json_fields_end(&from, err);
    if (st == AS_OK)
        *ret = s;
    return st;
}
