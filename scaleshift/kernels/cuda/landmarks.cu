// Landmark class sums: the Gaussian kernel of every (row, landmark) pair goes into sums that never leave
// registers.
//
// In powers of two k(x, z) = 2^t, and about a common centre, in units that absorb the bandwidth,
// t = -|x|^2 + 2 x z - |z|^2: a product, and two additions. A lane holds four landmarks, a warp 128; the four
// warps of a block take the rows of a tile in turn. The power is one instruction with a relative error of
// 2^-22; the sums err by about as much.
//
// The residual needs the sum over all landmarks of each row. Shuffles would cost as much as the kernel: lanes
// leave their four landmarks' sum in shared memory instead, where 64 rows are added at once.

#define WIDTH ((COLUMNS + 3) / 4 * 4)  // columns, padded with zeros to vectors of four
#define FOURS (WIDTH / 4)
#define LANES 32
#define WARPS (THREADS / LANES)
#define PER_LANE 4                     // landmarks
#define LANDMARKS (LANES * PER_LANE)   // of a block
#define UNSEEN (-1e6f)                 // in place of -|x|^2 or -|z|^2: kernel values are 0
#define MINUS_LOG2E (-1.4426950408889634f)

#define NARROW (WIDTH <= 24)           // then weights stay in registers

#if NARROW
#define TILE_ROWS 64
#define ROWS_AT_ONCE 1
#define BLOCKS 3
#else
// weights are read again for every few rows; a tile is at most 24 KB
#if WIDTH <= 192
#define TILE_ROWS 32
#elif WIDTH <= 384
#define TILE_ROWS 16
#elif WIDTH <= 768
#define TILE_ROWS 8
#else
#define TILE_ROWS 4
#endif
#define ROWS_AT_ONCE (TILE_ROWS / WARPS)
#define BLOCKS 4
#endif
#define TOTALS (TILE_ROWS * (LANES + 1))  // one more, so that a column of them lies in different banks

// The key of every row, and its shift: t at the centre, of the very numbers that are multiplied later. Rows
// are left to the reference if they are too far from the centre for float32, and yet may be seen by a
// landmark: where -t is in left_from ... left_to. Others are not seen where -t exceeds the limit.
KERNEL screen_rows(const INPUT* x, int64 row_stride, int64 column_stride, const CODE* codes, int32 n_rows,
                   int32 n_groups, const INPUT* centre, INPUT scale, float64 rate, float64 left_from,
                   float64 left_to, float64 limit, int64* keys, float32* shifts)
{
    const int32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n_rows) return;
    int64 group = group_of(codes[i], n_groups);
    float32 shift = UNSEEN;
    if (group >= 0) {
        float64 exact = 0, rounded = 0;
        for (int32 k = 0; k < COLUMNS; ++k) {
            const INPUT number = x[i * row_stride + k * column_stride];
            const float64 away = ((float64)number - (float64)centre[k]) * (float64)scale;
            const float32 value = (float32)((number - centre[k]) * scale);
            exact += away * away;
            rounded += (float64)value * (float64)value;
        }
        exact *= rate;
        rounded *= rate;
        if (left_from < exact && exact < left_to) group = LEFT;
        if (rounded <= limit) shift = (float32)-rounded;
    }
    keys[i] = row_key(group, i);
    shifts[i] = shift;
}

