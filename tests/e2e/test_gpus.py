"""GPUs of a whole installation, with a stand-in for NVML: they are dealt to the runners by UUID, one that fails is set
aside and shown, and its trials end on another GPU."""
import json
import os

from harness import BUILD, Assay, Problem

STUB = os.path.join(BUILD, "tests", "trial-runner", "libnvml-stub.so")
GPUS = ["GPU-aa11", "GPU-ab22", "GPU-ac33"]
# On the first GPU a trial finds that it is broken; elsewhere it says where it is, once the first has been met: the others
# must not be done with all the trials before.
SCRIPT = """case $CUDA_VISIBLE_DEVICES in
GPU-aa11) echo 'it fell off the bus' > "$ASSAY_DEVICE_FAULT"; touch MET; exit 75;;
esac
while [ ! -e MET ]; do sleep 0.05; done
case $CUDA_VISIBLE_DEVICES in
GPU-ab22) echo '{"gpu": 2}' >> "$ASSAY_REPORT";;
GPU-ac33) echo '{"gpu": 3}' >> "$ASSAY_REPORT";;
*) exit 1;;
esac
"""


def runners(assay):
    return assay.call("GET", "/v1/runners")["items"]


def fault(assay):
    return [f for r in runners(assay) for f in r["gpu_faults"]]


def main():
    env = {"ASSAY_NVML": STUB, "NVML_STUB": ";".join(f"H200:{g}:80" for g in GPUS)}
    env["CUDA_VISIBLE_DEVICES"] = "2,GPU-aa,1"  # as a batch system might say it
    with Assay(runners=2, slots=2, env=env) as assay:
        dealt = [r["gpus"] for r in runners(assay)]
        assert sorted(dealt) == [["GPU-aa11"], ["GPU-ac33", "GPU-ab22"]], dealt
        folder = os.path.join(assay.data, "programs")
        os.mkdir(folder)
        os.chmod(folder, 0o777)  # the trials may run as another user
        document = {
            "name": "gpus", "metric": {"name": "gpu", "goal": "maximize"},
            "parameters": {"x": {"type": "float", "min": 0, "max": 1}},
            "limits": {"max_trials": 8}, "resources": {"gpus": 1}, "search": {"method": "random"},
            "trial": {"command": ["sh", "-c", SCRIPT], "directory": folder},
        }
        assay.call("POST", "/v1/sweeps", document)
        assay.wait(lambda: assay.call("GET", "/v1/sweeps/gpus")["state"] == "completed", "the sweep")
        trials = assay.call("GET", "/v1/sweeps/gpus/trials?page_size=100")["items"]
        assert [t["state"] for t in trials] == ["completed"] * 8, trials
        tries = sum(t["attempt"] - 1 for t in trials)
        assert tries == 1, f"{tries} attempts met the broken GPU"
        assay.wait(lambda: fault(assay), "the fault")
        assert fault(assay) == [{"gpu": "GPU-aa11", "reason": "it fell off the bus"}], fault(assay)
        table = assay.cli("runners").stdout
        assert "0/1" in table and "GPU-aa11: it fell off the bus" in table, table
        assert "it fell off the bus" in json.dumps(json.loads(assay.cli("runners", "--json").stdout))
        train = {"dataset": "none", "model": {"layers": [8]}, "epochs": 1}
        two = dict(document, name="two", resources={"gpus": 2}, trial={"train": train},
                   metric={"name": "val_error", "goal": "minimize"})
        try:
            assay.call("POST", "/v1/sweeps", two)
            raise AssertionError("two GPUs with train were accepted")
        except Problem as e:
            assert "/resources/gpus" in json.dumps(e.body), e.body


main()
