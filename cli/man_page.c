/* Prints the manual page assay.1: every verb with its synopsis, summary, details and options, then
 * the common options, the environment and the exit codes. A build tool; it is not installed.
 *
 * verbs_read_table() runs `assay help VERB` and hands over the option table, so that the page
 * cannot differ from the help. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/commands/verbs.h"
#include "cli/session/exit_code.h"
#include "cli/session/verb.h"

static char *common_text; /* the options that all verbs with a session share, as roff */
static int n_printed;

/* Write text of a filled paragraph. A dash becomes \- (roff prints a bare one as a hyphen), and
 * `text in backticks` becomes bold. `bold` is the state between the calls of one paragraph. */
static void put_text(FILE *out, const char *s, size_t len, bool *bold)
{
    for (size_t i = 0; i < len; i++) {
        if (as_starts_with(s + i, "…")) {
            (void)fputs("...", out);
            i += strlen("…") - 1;
        } else if (s[i] == '`') {
            *bold = !*bold;
            (void)fputs(*bold ? "\\fB" : "\\fR", out);
        } else if (s[i] == '\\') {
            (void)fputs("\\e", out);
        } else if (s[i] == '-') {
            (void)fputs("\\-", out);
        } else {
            (void)fputc(s[i], out);
        }
    }
}

/* One line of roff input. \& keeps a dot or a quote at its beginning from being a request. */
static void put_line(FILE *out, const char *s, size_t len, bool *bold)
{
    if (len > 0 && (s[0] == '.' || s[0] == '\''))
        (void)fputs("\\&", out);
    put_text(out, s, len, bold);
    (void)fputc('\n', out);
}

static void put_string(FILE *out, const char *s)
{
    bool bold = false;
    put_line(out, s, strlen(s), &bold);
}

/* Paragraphs of help. Lines that begin with four blanks are code and keep their line breaks. */
static void put_details(FILE *out, const char *s)
{
    bool bold = false;
    while (*s) {
        size_t len = strcspn(s, "\n");
        if (as_starts_with(s, "    ")) {
            bool code_bold = false;
            (void)fputs(".PP\n.nf\n", out);
            put_line(out, s, len, &code_bold);
            (void)fputs(".fi\n.PP\n", out);
        } else {
            put_line(out, s, len, &bold);
        }
        s += len + (s[len] == '\n');
    }
}

static void put_option(FILE *out, const struct opt *o)
{
    bool bold = false;
    (void)fputs(".TP\n\\fB", out);
    if (o->letter)
        (void)fprintf(out, "\\-%c\\fR, \\fB", o->letter);
    (void)fputs("\\-\\-", out);
    put_text(out, o->name, strlen(o->name), &bold);
    (void)fputs("\\fR", out);
    if (o->value)
        (void)fprintf(out, " \\fI%s\\fR", o->value);
    (void)fputc('\n', out);
    struct str help = {0};
    str_puts(&help, o->help);
    if (o->choices) {
        str_puts(&help, ": ");
        opt_choices(o, &help);
    }
    put_string(out, str_cstr(&help));
    str_done(&help);
    if (o->env)
        (void)fprintf(out, "(environment: \\fB%s\\fR)\n", o->env);
}

/* Keep the options of SESSION_OPTS for their own section; they are the same for every verb. */
static void keep_common(const struct opt *table)
{
    size_t len;
    FILE *f = common_text ? NULL : open_memstream(&common_text, &len);
    for (; f && table->name; table++)
        put_option(f, table);
    if (f && fclose(f) != 0)
        abort();
}

static void put_verb(void *arg, const struct verb *v, const struct opt *table)
{
    FILE *out = arg;
    n_printed++;
    (void)fputs(".SS assay ", out);
    put_string(out, v->synopsis);
    put_string(out, v->summary);
    if (v->details) {
        (void)fputs(".PP\n", out);
        put_details(out, v->details);
    }
    for (; table && table->name; table++) {
        if (as_streq(table->name, "server")) { /* the first row of SESSION_OPTS */
            keep_common(table);
            (void)fputs(".PP\nThis verb also takes the common options.\n", out);
            return;
        }
        put_option(out, table);
    }
}

static int print_verbs(void)
{
    for (int i = 0; verbs_at((size_t)i); i++)
        if (!verbs_read_table(verbs_at((size_t)i), put_verb, stdout) || n_printed != i + 1)
            return EXIT_FAIL;
    return EXIT_OK;
}

int main(void)
{
    printf(".TH ASSAY 1 \"\" \"assay %s\" \"User Commands\"\n.nh\n", ASSAY_VERSION);
    printf(".SH NAME\nassay \\- distributed hyperparameter search\n"
           ".SH SYNOPSIS\n\\fBassay\\fR \\fIVERB\\fR [\\fIARGUMENT\\fR...] [\\fIOPTION\\fR...]\n"
           ".SH DESCRIPTION\n");
    put_string(stdout, "The command line of Assay. It talks to a server over HTTP. While `assay up`"
                       " runs on this machine, the other verbs find its server and its token by "
                       "themselves.");
    printf(".SH VERBS\n");
    if (print_verbs() != EXIT_OK || !common_text)
        return EXIT_FAIL;
    printf(".SH COMMON OPTIONS\nAll verbs that talk to a server take these options.\n%s",
           common_text);
    free(common_text);
    printf(".SH ENVIRONMENT\n");
    for (const struct verbs_variable *v = verbs_environment; v->names; v++) {
        printf(".TP\n\\fB%s\\fR\n", v->names);
        put_string(stdout, v->meaning);
    }
    printf(
        ".SH FILES\n.TP\n\\fI$XDG_CONFIG_HOME/assay/config\\fR (\\fI~/.config/assay/config\\fR)\n");
    put_string(stdout, "named servers for --profile and ASSAY_PROFILE, in YAML:");
    put_details(stdout, "    profiles:\n"
                        "      lab: {url: https://assay.example, token_file: ~/lab.token}\n");
    printf(".TP\n\\fI$XDG_STATE_HOME/assay/up\\fR (\\fI~/.local/state/assay/up\\fR)\n");
    put_string(stdout, "notes with which the verbs find a running `assay up`");
    printf(".SH EXIT STATUS\n");
    for (const struct exit_meaning *e = exit_meanings; e->meaning; e++) {
        printf(".TP\n\\fB%d\\fR\n", e->code);
        put_string(stdout, e->meaning);
    }
    return exit_after_output("man_page", EXIT_OK);
}
