# An engineer with a model: a wake word's .tflite of a PyPI package, compiled, run, and compared with LiteRT.
# needs: .[cli,litert]
pip download -q --no-deps -d wheels pymicro-wakeword
python -m zipfile -e wheels/pymicro_wakeword-*.whl .
relay inspect pymicro_wakeword/models/okay_nabu.tflite
relay compile pymicro_wakeword/models/okay_nabu.tflite -o nabu.relay
relay run nabu.relay --fill zeros --dequantize
relay compare pymicro_wakeword/models/okay_nabu.tflite --with litert
