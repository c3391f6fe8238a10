#!/usr/bin/env python3
"""A coding agent's session with `atunner serve` over HTTP, with tokens: it describes a problem, is
refused for a wrong kernel, mends it, has it timed. Exit code 77: no NVRTC."""

import argparse
import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.request

from session import KERNEL, WRONG, proposal


class HttpClient:
    """Messages to one URL, with a token; the session's id comes with the first answer."""

    def __init__(self, url, token):
        self.url = url
        self.headers = {"Content-Type": "application/json", "Authorization": "Bearer " + token,
                        "Accept": "application/json, text/event-stream"}
        self.next_id = 1

    def send(self, message, method="POST", **more):
        """Status and body; of a stream, its messages."""
        headers = {**self.headers, **{key.replace("_", "-"): value for key, value in more.items()}}
        body = None if message is None else json.dumps(message).encode()
        request = urllib.request.Request(self.url, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                session = answer.headers.get("Mcp-Session-Id")
                if session:
                    self.headers["Mcp-Session-Id"] = session
                text = answer.read().decode()
                if answer.headers.get("Content-Type") == "text/event-stream":
                    return answer.status, [json.loads(line[6:]) for line in text.splitlines()
                                           if line.startswith("data: ")]
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read() or b"null")

    def request(self, method, params):
        number, self.next_id = self.next_id, self.next_id + 1
        status, body = self.send(
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        answer = body[-1] if isinstance(body, list) else body
        assert status == 200 and answer["id"] == number, (status, body)
        return answer["result"]

    def call(self, tool, arguments):
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        return result["structuredContent"]


def check_access(url, submitter, reader):
    """Who may not."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert HttpClient(url, "wrong").send(hello)[0] == 401
    assert HttpClient(url, reader).send(hello)[0] == 403
    assert HttpClient(url, submitter).send(hello, Origin="http://evil.example")[0] == 403
    assert HttpClient(url, submitter).send(hello)[0] == 400, "there is no session yet"


def work(client):
    params = {"protocolVersion": "2025-11-25", "capabilities": {},
              "clientInfo": {"name": "test", "version": "1"}}
    assert client.request("initialize", params)["serverInfo"]["name"] == "atunner"
    assert client.send({"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, None)
    completed = client.request("completion/complete", {
        "ref": {"type": "ref/resource", "uri": "atunner://operator/{name}"},
        "argument": {"name": "name", "value": "soft"}})["completion"]
    assert "softmax" in completed["values"], completed
    file = client.call("describe_problem", {"file": "/etc/passwd", "gpu": "A100"})
    assert "error" in file, "clients of a server name no files of it"
    problem = client.call("describe_problem", {
        "operator": "softmax", "shapes": [[64, 256]], "gpu": "A100"})["problem"]
    for text in ('#include "/etc/passwd"', "#include </etc/passwd>", "#include <../passwd>"):
        reads = client.call("compile", proposal(problem, text + "\n" + KERNEL))
        assert reads["error"]["where"] == "arguments.source", reads
    headers = client.call("compile", proposal(problem, "#include <cuda_fp16.h>\n" + KERNEL))
    assert headers["compiled"], headers
    wrong = client.call("verify", proposal(problem, WRONG))
    assert wrong["verdict"] == "wrong-result", wrong
    right = client.call("verify", proposal(problem, KERNEL))
    assert right["passed"], right
    status, messages = client.send({
        "jsonrpc": "2.0", "id": "timed", "method": "tools/call",
        "params": {"name": "benchmark", "arguments": proposal(problem, KERNEL),
                   "_meta": {"progressToken": "p"}}})
    assert status == 200 and messages[0]["method"] == "notifications/progress", messages
    assert messages[-1]["result"]["structuredContent"]["evidence"] == "predicted", messages[-1]
    assert client.send(None, method="DELETE")[0] == 204
    assert client.send({"jsonrpc": "2.0", "id": 9, "method": "tools/list"})[0] == 404


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atunner", required=True)
    options = parser.parse_args()
    doctor = subprocess.run([options.atunner, "doctor", "--json"], capture_output=True, text=True,
                            check=False).stdout
    if '"part":"NVRTC","found":true' not in doctor:
        raise SystemExit(77)
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home)

        def token(scope):
            made = subprocess.run([options.atunner, "token", "create", "--name", scope, "--scope",
                                   scope], capture_output=True, text=True, env=env, check=True)
            return made.stdout.strip()

        submitter, reader = token("submit"), token("read")
        server = subprocess.Popen(
            [options.atunner, "serve", "--listen", "127.0.0.1:0", "--workers", "0", "--json",
             "--require-tokens"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        try:
            url = json.loads(server.stdout.readline())["url"] + "/mcp"
            check_access(url, submitter, reader)
            work(HttpClient(url, submitter))
        finally:
            server.terminate()
            assert server.wait(timeout=60) == 0
    print("the session over HTTP went as scripted")


if __name__ == "__main__":
    main()
