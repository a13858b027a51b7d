"""What do the steps of methods do that go row by row?  They change the arrays of a state in place.

Every function takes rows x (n, d), their signs (n,) of +1, -1 or 0 for rows that are left out, and what
carries its state; calling it on parts of the rows one after the other is the same as on all of them.
"""

from __future__ import annotations

import numpy as np

from scaleshift.kernels.cpu.jit import strict_jit

HUGE = 1e7  # stands for a bound that there is none of yet


@strict_jit
def dot(w: np.ndarray, x: np.ndarray) -> float:
    """Inner product, in four sums that need not wait for each other."""
    a = b = c = e = 0.0
    whole = len(w) - len(w) % 4
    for j in range(0, whole, 4):
        a += w[j] * x[j]
        b += w[j + 1] * x[j + 1]
        c += w[j + 2] * x[j + 2]
        e += w[j + 3] * x[j + 3]
    for j in range(whole, len(w)):
        a += w[j] * x[j]
    return (a + b) + (c + e)


@strict_jit
def move(w: np.ndarray, by: float, x: np.ndarray) -> None:
    """Add a multiple of a row."""
    for j in range(len(w)):
        w[j] += by * x[j]


@strict_jit
def clipped(value: float, bound: float) -> float:
    """The nearest number in [-bound, bound]."""
    return min(max(value, -bound), bound)


# SOLAM -------------------------------------------------------------------------------------------------


@strict_jit
def solam(
    x: np.ndarray,
    sign: np.ndarray,
    w: np.ndarray,
    average: np.ndarray,
    scalars: tuple[float, ...],
    xi: float,
    radius: float,
) -> tuple[float, ...]:
    """Saddle point steps; scalars, returned anew: a, b, alpha, rows, positives, sum of the steps."""
    a, b, alpha, t, positives, steps = scalars
    for i in range(len(x)):
        if sign[i] == 0:
            continue
        t += 1
        positives += sign[i] > 0
        p, step, s = positives / t, xi / np.sqrt(t), dot(w, x[i])
        steps += step
        for j in range(len(w)):
            average[j] += (w[j] - average[j]) * (step / steps)
        grad_a = grad_b = 0.0
        if sign[i] > 0:
            slope = 2 * (1 - p) * (s - a - 1 - alpha)
            grad_a, grad_alpha = -2 * (1 - p) * (s - a), -2 * (1 - p) * s
        else:
            slope = 2 * p * (s - b + 1 + alpha)
            grad_b, grad_alpha = -2 * p * (s - b), 2 * p * s
        grad_alpha -= 2 * p * (1 - p) * alpha
        move(w, -step * slope, x[i])
        norm = np.sqrt(dot(w, w))
        if norm > radius:
            for j in range(len(w)):
                w[j] *= radius / norm
        a, b = min(a - step * grad_a, radius), min(b - step * grad_b, radius)
        alpha = clipped(alpha + step * grad_alpha, 2 * radius)
    return a, b, alpha, t, positives, steps


# SPAM --------------------------------------------------------------------------------------------------


@strict_jit
def spam(
    x: np.ndarray,
    sign: np.ndarray,
    w: np.ndarray,
    t: float,
    means: np.ndarray,
    share: float,
    xi: float,
    l1: float,
    l2: float,
) -> float:
    """Proximal steps; t, returned anew: rows; means (2, d) of the positives and the negatives."""
    for i in range(len(x)):
        if sign[i] == 0:
            continue
        t += 1
        step, s = xi / np.sqrt(t), dot(w, x[i])
        a, c = dot(w, means[0]), dot(w, means[1])
        if sign[i] > 0:
            slope = 2 * (1 - share) * (s - a) - 2 * (1 + c - a) * (1 - share)
        else:
            slope = 2 * share * (s - c) + 2 * (1 + c - a) * share
        for j in range(len(w)):
            moved = w[j] - step * slope * x[i, j]
            if l1 > 0:
                moved = np.sign(moved) * max(abs(moved) - step * l1, 0.0)
            w[j] = moved / (1 + step * l2)
    return t


