# Somebody with a script for TVM's Relay: the names that mean the same work as they are.
# needs: .
python - <<'PYTHON'
import numpy as np
import relay
from relay.runtime import graph_executor

mod = relay.frontend.from_tflite("examples/digits/digits_int8.tflite", shape_dict={"serving_default_image:0": (1, 8, 8, 1)})
with relay.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm")
lib.export_library("digits.relay")
m = graph_executor.GraphModule(relay.runtime.load_module("digits.relay")["default"]())
data = np.load("examples/digits/digits_test.npz")
for image, expected in zip(data["int8_images"][:20], data["int8_out"]):
    m.set_input("serving_default_image:0", image[None])
    m.run()
    assert (m.get_output(0).numpy()[0] == expected).all()
print(mod.astext(False).splitlines()[0], m.benchmark(repeat=2).median)
PYTHON
