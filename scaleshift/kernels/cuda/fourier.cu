// Fourier class sums: cos and sin of every (row, frequency) pair go into sums that never leave registers.
//
// A thread holds two frequencies, a block 128 rows of one group in shared memory, and every thread adds every
// row. Frequencies are in turns, so that range reduction is one exact rounding. Polynomials give s = sin and
// c = cos of HALF the angle, and cos = -2 (s^2 - 1/2), sin = 2 s c need no quadrants. They are the CPU's,
// with a relative error of 1e-7 in the sums. __sinf and __cosf would take 14 instructions where these take 23
// (with five columns), but err by up to 4e-7 of 1, and not at random: 1e-6 of a sum whose terms cancel in
// part.

#define WIDTH ((COLUMNS + 3) / 4 * 4)  // columns, padded with zeros to vectors of four
#define FOURS (WIDTH / 4)
#define PER_THREAD 2                   // frequencies
#define FREQUENCIES (PER_THREAD * THREADS)
#define NARROW (WIDTH <= 48)           // then weights stay in registers

#if NARROW
#define TILE_ROWS 128
#define ROWS_AT_ONCE 1
#define BLOCKS 3
#else
// weights are read again for every few rows; a tile is at most 24 KB
#if WIDTH <= 384
#define TILE_ROWS 16
#elif WIDTH <= 768
#define TILE_ROWS 8
#else
#define TILE_ROWS 4
#endif
#define ROWS_AT_ONCE TILE_ROWS
#define BLOCKS 4
#endif

// The key of every row. Rows are left to the reference where an angle may exceed `limit` turns: it does not
// where the largest turns of every column, `reach`, do not add up to it, nor where the farthest column would
// not reach it with the frequency whose turns in all columns are the `largest`.
KERNEL screen_rows(const INPUT* x, int64 row_stride, int64 column_stride, const CODE* codes, int32 n_rows,
                   int32 n_groups, const INPUT* centre, const float32* reach, float32 largest, float32 limit,
                   int64* keys)
{
    const int32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n_rows) return;
    const int64 group = group_of(codes[i], n_groups);
    bool near = true;
    if (group >= 0) {
        float32 angle = 0, farthest = 0;
        for (int32 k = 0; k < COLUMNS; ++k) {
            const float32 away = fabsf((float32)(x[i * row_stride + k * column_stride] - centre[k]));
            angle = fmaf(away, reach[k], angle);
            farthest = fmaxf(farthest, away);
        }
        near = fminf(angle, farthest * largest) <= limit;
    }
    keys[i] = row_key(near ? group : LEFT, i);
}

// Add s^2 - 1/2 and s c of an angle of t turns.
DEVICE void add_angle(float32 t, float32& sum_ss, float32& sum_sc)
{
    const float32 r = t - nearest_integer(t);
    const float32 u = r * r;
    float32 s = fmaf(0.07722012375617215f, u, -0.598045171528179f);
    s = fmaf(s, u, 2.5500313768559257f);
    s = fmaf(s, u, -5.167706878901209f);
    s = r * fmaf(s, u, 3.1415925800443367f);
    float32 c = fmaf(0.2196967986817459f, u, -1.3318801635901232f);
    c = fmaf(c, u, 4.058411915036538f);
    c = fmaf(c, u, -4.934792858765502f);
    c = fmaf(c, u, 0.9999999534689185f);
    sum_ss += fmaf(s, s, -0.5f);
    sum_sc = fmaf(s, c, sum_sc);
}

// sums (items, 2, n): of cos, then of sin, about the centre. turns (FOURS, frequencies) are vectors of four
// columns, padded to whole blocks of 256 frequencies. Blocks: (items, frequencies / 256).
KERNEL_OF(BLOCKS) fourier_sums(
    const INPUT* x, int64 row_stride, int64 column_stride, const int64* keys, const int32* edges,
    const INPUT* centre, const float4* turns, int32 n, float64* sums)
{
    __shared__ float4 tile[TILE_ROWS * FOURS];
    float32* values = (float32*)tile;
    const int32 first = blockIdx.y * FREQUENCIES + threadIdx.x;
    const int32 padded = gridDim.y * FREQUENCIES;
    turns += first;
#if NARROW
    float4 weights[PER_THREAD][FOURS];
#pragma unroll
    for (int32 j = 0; j < PER_THREAD; ++j) {
#pragma unroll
        for (int32 q = 0; q < FOURS; ++q) weights[j][q] = turns[(int64)q * padded + j * THREADS];
    }
#define WEIGHTS(j, q) weights[j][q]
#define USED(q) (COLUMNS - 4 * (q))
#else
#define WEIGHTS(j, q) turns[(int64)(q) * padded + (j) * THREADS]
#define USED(q) 4
#endif
    float64 sum_cos[PER_THREAD] = {}, sum_sin[PER_THREAD] = {};
    const int32 stop = edges[blockIdx.x + 1];
    for (int32 start = edges[blockIdx.x]; start < stop; start += TILE_ROWS) {
        const int32 count = min(TILE_ROWS, stop - start);
        __syncthreads();  // the tile before this one is done with
        for (int32 e = threadIdx.x; e < count * WIDTH; e += THREADS) {
            const int32 k = e % WIDTH;
            const int64 row = row_of(keys[start + e / WIDTH]);
            values[e] = k < COLUMNS ? (float32)(x[row * row_stride + k * column_stride] - centre[k]) : 0.f;
        }
        __syncthreads();
        float32 sum_ss[PER_THREAD] = {}, sum_sc[PER_THREAD] = {};
#if NARROW
#pragma unroll 4
#else
#pragma unroll 1
#endif
        for (int32 p = 0; p < count; p += ROWS_AT_ONCE) {
            float32 angles[ROWS_AT_ONCE][PER_THREAD] = {};
#if NARROW
#pragma unroll
#else
#pragma unroll 1
#endif
            for (int32 q = 0; q < FOURS; ++q) {
#pragma unroll
                for (int32 j = 0; j < PER_THREAD; ++j) {
                    const float4 w = WEIGHTS(j, q);
#pragma unroll
                    for (int32 r = 0; r < ROWS_AT_ONCE; ++r) {
                        angles[r][j] = add_product(angles[r][j], w, tile[(p + r) * FOURS + q], USED(q));
                    }
                }
            }
#pragma unroll
            for (int32 r = 0; r < ROWS_AT_ONCE; ++r) {
                if (!NARROW && p + r >= count) break;
#pragma unroll
                for (int32 j = 0; j < PER_THREAD; ++j) add_angle(angles[r][j], sum_ss[j], sum_sc[j]);
            }
        }
#pragma unroll
        for (int32 j = 0; j < PER_THREAD; ++j) {
            sum_cos[j] -= 2.0 * sum_ss[j];
            sum_sin[j] += 2.0 * sum_sc[j];
        }
    }
    float64* result = sums + (int64)blockIdx.x * 2 * n;
#pragma unroll
    for (int32 j = 0; j < PER_THREAD; ++j) {
        const int32 f = first + j * THREADS;
        if (f < n) {
            result[f] = sum_cos[j];
            result[n + f] = sum_sin[j];
        }
    }
}
