#!/usr/bin/env python3
"""Makes packages of a finished build: a .deb, a tarball and a wheel.

    package.py BUILD OUT     for example build/release build/packages

All hold the program, the libraries that it loads into other programs, the runtime library with its
headers, and the Python modules. The version is the one of the program. Equal files give equal
packages: times in them are that of the last commit. package_test.py tests them.
"""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ["libatunner_cuda.so", "libatunner_record.so", "libatunner_nccl.so",
             "libatunner_memory.so"]
TRIPLET = "x86_64-linux-gnu"
MAINTAINER = "The atunner contributors <atunner@users.noreply.github.com>"


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def last_commit():
    """Seconds since 1970; 0 outside a repository."""
    try:
        return int(run("git", "-C", str(ROOT), "log", "-1", "--format=%ct"))
    except (subprocess.CalledProcessError, FileNotFoundError, ValueError):
        return 0


def newest_glibc(files):
    """The newest version of glibc that these programs and libraries ask for."""
    versions = set()
    for file in files:
        versions.update(re.findall(r"\bGLIBC_(\d+)\.(\d+)", run("objdump", "-T", str(file))))
    return max((int(major), int(minor)) for major, minor in versions)


def needed_libraries(files):
    return {name for file in files
            for name in re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", str(file)))}


def stage(build, root):
    """The tree below a prefix: bin, lib, include, share."""
    run("cmake", "--install", str(build), "--component", "runtime", "--prefix", str(root))
    installed = root / "lib" / TRIPLET
    (root / "bin").mkdir()
    if installed.exists():
        for file in sorted(installed.iterdir()):
            file.rename(root / "lib" / file.name)
        installed.rmdir()
    shutil.copy2(build / "faces/atunner", root / "bin/atunner")
    for name in LIBRARIES:
        shutil.copy2(build / "faces" / name, root / "lib" / name)
    documents = root / "share/doc/atunner"
    documents.mkdir(parents=True)
    for name in ("README.md", "CHANGELOG.md"):
        shutil.copy2(ROOT / name, documents / name)
    shutil.copy2(ROOT / "LICENSE", documents / "copyright")
    for file in programs_of(root):
        run("strip", "--strip-unneeded", str(file))
    for path in root.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)


def programs_of(root):
    return [path for path in sorted(root.rglob("*"))
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"]


def age(root, seconds):
    for path in [root, *root.rglob("*")]:
        os.utime(path, (seconds, seconds), follow_symlinks=False)


def make_deb(staged, out, version, seconds):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "root")
        shutil.copytree(staged, root / "usr", symlinks=True)
        (root / "usr/lib").rename(root / "usr/libraries")
        (root / "usr/lib").mkdir()
        (root / "usr/libraries").rename(root / "usr/lib" / TRIPLET)
        unit = root / "usr/lib/systemd/system"
        unit.mkdir(parents=True)
        shutil.copy(ROOT / "deploy/systemd/atunner.service", unit)
        programs = programs_of(root)
        others = needed_libraries(programs) - {"libstdc++.so.6", "libgcc_s.so.1"}
        glibc = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
                 "ld-linux-x86-64.so.2"}
        assert others <= glibc, f"libraries beyond glibc: {others - glibc}"
        depends = [f"libc6 (>= {'.'.join(map(str, newest_glibc(programs)))})"]
        if "libstdc++.so.6" in needed_libraries(programs):
            depends.append("libstdc++6")
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(
            f"Package: atunner\nVersion: {version}\nArchitecture: amd64\nSection: devel\n"
            f"Priority: optional\nMaintainer: {MAINTAINER}\nInstalled-Size: {size}\n"
            f"Depends: {', '.join(depends)}\nSuggests: nvidia-cuda-toolkit, python3\n"
            "Homepage: https://github.com/atunner/atunner\n"
            "Description: autotuner for CUDA kernels\n"
            " Give it an operator, a CUDA kernel, a running program or a PyTorch model; get back\n"
            " a faster kernel for your GPU, verified, with the evidence. Without a GPU a virtual\n"
            " one predicts times. Compiling kernels needs CUDA's run-time compiler (NVRTC).\n")
        age(root, seconds)
        file = out / f"atunner_{version}_amd64.deb"
        run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(file),
            env=dict(os.environ, SOURCE_DATE_EPOCH=str(seconds)))
    return file


def make_tarball(staged, out, version, seconds):
    name = f"atunner-{version}-linux-x86_64"

    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = seconds
        return entry

    file = out / f"{name}.tar.xz"
    with tarfile.open(file, "w:xz") as archive:
        for path in sorted(staged.rglob("*")):
            archive.add(path, f"{name}/{path.relative_to(staged)}", recursive=False, filter=plain)
    return file


def wheel_metadata(version):
    """METADATA and entry_points.txt of faces/python/pyproject.toml."""
    project = tomllib.loads((ROOT / "faces/python/pyproject.toml").read_text())["project"]
    assert project["version"] == version, f"pyproject.toml says {project['version']}"
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}",
             f"Summary: {project['description']}", f"License: {project['license']['text']}",
             f"Requires-Python: {project['requires-python']}",
             "Description-Content-Type: text/markdown"]
    for extra, needed in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {one}; extra == "{extra}"' for one in needed]
    readme = (ROOT / "faces/python" / project["readme"]).read_text()
    points = "".join(f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in pairs.items())
                     for group, pairs in project["entry-points"].items())
    return "\n".join(lines) + "\n\n" + readme, points


def make_wheel(staged, out, version, seconds):
    """A wheel (PEP 427): `atunner` goes into bin/, its libraries into lib/ of the environment."""
    major, minor = newest_glibc(programs_of(staged))
    tag = f"py3-none-manylinux_{major}_{minor}_x86_64"
    modules = staged / "share/atunner/python"
    files = {str(path.relative_to(modules)): path.read_bytes()
             for path in sorted(modules.rglob("*")) if path.is_file()}
    files["libatunner_runtime.so"] = (staged / "lib/libatunner_runtime.so.1").read_bytes()
    data = f"atunner-{version}.data"
    files[f"{data}/scripts/atunner"] = (staged / "bin/atunner").read_bytes()
    for name in LIBRARIES:
        files[f"{data}/data/lib/{name}"] = (staged / "lib" / name).read_bytes()
    info = f"atunner-{version}.dist-info"
    metadata, points = wheel_metadata(version)
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/entry_points.txt"] = points.encode()
    files[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: atunner\nRoot-Is-Purelib: false\n"
                              f"Tag: {tag}\n").encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(content)}\n")
    files[f"{info}/RECORD"] = ("".join(record) + f"{info}/RECORD,,\n").encode()
    date = max(time.gmtime(seconds)[:6], (1980, 1, 1, 0, 0, 0))
    file = out / f"atunner-{version}-{tag}.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, content)
    return file


def main():
    build, out = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    version = run(str(build / "faces/atunner"), "--version").split()[-1]
    assert re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", version), f"{version!r} is no version"
    seconds = last_commit()
    with tempfile.TemporaryDirectory() as folder:
        staged = pathlib.Path(folder, "staged")
        stage(build, staged)
        for make in (make_deb, make_tarball, make_wheel):
            file = make(staged, out, version, seconds)
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            print(f"{digest}  {file.name}  ({file.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
