// One pass of expectation-maximisation over a stretch of rows:
//
//   mixture_agreement   log2 of how probable predictions are, of components and rows: (components, rows)
//   mixture_joint       ... become log2 joint densities
//   mixture_shares      ... become responsibilities times weights, and give the log-likelihood
//   mixture_products    sums of rows, of their squares and of outcomes times these, by chunk of rows
//   mixture_labels      the same of labels that are many
//   mixture_add         what chunks found is added in their order: the same bits at every run
//   mixture_turn        responsibilities by row, for those who want them
//
// Densities are 2^(bias - sum (scale x + shift)^2): as many FMAs as a product with [x, x^2], and nothing
// cancels. Products are float32 over PART rows and float64 beyond. A warp has a group of components, whose
// numbers it reads as broadcasts, and rows or columns by lane. Components are padded to those of a block, and
// so are tables, in which columns are padded to 32: what stands there is finite or meets only its like.
// Rows are padded to TILE; they have the weight 0.

#define GROUP 8    // components of a warp
#define LANES 32
#define WARPS (THREADS / LANES)
#define TOGETHER (WARPS * GROUP)  // components of a block
#define TILE 128   // rows of a block that finds densities, four a lane
#define FAR 36     // from one of these rows to the next: eight lanes that read 16 bytes each meet all banks
#define STEP 64    // rows that meet their shares in shared memory
#define SHARE_FAR (STEP + 4)
#define PART 128   // rows whose products are added in float32
#define CHUNK 1024 // rows whose sums leave a block; a lost one takes these along
#define LABELS 128 // of a block

#define LOST -1e29f  // log2 density of a row that float32 does not hold
#define EPSILON 2.220446049250313e-16f  // of probabilities

static_assert(TILE == THREADS, "a row a thread");

// A column of what is known of rows: numbers `far` apart, or whether codes are this one, or a constant
struct Column {
    const float32* numbers;
    int32 far;
    const int32* codes;
    int32 code;
    float32 constant;
};

DEVICE float32 number_of(const Column& column, int64 row)
{
    if (column.numbers) return column.numbers[row * column.far];
    if (column.codes) return column.codes[row] == column.code ? 1.f : 0.f;
    return column.constant;
}

// log2 of a number of at least 2^-126, off by 8.5e-8 of it and of 1
DEVICE float32 log2_of(float32 x)
{
    const int32 shifted = __float_as_int(x) - 0x3f3504f3;  // mantissas are taken in [sqrt(1/2), sqrt(2))
    const float32 z = __int_as_float((shifted & 0x007fffff) + 0x3f3504f3) - 1.f;
    float32 p = fmaf(-0.14574452440209248f, z, 0.23689045978624707f);
    p = fmaf(p, z, -0.25006905741652014f);
    p = fmaf(p, z, 0.28670744545626403f);
    p = fmaf(p, z, -0.36008721371367347f);
    p = fmaf(p, z, 0.4809394451700039f);
    p = fmaf(p, z, -0.7213571489752212f);
    p = fmaf(p, z, 1.442694772424838f);
    return fmaf(z, p, (float32)(shifted >> 23));
}

// Copy 32 columns of ROWS rows of an array (n, width), of which `from` is the corner; zeros beyond its end.
template <int32 ROWS, int32 DISTANCE>
DEVICE void stage(float32* to, const float32* from, int64 width, int64 n, int64 columns)
{
    const int32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const bool inside = lane < columns;
    to += warp * DISTANCE + lane;
    from += warp * width + lane;
    if (n >= ROWS) {
#pragma unroll 8
        for (int32 i = 0; i < ROWS / WARPS; ++i, from += WARPS * width)
            to[i * WARPS * DISTANCE] = inside ? *from : 0.f;
    } else {
#pragma unroll 1
        for (int32 i = 0; i < ROWS / WARPS; ++i, from += WARPS * width)
            to[i * WARPS * DISTANCE] = inside && i * WARPS + warp < n ? *from : 0.f;
    }
}

