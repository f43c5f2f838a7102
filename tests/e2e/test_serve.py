"""assay-serve as a program. Models come from a real registry, from files and from a folder; 20 versions are
swapped under continuous load, and every answer is right for the version that it names; damaged files, hostile
requests and 1,000 connections change nothing; SIGTERM answers what was asked."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

from harness import ASSAY, BUILD, PATIENCE_S, SOURCE, Assay

SERVE = os.path.join(BUILD, "serve", "assay-serve")
SWEEP = """
name: keep
metric: {name: val_error, goal: minimize}
parameters:
  lr: {type: float, min: 0.003, max: 0.1, scale: log}
search: {method: random, seed: 5}
limits: {max_trials: 2}
trial:
  train:
    dataset: digits
    model: {kind: mlp, layers: [16]}
    optimizer: {kind: adamw, lr: "${lr}"}
    batch_size: 128
    epochs: 2
"""
SWAPS = 20
CLIENTS = 4


def wait(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {PATIENCE_S} s for {what}")


@contextlib.contextmanager
def serving(*args, env=None, program=(SERVE,), ends=True):
    """A running assay-serve: .port, .log, .process."""
    with tempfile.TemporaryDirectory() as folder:
        address, log = os.path.join(folder, "address"), os.path.join(folder, "log")
        with open(log, "wb") as out:
            process = subprocess.Popen([*program, *args, "--listen", "127.0.0.1:0", "--address-file", address,
                                        "--poll", "50ms", "--deadline", "10m"], env=env, stderr=out, stdout=out)
        server = Server(process, log)
        try:
            def has_address():
                assert process.poll() is None, open(log).read()
                return os.path.exists(address)
            wait(has_address, "assay-serve")
            server.port = int(open(address).read().rsplit(":", 1)[1])
            yield server
            if ends:
                process.send_signal(signal.SIGTERM)
                code = process.wait(PATIENCE_S)
                assert code == 0, (code, open(log).read())
        except BaseException:
            print(open(log).read()[-4000:])
            raise
        finally:
            process.kill()
            process.wait()


class Server:
    def __init__(self, process, log):
        self.process, self.log, self.port = process, log, 0

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def ask(self, method, path, body=None, headers=None, connection=None):
        c = connection or self.connect()
        c.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body),
                  {"Content-Type": "application/json", **(headers or {})})
        answer = c.getresponse()
        data = answer.read()
        if not connection:
            c.close()
        return answer.status, (json.loads(data) if answer.headers.get_content_type() == "application/json" else data)

    def ready(self):
        return self.ask("GET", "/v2/health/ready")[0] == 200

    def version(self, model):
        status, answer = self.ask("GET", f"/v2/models/{model}")
        return answer["versions"][0] if status == 200 else None

    def metric(self, name, model):
        text = self.ask("GET", "/metrics")[1].decode()
        found = [line for line in text.splitlines() if line.startswith(f'assay_serve_{name}{{model="{model}"')]
        return float(found[0].split()[-1]) if found else None


def read_rows():
    lines = open(os.path.join(SOURCE, "examples", "digits.csv")).read().splitlines()
    at = lines[0].split(",").index("class")
    return [[float(v) for i, v in enumerate(line.split(",")) if i != at] for line in lines[1:9]]


ROWS = read_rows()
FLAT = [v for row in ROWS for v in row]
REQUEST = {"id": "x", "inputs": [{"name": "input", "shape": [len(ROWS), len(ROWS[0])], "datatype": "FP32", "data": FLAT}]}


def infer(server, model, connection=None):
    status, answer = server.ask("POST", f"/v2/models/{model}/infer", REQUEST, connection=connection)
    assert status == 200, (status, answer)
    assert answer["id"] == "x" and answer["model_name"] == model
    outputs = {o["name"]: o for o in answer["outputs"]}
    assert outputs["probabilities"]["shape"] == [len(ROWS), 10]
    return answer["model_version"], outputs["probabilities"]["data"]


def expected(path):
    """What a server that serves this file alone answers."""
    with serving(f"only={path}") as server:
        return infer(server, "only")[1]


def swap_under_load(server, model, swap, versions):
    """20 swaps while clients ask without a pause. versions: {version: probabilities}."""
    over, failures, counts = threading.Event(), [], []

    def client():
        try:
            n, connection = 0, server.connect()
            while not over.is_set():
                version, got = infer(server, model, connection)
                assert got == versions[version], f"an answer of version {version} is another's"
                n += 1
            counts.append(n)
        except BaseException as e:  # noqa: B036
            failures.append(e)

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for t in threads:
        t.start()
    try:
        for i in range(SWAPS):
            version = swap(i)
            wait(lambda v=version: failures or infer(server, model)[0] == v, f"version {version}")
    finally:
        over.set()
        for t in threads:
            t.join()
    assert not failures, failures
    assert min(counts) > 0, counts


def replace(source, path):
    shutil.copy(source, path + ".new")
    os.replace(path + ".new", path)


def check_registry(assay, files):
    versions = {"1": expected(files[0]), "2": expected(files[1])}
    assert versions["1"] != versions["2"]
    env = dict(assay.env)
    with serving("digits@champion", env=env, program=(ASSAY, "serve")) as server:
        wait(server.ready, "the model of the registry")
        assert server.version("digits") == "1"

        def swap(i):
            v = 2 - i % 2
            assay.call("PUT", "/v1/models/digits/aliases/champion", {"version": v})
            return str(v)
        swap_under_load(server, "digits", swap, versions)
        last = server.version("digits")
        assay.stop()  # a server that is away is no reason to stop
        time.sleep(0.3)
        assert infer(server, "digits") == (last, versions[last])
        assert server.metric("loads_total", "digits") >= SWAPS
    # started while the registry is away: it listens, and is not ready
    with serving("--server", assay.url, "digits", env=env) as server:
        wait(lambda: "model not loaded" in open(server.log).read(), "the log to say why")
        assert not server.ready()
        assert server.ask("GET", "/v2/models/digits")[0] == 503
        assert server.ask("GET", "/v2/health/live")[0] == 200


def check_options_of_the_cli(files):
    """`assay serve` has every option of assay-serve, and what it is given arrives."""
    def options(*command):
        text = subprocess.run([*command], capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"--[a-z][a-z-]+", text))
    own = {"--server", "--token-file", "--die-with-parent", "--version", "--help"}
    missing = options(SERVE, "--help") - own - options(ASSAY, "help", "serve")
    assert not missing, missing
    body = json.dumps({"inputs": [{"name": "input", "shape": [2, 64], "datatype": "FP32", "data": [0] * 128}]}).encode()
    given = ["--max-rows", "1", "--max-bytes", "4096", "--log-level", "warn", "--max-connections", "7", "--queue", "3"]
    env = {n: v for n, v in os.environ.items() if not n.startswith("ASSAY_")}
    with serving("few=" + files[0], *given, env=env, program=(ASSAY, "serve")) as server:
        wait(server.ready, "the model")
        assert server.ask("POST", "/v2/models/few/infer", body)[0] == 413
        assert server.ask("POST", "/v2/models/few/infer", b" " * 4097)[0] == 413
        line = open(f"/proc/{server.process.pid}/cmdline").read().split("\0")
        assert {"--max-connections=7", "--queue=3", "--log-level=warn", "--deadline=600000ms"} <= set(line), line
        assert "serving" not in open(server.log).read(), "a line of level info"


def check_files(files, folder):
    path = os.path.join(folder, "live.safetensors")
    replace(files[0], path)
    answers = [expected(f) for f in files]
    with serving(path) as server:
        first = server.version("live")
        versions = {first: answers[0]}
        replace(files[1], path)
        wait(lambda: server.version("live") != first, "the new file")
        versions[server.version("live")] = answers[1]
        names = [first, server.version("live")]

        def swap(i):
            replace(files[i % 2], path)
            return names[i % 2]
        swap_under_load(server, "live", swap, versions)
        # damaged: one bit, cut, not a model, a folder: the old version is served on
        good = open(files[0], "rb").read()
        now = server.version("live")
        for n, bad in enumerate([good[:-1] + bytes([good[-1] ^ 1]), good[: len(good) // 2], b"hello", b""]):
            with open(path + ".new", "wb") as f:
                f.write(bad)
            os.replace(path + ".new", path)
            wait(lambda n=n: server.metric("load_failures_total", "live") == n + 1, "the failure to be counted")
            assert infer(server, "live") == (now, versions[now])
        assert "status=invalid" in open(server.log).read()
        os.unlink(path)
        wait(lambda: "model file is gone" in open(server.log).read(), "the log")
        assert infer(server, "live") == (now, versions[now])
        replace(files[0], path)
        wait(lambda: server.version("live") == first, "the file to be back")


def check_folder(files, folder):
    models = os.path.join(folder, "models")
    os.mkdir(models)
    replace(files[0], os.path.join(models, "a.safetensors"))
    open(os.path.join(models, "broken.safetensors"), "w").write("no")
    open(os.path.join(models, "notes.txt"), "w").write("no")
    with serving("--dir", models) as server:
        assert server.ready()
        infer(server, "a")
        assert server.ask("GET", "/v2/models/broken")[0] == 404
        assert server.ask("GET", "/v2/models/b")[0] == 404
        replace(files[1], os.path.join(models, "b.safetensors"))
        wait(lambda: server.version("b"), "the new file")
        infer(server, "b")
        os.unlink(os.path.join(models, "a.safetensors"))
        wait(lambda: server.ask("GET", "/v2/models/a")[0] == 404, "the removed file")


def check_start(files, folder):
    """What cannot be served fails the start, with words."""
    bad = os.path.join(folder, "bad.safetensors")
    open(bad, "wb").write(open(files[0], "rb").read()[:5000])
    for args, code, words in [([bad], 66, "bad.safetensors"), ([], 64, "nothing to serve"), (["/dev/zero"], 66, "regular"),
                              ([f"a={files[0]}", f"a={files[1]}"], 66, "two models"), ([f"../x={files[0]}"], 66, ""),
                              ([files[0], "--workers", "0"], 64, "--workers is 0"),
                              ([files[0], "--listen", "0.0.0.0:0"], 77, "not a loopback")]:
        done = subprocess.run([SERVE, "--listen", "127.0.0.1:0", *args], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == code and words in done.stderr, (args, done)


def raw(server, data, shut=False):
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as s:
        s.sendall(data)
        if shut:
            s.shutdown(socket.SHUT_WR)
        out = b""
        while chunk := s.recv(65536):
            out += chunk
            if not shut and b"\r\n\r\n" in out:
                break
        return out


def check_hostile(files):
    with serving(f"m={files[0]}", "--max-rows", "1000", "--max-bytes", "200000") as server:
        def refused(status, words, tensor, headers=None, tail=b""):
            body = json.dumps({"inputs": [tensor]}).encode()
            got, answer = server.ask("POST", "/v2/models/m/infer", body + tail, headers)
            assert got == status and words in answer["error"], (got, answer, tensor)

        def tensor(shape, data=(0.0,), kind="FP32", **more):
            return {"name": "input", "shape": shape, "datatype": kind, "data": list(data), **more}
        refused(400, "expected a whole number", tensor([-1, 64]))
        refused(413, "elements", tensor([2 ** 32, 2 ** 32]))
        refused(413, "elements", tensor([2 ** 53, 2 ** 11, 64]))
        refused(400, "expected a whole number", tensor([2 ** 64, 64]))
        refused(400, "values", tensor([10 ** 9, 2]))
        refused(400, "[n, 64]", tensor([1, 63], [0] * 63))
        refused(413, "1001 rows", tensor([1001, 64], [0] * 64 * 1001))
        refused(400, "BYTES", tensor([1, 64], ["NaN"] * 64, "BYTES"))
        refused(400, "expected a number", tensor([1, 64], ["NaN"] * 64))
        refused(400, "expected a value", tensor([1, 64], [float("nan")] * 64))
        refused(400, "FP17", tensor([1, 64], [0] * 64, "FP17"))
        binary = {"name": "input", "shape": [1, 64], "datatype": "FP32", "parameters": {"binary_data_size": 256}}
        length = {"Inference-Header-Content-Length": str(len(json.dumps({"inputs": [binary]})))}
        refused(400, "255 bytes are left", binary, length, b"\0" * 255)
        refused(400, "infinite", binary, length, struct.pack("<64f", *[float("inf")] * 64))
        refused(400, "Inference-Header-Content-Length", binary, {"Inference-Header-Content-Length": "-1"}, b"\0" * 256)
        refused(400, "the body has", binary, {"Inference-Header-Content-Length": "99999999"}, b"\0" * 256)
        assert server.ask("POST", "/v2/models/m/infer", b"x" * 200001)[0] == 413
        assert server.ask("POST", "/v2/models/m/infer", REQUEST, {"Content-Encoding": "gzip"})[0] == 415
        assert server.ask("GET", "/v2", headers={"Host": "evil.example"})[0] == 403
        # a body that never comes, one that comes slowly, and one whose sender leaves
        head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n"
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
        for s in slow:
            s.sendall(head + b"{")
        assert raw(server, head + b"{}", shut=True) == b""
        infer(server, "m")
        for s in slow:
            s.close()
        crowd(server)
        infer(server, "m")


def crowd(server):
    """1,000 connections, each with a request: every one is answered."""
    body = json.dumps(REQUEST).encode()
    request = (b"POST /v2/models/m/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
               b"Content-Length: %d\r\n\r\n" % len(body)) + body
    sockets = []
    for _ in range(1000):
        s = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        sockets.append(s)
        s.sendall(request[:100])
    for s in sockets:
        s.sendall(request[100:])
    for s in sockets:
        data = b""
        while chunk := s.recv(65536):
            data += chunk
        assert data.startswith(b"HTTP/1.1 200") and data.endswith(b"]}]}"), data[:200]
        s.close()


def unread(port):
    """Bytes that the kernel holds for a server's connections, and connections that it did not accept yet."""
    total = 0
    with open("/proc/net/tcp") as table:
        for line in list(table)[1:]:
            fields = line.split()
            if int(fields[1].split(":")[1], 16) == port:
                total += int(fields[4].split(":")[1], 16)  # of a listening socket: its queue
    return total


