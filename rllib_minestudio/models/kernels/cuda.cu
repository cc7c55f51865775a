// Everything between the convolutions of a stack, forwards and backwards, in channels-last layout.
//
// Images are [N frames, H, W, C], contiguous, of float32 or (-DBFLOAT16) bfloat16; C is a multiple
// of V, so that a thread reads and writes V channels of a pixel in 16 bytes at once. Sums are
// float32, in an order that depends on the sizes alone: the same inputs give the same bits. In most
// kernels, PARTS blocks process a frame: blockIdx.x is the frame, blockIdx.y the part.

#ifdef BFLOAT16
typedef unsigned short Number;  // the upper half of a float32
#else
typedef float Number;
#endif

#define V (16 / (int)sizeof(Number))
#define PARTS 32  // of a frame: as many as a warp has threads, see `frame_moments`
#define THREADS 256
#define WARPS (THREADS / 32)
#define ALL 0xffffffffu

struct __align__(16) Vector {
    Number numbers[V];
};

__device__ __forceinline__ float from(float x) { return x; }
__device__ __forceinline__ float from(unsigned short x) {
    return __uint_as_float((unsigned int)x << 16);
}
__device__ __forceinline__ void store(float& place, float x) { place = x; }
__device__ __forceinline__ void store(unsigned short& place, float x) {
    const unsigned int bits = __float_as_uint(x);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    // To the nearest, ties to even, as torch rounds.
    place = is_nan ? 0x7fc0 : (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// The vectors of a part: [begin, end) within the frame.
struct Range {
    int begin, end;
};
__device__ __forceinline__ Range range_of(int part, int vectors) {
    const int share = (vectors + PARTS - 1) / PARTS;
    const int begin = min(part * share, vectors);
    return {begin, min(begin + share, vectors)};
}

// Count, mean and sum of squared deviations, merged without cancellation (Chan et al. 1979).
struct Moments {
    float count, mean, squares;
};
__device__ __forceinline__ Moments merged(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0) return a;
    const float difference = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + difference * share,
            a.squares + b.squares + difference * difference * a.count * share};
}
__device__ __forceinline__ Moments moments_of(const float* x) {
    float mean = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < V; i++) mean += x[i];
    mean /= V;
#pragma unroll
    for (int i = 0; i < V; i++) squares += (x[i] - mean) * (x[i] - mean);
    return {(float)V, mean, squares};
}
__device__ __forceinline__ Moments over_warp(Moments own) {
    for (int distance = 16; distance; distance /= 2) {
        Moments other;
        other.count = __shfl_xor_sync(ALL, own.count, distance);
        other.mean = __shfl_xor_sync(ALL, own.mean, distance);
        other.squares = __shfl_xor_sync(ALL, own.squares, distance);
        own = merged(own, other);
    }
    return own;
}
// Stores the moments of the block's part for `frame_moments`.
__device__ __forceinline__ void keep_moments(Moments own, float* parts_np3) {
    __shared__ Moments of_warps[WARPS];
    own = over_warp(own);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < WARPS; warp++) own = merged(own, of_warps[warp]);
        float* place = parts_np3 + 3 * ((long long)blockIdx.x * PARTS + blockIdx.y);
        place[0] = own.count;
        place[1] = own.mean;
        place[2] = own.squares;
    }
}
// The moments of the whole frame, in every thread: each thread of a warp reads one part.
__device__ __forceinline__ Moments frame_moments(const float* parts_np3) {
    const float* place = parts_np3 + 3 * ((long long)blockIdx.x * PARTS + threadIdx.x % 32);
    return over_warp({place[0], place[1], place[2]});
}

// y = x, or max(x, 0), plus skip; and the moments of y. Without y only the moments.
extern "C" __global__ void positive(const Vector* x, const Vector* skip, Vector* y,
                                    float* parts_np3, int vectors, int relu) {
    const long long frame = (long long)blockIdx.x * vectors;
    const Range range = range_of(blockIdx.y, vectors);
    Moments own = {0, 0, 0};
    for (int v = range.begin + threadIdx.x; v < range.end; v += THREADS) {
        Vector in = x[frame + v], add, out;
        if (skip) add = skip[frame + v];
        float values[V];
#pragma unroll
        for (int i = 0; i < V; i++) {
            float value = from(in.numbers[i]);
            if (relu && value < 0) value = 0;  // a NaN stays
            if (skip) value += from(add.numbers[i]);
            store(out.numbers[i], value);
            values[i] = from(out.numbers[i]);
        }
        if (y) y[frame + v] = out;
        own = merged(own, moments_of(values));
    }
    keep_moments(own, parts_np3);
}

