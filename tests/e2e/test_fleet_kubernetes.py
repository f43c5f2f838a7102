#!/usr/bin/env python3
"""A fleet on Kubernetes, against a stand-in that holds objects to the published schemas (kubernetes_api.py) and runs pods as
processes. kubectl is a program that sends the requests of the real one, which is tried, too, where it is installed."""
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

from harness import ASSAY, BUILD, PATIENCE_S, Assay
from kubernetes_api import Cluster, Refused, check_whole

RUNNER = os.path.join(BUILD, "trial-runner", "agent", "assay-runner")
REPORT = 'echo \'{"loss": 1}\' >> "$ASSAY_REPORT"'
IMAGE = "registry.example/assay-runner:0.1"
KUBECTL = f"""#!{sys.executable} -SE
""" + """import os, sys, urllib.error, urllib.request
args = sys.argv[1:]
verbs = {"get": "GET", "create": "POST", "replace": "PUT", "delete": "DELETE"}
verb, path = args[0], args[args.index("--raw") + 1]
data = sys.stdin.buffer.read() if "-f" in args else None
try:
    request = urllib.request.Request(os.environ["FAKE_CLUSTER"] + path, data=data, method=verbs[verb])
    sys.stdout.buffer.write(urllib.request.urlopen(request, timeout=30).read())
except urllib.error.HTTPError as e:
    import json
    status = json.loads(e.read())
    sys.exit(f"Error from server ({status['reason']}): {status['message']}")
except urllib.error.URLError as e:
    sys.exit(f"The connection to the server was refused: {e.reason}")
"""


def document(name, trials, **more):
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
            "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random", "seed": 1},
            "limits": {"max_trials": trials, "grace": "1s"}, "trial": {"command": ["sh", "-c", f"sleep 0.2; {REPORT}"]}, **more}


