/* api/openapi.yaml as JSON, made by embed_openapi.c when the program is built. */
#ifndef ASSAY_API_SERVER_OPENAPI_JSON_H
#define ASSAY_API_SERVER_OPENAPI_JSON_H

#include <stddef.h>

extern const unsigned char openapi_json[];
extern const size_t openapi_json_len;

#endif
