#!/usr/bin/env python3
"""Tests the packages that package.py made.

    package_test.py FOLDER

The .deb is unpacked beside glibc alone; as root the program then runs in there by chroot, else
where it lies. Its server must answer. The tarball's program and the wheel's modules and program
run, too.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import venv


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def add_package(root, package):
    """Files of an installed package that programs need to start: its shared libraries."""
    for name in run("dpkg", "-L", package).split():
        source = pathlib.Path(name)
        if ".so" not in source.name or not source.is_file():
            continue
        for place in {source, pathlib.Path("/usr" + name if name.startswith("/lib") else name)}:
            target = root / place.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    loader = root / "lib64/ld-linux-x86-64.so.2"
    if not loader.exists() and package == "libc6":
        loader.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2("/lib64/ld-linux-x86-64.so.2", loader)


def depends_of(deb):
    field = run("dpkg-deb", "--field", str(deb), "Depends")
    return [one.split()[0] for one in field.strip().split(",")]


def answers(command, environment=None):
    """Starts a server, asks whether it is well, and ends it."""
    server = subprocess.Popen([*command, "serve", "--json", "--listen", "127.0.0.1:0", "--workers",
                               "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment)
    line = server.stdout.readline()
    if not line:
        raise AssertionError(server.stderr.read())
    try:
        with urllib.request.urlopen(json.loads(line)["url"] + "/healthz", timeout=20) as answer:
            assert answer.read() == b"ok\n"
    finally:
        server.terminate()
        assert server.wait(timeout=60) == 0, server.stderr.read()


def test_deb(deb, folder):
    root = folder / "root"
    run("dpkg-deb", "--extract", str(deb), str(root))
    for file in ("usr/lib/systemd/system/atunner.service", "usr/share/doc/atunner/copyright",
                 "usr/include/atunner.h", "usr/lib/x86_64-linux-gnu/libatunner_cuda.so"):
        assert (root / file).exists(), file
    home = {"XDG_DATA_HOME": str(folder / "data"), "PATH": os.environ["PATH"]}
    if os.geteuid() != 0:
        answers([str(root / "usr/bin/atunner")], home)
        return "where it lies"
    for package in depends_of(deb):
        add_package(root, package)
    for name in ("tmp", "dev", "proc"):
        (root / name).mkdir(exist_ok=True)
    (root / "dev/urandom").write_bytes(os.urandom(1 << 16))
    command = ["chroot", str(root), "/usr/bin/atunner"]
    version = run(*command, "--version").split()[-1]
    assert version == run("dpkg-deb", "--field", str(deb), "Version").strip(), version
    # The server finds itself by /proc; without workers it starts no other program.
    answers(command, {"XDG_DATA_HOME": "/tmp/data", "PATH": os.environ["PATH"]})
    return "in a root with " + " and ".join(depends_of(deb)) + " alone"


def test_tarball(file, folder):
    with tarfile.open(file) as archive:
        archive.extractall(folder)
    program = folder / file.name.removesuffix(".tar.xz") / "bin/atunner"
    assert "softmax" in run(str(program), "operators")


def test_wheel(file, folder):
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    run(str(environment / "bin/pip"), "install", "--quiet", "--no-index", "--no-deps", str(file))
    python = str(environment / "bin/python")
    assert "libatunner" in run(python, "-c", "import atunner_runtime, sys; "
                               "print(atunner_runtime._library()._name)", cwd=folder)
    assert "softmax" in run(str(environment / "bin/atunner"), "operators")
    assert (environment / "lib/libatunner_cuda.so").exists()


def main():
    packages = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (deb,), (tarball,), (wheel,) = (list(packages.glob(ending))
                                        for ending in ("*.deb", "*.tar.xz", "*.whl"))
        print(f"{deb.name}: starts and serves {test_deb(deb, folder)}")
        test_tarball(tarball, folder)
        print(f"{tarball.name}: the program runs")
        test_wheel(wheel, folder)
        print(f"{wheel.name}: installs; module and program run")


main()
