"""Coefficients of polynomials, lowest first: weighted least squares on Chebyshev points, iterated until relative errors
were even."""

from __future__ import annotations

from math import factorial

EXP = (0.4999999403953552, 0.1666651964187622, 0.04166839271783829, 0.008368782699108124, 0.0013814455596730113)
"""`(exp(r) - 1 - r) / r^2` for |r| <= ln(2) / 2; error 4.3e-9 relative to exp(r)."""

EXP_SHORT = (0.49999230309073944, 0.1666711538887188, 0.041890331574101713, 0.008312501288800183)
"""`(exp(r) - 1 - r) / r^2` like `EXP`, but of lower degree; error 1.1e-7 relative to exp(r)."""

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
"""`(log(1 + f) - f + f^2 / 2) / f^3` for sqrt(1/2) <= 1 + f <= sqrt(2); error 7.7e-10 relative to f."""

ERF = (
    0.128379165726691,
    -0.3761262582409781,
    0.11283585147078062,
    -0.026853811871016528,
    0.0051883275635672054,
    -0.0008010192551669022,
    7.853857807684786e-05,
)
"""`erf(x) / x - 1` in powers of z = x^2, |x| <= 1; error 1.3e-9 relative to erf(x)."""

LOG_ERFC = (
    -0.0026191692780300315,
    -1.1176212800906822,
    -0.6542400431491487,
    -0.08879973009328604,
    0.01483184723413384,
    -0.0011572211466856787,
)
"""`log(1 - erf(x))` for 1 <= x <= 4; error 1.6e-8 relative to erf(x)."""

LOG_TAIL = (
    -0.6931471167553855,
    -0.7978883320915297,
    -0.31827504994249384,
    -0.03645382303179692,
    0.004975128071428381,
    -0.00013341895879667758,
    -0.0001291343078417608,
    3.4278819610952545e-05,
    -4.425473306132117e-06,
    3.0372685372355566e-07,
    -8.821825081389884e-09,
)
"""Coefficients of `log((1 - erf(x / sqrt(2))) / 2)` in powers of x, for 0 <= x <= 6.5. The exponential of the
polynomial has a relative error of 6.4e-8 at 0, below 1e-6 up to x = 2, and of at most 1.3e-6 beyond."""

EXP_LONG = tuple(1 / factorial(n + 2) for n in range(12))
"""`(exp(r) - 1 - r) / r^2` for |r| <= ln(2) / 2, like `EXP`, but for f64: Taylor's series, error below 1e-16."""

LOG_LONG = tuple(2 / (2 * n + 1) for n in range(12))
"""`log((1 + s) / (1 - s)) / s` in powers of s^2, for |s| <= 0.172: Taylor's series, error below 1e-18."""

SIN_LONG = tuple((-1) ** (n + 1) / factorial(2 * n + 3) for n in range(7))
"""`(sin(r) / r - 1) / r^2` in powers of r^2, for |r| <= pi / 4: Taylor's series, error below 1e-16."""

COS_LONG = tuple((-1) ** n / factorial(2 * n) for n in range(9))
"""`cos(r)` in powers of r^2, for |r| <= pi / 4: Taylor's series, error below 1e-17."""

ATAN = (
    -0.3333333223521781,
    0.19999932192810763,
    -0.14284250789427116,
    0.11095201821581209,
    -0.08988789067786249,
    0.07269375399462093,
    -0.05470432039340791,
    0.0347044576911454,
    -0.016471308033149078,
    0.004999254354544164,
    -0.000711293492265275,
)
"""`(atan(x) / x - 1) / z` for z = x^2, |x| <= 1; error 5.7e-11 relative to x, for results in f32."""
