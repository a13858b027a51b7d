// What the kernels share. This text comes first in every module: no headers are needed, nor any other file.
//
// How class sums are made, from below:
//   keys     one int64 a row: its group in the upper 32 bits, its number in the lower ones. Sorted keys are
//            the rows by group; equal keys do not exist, so that there is one order only.
//   items    stretches of sorted keys, of one group each; a block of threads sums the rows of one item
//   edges    item i is keys[edges[i]] ... keys[edges[i + 1] - 1]
//   partials one row of float64 an item, written once and added in a fixed order: no atomics, the same bits
//            at every run
//
// Constants that the compiler is given: INPUT, the type of the rows (float32 or float64), CODE, the type of
// the group codes (int8 ... uint64), COLUMNS, the number of columns of the rows.

typedef float float32;
typedef double float64;
typedef signed char int8;
typedef short int16;
typedef int int32;
typedef long long int64;
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;

#define THREADS 128  // of a block

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
// where so many blocks must fit onto a multiprocessor: what registers that leaves may be used
#define KERNEL_OF(blocks) extern "C" __global__ void __launch_bounds__(THREADS, blocks)
#define DEVICE __device__ __forceinline__

#define LEFT (-2)     // in place of a group: the row is left to the reference
#define SKIPPED (-1)  // the row has no group

DEVICE int64 row_key(int64 group, int32 row)
{
    return group * ((int64)1 << 32) + row;
}

DEVICE int32 row_of(int64 key)
{
    return (int32)(key & 0xffffffff);
}

// The group of a code: all negative codes are one group, and so are all that are too large.
template <class Code>
DEVICE int64 group_of(Code code, int32 n_groups)
{
    const bool is_unsigned = (Code)-1 > (Code)1;
    const int64 group = (int64)code;
    if (group < 0 && !is_unsigned) return SKIPPED;
    return 0 <= group && group < n_groups ? group : n_groups;
}

// The nearest integer, for |t| < 2^22: adding 1.5 * 2^23 leaves no bits for a fraction.
DEVICE float32 nearest_integer(float32 t)
{
    return __fadd_rn(__fadd_rn(t, 12582912.f), -12582912.f);
}

// 2^t; below 2^-126 it is 0. On a GPU one instruction with a relative error of at most 2^-22.
DEVICE float32 power_of_two(float32 t)
{
#ifdef HOST
    return t < -126.f ? 0.f : exp2f(t);
#else
    float32 result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(t));
    return result;
#endif
}

// sum + the dot product of the first `columns` of four
DEVICE float32 add_product(float32 sum, const float4& a, const float4& b, int32 columns)
{
    sum = fmaf(a.x, b.x, sum);
    if (columns > 1) sum = fmaf(a.y, b.y, sum);
    if (columns > 2) sum = fmaf(a.z, b.z, sum);
    if (columns > 3) sum = fmaf(a.w, b.w, sum);
    return sum;
}

// starts[j] is the first of the sorted keys whose group is j - 2 or more: of the rows that are left to the
// reference, of those that are skipped, and of every group; the last one is that of codes that are too large.
KERNEL group_starts(const int64* keys, int32 n_rows, int32 n_starts, int32* starts)
{
    const int32 j = blockIdx.x * THREADS + threadIdx.x;
    if (j >= n_starts) return;
    const int64 first = row_key(j + LEFT, 0);
    int32 low = 0, high = n_rows;
    while (low < high) {
        const int32 middle = low + (high - low) / 2;
        if (keys[middle] < first) low = middle + 1;
        else high = middle;
    }
    starts[j] = low;
}

// Row i of `sums` is the sum of the rows edges[i] ... edges[i + 1] - 1 of `terms`, in this order.
KERNEL add_ranges(const float64* terms, const int32* edges, int32 width, float64* sums)
{
    const int32 column = blockIdx.y * THREADS + threadIdx.x;
    if (column >= width) return;
    const int32 stop = edges[blockIdx.x + 1];
    float64 sum = 0;
#pragma unroll 8
    for (int32 i = edges[blockIdx.x]; i < stop; ++i) sum += terms[(int64)i * width + column];
    sums[(int64)blockIdx.x * width + column] = sum;
}
