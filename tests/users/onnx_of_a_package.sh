# A user of ONNX: the model of a PyPI package with an open batch; a refusal that says what to give, then ONNX Runtime's results.
# needs: .[cli,onnxruntime]
pip download -q --no-deps -d wheels magika
python -m zipfile -e wheels/magika-*.whl .
model=$(ls magika/models/*/model.onnx | tail -1)
! relay run "$model" 2> refusal.txt
grep -q "has sizes that are not known; give --batch 1" refusal.txt
relay compare "$model" --with onnxruntime --batch 1