# FSAUC -------------------------------------------------------------------------------------------------


@strict_jit
def to_l1_ball(w: np.ndarray, radius: float) -> None:
    """Project on the ball of the l1 norm."""
    total = 0.0
    for j in range(len(w)):
        total += abs(w[j])
    if not total > radius:
        return
    ordered = np.sort(np.abs(w))[::-1]
    above, cut = 0.0, 0.0
    for j in range(len(ordered)):
        above += ordered[j]
        found = (above - radius) / (j + 1)
        if ordered[j] <= found:
            break
        cut = found
    for j in range(len(w)):
        w[j] = np.sign(w[j]) * max(abs(w[j]) - cut, 0.0)


@strict_jit
def fsauc(
    x: np.ndarray,
    sign: np.ndarray,
    w: np.ndarray,
    start: np.ndarray,
    average: np.ndarray,
    sums: np.ndarray,
    scalars: tuple[float, ...],
    stages: tuple[int, int],
    limit: float,
    delta: float,
) -> tuple[float, ...]:
    """Stages of steps near their start; stages: how many, rows of one; rows after the last change nothing.

    scalars, returned anew: a, b, alpha; a and b at the start of the stage, their sums; rows of the stage,
    stages done; positives, negatives; step, radius, reach of alpha, its start, beta.
    """
    a, b, alpha, a0, b0, sum_a, sum_b, t, stage, n_pos, n_neg, step, radius, reach, alpha0, beta = scalars
    for i in range(len(x)):
        if sign[i] == 0 or stage >= stages[0]:
            continue
        t += 1
        if sign[i] > 0:
            n_pos += 1
            move(sums[0], 1.0, x[i])
        else:
            n_neg += 1
            move(sums[1], 1.0, x[i])
        p, s = n_pos / (n_pos + n_neg), dot(w, x[i])
        grad_a = grad_b = 0.0
        if sign[i] > 0:
            slope, grad_a = (1 - p) * (s - a - 1 - alpha), (p - 1) * (s - a)
            grad_alpha = (p - 1) * (s + p * alpha)
        else:
            slope, grad_b = p * (s - b + 1 + alpha), p * (b - s)
            grad_alpha = p * (s + (p - 1) * alpha)
        move(w, -step * slope, x[i])
        to_l1_ball(w, limit)
        a, b = clipped(a - step * grad_a, limit), clipped(b - step * grad_b, limit)
        alpha = clipped(alpha + step * grad_alpha, 2 * limit)
        away = (a - a0) ** 2 + (b - b0) ** 2
        for j in range(len(w)):
            away += (w[j] - start[j]) ** 2
        pull = radius / np.sqrt(away) if away > radius**2 else 1.0
        a, b = a0 + pull * (a - a0), b0 + pull * (b - b0)
        for j in range(len(w)):
            if pull < 1:
                w[j] = start[j] + pull * (w[j] - start[j])
            average[j] += w[j]
        alpha = alpha0 + clipped(alpha - alpha0, reach)
        sum_a += a
        sum_b += b
        if t < stages[1]:
            continue
        for j in range(len(w)):
            w[j] = average[j] / t
            start[j], average[j] = w[j], 0.0
        a, b = sum_a / t, sum_b / t
        alpha = dot(w, sums[1]) / max(n_neg, 1.0) - dot(w, sums[0]) / max(n_pos, 1.0)
        a0, b0, alpha0 = a, b, alpha
        step, radius, reach, beta = next_stage(min(p, 1 - p), t, step, radius, beta, limit, delta)
        sum_a, sum_b, t = 0.0, 0.0, 0.0
        stage += 1
    return a, b, alpha, a0, b0, sum_a, sum_b, t, stage, n_pos, n_neg, step, radius, reach, alpha0, beta