def check_stop(files):
    """Requests whose heads were read before SIGTERM are answered."""
    body = json.dumps(REQUEST).encode()
    request = (b"POST /v2/models/m/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)) + body
    with serving(f"m={files[0]}") as server:
        sockets = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) for _ in range(100)]
        for s in sockets:
            s.sendall(request[:-1])
        wait(lambda: unread(server.port) == 0, "the requests to be read")
        assert server.ready()
        server.process.send_signal(signal.SIGTERM)
        for s in sockets:
            s.sendall(request[-1:])
        for s in sockets:
            data = b""
            while chunk := s.recv(65536):
                data += chunk
            assert data.startswith(b"HTTP/1.1 200") and data.endswith(b"]}]}"), data[:300]


def main():
    with Assay(runners=1) as assay, tempfile.TemporaryDirectory() as folder:
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        document = os.path.join(folder, "keep.yaml")
        open(document, "w").write(SWEEP)
        assay.cli("run", document)
        assay.wait_ended("keep")
        files = []
        for i in range(2):
            assay.cli("models", "add", f"keep/{i}", "digits")
            files.append(os.path.join(folder, f"v{i + 1}.safetensors"))
            assay.cli("models", "get", f"digits@{i + 1}", files[i])
        assay.call("PUT", "/v1/models/digits/aliases/champion", {"version": 1})
        check_options_of_the_cli(files)
        check_files(files, folder)
        check_folder(files, folder)
        check_start(files, folder)
        check_hostile(files)
        check_stop(files)
        check_registry(assay, files)


if __name__ == "__main__":
    main()
