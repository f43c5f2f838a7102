/* Check whether a value has the shape that api/openapi.yaml states. It knows the part of JSON
 * Schema that the document uses: type, enum, const, required, properties, additionalProperties,
 * items, oneOf, allOf, minimum, $ref. */
#ifndef ASSAY_TESTS_SUPPORT_SCHEMA_CHECK_H
#define ASSAY_TESTS_SUPPORT_SCHEMA_CHECK_H

#include <jansson.h>
#include <stdbool.h>

#define SCHEMA_MSG_MAX 400

/* The document, loaded once. */
const json_t *openapi_document(void);

/* The value at a reference such as "#/components/schemas/Sweep"; NULL when there is none. */
const json_t *openapi_ref(const char *ref);

/* Returns true if `value` fits; otherwise msg says where and why it does not. */
bool schema_check(const json_t *schema, const json_t *value, char msg[SCHEMA_MSG_MAX]);

/* ck_assert that a value fits the schema of that name, and that its text parses to the same
 * value. Takes j, and returns it. */
json_t *ck_schema(const char *schema, json_t *j);

/* The schema of an answer, NULL when the document does not list the status or it has no body.
 * *ret_listed says whether the status is listed. `path` is the template. */
const json_t *openapi_answer(const char *path, const char *method, int status, const char *type,
                             bool *ret_listed);

#endif
