"""How many fused multiply-adds does one core do in a nanosecond?  The limit that kernels are held against.

    python benchmarks/fma_limit.py [--json FILE]

Loops of nothing but vector FMAs in registers, on 12 sums that do not depend on each other, of 128, 256 and
512 bits where the CPU has them: LLVM code, since no compiler of loops can be trusted with it. One FMA of a
vector of 16 float32 counts 16. Beside it the same with one addition in four: some CPUs add elsewhere
meanwhile, on others additions take the place of FMAs.
"""

import argparse
import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from timing import interleave, machine, write_json

N_SUMS = 12  # of latency 4 on two units 8 are enough; with two constants they fit in 16 registers
N_LANES = 10**9  # of FMAs a call of the comparison
FLOAT, INT = ir.FloatType(), ir.IntType(32)


def widths() -> list[int]:
    """Float32 lanes of the vectors that this CPU has."""
    features = binding.get_host_cpu_features()
    return [4, *([8] if features.get("avx2") else []), *([16] if features.get("avx512f") else [])]


@functools.cache
def loop(fmas: int, additions: int, lanes: int) -> Any:
    """A compiled function of n: 12 n times so many FMAs and additions, the additions evenly among them."""
    vector = ir.VectorType(FLOAT, lanes)
    each = N_SUMS * (fmas + additions)
    adds = [
        (i + 1) * additions // (fmas + additions) > i * additions // (fmas + additions) for i in range(each)
    ]

    def spread(builder: Any, value: Any) -> Any:
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, INT(0))
        places = ir.Constant(ir.VectorType(INT, lanes), [0] * lanes)
        return builder.shuffle_vector(one, one, places)

    @intrinsic
    def repeat(_context: Any, n: Any, factor: Any, term: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            factor, term = (spread(builder, value) for value in arguments[1:])
            sums = [cgutils.alloca_once_value(builder, term) for _ in range(N_SUMS)]
            with cgutils.for_range(builder, arguments[0]):
                values = [builder.load(place) for place in sums]
                for i, is_addition in enumerate(adds):
                    value = values[i % N_SUMS]
                    if not is_addition:
                        value = builder.fmul(value, factor, flags=("contract",))
                    values[i % N_SUMS] = builder.fadd(value, term, flags=("contract",))
                for place, value in zip(sums, values, strict=True):
                    builder.store(value, place)
            total = functools.reduce(builder.fadd, [builder.load(place) for place in sums])
            return functools.reduce(
                builder.fadd, [builder.extract_element(total, INT(i)) for i in range(lanes)]
            )

        return types.float32(n, factor, term), generate

    @numba.njit("f4(i8, f4, f4)", nogil=True)
    def run(n: int, factor: float, term: float) -> float:
        return repeat(n, factor, term)

    return run


def work(fmas: int, additions: int, elements: float, lanes: int) -> Callable[[], float]:
    """Return what does so many FMAs and additions for each of so many elements, and nothing else."""
    run, n = loop(fmas, additions, lanes), round(elements / (lanes * N_SUMS))
    return lambda: run(n, np.float32(0.5), np.float32(1))


def best_width(rounds: int = 5) -> int:
    """The lanes of the vectors with which this CPU does most."""
    seconds = interleave({str(lanes): work(1, 0, N_LANES / 4, lanes) for lanes in widths()}, rounds)
    return int(min(seconds, key=lambda lanes: float(np.median(seconds[lanes]))))


def limits(rounds: int) -> dict[str, dict[str, float]]:
    """Lane-FMAs a nanosecond by bits of the vectors, and lane-operations where one in four is an addition."""
    runs = {}
    for lanes in widths():
        runs[f"{lanes}"] = work(1, 0, N_LANES, lanes)
        runs[f"{lanes}+"] = work(3, 1, N_LANES / 4, lanes)
    speed = {name: N_LANES / float(np.median(s)) / 1e9 for name, s in interleave(runs, rounds).items()}
    return {
        str(32 * lanes): {"fma_per_ns": speed[f"{lanes}"], "mixed_per_ns": speed[f"{lanes}+"]}
        for lanes in widths()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    facts, found = machine(), limits(options.rounds)
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    for bits, speeds in found.items():
        print(
            f"{bits:>4} bits: {speeds['fma_per_ns']:6.1f} lane-FMAs/ns, with one addition in four "
            f"{speeds['mixed_per_ns']:6.1f} operations/ns"
        )
    if options.json:
        write_json(options.json, {"machine": facts, "rounds": options.rounds, "bits": found})


if __name__ == "__main__":
    main()
