#!/usr/bin/env python3
"""TLS in assayd and assay-serve, and in every client: certificates of an authority of our own, their replacement without
closing a connection, half handshakes, and what is refused with which words."""
import contextlib
import http.client
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import warnings

from harness import BUILD, Assay, database_url, skip

ASSAYD = os.path.join(BUILD, "api", "server", "assayd")
SERVE = os.path.join(BUILD, "serve", "assay-serve")
RUNNER = os.path.join(BUILD, "trial-runner", "agent", "assay-runner")
# Asks the server over TLS with nothing but its environment.
PROGRAM = """
import json, os, ssl, urllib.request
context = ssl.create_default_context(cafile=os.environ["ASSAY_CA_FILE"])
request = urllib.request.Request(os.environ["ASSAY_SERVER"] + "/v1/sweeps/" + os.environ["ASSAY_SWEEP"],
                                 headers={"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]})
state = json.load(urllib.request.urlopen(request, context=context))["state"]
open(os.environ["ASSAY_REPORT"], "a").write(json.dumps({"loss": 1, "state": state}) + "\\n")
"""


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def key(folder, name, subject, *more):
    openssl(folder, "req", *more, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            f"{name}.key", "-subj", f"/CN={subject}")


def certificate(folder, name, days="2"):
    """A certificate for localhost, by the authority."""
    key(folder, name, name, "-out", f"{name}.csr")
    with open(os.path.join(folder, "names"), "w") as f:
        f.write("subjectAltName=DNS:localhost")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days",
            days, "-extfile", "names", "-out", f"{name}.pem")


def certificates(folder):
    for authority in ("ca", "other"):
        key(folder, authority, authority, "-x509", "-days", "2", "-out", f"{authority}.pem")
    for name in ("first", "second"):
        certificate(folder, name)
    certificate(folder, "expired", "-1")
    for part in ("pem", "key"):
        os.symlink(f"first.{part}", os.path.join(folder, f"now.{part}"))


@contextlib.contextmanager
def running(assay, program, *args, env=None):
    """(process, URL) of a program that speaks TLS with now.pem."""
    address = os.path.join(assay.data, "tls.url")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(address)
    log_path = os.path.join(assay.data, "logs", os.path.basename(program) + "-tls.log")
    with open(log_path, "ab") as log:
        process = subprocess.Popen([program, "--listen", "127.0.0.1:0", "--address-file", address, "--tls-certificate",
                                    "now.pem", "--tls-key", "now.key", *args], stdout=log, stderr=log,
                                   cwd=assay.folder, env={**assay.own_env, **(env or {})})
    try:
        assay.wait(lambda: os.path.exists(address) or process.poll() is not None, program)
        assert process.poll() is None, open(log_path).read()
        url = open(address).read().strip()
        assert url.startswith("https://127.0.0.1:"), url
        yield process, url.replace("127.0.0.1", "localhost")
    finally:
        process.terminate()
        process.wait(60)


def context(assay, authority="ca"):
    return ssl.create_default_context(cafile=os.path.join(assay.folder, f"{authority}.pem"))


def connect(assay, url):
    port = int(url.rsplit(":", 1)[1])
    return http.client.HTTPSConnection("localhost", port, context=context(assay), timeout=60)


def get(connection, path, **headers):
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def subject(connection):
    return dict(pair for name in connection.sock.getpeercert()["subject"] for pair in name)["commonName"]


def refused_starts(assay):
    """What is wrong with the files, in words."""
    cases = [(["first.pem", "second.key"], "does not fit"), (["expired.pem", "expired.key"], "has expired on"),
             (["names", "first.key"], "the certificate names"), (["first.pem", "names"], "the key names"),
             (["none.pem", "first.key"], "none.pem"), (["first.pem"], "given together")]
    for files, words in cases:
        args = [a for pair in zip(("--tls-certificate", "--tls-key"), files) for a in pair]
        for program, more in ((ASSAYD, ["--database", "postgresql:///x"]), (SERVE, ["--dir", "."])):
            done = subprocess.run([program, "--listen", "127.0.0.1:0", *more, *args], cwd=assay.folder,
                                  capture_output=True, text=True, timeout=60)
            assert done.returncode in (64, 78) and words in done.stderr, (program, files, done)


