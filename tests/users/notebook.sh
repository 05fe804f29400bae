# Somebody with a notebook: it runs, and its page holds what a module, an executable, progress (of work that takes
# longer than building the digits does) and a record show.
# needs: . nbconvert ipykernel
cat > book.py <<'PYTHON'
import json

cells = [
    "import relay\nfrom relay import viewer\nmod = relay.frontend.from_tflite('examples/digits/digits_int8.tflite')\nmod",
    "exe = relay.build(mod)\nexe",
    "from relay.compile.progress import bar\nwith bar(None, 'building', 1) as update:\n    update(1, 'digits')",
    "exe.profile(seconds=0)",
    "viewer.record(mod, 'legalize', heat=exe.profile(seconds=0).heat)",
]
rows = [
    {"cell_type": "code", "source": c, "metadata": {}, "outputs": [], "execution_count": None, "id": f"c{n}"}
    for n, c in enumerate(cells)
]
json.dump({"cells": rows, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, open("book.ipynb", "w"))
PYTHON
python book.py
python -m nbconvert --to html --execute book.ipynb
for shown in "IRModule" "Executable for" "counters take" "building: " "sandbox=\"allow-scripts\""; do grep -q "$shown" book.html; done
