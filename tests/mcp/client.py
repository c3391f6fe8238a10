"""A client of `atunner mcp` over standard input and output: one JSON a line."""

import json
import queue
import subprocess
import threading


class Client:
    """Starts the server and numbers the requests. `log` is called with each line and its sender."""

    def __init__(self, atunner, arguments=(), env=None, log=lambda who, line: None):
        self.log = log
        self.process = subprocess.Popen(
            [atunner, "mcp", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=env, text=True, bufsize=1)
        self.lines = queue.Queue()
        self.notifications = []
        self.next_id = 1
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.log("server", line.rstrip("\n"))
            self.lines.put(line)
        self.lines.put(None)

    def send_text(self, line):
        self.log("client", line)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def notify(self, method, params):
        self.send_text(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def begin(self, method, params):
        """Sends a request and returns its id."""
        number, self.next_id = self.next_id, self.next_id + 1
        self.send_text(json.dumps(
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        return number

    def receive(self, timeout=300):
        line = self.lines.get(timeout=timeout)
        assert line is not None, "the server ended"
        return json.loads(line)

    def answer(self, number):
        """The answer to a request; notifications before it are kept."""
        while True:
            message = self.receive()
            if message.get("id") == number:
                return message
            assert "id" not in message, message
            self.notifications.append(message)

    def request(self, method, params):
        return self.answer(self.begin(method, params))

    def initialize(self):
        answer = self.request("initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}})
        self.notify("notifications/initialized", {})
        return answer["result"]

    def call(self, tool, arguments, fails=False):
        """The structured result of a tool."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})["result"]
        value = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == value
        assert result["isError"] == fails, value
        return value

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=300)