// Copy 32 columns of a block's components from a table.
DEVICE void stage_table(float4* to, const float4* table, int64 width, int32 first, int32 column)
{
    const int32 vector = threadIdx.x % (LANES / 4), row = threadIdx.x / (LANES / 4);
    const float4* from = table + ((first + row) * width + column) / 4 + vector;
#pragma unroll
    for (int32 i = 0; i < TOGETHER * LANES / 4 / THREADS; ++i)
        to[i * THREADS + threadIdx.x] = from[i * (THREADS / (LANES / 4)) * (width / 4)];
}

DEVICE float32 add_four(float32 sum, const float4& a, const float4& b)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

DEVICE float32 less_square(float32 joint, float32 x, float32 scale, float32 shift)
{
    const float32 u = fmaf(x, scale, shift);
    return fmaf(-u, u, joint);
}

// Add the products of up to 32 numbers of four rows and a group of components.
DEVICE void add_agreement(float32 (&sums)[GROUP][4], const float4* rows, const float4* table, int32 vectors)
{
#pragma unroll 1
    for (int32 j = 0; j < vectors; ++j) {
        float4 p[4];
#pragma unroll
        for (int32 i = 0; i < 4; ++i) p[i] = rows[i * LANES * FAR / 4 + j];
#pragma unroll
        for (int32 k = 0; k < GROUP; ++k) {
            const float4 q = table[k * LANES / 4 + j];
#pragma unroll
            for (int32 i = 0; i < 4; ++i) sums[k][i] = add_four(sums[k][i], p[i], q);
        }
    }
}

// Subtract (scale x + shift)^2 of up to 32 columns of four rows, for a group of components.
DEVICE void subtract_distances(float32 (&joint)[GROUP][4], const float4* rows, const float4* scales,
                               const float4* shifts, int32 vectors)
{
#pragma unroll 1
    for (int32 j = 0; j < vectors; ++j) {
        float4 x[4];
#pragma unroll
        for (int32 i = 0; i < 4; ++i) x[i] = rows[i * LANES * FAR / 4 + j];
#pragma unroll
        for (int32 k = 0; k < GROUP; ++k) {
            const float4 s = scales[k * LANES / 4 + j], t = shifts[k * LANES / 4 + j];
#pragma unroll
            for (int32 i = 0; i < 4; ++i) {
                joint[k][i] = less_square(joint[k][i], x[i].x, s.x, t.x);
                joint[k][i] = less_square(joint[k][i], x[i].y, s.y, t.y);
                joint[k][i] = less_square(joint[k][i], x[i].z, s.z, t.z);
                joint[k][i] = less_square(joint[k][i], x[i].w, s.w, t.w);
            }
        }
    }
}

// Set the terms of predictions. Blocks, here and next: TOGETHER components (x), TILE rows (y). Lane l has the
// rows l, l + 32, l + 64 and l + 96. Tables have a row a component, but `terms`, which has one a code.
KERNEL mixture_agreement(const float32* prediction, int32 n, int32 n_classes, const float4* agreement,
                         int32 n_components, float32 power, float32* joint, int32 stride)
{
    __shared__ float4 rows[TILE * FAR / 4], table[TOGETHER * LANES / 4];
    const int32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int32 begin = blockIdx.x * TOGETHER, mine = begin + warp * GROUP;
    const int32 width = (n_classes + LANES - 1) / LANES * LANES;
    const int64 first = (int64)blockIdx.y * TILE;
    float32 sums[GROUP][4];
#pragma unroll
    for (int32 u = 0; u < 4 * GROUP; ++u) sums[u / 4][u % 4] = EPSILON;
    for (int32 start = 0; start < n_classes; start += LANES) {
        __syncthreads();
        const float32* corner = prediction + first * n_classes + start;
        stage<TILE, FAR>((float32*)rows, corner, n_classes, n - first, n_classes - start);
        stage_table(table, agreement, width, begin, start);
        __syncthreads();
        if (mine < n_components)
            add_agreement(sums, rows + lane * (FAR / 4), table + warp * GROUP * LANES / 4,
                          (min(n_classes - start, LANES) + 3) / 4);
    }
#pragma unroll
    for (int32 u = 0; u < 4 * GROUP; ++u) {
        const float32 term = power * log2_of(sums[u / 4][u % 4]);
        joint[(int64)(mine + u / 4) * stride + first + lane + u % 4 * LANES] = term;
    }
}

