"""Checks ONNX files with the checker of the onnx package, shape inference included. Standard input: a line for each,
with its path; the answer is a line, "" where it is in order."""
import sys

import onnx


def check(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    names = [v.name for v in model.graph.input] + [i.name for i in model.graph.initializer]
    names += [o for n in model.graph.node for o in n.output]
    assert len(set(names)) == len(names), "a value has two sources"
    assert all(v.doc_string for v in model.graph.output), "an output has no note"
    used = {i for n in model.graph.node for i in n.input}
    unused = [n for n in names if n not in used and n not in {o.name for o in model.graph.output}]
    assert not unused, f"values that nothing reads: {unused}"
    for v in inferred.graph.output:
        dims = v.type.tensor_type.shape.dim
        assert dims[0].dim_param == "rows" and all(d.dim_value > 0 for d in dims[1:]), v


for line in sys.stdin:
    try:
        check(line.rstrip("\n"))
        print(flush=True)
    except Exception as e:
        print(f"{type(e).__name__}: {e}".replace("\n", " "), flush=True)