class Company:
    def __init__(self, assay, cluster, folder):
        self.assay, self.cluster = assay, cluster
        programs = os.path.join(folder, "bin")
        os.mkdir(programs)
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                  "clusters": [{"name": "c", "cluster": {"server": cluster.url}}], "users": [{"name": "u", "user": {}}]}
        with open(os.path.join(folder, "kubeconfig"), "w") as f:
            json.dump(config, f)
        path = os.path.join(programs, "kubectl")
        with open(path, "w") as f:
            f.write(KUBECTL)
        os.chmod(path, 0o755)
        self.env = {**assay.env, "PATH": programs + ":" + os.environ["PATH"], "XDG_STATE_HOME": os.path.join(folder, "state"),
                    "HOME": folder, "KUBECONFIG": os.path.join(folder, "kubeconfig"), "FAKE_CLUSTER": cluster.url}

    def cli(self, *args, code=0):
        done = subprocess.run([ASSAY, *args], env=self.env, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done

    def launch(self, *args, code=0):
        return self.cli("launch", "kubernetes", "--name", "ml", "--namespace", "research", "--image", IMAGE, *args, code=code)

    def live(self):
        return [r for r in self.assay.call("GET", "/v1/runners")["items"] if r["state"] == "live" and r["fleet"] == "ml"]


def objects_fit_the_schemas(c):
    """Every option at once; then each of the checks with one fault, so that they are known to see it."""
    text = c.launch("--runners", "4", "--ranks", "2", "--gpus", "2", "--cpus", "4", "--memory", "16GiB", "--time", "4h", "--idle-exit", "10m",
                    "--pull-secret", "registry", "--queue", "batch", "--program", "/usr/bin/assay-runner", "--print").stdout
    things = [json.loads(part) for part in text.split("---\n")]
    assert [t["kind"] for t in things] == ["NetworkPolicy", "Job", "Job"], things
    assert c.assay.token not in text and "stringData" not in text
    for t in things:
        check_whole(t, {"NetworkPolicy": "networkpolicies", "Job": "jobs"}[t["kind"]])

    def spoil(change):
        job = json.loads(json.dumps(things[1]))
        change(job)
        try:
            check_whole(job, "jobs")
        except Refused:
            return
        raise AssertionError("a wrong object was taken")
    pod = lambda j: j["spec"]["template"]["spec"]
    for change in (lambda j: j["spec"].update(replicas=1), lambda j: j["spec"].update(completions="2"), lambda j: pod(j).update(restartPolicy="Always"),
                   lambda j: pod(j)["containers"][0].pop("name"), lambda j: pod(j)["volumes"].pop(0), lambda j: j["metadata"].update(name="a_b"),
                   lambda j: j["metadata"]["labels"].update(x="a b"), lambda j: pod(j)["containers"][0]["resources"]["limits"].update(memory="16GiB"),
                   lambda j: j["spec"].pop("template")):
        spoil(change)
    print("objects fit the schemas", flush=True)


def runners_and_a_sweep(c):
    c.launch("--runners", "2")
    runners = c.assay.wait(lambda: len(c.live()) == 2 and c.live(), "two runners")
    assert all(r["job"].startswith("kubernetes/research/assay-ml-") for r in runners), runners
    sweep = c.assay.call("POST", "/v1/sweeps", document("many", 4))["id"]
    c.assay.wait_ended(sweep)
    table = c.cli("launch", "kubernetes", "--name", "ml", "--status").stdout
    assert table.count("running\t1\t0") == 2, table
    for p in sum(c.cluster.pods.values(), []):
        assert stat.S_IMODE(os.stat(os.path.join(p.folder, "token", "token")).st_mode) == 0o600
    gang = c.assay.call("POST", "/v1/sweeps", document("gang", 1, resources={"ranks": 2}))["id"]
    c.assay.wait_ended(gang)
    assert c.assay.sweep(gang)["counts"]["completed"] == 1
    c.cli("launch", "kubernetes", "--name", "ml", "--scale", "1")
    c.assay.wait(lambda: len(c.live()) == 1, "one runner")
    c.cli("launch", "kubernetes", "--name", "ml", "--stop")
    assert not c.cluster.pods
    assert [k[0] for k in c.cluster.objects] == ["secrets", "networkpolicies"], c.cluster.objects.keys()
    print("two runners, a sweep, a gang, scaled and stopped", flush=True)


def the_real_kubectl(c):
    if not shutil.which("kubectl"):
        print("kubectl is not installed", flush=True)
        return
    c.env, kept = {**c.env, "PATH": os.environ["PATH"]}, c.env
    c.launch()
    c.assay.wait(lambda: len(c.live()) == 1, "a runner")
    c.cli("launch", "kubernetes", "--name", "ml", "--stop")
    assert not c.cluster.pods
    c.env = kept
    print("with the real kubectl", flush=True)


def from_zero_and_back(c):
    log_path = os.path.join(c.assay.data, "autoscale.log")
    c.launch("--runners", "0")
    c.cluster.quota = 1
    with open(log_path, "wb") as out:
        p = subprocess.Popen([ASSAY, "autoscale", "ml", "--max", "3", "--cool-down", "500ms", "--every", "300ms", "--idle", "2s"], env=c.env,
                             stdout=out, stderr=out)
    log = lambda: open(log_path).read()
    try:
        c.assay.wait(lambda: "nothing waits" in log(), "a first look")
        c.cluster.is_away = True
        sweep = c.assay.call("POST", "/v1/sweeps", document("auto", 4, **{"limits": {"max_trials": 4, "max_concurrent_trials": 2}}))["id"]
        c.assay.wait(lambda: "kubectl: " in log(), "a word that the cluster is away")
        c.cluster.is_away = False
        c.assay.wait(lambda: "exceeded quota" in log(), "a word that the quota is full")
        c.cluster.quota = None
        c.assay.wait_ended(sweep)
        c.assay.wait(lambda: not c.cluster.pods, "the end of all jobs")
        assert "nothing waits: end" in log(), log()
    except BaseException:
        print(log(), file=sys.stderr)
        raise
    finally:
        p.send_signal(signal.SIGINT)
        p.wait(PATIENCE_S)
    print("from zero and back, with a cluster that was away and a quota that was full", flush=True)


def ranks_are_asked_for_together(c):
    """Jobs of two runners: for a trial of two ranks there is one, and both of its pods are the trial's."""
    c.launch("--runners", "0", "--ranks", "2")
    gang = c.assay.call("POST", "/v1/sweeps", document("pair", 1, resources={"ranks": 2}))["id"]
    said = c.cli("autoscale", "ml", "--max", "4", "--once").stdout
    [[key, job]] = [[key, thing] for key, thing in c.cluster.objects.items() if key[0] == "jobs"]
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 2 and "start 1" in said, (said, job)
    pods = [p.name for p in c.cluster.pods[key]]
    c.assay.wait_ended(gang)
    seats = c.assay.call("GET", f"/v1/sweeps/{gang}/trials/0/attempts/1/gang")["seats"]
    assert len(pods) == 2 and sorted(s["runner"] for s in seats) == sorted(pods), (seats, pods)
    c.cli("launch", "kubernetes", "--name", "ml", "--stop")
    assert not c.cluster.pods
    print("the ranks of a trial in one job", flush=True)


def a_job_placed_in_part_is_the_only_one(c):
    """One of its two pods runs, and the other one waits for room: its rank is what the demand has, and no second job is made for it."""
    jobs = lambda: [key for key in c.cluster.objects if key[0] == "jobs"]
    c.launch("--runners", "0", "--ranks", "2")
    gang = c.assay.call("POST", "/v1/sweeps", document("part", 1, resources={"ranks": 2}))["id"]
    c.cluster.room = 1
    c.cli("autoscale", "ml", "--max", "4", "--once")
    c.assay.wait(lambda: len(c.live()) == 1, "the first rank")
    c.assay.wait(lambda: c.assay.call("GET", "/v1/demand")["slots"] == 1, "a demand of one rank")
    said = c.cli("autoscale", "ml", "--max", "4", "--once").stdout
    assert len(jobs()) == 1 and "1 slots wait for 0 jobs that have no runner yet and 1 ranks of jobs that have some" in said, (jobs(), said)
    c.cluster.place_all()
    c.assay.wait_ended(gang)
    assert c.assay.sweep(gang)["counts"]["completed"] == 1
    c.cli("launch", "kubernetes", "--name", "ml", "--stop")
    assert not c.cluster.pods
    print("a job placed in part has no second one", flush=True)


def what_is_refused(c):
    for args, part in ((("--namespace", "Kube"), "--namespace"), (("--image", "a b"), "--image"), (("--queue", "a/b"), "--queue"),
                       (("--context", "-v=9"), "--context")):
        assert part in c.launch(*args, code=64).stderr
    c.cluster.quota = 0
    assert "exceeded quota" in c.launch(code=5).stderr
    c.cluster.quota = None
    c.cluster.is_away = True
    c.launch(code=7)
    c.cluster.is_away = False
    assert not c.cluster.pods
    print("what is refused", flush=True)


def main():
    folder = tempfile.mkdtemp(prefix="assay-kubernetes-", dir="/var/tmp")
    try:
        with Assay(runners=0) as assay, Cluster(os.path.join(folder, "pods"), RUNNER) as cluster:
            c = Company(assay, cluster, folder)
            for part in (objects_fit_the_schemas, what_is_refused, runners_and_a_sweep, from_zero_and_back, ranks_are_asked_for_together,
                         a_job_placed_in_part_is_the_only_one, the_real_kubectl):
                part(c)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
