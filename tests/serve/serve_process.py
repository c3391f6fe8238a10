#!/usr/bin/env python3
"""`atunner serve` and `submit` as processes, on the virtual GPU.

    serve_process.py --atunner BINARY --contract openapi.yaml

Submits a job, waits for its artifact, cancels another, kills the server in the middle of a third
and starts it again, tries tokens, and validates every JSON answer against the contract. Exit status
77 where NVRTC, PyYAML or jsonschema is missing.
"""

import argparse
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

try:
    import jsonschema
    import yaml
except ImportError:
    print("PyYAML or jsonschema is not installed")
    sys.exit(77)

SKIP = 77
PATIENCE_SECONDS = 300

SOURCE = """
#include <cuda_runtime.h>
#define BLOCK 128
__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
int main() {
  const int n = 4096;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  scale<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(x, y, n);
}
"""


class Contract:
    """Finds the schema of an answer, and validates it."""

    def __init__(self, path):
        self.document = yaml.safe_load(pathlib.Path(path).read_text())
        self.checked = 0

    def operation(self, method, path):
        wanted = path.split("?")[0].strip("/").split("/")
        for pattern, operations in self.document["paths"].items():
            parts = pattern.strip("/").split("/")
            same = len(parts) == len(wanted) and all(
                a == b or a.startswith("{") for a, b in zip(parts, wanted))
            if same and method.lower() in operations:
                return operations[method.lower()]
        raise AssertionError(f"{method} {path} is not in the contract")

    def check(self, method, path, status, content_type, body):
        responses = self.operation(method, path)["responses"]
        # Refusals by token or origin may answer any request.
        response = responses.get(str(status))
        if response is None and status in (401, 403, 421, 429):
            response = {"$ref": "#/components/responses/Problem"}
        assert response is not None, f"{method} {path}: {status} is not in the contract"
        if "$ref" in response:
            response = self.document["components"]["responses"][response["$ref"].split("/")[-1]]
        kind = content_type.split(";")[0]
        if "content" not in response or not kind.endswith("json"):
            return
        assert kind in response["content"], f"{method} {path}: {kind} is not in the contract"
        schema = dict(response["content"][kind]["schema"])
        schema["components"] = self.document["components"]
        jsonschema.Draft202012Validator(schema).validate(json.loads(body))
        self.checked += 1


class Server:
    """A server in a folder of its own."""

    def __init__(self, options, home, *flags):
        self.binary, self.contract = options.atunner, options.contract
        self.home, self.flags = home, flags
        self.environment = dict(os.environ, XDG_DATA_HOME=f"{home}/data",
                                XDG_CACHE_HOME=options.cache, XDG_CONFIG_HOME=f"{home}/config")
        self.environment.pop("ATUNNER_TOKEN", None)
        self.port = 0
        self.token = None
        self.start()

    def start(self):
        log = open(f"{self.home}/server.log", "a")
        self.process = subprocess.Popen(
            [self.binary, "serve", "--json", "--store", f"{self.home}/runs.db", "--listen",
             f"127.0.0.1:{self.port}", *self.flags],
            env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        assert line, pathlib.Path(f"{self.home}/server.log").read_text()
        assert "url" in json.loads(line), line
        self.url = json.loads(line)["url"]
        self.port = int(self.url.rsplit(":", 1)[1])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=PATIENCE_SECONDS) == 0

    def ask(self, method, path, body=None, headers=None, expect=None):
        headers = dict(headers or {})
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers,
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text = answer.status, answer.read()
                kind = answer.headers.get("Content-Type") or ""
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
            kind = error.headers.get("Content-Type") or ""
        self.contract.check(method, path, status, kind, text)
        if expect is not None:
            assert status == expect, f"{method} {path}: {status} {text[:500]}"
        return json.loads(text) if kind.split(";")[0].endswith("json") else text

    def get(self, path, expect=200):
        return self.ask("GET", path, expect=expect)

    def run(self, *arguments, **variables):
        environment = dict(self.environment, ATUNNER_SERVER=self.url, **variables)
        return subprocess.run([self.binary, *arguments], env=environment, text=True,
                              capture_output=True, cwd=self.home, timeout=PATIENCE_SECONDS)

    def wait(self, job, until):
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            answer = self.get(f"/api/v1/jobs/{job}")
            if until(answer):
                return answer
            time.sleep(0.1)
        raise AssertionError(f"job {job} did not get there: {answer}")


