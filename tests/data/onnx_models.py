"""Writes the ONNX files beside it: python tests/data/onnx_models.py, with the package onnx.

logistic_* are one logistic regression of three classes on two features.
"""

from pathlib import Path
from typing import Any

LABELS = ["A", "B", "C"]
COEFFICIENTS = [2.0, 0.0, -1.0, 1.0, 0.0, -2.0]  # (class, feature)
INTERCEPTS = [0.0, 0.5, -0.5]


def write(name: str, nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> None:
    from onnx import helper

    graph = helper.make_graph(nodes, name, inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (Path(__file__).parent / f"{name}.onnx").write_bytes(model.SerializeToString())


def main() -> None:
    from onnx import TensorProto, helper

    def numbers(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])

    x, scores = numbers("x", 2), numbers("probabilities", 3)
    label = helper.make_tensor_value_info("label", TensorProto.STRING, [None])
    number = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    row = helper.make_map_type_proto(TensorProto.STRING, number)
    maps = helper.make_value_info("maps", helper.make_sequence_type_proto(row))
    ml, classes = {"domain": "ai.onnx.ml"}, {"classlabels_strings": LABELS}
    weights = {"coefficients": COEFFICIENTS, "intercepts": INTERCEPTS, "post_transform": "SOFTMAX"}
    logistic = helper.make_node(
        "LinearClassifier", ["x"], ["label", "probabilities"], **ml, **classes, **weights
    )
    zipmap = helper.make_node("ZipMap", ["probabilities"], ["maps"], **ml, **classes)
    joined = helper.make_node("Concat", ["CD3", "CD19"], ["x"], axis=1)
    write("logistic_maps", [logistic, zipmap], [x], [label, maps])
    write("logistic_tensor", [logistic], [x], [label, scores])
    write("logistic_labels", [logistic], [x], [label])
    write("logistic_columns", [joined, logistic], [numbers("CD3", 1), numbers("CD19", 1)], [label, scores])
    copies = [helper.make_node("Identity", ["x"], [name]) for name in ("logits", "embedding")]
    write("two_outputs", copies, [x], [numbers("logits", 2), numbers("embedding", 2)])


if __name__ == "__main__":
    main()
