#include "tests/scheduler/services/model_bytes.h"

#include "base/file.h"
#include "base/json.h"
#include "data/formats/safetensors.h"
#include "tests/support/check_main.h"

#define TRAIN "{\"dataset\":\"d\",\"epochs\":1,\"model\":{\"kind\":\"mlp\",\"layers\":[4]}}"
#define DATASET                                                                                    \
    "{\"format\":\"csv\",\"task\":\"classification\",\"rows\":6,\"features\":2,\"outputs\":2,"     \
    "\"input\":\"table\",\"target\":\"y\",\"classes\":[\"no\",\"yes\"],\"columns\":[{\"name\":"    \
    "\"x\",\"kind\":\"numeric\",\"missing\":1},{\"name\":\"c\",\"kind\":\"categorical\","          \
    "\"missing\":0,\"other\":0,\"values\":[\"u\",\"v\"]}]}"
#define RECORD                                                                                     \
    "{\"input\":\"table\",\"standardize\":true,\"training_rows\":4,\"validation_rows\":2,"         \
    "\"columns\":[{\"column\":\"x\",\"kind\":\"numeric\",\"input\":0,\"mean\":1.5,\"scale\":2,"    \
    "\"missing\":0.5,\"indicator\":1},{\"column\":\"c\",\"kind\":\"categorical\",\"input\":2,"     \
    "\"values\":[\"u\",null],\"other\":4}]}"

char *model_bytes(const char *dir, float weight, size_t *ret_len)
{
    struct as_err err = {0};
    AS_AUTO(as_freep) char *path = file_join(dir, "model.safetensors");
    const struct safetensors_tensor w = {
        .name = "layers.0.weight", .n_dims = 1, .shape = {1}, .data = &weight};
    JSON_AUTO meta = json_pack("{s:s, s:s, s:s, s:s}", "format", "assay-model-1", "train", TRAIN,
                               "dataset", DATASET, "preprocessing", RECORD);
    char *bytes = NULL;
    ck_ok(safetensors_write(path, meta, &w, 1, &err), err);
    ck_ok(file_read(path, 1 << 20, &bytes, ret_len, &err), err);
    return bytes;
}
