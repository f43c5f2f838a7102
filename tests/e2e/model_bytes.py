"""The model.safetensors of a trial of the built-in trainer, small and made by hand: for tests that play a
runner and need what a trial leaves, not a training."""
import json
import struct

TRAIN = {"dataset": "d", "epochs": 1, "model": {"kind": "mlp", "layers": [4]}}
DATASET = {"format": "csv", "task": "classification", "rows": 6, "features": 1, "outputs": 2, "input": "table", "target": "y",
           "classes": ["no", "yes"], "columns": [{"name": "x", "kind": "numeric", "missing": 0}]}
RECORD = {"input": "table", "standardize": True, "training_rows": 4, "validation_rows": 2,
          "columns": [{"column": "x", "kind": "numeric", "input": 0, "mean": 1.5, "scale": 2}]}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def model_bytes(weight=1.0):
    """The checksum covers the file with zeros in its own place."""
    meta = {"format": "assay-model-1", "train": json.dumps(TRAIN), "dataset": json.dumps(DATASET),
            "preprocessing": json.dumps(RECORD), "assay_crc32c": "00000000"}
    header = {"__metadata__": meta, "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    whole = struct.pack("<Q", len(text)) + text + struct.pack("<f", weight)
    return whole.replace(b'"assay_crc32c":"00000000"', b'"assay_crc32c":"%08x"' % crc32c(whole))