// Set log densities; terms of outcomes, which may be large, come last. Those of predictions are in `joint`.
KERNEL mixture_joint(const float32* x, int32 n, int32 d, const float4* scales, const float4* shifts,
                     const float32* biases, int32 n_components, const int32* codes, const float4* terms,
                     int32 labelled, int32 agreeing, float32* joint, int32 stride)
{
    __shared__ float4 rows[TILE * FAR / 4], scale[TOGETHER * LANES / 4], shift[TOGETHER * LANES / 4];
    const int32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int32 begin = blockIdx.x * TOGETHER, mine = begin + warp * GROUP, group = warp * GROUP * LANES / 4;
    const int32 width = (d + LANES - 1) / LANES * LANES;
    const int64 first = (int64)blockIdx.y * TILE, left = n - first;
    float32 density[GROUP][4];
#pragma unroll
    for (int32 u = 0; u < 4 * GROUP; ++u) density[u / 4][u % 4] = biases[mine + u / 4];
    for (int32 start = 0; start < d; start += LANES) {
        __syncthreads();
        stage<TILE, FAR>((float32*)rows, x + first * d + start, d, left, d - start);
        stage_table(scale, scales, width, begin, start);
        stage_table(shift, shifts, width, begin, start);
        __syncthreads();
        if (mine < n_components)
            subtract_distances(density, rows + lane * (FAR / 4), scale + group, shift + group,
                               (min(d - start, LANES) + 3) / 4);
    }
    const int64 components = (int64)gridDim.x * TOGETHER;
#pragma unroll
    for (int32 i = 0; i < 4; ++i) {
        const int64 row = lane + LANES * i;
        float32* line = joint + mine * (int64)stride + first + row;
        const int64 code = labelled && row < left ? codes[first + row] : 0;
        const float4* term = terms + (code * components + mine) / 4;
#pragma unroll
        for (int32 k = 0; k < GROUP; k += 4) {
            const float4 four = labelled ? term[k / 4] : float4{0, 0, 0, 0};
            density[k][i] += four.x;
            density[k + 1][i] += four.y;
            density[k + 2][i] += four.z;
            density[k + 3][i] += four.w;
        }
#pragma unroll
        for (int32 k = 0; k < GROUP; ++k)
            line[(int64)k * stride] = density[k][i] + (agreeing ? line[(int64)k * stride] : 0.f);
    }
}

// Blocks: models (x), whose components begin at `bounds`; TILE rows (y), one a thread.
KERNEL mixture_shares(float32* joint, int32 stride, int32 n, const int32* bounds, const float32* weights,
                      int32 weighted, float64* evidence, int32* lost)
{
    __shared__ float64 parts[TILE];
    const int32 row = blockIdx.y * TILE + threadIdx.x;
    const int64 begin = bounds[blockIdx.x], end = bounds[blockIdx.x + 1];
    float32* line = joint + row;
    float32 highest = line[begin * stride], mass = 0;
#pragma unroll 8
    for (int64 k = begin + 1; k < end; ++k) highest = fmaxf(highest, line[k * stride]);
#pragma unroll 8
    for (int64 k = begin; k < end; ++k) mass += power_of_two(line[k * stride] - highest);
    const float32 log_mass = log2_of(mass), density = highest + log_mass;
    const float32 weight = row >= n ? 0.f : weighted ? weights[row] : 1.f;
    float32 inverse = power_of_two(-log_mass);
    inverse = fmaf(inverse, fmaf(-mass, inverse, 1.f), inverse);  // to the last digit, by Newton
    const float32 factor = weight * inverse;
#pragma unroll 8
    for (int64 k = begin; k < end; ++k) line[k * stride] = factor * power_of_two(line[k * stride] - highest);
    if (row < n && !(density > LOST)) lost[row / CHUNK] = 1;  // whoever writes this writes the same
    parts[threadIdx.x] = row < n ? (float64)weight * density : 0.0;
    for (int32 half = TILE / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0) evidence[(int64)blockIdx.y * gridDim.x + blockIdx.x] = parts[0];
}

