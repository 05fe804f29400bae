"""The inputs of a model, read from files (.npz, .npy, images) or filled with random numbers, zeros or ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from relay.errors import InvalidArgument, Malformed
from relay.runtime import TensorSpec
from relay.runtime.arrays import arrays_of
from relay.runtime.memory import Array
from relay.runtime.specification import random_array

FILLS = {"zeros": np.zeros, "ones": np.ones}
CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's image modes by number of channels."""


def gather(specs: Sequence[TensorSpec], chosen: Mapping[str, Any]) -> dict[str, Array]:
    """The input arrays by name, made from a command's `input_options`. States that no file gives are left out, so that
    they have their initial value.

    `chosen["inputs"]` is an .npz file and `chosen["given"]` a list of texts `NAME=FILE`; inputs in neither are filled.
    Raises RelayError, OSError.
    """
    inputs, pixels, fill = chosen["inputs"], chosen["pixels"], chosen["fill"]
    if pixels is not None:
        ends(pixels)
    known = {spec.name: spec for spec in specs}
    found: dict[str, Array] = {}
    if inputs is not None:
        arrays = arrays_of(inputs)
        if not set(arrays) & set(known) and len(arrays) <= len(specs):  # numpy.savez(file, a, b)
            arrays = {spec.name: array for spec, array in zip(specs, arrays.values(), strict=False)}
        found.update(arrays)
    for text in chosen["given"]:
        name, equals, file = text.rpartition("=")
        name = name if equals else specs[0].name if specs else ""
        if name not in known:
            raise InvalidArgument("--input", f"the model has no input {name!r}", f"it has {', '.join(known)}")
        found[name] = array_of(file, known[name], pixels)
    if unknown := [name for name in found if name not in known]:
        raise InvalidArgument(str(inputs), f"names no input with {unknown[0]!r}", f"the inputs are {', '.join(known)}")
    random = np.random.default_rng(chosen["seed"])
    check_sizes([spec for spec in specs if spec.name not in found and spec.kind == "input"], " or the input")
    for spec in specs:
        if spec.name not in found and spec.kind == "input":
            made = (
                FILLS[fill](spec.shape, spec.dtype) if fill in FILLS else random_array(spec.shape, spec.dtype, random)
            )
            found[spec.name] = made
    return found


def check_sizes(specs: Sequence[TensorSpec], otherwise: str = "") -> None:
    """Raise InvalidArgument if an input has an unknown size; the hint names the options to add, and `otherwise` an
    alternative."""
    if unknown := [spec for spec in specs if any(size < 0 for size in spec.shape)]:
        sizes = ["x".join("?" if size < 0 else str(size) for size in spec.shape) for spec in unknown]
        given = " ".join(f"--shape '{spec.name}={text}'" for spec, text in zip(unknown, sizes, strict=True))
        batch = "--batch 1, " if all(text.startswith("?") and text.count("?") == 1 for text in sizes) else ""
        hint = f"give {batch}{given} with numbers for ?,{otherwise}".removesuffix(",")
        raise InvalidArgument(f"input '{unknown[0].name}'", "has sizes that are not known", hint)


def array_of(file: str, spec: TensorSpec, pixels: str | None) -> Array:
    """Read one input from a file: the array of an .npy file, the only array of an .npz file, or the pixels of an
    image."""
    if file.endswith(".npz"):
        arrays = arrays_of(file)
        if len(arrays) != 1:
            raise InvalidArgument(file, f"has {len(arrays)} arrays", "give it by --inputs")
        return next(iter(arrays.values()))
    if file.endswith(".npy"):
        try:
            return np.load(file, allow_pickle=False)
        except (ValueError, EOFError):
            raise Malformed(file, "is no .npy file", "numpy.save(FILE, array) writes one") from None
    return image_of(file, spec, pixels)


def image_of(file: str, spec: TensorSpec, pixels: str | None) -> Array:
    """Read an image's pixels, resized (bilinear) to the input, with channels last, or right after the batch axis.

    Black and white become the smallest and largest code for 8-bit inputs, and 0 and 1 for others, unless `pixels` is a
    text LOW..HIGH. Raises InvalidArgument, Malformed.
    """
    try:
        pillow: Any = import_module("PIL.Image")
    except ModuleNotFoundError:
        raise InvalidArgument(file, "needs the package Pillow to be read as an image", "pip install pillow") from None
    dims = list(spec.shape)[-3:] if len(spec.shape) > 2 else [*spec.shape, 1]
    first = dims[0] in CHANNELS and dims[-1] not in CHANNELS
    rows, columns, channels = [*dims[1:], dims[0]] if first else dims
    if len(dims) != 3 or channels not in CHANNELS or int(np.prod(spec.shape[:-3])) > 1:
        raise InvalidArgument(f"input '{spec.name}'", f"of shape {list(spec.shape)} is no image", "give an .npy file")
    try:
        image = pillow.open(file).convert(CHANNELS[channels]).resize((columns, rows), pillow.Resampling.BILINEAR)
    except pillow.UnidentifiedImageError:
        raise Malformed(file, "is neither .npy, .npz nor an image that Pillow reads") from None
    numbers = np.asarray(image, np.float64).reshape(rows, columns, channels) / 255
    codes = spec.dtype.kind in "iu" and spec.dtype.itemsize == 1
    whole = (float(np.iinfo(spec.dtype).min), float(np.iinfo(spec.dtype).max)) if codes else (0.0, 1.0)
    low, high = whole if pixels is None else ends(pixels)
    scaled = low + numbers * (high - low)
    if spec.dtype.kind in "iu":
        scaled = np.rint(scaled)
    return (scaled.transpose(2, 0, 1) if first else scaled).reshape(spec.shape).astype(spec.dtype)


def ends(pixels: str) -> tuple[float, float]:
    """Parse `LOW..HIGH` into the values of black and white. Raises InvalidArgument."""
    low, dots, high = pixels.partition("..")
    try:
        if dots:
            return float(low), float(high)
    except ValueError:
        pass
    raise InvalidArgument("--pixels", f"{pixels!r} is no range", "write --pixels -1..1")
