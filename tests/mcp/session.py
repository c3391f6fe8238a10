#!/usr/bin/env python3
"""A coding agent's session with `atunner mcp`, scripted: it compiles a kernel with an error, mends
it, is refused for a wrong result, mends that, times, tunes and submits. Exit code 77: no NVRTC."""

import argparse
import json
import os
import subprocess
import tempfile
import time

from client import Client

# A warp reduces a row of 256 numbers; ROWS rows share a block.
KERNEL = r"""
extern "C" __global__ void row_softmax(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x * ROWS + threadIdx.y;
  if (row >= rows) return;
  x += (size_t)row * cols;
  y += (size_t)row * cols;
  float top = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += 32) top = fmaxf(top, x[i]);
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, d));
  float sum = 0;
  for (int i = threadIdx.x; i < cols; i += 32) sum += expf(x[i] - top);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
  for (int i = threadIdx.x; i < cols; i += 32) y[i] = expf(x[i] - top) / sum;
}
"""
WITH_ERROR = KERNEL.replace("float sum = 0;", "float sum = 0")
WRONG = KERNEL.replace(" / sum;", ";")  # not normalised
LAUNCH = [{"kernel": "row_softmax", "grid": ["(rows + ROWS - 1) // ROWS"], "block": [32, "ROWS"],
           "arguments": ["x", "y", "rows: int32", "cols: int32"]}]


def proposal(problem, source, rows=(4,)):
    return {"problem": problem, "source": source, "launch": LAUNCH,
            "parameters": {"ROWS": list(rows)}}


def check_protocol(client):
    """The lists, a resource, a prompt, and errors of the protocol."""
    assert client.request("ping", {})["result"] == {}
    tools = client.request("tools/list", {})["result"]["tools"]
    assert len(tools) == 14, [tool["name"] for tool in tools]
    for tool in tools:
        assert not tool["inputSchema"]["additionalProperties"], tool
        assert "tolerance" not in tool["inputSchema"]["properties"]
        assert "accuracy" not in tool["inputSchema"]["properties"]
    templates = client.request("resources/templates/list", {})["result"]["resourceTemplates"]
    assert any(one["uriTemplate"] == "atunner://operator/{name}" for one in templates)
    read = client.request("resources/read", {"uri": "atunner://operator/softmax"})["result"]
    assert "softmax" in read["contents"][0]["text"]
    prompt = client.request("prompts/get", {"name": "optimise", "arguments": {
        "kernel": "softmax 64,256"}})["result"]
    assert "softmax 64,256" in prompt["messages"][0]["content"]["text"]
    assert client.request("prompts/get", {"name": "optimise"})["error"]["code"] == -32602
    assert client.request("resources/read", {"uri": "atunner://no"})["error"]["code"] == -32002
    assert client.request("tools/call", {"name": "no"})["error"]["code"] == -32602
    assert client.request("no/method", {})["error"]["code"] == -32601
    client.send_text("this is no JSON")
    assert client.receive()["error"]["code"] == -32700


def check_boundaries(client, problem):
    """What is registered stays; wrong arguments are data that say what to do."""
    for key in ("tolerance", "shapes", "baseline", "accuracy", "gpu"):
        refused = client.call("verify", {"problem": problem, key: "x"}, fails=True)
        assert key in refused["error"]["what"], refused
    refused = client.call("describe_problem", {"operator": "sofmax", "shapes": [[64, 256]]},
                          fails=True)
    assert "softmax" in refused["error"]["hint"], refused
    refused = client.call("verify", {"problem": "softmax-0"}, fails=True)
    assert "describe_problem" in refused["error"]["hint"]
    wrong = proposal(problem, KERNEL)
    wrong["launch"] = [dict(LAUNCH[0], arguments=["x", "z"])]
    assert "'z'" in client.call("compile", wrong, fails=True)["error"]["what"]


def write_kernel(client, problem):
    """An error of the compiler, a wrong result, then a right one."""
    refused = client.call("compile", proposal(problem, WITH_ERROR))
    assert not refused["compiled"] and "expected a \";\"" in refused["diagnostics"], refused
    compiled = client.call("compile", proposal(problem, KERNEL))
    assert compiled["compiled"] and compiled["kernels"][0]["registers"] > 0, compiled
    ptx = client.request("resources/read", {"uri": compiled["ptx"]["rest"]})["result"]
    assert ".entry row_softmax" in ptx["contents"][0]["text"]
    wrong = client.call("verify", proposal(problem, WRONG))
    assert not wrong["passed"] and wrong["verdict"] == "wrong-result", wrong
    assert wrong["failed"][0]["error"] > wrong["failed"][0]["bound"], wrong
    untimed = client.call("benchmark", proposal(problem, WRONG))
    assert "ns" not in untimed and untimed["speedup"] is None, untimed
    right = client.call("verify", proposal(problem, KERNEL))
    assert right["passed"] and right["verdict"] == "correct", right
    assert client.call("sanitize", proposal(problem, KERNEL))["clean"]
    outside = KERNEL.replace("i < cols; i += 32) y[i]", "i < cols + 1; i += 32) y[i]")
    hazards = client.call("sanitize", proposal(problem, outside))
    assert not hazards["clean"] and "y[i]" in hazards["hazards"][0]["at"]["text"], hazards
    ran = client.call("run", dict(proposal(problem, KERNEL), elements=4))
    result = next(tensor for tensor in ran["tensors"] if tensor["name"] == "y")
    assert ran["completed"] and len(result["first"]) == 4, ran
    assert 0 <= result["least"] <= result["greatest"] <= 1, result
    timed = client.call("benchmark", proposal(problem, KERNEL))
    assert timed["evidence"] == "predicted" and timed["ns"] > timed["floor_ns"], timed
    assert timed["baseline_ns"] > 0 and timed["limiter"], timed
    both = client.call("compare", {"problem": problem, "a": {}, "b": {
        key: value for key, value in proposal(problem, KERNEL).items() if key != "problem"}})
    assert both["a"]["passed"] and both["b_times_as_fast_as_a"] > 0, both