// Add STEP rows, and their squares if wanted, times shares.
template <bool SQUARED>
DEVICE void add_rows(float32 (&sums)[GROUP], float32 (&squares)[GROUP], const float32* rows,
                     const float4* shares)
{
#pragma unroll 2
    for (int32 q = 0; q < STEP / 4; ++q, rows += 4 * LANES) {
        const float4 x = {rows[0], rows[LANES], rows[2 * LANES], rows[3 * LANES]};
        const float4 xx = {x.x * x.x, x.y * x.y, x.z * x.z, x.w * x.w};
#pragma unroll
        for (int32 k = 0; k < GROUP; ++k) {
            const float4 share = shares[k * SHARE_FAR / 4 + q];
            sums[k] = add_four(sums[k], share, x);
            if (SQUARED) squares[k] = add_four(squares[k], share, xx);
        }
    }
}

// Move float32 sums to the float64 ones, which lie by thread.
DEVICE void flush(float32 (&sums)[GROUP], float64* to, bool first)
{
#pragma unroll
    for (int32 k = 0; k < GROUP; ++k) {
        const float64 before = first ? 0.0 : to[k * THREADS];
        to[k * THREADS] = before + sums[k];
        sums[k] = 0;
    }
}

// Blocks: TOGETHER components (x); 32 columns (y): those of x, 1, labels as 0 or 1, predictions, others;
// chunks (z). The record of a chunk has the sums of all its blocks, then the squares of those with columns of
// x; each is (GROUP, THREADS).
KERNEL mixture_products(const float32* x, int32 n, int32 d, const int32* codes, int32 n_codes,
                        const float32* prediction, int32 n_classes, const float32* extra, int32 n_extra,
                        const float32* shares, int32 stride, int32 n_components, float64* records,
                        int64 length)
{
    __shared__ float32 rows[STEP * LANES];
    __shared__ float4 share[TOGETHER * SHARE_FAR / 4];
    const int32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int32 begin = blockIdx.x * TOGETHER, column = blockIdx.y * LANES;
    const int32 first = blockIdx.z * CHUNK, end = min(n, first + CHUNK);
    const bool squared = column < d, busy = begin + warp * GROUP < n_components;
    const int64 slot = THREADS * GROUP, block = (int64)blockIdx.y * gridDim.x + blockIdx.x;
    float64* to = records + blockIdx.z * length + block * slot + threadIdx.x;
    float64* to_squares = to + (int64)gridDim.x * gridDim.y * slot;
    const int32 code = column + lane - d - 1, class_ = code - n_codes, more = class_ - n_classes;
    const Column other = code < 0            ? Column{nullptr, 0, nullptr, 0, 1.f}
                         : class_ < 0        ? Column{nullptr, 0, codes, code}
                         : more < 0          ? Column{prediction + class_, n_classes}
                         : more < n_extra    ? Column{extra + more, n_extra}
                                             : Column{};
    float32 sums[GROUP] = {}, squares[GROUP] = {};
    for (int32 start = first; start < end; start += STEP) {
        __syncthreads();
        if (squared) stage<STEP, LANES>(rows, x + (int64)start * d + column, d, n - start, d - column);
        if (column + lane >= d)
#pragma unroll 4
            for (int32 i = warp; i < STEP; i += WARPS)
                rows[i * LANES + lane] = start + i < n ? number_of(other, start + i) : 0.f;
        const int32 quarter = threadIdx.x % (STEP / 4) * 4;
#pragma unroll
        for (int32 k = threadIdx.x / (STEP / 4); k < TOGETHER; k += THREADS / (STEP / 4))
            share[(k * SHARE_FAR + quarter) / 4] =
                *(const float4*)(shares + (int64)(begin + k) * stride + start + quarter);
        __syncthreads();
        const float4* my_shares = share + warp * GROUP * SHARE_FAR / 4;
        if (busy && squared) add_rows<true>(sums, squares, rows + lane, my_shares);
        if (busy && !squared) add_rows<false>(sums, squares, rows + lane, my_shares);
        if ((start + STEP - first) % PART == 0 || start + STEP >= end) {
            const bool none_yet = start + STEP - first <= PART;
            flush(sums, to, none_yet);
            if (squared) flush(squares, to_squares, none_yet);
        }
    }
}

