#!/usr/bin/env python3
"""Uploads of users who mean harm, from end to end: each is refused or contained, and the server
goes on.

    hostile_process.py --atunner BINARY --contract openapi.yaml

Exit status 77 where NVRTC is missing.
"""

import argparse
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.parse
import zipfile

from serve_process import SKIP, Contract, Server, relu

KERNEL = """
#include <cuda_runtime.h>
{before}
__global__ void f(float* y, const float* x, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {body}
  if (i < n) y[i] = x[i] * 2.0f;
}}
int main() {{
  float *x, *y; int n = 1024;
  {host}
  cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4);
  f<<<n / 256, 256>>>(y, x, n);
}}
"""


def upload(server, name, content, expect=201):
    return server.ask("POST", "/api/v1/uploads?name=" + urllib.parse.quote(name, safe=""), content,
                      expect=expect)


def submit(server, kind, name, content, **more):
    request = {"kind": kind, "upload": upload(server, name, content)["id"], "target_gpu": "A100",
               "budget": {"trials": 2}, **more}
    return server.ask("POST", "/api/v1/jobs", request)


def ended(server, kind, name, content):
    """The job of this upload after its end."""
    job = submit(server, kind, name, content)
    assert "id" in job, job
    return server.wait(job["id"], lambda j: j["ended"] is not None)


def refuse_names_and_sizes(server):
    for name in ("../escape.cu", "/etc/cron.d/x.cu", "a/b.cu", "..", ".cu", "x.sh", "x.cu\n",
                 "x\0.cu"):
        answer = upload(server, name, b"int main() {}", expect=None)
        assert answer.get("status") in (400, 422), (name, answer)
    upload(server, "large.cu", b"/" * (3 << 20), expect=413)


def refuse_includes(server):
    secret = pathlib.Path(server.home, "runs.db")
    for line in (f'#include "{secret}"', '#include "../../../runs.db"', "#include </etc/passwd>",
                 '#define P "/etc/passwd"\n#include P', '??=include "/etc/passwd"'):
        text = KERNEL.format(before=line, body="", host="")
        answer = submit(server, "source", "include.cu", text.encode())
        if "id" in answer:  # not refused at once: then the compiler must find nothing
            job = server.wait(answer["id"], lambda j: j["ended"] is not None)
            assert job["state"] == "failed" and "root:" not in json.dumps(job), (line, job)
        else:
            assert answer["status"] == 422, (line, answer)


def contain_archives(server):
    """A small archive with a large file, and one that names files outside of itself."""
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("m/models/model.json", "w", force_zip64=True) as file:
            for _ in range(256):
                file.write(bytes(1 << 20))
    job = ended(server, "graph", "bomb.pt2", bomb.getvalue())
    assert job["state"] == "failed", job
    escape = io.BytesIO()
    with zipfile.ZipFile(escape, "w") as archive:
        archive.writestr("../../../../tmp/atunner-escaped", "x")
        archive.writestr("/tmp/atunner-escaped", "x")
    job = ended(server, "graph", "escape.pt2", escape.getvalue())
    assert job["state"] == "failed", job
    assert not pathlib.Path("/tmp/atunner-escaped").exists()


def contain_sources(server):
    """Host code is never run, and a text that never compiles ends its job, not its worker."""
    mark = pathlib.Path(server.home, "mark")
    host = f'system("touch {mark}"); fopen("{mark}", "w"); while (fork() >= 0);'
    job = ended(server, "source", "host.cu", KERNEL.format(before="", body="", host=host).encode())
    assert job["state"] == "succeeded", job
    assert not mark.exists(), "the host code of an upload was run"
    deep = ("template <int N> struct S { static const int v = S<N - 1>::v + S<N - 2>::v; };\n"
            "template <int A, int B> struct T { static const int v = T<A - 1, B + 1>::v "
            "+ T<A - 1, B + 2>::v; };\n"
            "template <int B> struct T<0, B> { static const int v = 1; };")
    bomb = KERNEL.format(before=deep, body="y[0] = T<400, 0>::v;", host="")
    job = ended(server, "source", "deep.cu", bomb.encode())
    assert job["state"] == "failed" and job["losses"] == 0, job


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
    with tempfile.TemporaryDirectory() as home:
        options.cache = f"{home}/cache"
        server = Server(options, home, "--upload-megabytes", "2")
        try:
            for test in (refuse_names_and_sizes, refuse_includes, contain_archives,
                         contain_sources):
                begin = time.monotonic()
                test(server)
                print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
            job = server.ask("POST", "/api/v1/jobs", relu(1), expect=202)["id"]
            last = server.wait(job, lambda j: j["ended"] is not None)
            assert last["state"] == "succeeded", "the server goes on"
            server.stop()
        except BaseException:
            print(pathlib.Path(home, "server.log").read_text()[-4000:], file=sys.stderr)
            server.kill()
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