// 3x3 max pool of stride 2 and padding 1, then ReLU; the largest pixel's tap (0 to 8); and moments.
extern "C" __global__ void pool(const Vector* x, Vector* y, unsigned char* taps, float* parts_np3,
                                int height, int width, int groups) {
    const int rows = (height + 1) / 2, columns = (width + 1) / 2, vectors = rows * columns * groups;
    const long long frame_in = (long long)blockIdx.x * height * width * groups;
    const long long frame_out = (long long)blockIdx.x * vectors;
    const Range range = range_of(blockIdx.y, vectors);
    Moments own = {0, 0, 0};
    for (int v = range.begin + threadIdx.x; v < range.end; v += THREADS) {
        const int group = v % groups, column = v / groups % columns, row = v / groups / columns;
        float best[V];
        unsigned char tap[V];
#pragma unroll
        for (int i = 0; i < V; i++) {
            best[i] = -__int_as_float(0x7f800000);
            tap[i] = 4;  // the middle is always inside
        }
        for (int k = 0; k < 9; k++) {
            const int h = 2 * row - 1 + k / 3, w = 2 * column - 1 + k % 3;
            if (h < 0 || h >= height || w < 0 || w >= width) continue;
            const Vector in = x[frame_in + (h * width + w) * groups + group];
#pragma unroll
            for (int i = 0; i < V; i++) {
                const float value = from(in.numbers[i]);
                if (value > best[i] || value != value) {
                    best[i] = value;
                    tap[i] = k;
                }
            }
        }
        Vector out;
        float values[V];
#pragma unroll
        for (int i = 0; i < V; i++) {
            store(out.numbers[i], best[i] < 0 ? 0 : best[i]);
            values[i] = from(out.numbers[i]);
        }
        y[frame_out + v] = out;
        if (taps) {
#pragma unroll
            for (int i = 0; i < V; i++) taps[(frame_out + v) * V + i] = tap[i];
        }
        own = merged(own, moments_of(values));
    }
    keep_moments(own, parts_np3);
}

// Group norm of one group; also keeps [N, 2]: mean and 1 / standard deviation.
extern "C" __global__ void normalise(const Vector* x, const float* parts_np3, const float* weight,
                                     const float* bias, Vector* y, float* stats_n2, int vectors,
                                     int groups, float epsilon) {
    const long long frame = (long long)blockIdx.x * vectors;
    const Range range = range_of(blockIdx.y, vectors);
    const Moments all = frame_moments(parts_np3);
    const float mean = all.mean, scale = rsqrtf(all.squares / all.count + epsilon);
    if (blockIdx.y == 0 && threadIdx.x == 0) {
        stats_n2[2 * (long long)blockIdx.x] = mean;
        stats_n2[2 * (long long)blockIdx.x + 1] = scale;
    }
    for (int v = range.begin + threadIdx.x; v < range.end; v += THREADS) {
        const int channel = v % groups * V;
        const Vector in = x[frame + v];
        Vector out;
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float normal = (from(in.numbers[i]) - mean) * scale;
            store(out.numbers[i], normal * weight[channel + i] + bias[channel + i]);
        }
        y[frame + v] = out;
    }
}

// Sums over the pixels of a part: [N, PARTS, 2, C] of dy * normal, and of dy.
// Threads of a block form rows, with one thread per group of channels; a row takes a pixel.
extern "C" __global__ void norm_sums(const Vector* dy, const Vector* x, const float* stats_n2,
                                     float* sums_np2c, int pixels, int groups) {
    __shared__ float shared[THREADS * V];
    const float mean = stats_n2[2 * (long long)blockIdx.x];
    const float scale = stats_n2[2 * (long long)blockIdx.x + 1];
    const long long frame = (long long)blockIdx.x * pixels * groups;
    const Range range = range_of(blockIdx.y, pixels);
    float* place = sums_np2c + ((long long)blockIdx.x * PARTS + blockIdx.y) * 2 * groups * V;
    const int rows = max(THREADS / groups, 1);
    // If there are more groups than threads in a block, they are taken in turn.
    for (int first = 0; first < groups; first += THREADS) {
        const int width = min(groups - first, THREADS), row = threadIdx.x / width;
        const int group = first + threadIdx.x % width;
        float products[V] = {}, plain[V] = {};
        if (row < rows) {
            for (int p = range.begin + row; p < range.end; p += rows) {
                const Vector gradient = dy[frame + p * groups + group];
                const Vector in = x[frame + p * groups + group];
#pragma unroll
                for (int i = 0; i < V; i++) {
                    const float each = from(gradient.numbers[i]);
                    products[i] += each * (from(in.numbers[i]) - mean) * scale;
                    plain[i] += each;
                }
            }
        }
        for (int kind = 0; kind < 2; kind++) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < V; i++) shared[threadIdx.x * V + i] = kind ? plain[i] : products[i];
            __syncthreads();
            for (int c = threadIdx.x; c < width * V; c += THREADS) {
                float sum = 0;
                for (int r = 0; r < rows; r++) sum += shared[r * width * V + c];
                place[kind * groups * V + first * V + c] = sum;
            }
        }
    }
}