// Blocks: 32 components (x); LABELS labels (y), of which every WARPS-th is a warp's; chunks (z). Sums are
// (labels, components) from `records` on in each record, float64 at once: rows of one label are few.
KERNEL mixture_labels(const int32* codes, int32 n, const float32* shares, int32 stride, float64* records,
                      int64 length)
{
    __shared__ float64 sums[LABELS * LANES];
    __shared__ float32 share[LANES * (STEP + 1)];
    __shared__ int32 labels[STEP];
    const int32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int32 component = blockIdx.x * LANES, first_code = blockIdx.y * LABELS;
    const int32 first = blockIdx.z * CHUNK, end = min(n, first + CHUNK);
    for (int32 e = threadIdx.x; e < LABELS * LANES; e += THREADS) sums[e] = 0;
    for (int32 start = first; start < end; start += STEP) {
        __syncthreads();
        if (threadIdx.x < STEP) {
            const int32 code = start + threadIdx.x < n ? codes[start + threadIdx.x] - first_code : -1;
            labels[threadIdx.x] = code < LABELS ? code : -1;
        }
#pragma unroll 4
        for (int32 e = threadIdx.x; e < LANES * STEP; e += THREADS)
            share[e / STEP * (STEP + 1) + e % STEP] =
                shares[(int64)(component + e / STEP) * stride + start + e % STEP];
        __syncthreads();
#pragma unroll 8
        for (int32 row = 0; row < STEP; ++row) {
            const int32 label = labels[row];
            if (label >= 0 && label % WARPS == warp)
                sums[label * LANES + lane] += share[lane * (STEP + 1) + row];
        }
    }
    // sums that a thread has set are its own: no barrier
    float64* to = records + blockIdx.z * length + (int64)first_code * gridDim.x * LANES + component;
    for (int32 e = threadIdx.x; e < LABELS * LANES; e += THREADS)
        to[e / LANES * (int64)gridDim.x * LANES + e % LANES] = sums[e];
}

// Add n records to their total, but not those of chunks that have a lost row: a chunk has 2^shift records.
KERNEL mixture_add(const float64* records, int32 n, int32 shift, int64 length, const int32* lost,
                   float64* total)
{
    const int64 e = (int64)blockIdx.x * THREADS + threadIdx.x;
    if (e >= length) return;
    float64 sum = total[e];
#pragma unroll 8
    for (int32 i = 0; i < n; ++i) {
        const float64 found = records[i * length + e];
        sum += lost[i >> shift] ? 0.0 : found;
    }
    total[e] = sum;
}

// Blocks: 32 rows (x), 32 components (y). Shares of n rows, (n, n_components), of those by component.
KERNEL mixture_turn(const float32* shares, int32 stride, int32 n, int32 n_components, float32* rows)
{
    __shared__ float32 tile[LANES * (LANES + 1)];
    const int32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int64 first = (int64)blockIdx.x * LANES, component = (int64)blockIdx.y * LANES;
    stage<LANES, LANES + 1>(tile, shares + component * stride + first, stride, LANES, n - first);
    __syncthreads();
    for (int32 i = warp; i < LANES; i += WARPS)
        if (first + i < n && component + lane < n_components)
            rows[(first + i) * n_components + component + lane] = tile[lane * (LANES + 1) + i];
}
