"""lit: every .mlir file here is a test; `relay-opt` is this checkout's, run by the interpreter that runs lit."""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import lit.formats

root = Path(__file__).parents[2]
sys.path.insert(0, str(root))
from tests.lit_server import client, start  # noqa: E402

config.name = "relay"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = os.environ.get("RELAY_LIT_OUTPUT", str(root / "tests" / "filecheck"))
if given := os.environ.get("RELAY_LIT_SERVER"):
    folder = Path(given)
else:
    folder = Path(tempfile.mkdtemp(prefix="relay-lit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(start(folder).terminate)
config.environment["PYTHONPATH"] = os.pathsep.join([str(root), str(folder / "site")])
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
config.substitutions.append(("%models", str(root / "examples" / "digits")))
for tool in ("relay-opt", "filecheck"):
    config.substitutions.append((rf"(?<![\w/.-]){tool}(?![\w/.-])", " ".join(client(folder, tool))))
for tool in ("mlir-opt-22", "mlir-opt"):
    if shutil.which(tool):
        config.available_features.add("mlir-opt")
        config.substitutions.append((r"%mlir_opt\b", tool))
        break
