// CUDA on a CPU: enough of it to run the kernels' texts, unchanged, as C++. Comes before the text.
//
// The threads of a block are coroutines with stacks of their own. Each runs until its next barrier, then the
// next one does; blocks follow one another. A block whose threads disagree about a barrier aborts the
// process.
// Backwards, threads and blocks run in the opposite order: where that changes a bit, a barrier is missing.
// Parameters are described to the caller, so that it can check what it passes.

#include <csetjmp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <ucontext.h>
#include <vector>

#define HOST
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local

struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) double2 { double x, y; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

struct Index { unsigned x, y, z; };
static thread_local Index threadIdx, blockIdx, blockDim, gridDim;

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline float __fadd_rn(float a, float b) { volatile float sum = a + b; return sum; }
inline float __fmul_rn(float a, float b) { volatile float product = a * b; return product; }
inline int __float_as_int(float f) { int i; __builtin_memcpy(&i, &f, 4); return i; }
inline float __int_as_float(int i) { float f; __builtin_memcpy(&f, &i, 4); return f; }

namespace host {

const int STACK = 1 << 16;
enum State { FRESH, RUNNING, WAITING, DONE };

struct Fiber {
    ucontext_t start;
    jmp_buf place;
    State state;
};

static thread_local std::vector<Fiber> fibers;
static thread_local std::vector<char> stacks;
static thread_local int current;
static thread_local jmp_buf scheduler;
static thread_local void (*body)(void*);
static thread_local void* body_arguments;
static thread_local bool backwards;

// A jump between stacks, without the system call of swapcontext.
inline void wait()
{
    fibers[current].state = WAITING;
    if (!_setjmp(fibers[current].place)) _longjmp(scheduler, 1);
}

inline void run_fiber()
{
    body(body_arguments);
    fibers[current].state = DONE;
    _longjmp(scheduler, 1);
}

inline void resume(int i)
{
    current = i;
    threadIdx = {(unsigned)i % blockDim.x, (unsigned)i / blockDim.x, 0};
    Fiber& fiber = fibers[i];
    const bool fresh = fiber.state == FRESH;
    fiber.state = RUNNING;
    if (_setjmp(scheduler)) return;
    if (!fresh) _longjmp(fiber.place, 1);
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = &stacks[(size_t)i * STACK];
    fiber.start.uc_stack.ss_size = STACK;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, run_fiber, 0);
    setcontext(&fiber.start);
}

inline void run_block(int threads)
{
    for (Fiber& fiber : fibers) fiber.state = FRESH;
    for (int done = 0; done < threads;) {
        done = 0;
        for (int j = 0; j < threads; ++j) {
            const int i = backwards ? threads - 1 - j : j;
            resume(i);
            done += fibers[i].state == DONE;
        }
        if (done > 0 && done < threads) {
            fprintf(stderr, "a barrier was reached by some threads of the block only\n");
            abort();
        }
    }
}

inline void run(void (*kernel)(void*), void* arguments, unsigned gx, unsigned gy, unsigned gz, int threads)
{
    body = kernel;
    body_arguments = arguments;
    blockDim = {(unsigned)threads, 1, 1};
    gridDim = {gx, gy, gz};
    fibers.resize(threads);
    stacks.resize((size_t)threads * STACK);
    const unsigned blocks = gx * gy * gz;
    for (unsigned n = 0; n < blocks; ++n) {
        const unsigned b = backwards ? blocks - 1 - n : n;
        blockIdx = {b % gx, b / gx % gy, b / gx / gy};
        run_block(threads);
    }
}

// Values that threads of a warp give each other.
static thread_local float given[1024];

template <class T> struct Kind;
template <> struct Kind<float> { static constexpr const char* name = "f4"; };
template <> struct Kind<double> { static constexpr const char* name = "f8"; };
template <> struct Kind<signed char> { static constexpr const char* name = "i1"; };
template <> struct Kind<short> { static constexpr const char* name = "i2"; };
template <> struct Kind<int> { static constexpr const char* name = "i4"; };
template <> struct Kind<long long> { static constexpr const char* name = "i8"; };
template <> struct Kind<unsigned char> { static constexpr const char* name = "u1"; };
template <> struct Kind<unsigned short> { static constexpr const char* name = "u2"; };
template <> struct Kind<unsigned int> { static constexpr const char* name = "u4"; };
template <> struct Kind<unsigned long long> { static constexpr const char* name = "u8"; };
template <> struct Kind<float2> : Kind<float> {};
template <> struct Kind<float4> : Kind<float> {};
template <> struct Kind<double2> : Kind<double> {};

template <class T> std::string kind(T*) { return Kind<std::remove_cv_t<T>>::name; }
template <class T> struct Parameter { static std::string described() { return Kind<T>::name; } };
template <class T> struct Parameter<T*> {
    static std::string described() { return std::string("*") + Kind<std::remove_cv_t<T>>::name; }
};

template <class... P> std::string signature(void (*)(P...))
{
    std::string result;
    ((result += Parameter<P>::described() + " "), ...);
    return result;
}

template <class... P> struct Call {
    void (*function)(P...);
    void** values;
    template <size_t... I> void go(std::index_sequence<I...>) { function(*(P*)values[I]...); }
    static void enter(void* call) { ((Call*)call)->go(std::index_sequence_for<P...>()); }
};

template <class... P>
void launch(void (*function)(P...), void** values, unsigned gx, unsigned gy, unsigned gz, int threads)
{
    Call<P...> call{function, values};
    run(Call<P...>::enter, &call, gx, gy, gz, threads);
}

}  // namespace host

inline void __syncthreads() { host::wait(); }
inline void __syncwarp() { host::wait(); }

inline float __shfl_xor_sync(unsigned, float value, int mask)
{
    host::given[host::current] = value;
    host::wait();
    const float result = host::given[host::current ^ mask];
    host::wait();
    return result;
}

// What Python calls, for each function of the text.
#define EXPORT(name)                                                                                     \
    extern "C" const char* signature_##name()                                                            \
    {                                                                                                    \
        static const std::string text = host::signature(name);                                           \
        return text.c_str();                                                                             \
    }                                                                                                    \
    extern "C" void launch_##name(void** values, unsigned gx, unsigned gy, unsigned gz, int threads,     \
                                  bool backwards)                                                        \
    {                                                                                                    \
        host::backwards = backwards;                                                                     \
        host::launch(name, values, gx, gy, gz, threads);                                                 \
    }
