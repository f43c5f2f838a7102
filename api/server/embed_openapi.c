/* A build tool: embed_openapi IN.yaml OUT.c OUT.json. Converts the YAML document to JSON, and
 * writes that as a C array and as a file. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/yaml_reader.h"

static int fail(const char *what, const struct as_err *err)
{
    (void)fprintf(stderr, "embed_openapi: %s: %s\n", what, err->msg);
    return 1;
}

static void write_array(FILE *out, const char *text)
{
    size_t len = strlen(text);
    (void)fprintf(out, "#include \"api/server/openapi_json.h\"\n\n"
                       "const unsigned char openapi_json[] = {");
    for (size_t i = 0; i < len; i++)
        (void)fprintf(out, "%s%u,", i % 20 ? "" : "\n    ", (unsigned char)text[i]);
    (void)fprintf(out, "\n};\nconst size_t openapi_json_len = sizeof openapi_json;\n");
}

int main(int argc, char **argv)
{
    struct as_err err = {0};
    AS_AUTO(as_freep) char *yaml = NULL;
    JSON_AUTO doc = NULL;
    size_t len = 0;
    if (argc != 4) {
        (void)fprintf(stderr, "usage: embed_openapi IN.yaml OUT.c OUT.json\n");
        return 64;
    }
    if (file_read(argv[1], (size_t)4 << 20, &yaml, &len, &err) < 0 ||
        yaml_parse(yaml, len, &doc, &err) < 0)
        return fail(argv[1], &err);
    AS_AUTO(as_freep) char *text = json_format_ordered(doc);
    FILE *out = text ? fopen(argv[2], "w") : NULL;
    if (!out)
        return fail(argv[2], &err);
    write_array(out, text);
    if (fclose(out) != 0)
        return fail(argv[2], &err);
    return file_replace(argv[3], text, strlen(text), 0644, &err) == AS_OK ? 0 : fail(argv[3], &err);
}
