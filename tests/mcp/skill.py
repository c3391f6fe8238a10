#!/usr/bin/env python3
"""Runs the commands of skills/atunner/SKILL.md on a small kernel, as a coding agent would. Exit
code 77: no NVRTC."""

import argparse
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

SKILL = Path(__file__).parents[2] / "skills" / "atunner" / "SKILL.md"
KERNEL = r"""
#define BLOCK 64
__global__ void scale(const float* x, float* y, float a, int n) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
int main() {
  const int n = 4096;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  scale<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(x, y, 2.0f, n);
}
"""


def commands():
    """The command lines of the fenced blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", SKILL.read_text(encoding="utf-8"), re.S)
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]


def check(line, done):
    """What the text says of a command's answer."""
    assert done.returncode == 0, (line, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    if "--json" not in line:
        assert "**predicted**" in done.stdout, line
        return
    answer = json.loads(done.stdout)
    assert "error" not in answer, (line, answer)
    if "--auto-tune" in line:
        assert answer["best_configuration"] and answer["best"]["estimate"]["time_ns"] > 0
        assert answer["baselines"] and answer["evidence"] == "predicted"
    if " verify " in line:
        assert answer["verdict"]["kind"] == "correct", answer["verdict"]["reason"]
    if " sanitize " in line:
        assert answer["found"] == 0, answer
    if " predict " in line:
        assert answer["predictions"][0]["estimate"]["limiter"], answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atunner", required=True)
    atunner = Path(parser.parse_args().atunner).resolve()
    doctor = subprocess.run([atunner, "doctor", "--json"], capture_output=True, text=True,
                            check=False).stdout
    if '"part":"NVRTC","found":true' not in doctor:
        raise SystemExit(77)
    lines = commands()
    assert len(lines) >= 9, lines
    with tempfile.TemporaryDirectory() as home:
        Path(home, "kernel.cu").write_text(KERNEL, encoding="utf-8")
        env = dict(os.environ, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home)
        for line in lines:
            done = subprocess.run([atunner, *line.split()[1:]], cwd=home, env=env, text=True,
                                  capture_output=True, check=False)
            if "devices" not in line and "doctor" not in line and "operators" not in line:
                check(line, done)
            assert done.returncode == 0, (line, done.stderr)
        changed = Path(home, "best", "kernel.cu").read_text(encoding="utf-8")
        assert "scale" in changed
    print(f"{len(lines)} commands of the skill went as it says")


if __name__ == "__main__":
    main()