@strict_jit
def next_stage(
    rarer: float, t: float, step: float, radius: float, beta: float, limit: float, delta: float
) -> tuple[float, float, float, float]:
    """Step, radius, reach of alpha and beta after a stage of t rows; `rarer`: share of the rarer class."""
    radius /= 2
    log = np.log(12 / delta)
    root = 2 + np.sqrt(2 * log)
    enough = rarer * t - np.sqrt(2 * t * log)
    widest = 12 * np.sqrt(2.0) * root * limit / np.sqrt(enough) if enough > 0 else HUGE
    margin = rarer - np.sqrt(2 * log / t)
    grown = 9 + 288 * root**2 / margin if margin > 0 else HUGE
    step = min(np.sqrt(grown / beta) * step / 2, step)
    return step, radius, 2 * np.sqrt(2.0) * radius + widest, grown


# Hard thresholding of empirical risks ------------------------------------------------------------------


@strict_jit
def keep_largest(w: np.ndarray, k: int) -> None:
    """Zero all but the k entries of largest magnitude; of equal ones those of the lowest index stay.

    What is not finite any more stays as it is, to be found by the caller.
    """
    if k >= len(w) or not np.isfinite(w).all():
        return
    if k <= 0:
        w[:] = 0.0
        return
    magnitude = np.abs(w)
    least = np.partition(magnitude, len(w) - k)[len(w) - k]
    ties = k - np.sum(magnitude > least)
    for j in range(len(w)):
        if magnitude[j] == least and ties > 0:
            ties -= 1
        elif not magnitude[j] > least:
            w[j] = 0.0


@strict_jit
def residual(score: float, sign: int, logistic: bool) -> float:
    """Derivative of the loss by the score."""
    return -sign / (1 + np.exp(sign * score)) if logistic else score - sign


@strict_jit
def thresholded_step(
    x: np.ndarray,
    sign: np.ndarray,
    w: np.ndarray,
    intercept: np.ndarray,
    k: int,
    step: float,
    logistic: bool,
) -> None:
    """One step on the mean gradient of all rows; the intercept belongs to the logistic loss alone."""
    gradient, by_intercept, n = np.zeros(len(w)), 0.0, 0
    for i in range(len(x)):
        if sign[i] != 0:
            z = residual(dot(w, x[i]) + intercept[0], sign[i], logistic)
            move(gradient, z, x[i])
            by_intercept += z
            n += 1
    if n:
        move(w, -step / n, gradient)
        keep_largest(w, k)
        if logistic:
            intercept[0] -= step * by_intercept / n


@strict_jit
def growing_batches(
    x: np.ndarray,
    sign: np.ndarray,
    w: np.ndarray,
    gradient: np.ndarray,
    scalars: tuple[float, ...],
    n_rows: int,
    k: int,
    step: float,
    tau: float,
    zeta: float,
) -> tuple[float, ...]:
    """Logistic steps on batches of floor(tau zeta^t) rows of a pass of n_rows; the last takes what is left.

    A pass ends where one row at most is left. scalars, returned anew: intercept, its gradient, rows in the
    batch, its size, number of the batch, rows of the pass that went before it.
    """
    intercept, by_intercept, n, size, number, before = scalars
    for i in range(len(x)):
        if sign[i] == 0:
            continue
        if n == 0:
            left = n_rows - before
            if left <= 1:
                continue
            size = min(max(np.floor(tau * zeta**number), 1.0), left)
        z = residual(dot(w, x[i]) + intercept, sign[i], True)
        move(gradient, z, x[i])
        by_intercept += z
        n += 1
        if n == size:
            move(w, -step / n, gradient)
            keep_largest(w, k)
            intercept -= step * by_intercept / n
            before, number = before + n, number + 1
            gradient[:] = 0.0
            by_intercept, n = 0.0, 0.0
    return intercept, by_intercept, n, size, number, before
