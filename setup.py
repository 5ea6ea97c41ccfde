"""Builds klamm. With KLAMM_COMPILE=1 the session is compiled by mypyc, from the same source."""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
COMPILED = ("proxy/session/[!_]*.py", "proxy/session/*/[!_]*.py", "proxy/edge/ends.py")
TREE = ROOT / "build" / "tree"  # shows the folders as packages: mypyc names modules by their paths
# The build environment has no libraries but mypy, so their types are not known; `make check` is strict.
CONFIG = """\
[mypy]
python_version = 3.11
namespace_packages = true
explicit_package_bases = true
ignore_missing_imports = true
follow_imports = silent
"""


def compiled() -> list[Extension]:
    from mypyc.build import mypycify

    shutil.rmtree(TREE, ignore_errors=True)
    (TREE / "klamm").mkdir(parents=True)
    for folder in ("settings", "decoders", "rules", "captures", "client", "proxy"):
        (TREE / "klamm" / folder).symlink_to(ROOT / folder, target_is_directory=True)
    config = TREE / "mypy.ini"
    config.write_text(CONFIG)
    os.environ["MYPYPATH"] = str(TREE)
    files = sorted(file for pattern in COMPILED for file in (TREE / "klamm").glob(pattern))
    options = [f"--config-file={config}", *map(str, files)]
    return list(mypycify(options, opt_level="3", debug_level="0", group_name="klamm_session"))


wanted = os.environ.get("KLAMM_COMPILE") == "1"
builds = {"bdist_wheel", "build_ext", "editable_wheel"} & set(sys.argv)  # else mypyc is not installed yet
setup(ext_modules=compiled() if wanted and builds else [])
