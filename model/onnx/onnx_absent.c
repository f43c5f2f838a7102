/* In place of the room's other files, in a build without protobuf-c or the definitions of ONNX. */
#include "model/onnx/onnx_write.h"

bool onnx_is_built(void)
{
    return false;
}

as_status onnx_write(const struct model_file *f, const char *path, struct as_err *err)
{
    (void)f;
    return as_fail(err, AS_E_UNSUPPORTED,
                   "%s: this build of Assay cannot write ONNX: it was built without protobuf-c "
                   "(libprotobuf-c-dev, protobuf-c-compiler) or ONNX's definitions (libonnx-dev)",
                   path);
}
