"""The image of a Dockerfile, made and run without a container engine.

Each stage is an overlay on this machine's root, in a mount namespace. Its files come from the steps of the
Dockerfile; its base, with Python and a C library, is this machine.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tests.brokers.jars import ROOT
from tests.brokers.processes import Process, wait_for
from tests.deploy.dockerfile import Instruction, argument, let_in, stages, substituted

PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
SAID_ONLY = {"EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
TOLD = ("PIP_", "SSL_CERT_", "REQUESTS_CA_")  # of the machine: where and how pip gets packages
TOLD_WHOLE = {"http_proxy", "https_proxy", "no_proxy"}


@dataclass
class Image:
    """A stage as its steps left it. `root` is a folder in the mount namespace of the process `holder`."""

    holder: int
    root: Path
    user: str = "0:0"
    folder: str = "/"
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    arguments: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def words(self, name: str) -> list[str]:
        """Of an instruction in JSON form, behind its options."""
        text = self.said[name]
        found: list[str] = json.loads(text[text.index("[") :])
        return found

    def inside(self, words: Sequence[str]) -> list[str]:
        """A command that runs in the root, as the image's user."""
        user, _, group = self.user.partition(":")
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        as_user = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--inh-caps=-all"]
        where = ["chroot", str(self.root), "env", "-i", f"--chdir={self.folder}", *settings]
        return (
            [*where, *as_user, "--bounding-set=-all", "--no-new-privs", *words]
            if user != "0"
            else [*where, *words]
        )

    def do(self, *words: str, given: bytes = b"") -> str:
        """Run a command beside the root, which it sees as a folder; its output."""
        entered = ["nsenter", f"--target={self.holder}", "--mount", "--wd=/", *words]
        done = subprocess.run(entered, input=given, capture_output=True, timeout=280, check=False)
        assert done.returncode == 0, f"{shlex.join(words)}\n{(done.stdout + done.stderr).decode()}"
        return done.stdout.decode()

    @contextmanager
    def running(self, log: Path, *arguments: str) -> Iterator[Process]:
        """The entrypoint, as the first process of a container with no network and a read-only root."""
        command = shlex.join(self.inside([*self.words("ENTRYPOINT"), *arguments]))
        root = self.root
        read_only = f"mount --rbind {root} {root}; mount -o remount,bind,ro {root}; umount {root}/tmp"
        steps = f"{read_only}; mount -t proc proc {root}/proc; ip link set lo up"
        apart = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
        script = f"set -e; {steps}; exec {command}"
        target = [f"--target={self.holder}", "--mount", "--wd=/"]
        process = Process(["nsenter", *target, *apart, "sh", "-c", script], log)
        try:
            yield process
        finally:  # a process that has changed its user does not die with `unshare`
            for first in _children(process.child.pid):
                os.kill(first, signal.SIGKILL)
            process.kill()

    def beside(self, process: Process, *words: str) -> tuple[int, str]:
        """Run a command in the container of `running`; its exit code and output."""
        first = _only_child(process.child.pid)
        entered = ["nsenter", f"--target={first}", "--mount", "--net", "--pid", "--wd=/", *self.inside(words)]
        done = subprocess.run(entered, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    def signal(self, process: Process, name: str) -> None:
        """Send a signal to the entrypoint."""
        subprocess.run(["kill", f"-{name}", str(_only_child(process.child.pid))], check=True)


def _children(pid: int) -> list[int]:
    """None of a process that has ended."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return list(map(int, children.read_text().split())) if children.exists() else []


def _only_child(pid: int) -> int:
    """The process that `unshare --fork` makes."""
    [child] = wait_for(lambda: _children(pid), "unshare")
    return child


@contextmanager
def built(**arguments: str) -> Iterator[Image]:
    """The last stage of the Dockerfile; `arguments` are those of --build-arg."""
    assert os.geteuid() == 0, "the steps of the Dockerfile need root, for namespaces"
    script = "mount -t tmpfs -o size=2g,mode=755 tmpfs /mnt && echo ready && exec sleep infinity"
    holder = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        made: dict[str, Image] = {}
        for number, stage in enumerate(stages(ROOT / "Dockerfile", arguments)):
            image = _empty(holder.pid, Path(f"/mnt/{number}"))
            for instruction in stage.instructions:
                _carry_out(instruction, image, made, arguments)
            made[stage.name] = image
        yield image
    finally:
        holder.kill()
        holder.communicate()


def _empty(holder: int, folder: Path) -> Image:
    """This machine's root, with `python` where the base image has it, and nothing of the Dockerfile."""
    image = Image(holder, folder / "root")
    image.do("mkdir", "-p", *(str(folder / name) for name in ("upper", "work", "root")))
    layers = f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work"
    image.do("mount", "-t", "overlay", "overlay", "-o", layers, str(image.root))
    image.do("mount", "--rbind", "/dev", f"{image.root}/dev")
    image.do("mount", "-t", "proc", "proc", f"{image.root}/proc")
    image.do("mount", "-t", "tmpfs", "tmpfs", f"{image.root}/tmp")
    resolver = Path("/etc/resolv.conf").resolve()
    image.do("cp", "--remove-destination", str(resolver), f"{image.root}/etc/resolv.conf")
    python = Path(sys.executable).resolve()
    for around in python.parents:  # the image's user may not enter the folders of root, in which it may lie
        image.do("chmod", "a+x", f"{image.root}{around}")
    image.do("sh", "-c", f"cd {image.root}{python.parent} && test -e python || ln -s {python.name} python")
    image.environment["PATH"] = f"{python.parent}:{PATH}"
    return image


def _carry_out(
    instruction: Instruction, image: Image, made: Mapping[str, Image], arguments: Mapping[str, str]
) -> None:
    name, text = instruction
    if name == "ARG":
        image.arguments |= argument(text, arguments)
    elif name == "WORKDIR":
        image.folder = text
        image.do("mkdir", "-p", f"{image.root}{text}")
    elif name == "ENV":
        for setting in shlex.split(text):
            key, _, value = setting.partition("=")
            image.environment[key] = substituted(value, image.environment)
    elif name == "USER":
        image.user = text
    elif name == "COPY":
        _copy(text.split(), image, made)
    elif name == "RUN":
        _run(text, image)
    else:
        assert name in SAID_ONLY, f"teach tests/deploy/image.py to carry out {name}"
        image.said[name] = text


def _copy(words: list[str], image: Image, made: Mapping[str, Image]) -> None:
    if words[0].startswith("--from="):
        source, target = words[1:]
        there = made[words[0].removeprefix("--from=")].root
        image.do("cp", "-a", f"{there}{source}", f"{image.root}{target}")
        return
    *sources, target = words
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *sources],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    files = [path for path in let_in(listed, ROOT / ".dockerignore") if (ROOT / path).is_file()]
    assert files, f"COPY {' '.join(words)} copies nothing"
    folder = str(image.root) + str(
        PurePosixPath(image.folder, target)
    )  # a target with / is below the root too
    image.do("mkdir", "-p", folder)
    packed = subprocess.run(["tar", "-c", *files], cwd=ROOT, capture_output=True, check=True).stdout
    image.do("tar", "-x", "--no-same-owner", f"--directory={folder}", given=packed)


def _run(text: str, image: Image) -> None:
    told = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(TOLD) or name.lower() in TOLD_WHOLE
    }
    asked = Image(
        image.holder, image.root, image.user, image.folder, {**told, **image.environment, **image.arguments}
    )
    image.do(*asked.inside(["sh", "-e", "-c", text]))
