/* Specs of fleets, as they are stored and then rendered: whatever a text has in it, what is
 * accepted is rendered as one word of the shell, no text adds a line to a script, and what is
 * stored is read back as it was. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/fleet/fleet_spec.h"
#include "cli/fleet/kubernetes_objects.h"
#include "cli/fleet/slurm_script.h"
#include "cli/fleet/ssh_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so)
{
    if (!is_so)
        abort();
}

/* The word of a shell that begins at s, as the shell reads it; *end is behind it. */
static void read_word(const char *s, const char **end, struct str *word)
{
    bool quoted = false;
    for (; *s && (quoted || (*s != '\n' && *s != ' ')); s++) {
        if (*s == '\'')
            quoted = !quoted;
        else if (*s == '\\' && !quoted)
            str_putc(word, *++s);
        else
            str_putc(word, *s);
    }
    must(!quoted);
    *end = s;
}

/* The line that begins with `name` has the text as its only word. */
static void check_export(const char *script, const char *name, const char *text)
{
    AS_AUTO(str_done) struct str word = {0};
    const char *line = strstr(script, name), *end = NULL;
    if (!text)
        return;
    must(line != NULL);
    read_word(line + strlen(name), &end, &word);
    must(*end == '\n' && strcmp(str_cstr(&word), text) == 0);
}

static size_t count_lines(const struct str *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++)
        n += b->s[i] == '\n';
    return n;
}

/* The same fields with plain texts. */
static struct fleet_spec plain_of(const struct fleet_spec *s)
{
    struct fleet_spec p = *s;
    const char **texts[] = {&p.token_file, &p.program, &p.work, &p.partition,
                            &p.account,    &p.qos,     &p.logs, &p.constraint};
    p.name = "n";
    p.server = "http://h";
    for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++)
        if (*texts[i])
            *texts[i] = "/x";
    return p;
}

static void check_slurm(const struct fleet_spec *s)
{
    AS_AUTO(str_done) struct str b = {0}, plain = {0};
    struct fleet_spec p = plain_of(s);
    if (!s->logs || !s->token_file)
        return;
    slurm_script(s, 3, &b);
    slurm_script(&p, 3, &plain);
    must(count_lines(&b) == count_lines(&plain));
    check_export(str_cstr(&b), "\nexport ASSAY_SERVER=", s->server);
    check_export(str_cstr(&b), "\nexport ASSAY_TOKEN_FILE=", s->token_file);
    check_export(str_cstr(&b), "\nprogram=", s->program);
    check_export(str_cstr(&b), "\nwork=", s->work);
}

static void check_ssh(const struct fleet_spec *s)
{
    AS_AUTO(str_done) struct str b = {0}, plain = {0};
    struct fleet_spec p = plain_of(s);
    ssh_script(s, SSH_START, s->n_hosts ? s->hosts[0] : NULL, "token", &b);
    ssh_script(&p, SSH_START, s->n_hosts ? s->hosts[0] : NULL, "token", &plain);
    must(count_lines(&b) == count_lines(&plain));
    check_export(str_cstr(&b), "\nexport ASSAY_SERVER=", s->server);
    check_export(str_cstr(&b), "\nbase=", s->work);
}

static void check_kubernetes(const struct fleet_spec *s)
{
    JSON_AUTO job = NULL;
    AS_AUTO(as_freep) char *text = NULL;
    JSON_AUTO again = NULL;
    if (!s->image)
        return;
    must(kubernetes_job(s, "0", &job, NULL) == AS_OK);
    text = json_format(job);
    must(text && json_parse(text, strlen(text), &again, NULL) == AS_OK && json_equal(job, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO tree = NULL;
    JSON_AUTO stored = NULL;
    struct fleet_spec s, back;
    if (json_parse((const char *)data, size, &tree, NULL) < 0 ||
        fleet_spec_parse(tree, &s, NULL) < 0)
        return 0;
    must(fleet_spec_json(&s, &stored, NULL) == AS_OK);
    must(fleet_spec_parse(stored, &back, NULL) == AS_OK);
    if (fleet_spec_check(&s, NULL) < 0)
        return 0;
    check_slurm(&s);
    check_ssh(&s);
    check_kubernetes(&s);
    return 0;
}
