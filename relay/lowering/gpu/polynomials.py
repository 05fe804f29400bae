"""Coefficients, lowest first: least squares with weights on Chebyshev points, until relative errors were even."""

from __future__ import annotations

from math import factorial

EXP = (0.4999999403953552, 0.1666651964187622, 0.04166839271783829, 0.008368782699108124, 0.0013814455596730113)
"""`(exp(r) - 1 - r) / r^2` for |r| <= ln(2) / 2; error 3.1e-9 of exp(r)."""

LOG = (
    0.3333331048488617,
    -0.24999986588954926,
    0.20002226531505585,
    -0.16669246554374695,
    0.1421864926815033,
    -0.12384417653083801,
    0.11873102933168411,
    -0.11789451539516449,
    0.06914667040109634,
)
"""`(log(1 + f) - f + f^2 / 2) / f^3` for sqrt(1/2) <= 1 + f <= sqrt(2); error 7.3e-10 of f."""

TANH = (-0.3333328366279602, 0.13331490755081177, -0.05374346300959587, 0.020650483667850494, -0.005716939456760883)
"""`(tanh(x) / x - 1) / z` for z = x^2, |x| <= 0.625; error 4.1e-9 of tanh(x)."""

EXP_LONG = tuple(1 / factorial(n + 2) for n in range(12))
"""As `EXP`: Taylor's series, error below 1e-16."""

LOG_LONG = tuple(2 / (2 * n + 1) for n in range(12))
"""`log((1 + s) / (1 - s)) / s` by s^2, for |s| <= 0.172: Taylor's series, error below 1e-18."""

SIN_LONG = tuple((-1) ** (n + 1) / factorial(2 * n + 3) for n in range(7))
"""`(sin(r) / r - 1) / r^2` by r^2, for |r| <= pi / 4: Taylor's series, error below 1e-16."""

COS_LONG = tuple((-1) ** n / factorial(2 * n) for n in range(9))
"""`cos(r)` by r^2, for |r| <= pi / 4: Taylor's series, error below 1e-17."""
