#include "cli/commands/models_onnx.h"

#include "model/file/model_file.h"
#include "model/onnx/onnx_write.h"

as_status models_fetch_onnx(const struct session *s, const struct fetch *f, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *model = NULL;
    char *bytes = NULL;
    if (!onnx_is_built())
        return onnx_write(NULL, f->dest, err);
    as_status st = fetch_bytes(s, f, &bytes, err);
    if (st < 0)
        return st;
    st = model_file_parse(bytes, (size_t)f->size, &model, err);
    if (st < 0)
        return as_err_prefix(err, st, "%.200s", f->name);
    return onnx_write(model, f->dest, err);
}

as_status models_convert_onnx(const char *from, const char *to, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *model = NULL;
    if (!onnx_is_built())
        return onnx_write(NULL, to, err);
    as_status st = model_file_read(from, MODEL_FILE_MAX_BYTES, &model, err);
    return st < 0 ? st : onnx_write(model, to, err);
}
