"""lit: every .mlir file here is a test; `relay-opt` is this checkout's, run by the interpreter that runs lit."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import lit.formats

root = Path(__file__).parents[2]
bin = Path(sys.executable).parent

config.name = "relay"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = os.environ.get("RELAY_LIT_OUTPUT", str(root / "tests" / "filecheck"))
sys.path.insert(0, str(root / "tests"))
from installing import install  # noqa: E402

shutil.rmtree(site := Path(config.test_exec_root) / "Output" / "site", ignore_errors=True)
install(root / "tests" / "abacus", site)
config.environment["PYTHONPATH"] = os.pathsep.join([str(root), str(site)])
config.environment["PATH"] = os.pathsep.join([str(bin), os.environ["PATH"]])
config.substitutions += [
    ("%models", str(root / "examples" / "digits")),
]
folder = tempfile.mkdtemp(prefix="relay-lit-")
server = subprocess.Popen(
    [sys.executable, str(root / "tests" / "lit_server.py"), f"{folder}/socket"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    env={**os.environ, "PYTHONPATH": config.environment["PYTHONPATH"]},
)
atexit.register(shutil.rmtree, folder, ignore_errors=True)
atexit.register(server.terminate)
assert server.stdout.readline(), "the server of the tools has not started"
for tool in ("relay-opt", "filecheck"):
    client = f"{sys.executable} -I -S {root / 'tests' / 'lit_client.py'} {folder}/socket {tool}"
    config.substitutions.append((rf"(?<![\w/.-]){tool}(?![\w/.-])", client))
for tool in ("mlir-opt-22", "mlir-opt"):
    if shutil.which(tool):
        config.available_features.add("mlir-opt")
        config.substitutions.append((r"%mlir_opt\b", tool))
        break