class Collector(http.server.ThreadingHTTPServer):
    """Takes traces as a collector of OpenTelemetry does."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v1/traces", self.path
            for resource in body["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    self.server.spans += scope["spans"]
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.spans = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


def look_at_spans(spans, job):
    """The request that submitted the job leads to the job's trace."""
    sent = [span for span in spans if span["name"] == "POST /api/v1/jobs" and "links" in span]
    of_job = [span for span in spans
              if {"key": "atunner.job.id", "value": {"stringValue": job["id"]}}
              in span["attributes"]]
    assert [span["name"] for span in of_job] == ["job"], of_job
    link = {"traceId": of_job[0]["traceId"], "spanId": of_job[0]["spanId"]}
    assert [link] in [span["links"] for span in sent], sent
    parts = [span["name"] for span in spans if span.get("parentSpanId") == link["spanId"]]
    assert parts == ["queued", "attempt"], parts


def relu(trials, columns=64):
    return {"kind": "operator", "operator": "relu", "shapes": [[64, columns]],
            "target_gpu": "A100", "budget": {"trials": trials}, "baselines": False}


def submit_and_fetch(server):
    done = server.run("submit", "--operator", "relu", "--input-shape", "64,64", "--target-gpu",
                      "A100", "--budget", "3", "--wait", "--out", "best", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    job = json.loads(done.stdout)
    assert job["state"] == "succeeded" and job["evidence"] == "predicted", job
    manifest = json.loads(pathlib.Path(server.home, "best", "manifest.json").read_text())
    assert manifest, "the artifact came back"
    local = server.run("optimize", "--operator", "relu", "--input-shape", "64,64", "--target-gpu",
                       "A100", "--budget", "3", "--store", f"{server.home}/local.db", "--json",
                       "--out", "local")
    assert json.loads(local.stdout)["best"]["estimate"]["time_ns"] == job["best"]["time_ns"], \
        "the server's result is the local one"
    return job


def look_at_everything(server, job):
    run = job["runs"][0]
    for path in ("/healthz", "/readyz", "/metrics", "/", "/api/v1/openapi.yaml", "/api/v1/status",
                 "/api/v1/devices", "/api/v1/operators", "/api/v1/workers", "/api/v1/jobs",
                 "/api/v1/jobs?state=succeeded&limit=1", f"/api/v1/jobs/{job['id']}",
                 f"/api/v1/jobs/{job['id']}/artifacts", f"/api/v1/jobs/{job['id']}/artifacts.tar",
                 f"/api/v1/jobs/{job['id']}/artifacts/kernel.cu", "/api/v1/runs",
                 f"/api/v1/runs/{run}", f"/api/v1/runs/{run}/report",
                 f"/api/v1/runs/{run}/trials?sort=time_ns", f"/api/v1/runs/{run}/trials/1",
                 "/api/v1/tokens", "/api/v1/audit?limit=5", "/api/v1/knowledge",
                 "/api/v1/knowledge?q=bank%20conflicts&limit=3", "/api/v1/knowledge/roofline"):
        if path == "/":
            with urllib.request.urlopen(server.url + path) as page:
                assert b"atunner" in page.read()
        else:
            server.get(path)
    events = server.get(f"/api/v1/jobs/{job['id']}/events").decode()
    assert events.count("event: trial\n") == 3 and events.count("event: end\n") == 1, events
    for path in ("/api/v1/jobs/none", "/api/v1/runs/none", f"/api/v1/runs/{run}/trials/99"):
        server.get(path, expect=404)
    server.ask("POST", "/api/v1/jobs", {"kind": "operator", "operator": "sofmax"}, expect=422)


def tune_a_source(server):
    pathlib.Path(server.home, "scale.cu").write_text(SOURCE)
    done = server.run("submit", "scale.cu", "--target-gpu", "A100", "--budget", "2", "--wait",
                      "--out", "scale", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert pathlib.Path(server.home, "scale", "manifest.json").exists()
    wrong = server.run("submit", "none.cu", "--target-gpu", "A100")
    assert wrong.returncode == 2 and "none.cu" in wrong.stderr, wrong.stderr


def cancel_with_best(server):
    job = server.ask("POST", "/api/v1/jobs", relu(100000, 96), expect=202)["id"]
    server.wait(job, lambda j: j["best"] is not None)
    server.ask("DELETE", f"/api/v1/jobs/{job}", expect=202)
    ended = server.wait(job, lambda j: j["ended"] is not None)
    assert ended["state"] == "cancelled" and ended["best"] and ended["artifact"], ended


def survive_a_kill(server):
    headers = {"Idempotency-Key": "once"}
    job = server.ask("POST", "/api/v1/jobs", relu(12, 160), headers, expect=202)["id"]
    server.wait(job, lambda j: j["budget"]["used_trials"] > 0)
    server.kill()
    server.start()
    assert server.ask("POST", "/api/v1/jobs", relu(12, 160), headers, expect=202)["id"] == job
    ended = server.wait(job, lambda j: j["ended"] is not None)
    assert ended["state"] == "succeeded" and ended["attempts"] == 2, ended
    trials = server.get(f"/api/v1/runs/{ended['runs'][-1]}/trials?limit=1000")
    numbers = [trial["number"] for trial in trials["trials"]]
    assert len(numbers) == len(set(numbers)) == trials["total"] >= 12, numbers
    events = server.get(f"/api/v1/jobs/{job}/events").decode()
    assert events.count("event: end\n") == 1


def use_tokens(options, home):
    store = ["--store", f"{home}/runs.db"]
    environment = dict(os.environ, XDG_DATA_HOME=f"{home}/data")
    refused = subprocess.run([options.atunner, "serve", "--listen", "0.0.0.0:0", *store],
                             env=environment, text=True, capture_output=True)
    assert refused.returncode == 2 and "token create" in refused.stderr, refused.stderr

    def create(name, scopes):
        made = subprocess.run([options.atunner, "token", "create", "--name", name, "--scope",
                               scopes, "--expires", "1d", *store],
                              env=environment, text=True, capture_output=True)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    reader, submitter = create("reader", "read"), create("ci", "submit,read")
    server = Server(options, home, "--require-tokens", "--workers", "0")
    server.get("/api/v1/jobs", expect=401)
    server.token = reader
    server.get("/api/v1/jobs")
    server.ask("POST", "/api/v1/jobs", relu(1), expect=403)
    sent = server.run("submit", "--operator", "relu", "--input-shape", "4,4", "--target-gpu",
                      "A100", ATUNNER_TOKEN=submitter)
    assert sent.returncode == 0 and sent.stdout.startswith("j-"), sent.stderr
    listed = server.run("token", "list", *store)
    assert reader not in listed.stdout and "reader" in listed.stdout
    assert server.run("token", "revoke", "reader", *store).returncode == 0
    server.get("/api/v1/jobs", expect=401)
    server.stop()
    log = pathlib.Path(home, "server.log").read_text()
    assert reader not in log and submitter not in log, "a secret is in the log"
    for line in log.splitlines():
        json.loads(line)


def speak_tls(options, home):
    """Over TLS with a certificate of its own; the workers of the same machine work, too."""
    if not shutil.which("openssl"):
        return
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{home}/key.pem", "-out",
                    f"{home}/cert.pem", "-days", "1", "-subj", "/CN=test", "-addext",
                    "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    server = Server(options, home, "--tls-cert", f"{home}/cert.pem", "--tls-key",
                    f"{home}/key.pem")
    try:
        assert server.url.startswith("https://"), server.url
        words = ["submit", "--operator", "relu", "--input-shape", "64,64", "--target-gpu", "A100",
                 "--budget", "2", "--wait", "--out", "best", "--json"]
        refused = server.run(*words)
        assert refused.returncode != 0 and "--ca" in refused.stdout + refused.stderr, refused
        done = server.run(*words, "--ca", f"{home}/cert.pem")
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["state"] == "succeeded", done.stdout
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atunner", required=True)
    parser.add_argument("--contract", required=True)
    options = parser.parse_args()
    doctor = subprocess.run([options.atunner, "doctor", "--json"], text=True, capture_output=True)
    if '"part":"NVRTC","found":true' not in doctor.stdout:
        print("NVRTC is not installed")
        return SKIP
    options.contract = Contract(options.contract)
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as other:
        options.cache = f"{home}/cache"
        with contextlib.ExitStack() as stack:
            collector = stack.enter_context(Collector())
            server = Server(options, home, "--lease-seconds", "6", "--otlp",
                            f"http://127.0.0.1:{collector.server_port}")
            stack.callback(server.kill)
            try:
                job = submit_and_fetch(server)
                look_at_everything(server, job)
                tune_a_source(server)
                cancel_with_best(server)
                survive_a_kill(server)
                server.stop()
                look_at_spans(collector.spans, job)
                use_tokens(options, other)
                speak_tls(options, other)
            except AssertionError:
                print(pathlib.Path(home, "server.log").read_text()[-4000:], file=sys.stderr)
                raise
    print(f"{options.contract.checked} answers fit the contract")
    return 0


if __name__ == "__main__":
    sys.exit(main())