def tune(client, problem):
    """A job over the parameters of the client's own source."""
    job = client.call("autotune", dict(proposal(problem, KERNEL, (1, 2, 4, 8)), budget="4"))
    assert job["state"] in ("queued", "running"), job
    while job["state"] in ("queued", "running"):
        time.sleep(0.1)
        job = client.call("job_status", {"job": job["job"]})
    assert job["state"] == "finished" and job["found"] and job["trials"] == 4, job
    assert job["best_configuration"]["ROWS"] in (1, 2, 4, 8), job
    report = client.request("resources/read", {"uri": job["report"]})["result"]
    assert "**predicted**" in report["contents"][0]["text"]
    kernel = client.request("resources/read", {"uri": job["kernel"]})["result"]
    assert "row_softmax" in kernel["contents"][0]["text"]
    best = dict(proposal(problem, KERNEL, (1, 2, 4, 8)),
                configuration={"ROWS": job["best_configuration"]["ROWS"]}, note="one warp a row")
    submitted = client.call("submit", best)
    assert submitted["found"] and submitted["trials"] == 1, submitted
    assert submitted["run"] != job["run"], submitted
    refused = client.call("submit", proposal(problem, WRONG))
    assert not refused["found"] and refused["refused"]["verdict"] == "wrong-result", refused
    runs = client.call("history", {})["runs"]
    assert "one warp a row" in " ".join(run["command"] for run in runs), runs


def cancel(client, problem):
    """A long job ends when it is told to; a cancelled call gets no answer."""
    job = client.call("autotune", {"problem": problem, "budget": "10m", "fresh": True})
    number = client.begin("tools/call", {
        "name": "submit", "arguments": {"problem": problem},
        "_meta": {"progressToken": "t"}})
    client.notify("notifications/cancelled", {"requestId": number})
    client.call("job_cancel", {"job": job["job"]})
    while job["state"] in ("queued", "running"):
        time.sleep(0.1)
        job = client.call("job_status", {"job": job["job"]})
    assert job["state"] == "cancelled", job
    assert all(one["method"] == "notifications/progress" for one in client.notifications)


def check_stateless(atunner, env):
    """Revision 2026-07-28: every request for itself."""
    client = Client(atunner, env=env)
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}
    found = client.request("server/discover", {"_meta": meta})["result"]
    assert found["supportedVersions"] == ["2026-07-28"] and found["resultType"] == "complete"
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "atunner"
    called = client.request("tools/call", {
        "name": "gpu_info", "arguments": {"gpu": "H200"}, "_meta": meta})["result"]
    assert called["resultType"] == "complete" and not called["isError"]
    assert client.request("ping", {"_meta": meta})["error"]["code"] == -32601
    assert client.request("tools/list", {})["error"]["code"] == -32602
    newer = dict(meta, **{"io.modelcontextprotocol/protocolVersion": "2099-01-01"})
    refused = client.request("server/discover", {"_meta": newer})["error"]
    assert refused["code"] == -32022 and refused["data"]["requested"] == "2099-01-01"
    assert client.close() == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atunner", required=True)
    parser.add_argument("--record", help="file that receives the session, a line per message")
    options = parser.parse_args()
    doctor = subprocess.run([options.atunner, "doctor", "--json"], capture_output=True, text=True,
                            check=False).stdout
    if '"part":"NVRTC","found":true' not in doctor:
        raise SystemExit(77)
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home)
        record = open(options.record or os.devnull, "w", encoding="utf-8")
        client = Client(options.atunner, env=env,
                        log=lambda who, line: record.write(f"{who}: {line}\n"))
        assert client.initialize()["protocolVersion"] == "2025-11-25"
        check_protocol(client)
        problem = client.call("describe_problem", {
            "operator": "softmax", "shapes": [[64, 256]], "gpu": "A100"})
        assert problem["sizes"] and problem["baseline"]["launch"], problem
        check_boundaries(client, problem["problem"])
        write_kernel(client, problem["problem"])
        tune(client, problem["problem"])
        cancel(client, problem["problem"])
        assert client.close() == 0
        record.close()
        check_stateless(options.atunner, env)
    print("the session went as scripted")


if __name__ == "__main__":
    main()
