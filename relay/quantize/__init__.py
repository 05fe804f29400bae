"""Post-training quantization of float models: `mod = relay.quantize.Quantize(calibration=samples)(mod)`. May import
`compile`, which builds and runs the model for calibration, and the layers below it."""

from relay.doors import door
from relay.quantize.calibration import Calibration, calibrate
from relay.quantize.equalize_layers import EqualizeLayers
from relay.quantize.qdq_to_integer import QdqToInteger, stayed
from relay.quantize.quantize import Quantize
from relay.quantize.quantize_annotate import QuantizeAnnotate
from relay.quantize.quantize_calibrate import QuantizeCalibrate
from relay.quantize.quantize_realize import QuantizeRealize
from relay.quantize.report import Report, integer_share, report
from relay.quantize.weight_only import NarrowWeights, WeightOnly, narrow_weights

__getattr__ = door(__name__, {"relay.quantize": "FoldQdq=QdqToInteger"}, former=None)[0]

__all__ = [
    "Calibration",
    "EqualizeLayers",
    "NarrowWeights",
    "QdqToInteger",
    "Quantize",
    "QuantizeAnnotate",
    "QuantizeCalibrate",
    "QuantizeRealize",
    "Report",
    "WeightOnly",
    "calibrate",
    "integer_share",
    "narrow_weights",
    "report",
    "stayed",
]