// sums (items, width): of the kernel with each of the m landmarks; the last column is left alone.
// totals (landmarks / 128, rows in the order of their keys): of the kernel with 128 landmarks each.
// weights (FOURS, landmarks) are vectors of four columns. Landmarks are padded with unseen ones.
// Blocks: (items, landmarks / 128).
KERNEL_OF(BLOCKS) landmark_sums(
    const INPUT* x, int64 row_stride, int64 column_stride, const int64* keys, const float32* shifts,
    int32 n_rows, const int32* edges, const INPUT* centre, INPUT scale, const float4* weights,
    const float32* biases, int32 m, float64* sums, float32* totals)
{
    __shared__ float4 tile[TILE_ROWS * FOURS];
    __shared__ float32 tile_shifts[TILE_ROWS];
    __shared__ float32 row_sums[TOTALS];
    __shared__ float64 warp_sums[WARPS][LANDMARKS];
    float32* values = (float32*)tile;
    const int32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int32 first = blockIdx.y * LANDMARKS, n = gridDim.y * LANDMARKS;
    weights += first + lane;
    float32 bias[PER_LANE];
#pragma unroll
    for (int32 j = 0; j < PER_LANE; ++j) bias[j] = biases[first + j * LANES + lane];
#if NARROW
    float4 kept[PER_LANE][FOURS];
#pragma unroll
    for (int32 j = 0; j < PER_LANE; ++j) {
#pragma unroll
        for (int32 q = 0; q < FOURS; ++q) kept[j][q] = weights[(int64)q * n + j * LANES];
    }
#define WEIGHTS(j, q) kept[j][q]
#define USED(q) (COLUMNS - 4 * (q))
#else
#define WEIGHTS(j, q) weights[(int64)(q) * n + (j) * LANES]
#define USED(q) 4
#endif
    float64 sum[PER_LANE] = {};
    const int32 stop = edges[blockIdx.x + 1];
    for (int32 start = edges[blockIdx.x]; start < stop; start += TILE_ROWS) {
        const int32 count = min(TILE_ROWS, stop - start);
        // all threads have left the loop over the tile before this one: see the barrier behind it
        for (int32 e = threadIdx.x; e < TILE_ROWS * WIDTH; e += THREADS) {
            const int32 p = e / WIDTH, k = e % WIDTH;
            float32 value = 0;
            if (p < count && k < COLUMNS) {
                const int64 row = row_of(keys[start + p]);
                if (shifts[row] > UNSEEN) {
                    value = (float32)((x[row * row_stride + k * column_stride] - centre[k]) * scale);
                }
            }
            values[e] = value;
        }
        if (threadIdx.x < TILE_ROWS) {
            const int32 p = threadIdx.x;
            tile_shifts[p] = p < count ? shifts[row_of(keys[start + p])] : UNSEEN;
        }
        __syncthreads();
        float32 part[PER_LANE] = {};
#if NARROW
#pragma unroll 4
#else
#pragma unroll 1
#endif
        for (int32 p = warp; p < count; p += WARPS * ROWS_AT_ONCE) {
            float32 t[ROWS_AT_ONCE][PER_LANE];
#pragma unroll
            for (int32 r = 0; r < ROWS_AT_ONCE; ++r) {
#pragma unroll
                for (int32 j = 0; j < PER_LANE; ++j) t[r][j] = bias[j] + tile_shifts[p + WARPS * r];
            }
#if NARROW
#pragma unroll
#else
#pragma unroll 1
#endif
            for (int32 q = 0; q < FOURS; ++q) {
#pragma unroll
                for (int32 j = 0; j < PER_LANE; ++j) {
                    const float4 w = WEIGHTS(j, q);
#pragma unroll
                    for (int32 r = 0; r < ROWS_AT_ONCE; ++r) {
                        t[r][j] = add_product(t[r][j], w, tile[(p + WARPS * r) * FOURS + q], USED(q));
                    }
                }
            }
#pragma unroll
            for (int32 r = 0; r < ROWS_AT_ONCE; ++r) {
                float32 total = 0;
#pragma unroll
                for (int32 j = 0; j < PER_LANE; ++j) {
                    const float32 value = power_of_two(t[r][j]);
                    part[j] += value;
                    total += value;
                }
                row_sums[(p + WARPS * r) * (LANES + 1) + lane] = total;
            }
        }
#pragma unroll
        for (int32 j = 0; j < PER_LANE; ++j) sum[j] += part[j];
        __syncthreads();
        if (threadIdx.x < count) {
            float32 total = 0;
            for (int32 i = 0; i < LANES; ++i) total += row_sums[threadIdx.x * (LANES + 1) + i];
            totals[(int64)blockIdx.y * n_rows + start + threadIdx.x] = total;
        }
    }
#pragma unroll
    for (int32 j = 0; j < PER_LANE; ++j) warp_sums[warp][j * LANES + lane] = sum[j];
    __syncthreads();
    const int32 landmark = first + threadIdx.x;
    if (landmark < m) {
        float64 result = 0;
        for (int32 i = 0; i < WARPS; ++i) result += warp_sums[i][threadIdx.x];
        sums[(int64)blockIdx.x * (m + 1) + landmark] = result;
    }
}

// The last column of sums (items, m + 1): of exp(-total) over the rows of an item. totals (parts, rows).
KERNEL add_residuals(const float32* totals, int32 parts, int32 n_rows, const int32* edges, int32 m,
                     float64* sums)
{
    __shared__ float64 thread_sums[THREADS];
    float64 sum = 0;
    const int32 stop = edges[blockIdx.x + 1];
    for (int32 i = edges[blockIdx.x] + threadIdx.x; i < stop; i += THREADS) {
        float32 total = 0;
        for (int32 part = 0; part < parts; ++part) total += totals[(int64)part * n_rows + i];
        sum += power_of_two(total * MINUS_LOG2E);
    }
    thread_sums[threadIdx.x] = sum;
    for (int32 half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) thread_sums[threadIdx.x] += thread_sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[(int64)blockIdx.x * (m + 1) + m] = thread_sums[0];
}