def clients(assay, url):
    """The CLI, a runner and its trial; and what they say of a server that they cannot trust."""
    ca = os.path.join(assay.folder, "ca.pem")
    token = assay.env["ASSAY_TOKEN_FILE"]
    assay.cli("sweeps", "--server", url, "--token-file", token, "--ca-file", ca)
    for server, more, words in ((url, [], "certificate"),
                                (url, ["--ca-file", os.path.join(assay.folder, "other.pem")], "certificate"),
                                (url.replace("localhost", "127.0.0.1"), ["--ca-file", ca], "127.0.0.1"),
                                (url, ["--ca-file", "/no/such.pem"], "--ca-file")):
        done = assay.cli("sweeps", "--server", server, "--token-file", token, *more, check=False)
        assert done.returncode != 0 and words in done.stderr, (server, more, done)
    program = os.path.join(assay.folder, "program.py")
    with open(program, "w") as f:
        f.write(PROGRAM)
    sweep = assay.call("POST", "/v1/sweeps", {
        "name": "tls", "metric": {"name": "loss", "goal": "minimize"}, "parameters": {"x": {"type": "int", "min": 1, "max": 9}},
        "limits": {"max_trials": 1, "max_restarts": 0}, "trial": {"command": ["python3", program]}})["id"]
    runner = subprocess.Popen([RUNNER, "--server", url, "--token-file", os.path.join(assay.data, "runner.token"), "--ca-file",
                               ca, "--name", "tls", "--work", os.path.join(assay.data, "tls-work"), "--gpus", "none"],
                              stderr=subprocess.DEVNULL)
    try:
        state = assay.wait_ended(sweep)
        trial = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")
        assert state["state"] == "completed" and trial["notes"] == {"state": "running"}, (state, trial)
        assert trial["attempts"][0]["runner"] == "tls", trial
    finally:
        runner.terminate()
        runner.wait(60)


def large_content(assay, url):
    """Bytes of many records, both ways, on one connection: nothing waits in a buffer, nothing is lost."""
    import hashlib
    connection = connect(assay, url)
    own = {"Authorization": f"Bearer {assay.token}"}
    for size in (1, 16384, 16385, 5_000_003):
        content = os.urandom(size)
        path = "/v1/blobs/" + hashlib.sha256(content).hexdigest()
        connection.request("PUT", path, content, {**own, "Content-Type": "application/octet-stream"})
        answer = connection.getresponse()
        assert answer.status == 201, (answer.status, answer.read())
        answer.read()
        assert get(connection, path, **own) == (200, content), size
    connection.close()


def replaced(assay, process, url, path):
    """A new certificate is for new connections. A broken one changes nothing."""
    old = connect(assay, url)
    status = get(old, path)[0]
    assert (status, subject(old)) == (200, "first"), (status, subject(old))
    for name, now in (("second", "second"), ("names", "second"), ("first", "first")):
        for part in ("pem", "key"):
            link = os.path.join(assay.folder, f"now.{part}")
            os.unlink(link)
            os.symlink(f"{name}.{part}" if name != "names" else "names", link)
        log = os.path.join(assay.data, "logs", os.path.basename(process.args[0]) + "-tls.log")
        said = open(log).read()
        process.send_signal(signal.SIGHUP)
        assay.wait(lambda: len(open(log).read()) > len(said), "what the program says of the signal")
        fresh = connect(assay, url)
        assert get(fresh, path)[0] == 200 and subject(fresh) == now, name
        fresh.close()
    status = get(old, path)[0]
    assert (status, subject(old)) == (200, "first"), (status, subject(old))
    old.close()


def hostile(assay, url):
    """Half handshakes take no worker, and their connections make room for others; bytes that are no TLS end theirs; a
    message that two parsers could read in two ways is refused under TLS too."""
    port = int(url.rsplit(":", 1)[1])
    hello = ssl.MemoryBIO()
    half = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        half.do_handshake()
    first = hello.read()
    waiting = []
    for i in range(40):  # the limit of one address is 16
        s = socket.create_connection(("127.0.0.1", port), 60)
        s.sendall(first[:len(first) * (i % 4) // 4] if i % 2 else first)
        waiting.append(s)
    connection = connect(assay, url)
    assert get(connection, "/healthz")[0] == 200
    connection.close()
    for s in waiting:
        s.close()
    with socket.create_connection(("127.0.0.1", port), 60) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while answer := plain.recv(4096):
                assert b"HTTP/1.1 200" not in answer, answer
    with context(assay).wrap_socket(socket.create_connection(("localhost", port), 60), server_hostname="localhost") as s:
        s.sendall(b"POST /v1/sweeps HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx")
        got = b""
        while piece := s.recv(4096):
            got += piece
        assert got.startswith(b"HTTP/1.1 400 ") and got.count(b"HTTP/1.1") == 1, got
    old = context(assay)
    warnings.simplefilter("ignore", DeprecationWarning)
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with contextlib.suppress(ssl.SSLError, ConnectionResetError), socket.create_connection(("localhost", port), 60) as raw:
        old.wrap_socket(raw, server_hostname="localhost")
        raise AssertionError("TLS 1.1 was accepted")


def main():
    try:
        subprocess.run(["openssl", "version"], check=True, stdout=subprocess.DEVNULL)
    except OSError:
        skip("openssl is not installed")
    with tempfile.TemporaryDirectory(prefix="assay-tls-") as folder, Assay(runners=0) as assay:
        assay.folder = folder
        certificates(folder)
        refused_starts(assay)
        database = {"ASSAY_DATABASE": database_url(assay), "ASSAY_TLS_CERTIFICATE": ""}
        with running(assay, ASSAYD, "--max-connections-per-address", "16", env=database) as (process, url):
            clients(assay, url)
            large_content(assay, url)
            replaced(assay, process, url, "/healthz")
            hostile(assay, url)
        with running(assay, SERVE, "--dir", folder) as (process, url):
            assert get(connect(assay, url), "/v2/health/live")[0] == 200
            replaced(assay, process, url, "/v2/health/live")
    print("ok")


if __name__ == "__main__":
    main()
