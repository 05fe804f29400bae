"""Post-training quantization: `mod = relay.quantize.Quantize(calibration=samples)(mod)`."""

from relay.quantize.calibration import Calibration, calibrate
from relay.quantize.equalize_layers import EqualizeLayers
from relay.quantize.fold_qdq import FoldQdq, stayed
from relay.quantize.quantize import Quantize
from relay.quantize.quantize_annotate import QuantizeAnnotate
from relay.quantize.quantize_calibrate import QuantizeCalibrate
from relay.quantize.quantize_realize import QuantizeRealize
from relay.quantize.report import Report, report

__all__ = [
    "Calibration",
    "EqualizeLayers",
    "FoldQdq",
    "Quantize",
    "QuantizeAnnotate",
    "QuantizeCalibrate",
    "QuantizeRealize",
    "Report",
    "calibrate",
    "report",
    "stayed",
]
