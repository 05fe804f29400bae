"""Train a small CNN on scikit-learn's digits and write it as .tflite, int8 and float32, with held-out images.

Writes digits_int8.tflite, digits_float.tflite and digits_test.npz beside this file and prints the accuracies.
Needs tensorflow, scikit-learn and ai-edge-litert; the versions that made the files in this folder are in README.md.
"""

from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).resolve().parent
SEED = 0
HELD_OUT = 450
EPOCHS = 60
BATCH = 32


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Train images, held-out images, train labels, held-out labels; images are f32 NHWC in [0, 1], in steps of 1/16."""
    digits = load_digits()
    images = (digits.images[..., np.newaxis] / 16).astype(np.float32)
    labels = digits.target.astype(np.int32)
    return tuple(train_test_split(images, labels, test_size=HELD_OUT, stratify=labels, random_state=SEED))


def normalized(x: keras.KerasTensor, relu6: bool = True) -> keras.KerasTensor:
    """Batch normalisation, which the converter folds into the convolution before it, and ReLU6 where asked."""
    x = layers.BatchNormalization()(x)
    return layers.ReLU(max_value=6)(x) if relu6 else x


def build() -> keras.Model:
    """A stem, a residual block, a strided separable block on explicit padding, average pooling and a dense layer."""
    image = keras.Input((8, 8, 1))
    stem = normalized(layers.Conv2D(16, 3, padding="same", use_bias=False)(image))

    x = normalized(layers.DepthwiseConv2D(3, padding="same", use_bias=False)(stem))
    x = normalized(layers.Conv2D(16, 1, use_bias=False)(x), relu6=False)
    x = layers.Add()([stem, x])

    x = layers.ZeroPadding2D(1)(x)
    x = normalized(layers.DepthwiseConv2D(3, strides=2, use_bias=False)(x))
    x = normalized(layers.Conv2D(32, 1, use_bias=False)(x))

    x = layers.AveragePooling2D(2)(x)
    x = layers.Flatten()(x)
    x = layers.Dropout(0.2, seed=SEED)(x)
    return keras.Model(image, layers.Dense(10, activation="softmax")(x))


def train(model: keras.Model, images: np.ndarray, labels: np.ndarray) -> None:
    steps = EPOCHS * (len(images) // BATCH)
    rate = keras.optimizers.schedules.CosineDecay(5e-3, steps)
    model.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(images, labels, batch_size=BATCH, epochs=EPOCHS, verbose=2)


def convert(model: keras.Model, calibration: np.ndarray | None = None) -> bytes:
    """The .tflite of `model` at batch 1: float32, or full int8 where there are calibration images."""
    image = keras.Input(batch_shape=(1, 8, 8, 1), name="image")
    converter = tf.lite.TFLiteConverter.from_keras_model(keras.Model(image, model(image, training=False)))
    if calibration is not None:

        def representative() -> Iterator[list[np.ndarray]]:
            return ([image[np.newaxis]] for image in calibration)

        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = representative
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter.convert()


def interpreter(model: bytes) -> Interpreter:
    """The reference kernels: no XNNPACK, no optimised kernels."""
    result = Interpreter(model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    result.allocate_tensors()
    return result


def quantize(model: bytes, images: np.ndarray) -> np.ndarray:
    """`images` in the int8 of the model's input: clamp(round(image / scale) + zero_point)."""
    scale, zero_point = interpreter(model).get_input_details()[0]["quantization"]
    return np.clip(np.rint(images / np.float32(scale)) + zero_point, -128, 127).astype(np.int8)


def run(model: bytes, images: np.ndarray) -> np.ndarray:
    """The model's output for every image, one row each."""
    runtime = interpreter(model)
    (source,), (target,) = runtime.get_input_details(), runtime.get_output_details()
    rows = []
    for image in images:
        runtime.set_tensor(source["index"], image[np.newaxis])
        runtime.invoke()
        rows.append(runtime.get_tensor(target["index"])[0])
    return np.stack(rows)


def main() -> None:
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    train_images, images, train_labels, labels = load()
    model = build()
    train(model, train_images, train_labels)

    float_model, int8_model = convert(model), convert(model, calibration=train_images)
    int8_images = quantize(int8_model, images)
    float_out, int8_out = run(float_model, images), run(int8_model, int8_images)

    (HERE / "digits_float.tflite").write_bytes(float_model)
    (HERE / "digits_int8.tflite").write_bytes(int8_model)
    np.savez_compressed(
        HERE / "digits_test.npz",
        images=images,
        int8_images=int8_images,
        labels=labels,
        float_out=float_out,
        int8_out=int8_out,
    )
    for name, out in (("float", float_out), ("int8", int8_out)):
        correct = int(np.sum(out.argmax(axis=1) == labels))
        print(f"{name}: {correct} of {len(labels)} held-out images right ({correct / len(labels):.2%})")


if __name__ == "__main__":
    main()