// Sums over parts, [N, 2, C]; and over channels, multiplied by the weight, [N, 2], as means.
extern "C" __global__ void norm_means(const float* sums_np2c, const float* weight, float* sums_n2c,
                                      float* means_n2, int channels, float numbers) {
    __shared__ float of_warps[WARPS];
    for (int kind = 0; kind < 2; kind++) {
        float own = 0;
        for (int c = threadIdx.x; c < channels; c += THREADS) {
            float sum = 0;
            for (int part = 0; part < PARTS; part++) {
                const long long place = ((long long)blockIdx.x * PARTS + part) * 2 + kind;
                sum += sums_np2c[place * channels + c];
            }
            sums_n2c[((long long)blockIdx.x * 2 + kind) * channels + c] = sum;
            own += sum * weight[c];
        }
        for (int distance = 16; distance; distance /= 2) {
            own += __shfl_xor_sync(ALL, own, distance);
        }
        __syncthreads();
        if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int warp = 1; warp < WARPS; warp++) own += of_warps[warp];
            means_n2[(long long)blockIdx.x * 2 + kind] = own / numbers;
        }
    }
}

// Gradient of the norm's input x; times (x > 0) if x came out of a ReLU; plus skip.
extern "C" __global__ void norm_backward(const Vector* dy, const Vector* x, const float* stats_n2,
                                         const float* means_n2, const float* weight,
                                         const Vector* skip, Vector* dx, int vectors, int groups,
                                         int relu) {
    const long long frame = (long long)blockIdx.x * vectors;
    const Range range = range_of(blockIdx.y, vectors);
    const float mean = stats_n2[2 * (long long)blockIdx.x];
    const float scale = stats_n2[2 * (long long)blockIdx.x + 1];
    const float of_products = means_n2[2 * (long long)blockIdx.x];
    const float plain = means_n2[2 * (long long)blockIdx.x + 1];
    for (int v = range.begin + threadIdx.x; v < range.end; v += THREADS) {
        const int channel = v % groups * V;
        const Vector gradient = dy[frame + v], in = x[frame + v];
        Vector add, out;
        if (skip) add = skip[frame + v];
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float value = from(in.numbers[i]), normal = (value - mean) * scale;
            const float each = from(gradient.numbers[i]) * weight[channel + i];
            float result = scale * (each - plain - normal * of_products);
            if (relu && value <= 0) result = 0;
            if (skip) result += from(add.numbers[i]);
            store(out.numbers[i], result);
        }
        dx[frame + v] = out;
    }
}

// dx = dy where x > 0, else 0.
extern "C" __global__ void positive_backward(const Vector* dy, const Vector* x, Vector* dx,
                                             int vectors) {
    const long long frame = (long long)blockIdx.x * vectors;
    const Range range = range_of(blockIdx.y, vectors);
    for (int v = range.begin + threadIdx.x; v < range.end; v += THREADS) {
        const Vector gradient = dy[frame + v], in = x[frame + v];
        Vector out;
#pragma unroll
        for (int i = 0; i < V; i++) {
            store(out.numbers[i], from(in.numbers[i]) <= 0 ? 0 : from(gradient.numbers[i]));
        }
        dx[frame + v] = out;
    }
}

// Gradient of the pool's input, from those of up to four windows.
extern "C" __global__ void pool_backward(const Vector* dy, const unsigned char* taps, Vector* dx,
                                         int height, int width, int groups) {
    const int rows = (height + 1) / 2, columns = (width + 1) / 2, vectors = height * width * groups;
    const long long frame_in = (long long)blockIdx.x * vectors;
    const long long frame_out = (long long)blockIdx.x * rows * columns * groups;
    const Range range = range_of(blockIdx.y, vectors);
    for (int v = range.begin + threadIdx.x; v < range.end; v += THREADS) {
        const int group = v % groups, w = v / groups % width, h = v / groups / width;
        float sum[V] = {};
        for (int row = h / 2; row <= (h + 1) / 2 && row < rows; row++) {
            for (int column = w / 2; column <= (w + 1) / 2 && column < columns; column++) {
                const int tap = 3 * (h - 2 * row + 1) + w - 2 * column + 1;
                const long long place = frame_out + (row * columns + column) * groups + group;
                const Vector gradient = dy[place];
#pragma unroll
                for (int i = 0; i < V; i++) {
                    if (taps[place * V + i] == tap) sum[i] += from(gradient.numbers[i]);
                }
            }
        }
        Vector out;
#pragma unroll
        for (int i = 0; i < V; i++) store(out.numbers[i], sum[i]);
        dx[frame_in + v] = out;
    }
}
