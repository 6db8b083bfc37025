/* Memory, streams and events. */
#include "state.h"

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <vector>

/* The place of a stream's work in the order of all that was given to it. */
struct ex_emulated_stream {
    std::deque<std::function<void()>> work;
};

struct ex_emulated_event {
    ex_emulated_stream *stream = nullptr; /* whose work it stands in, null when it has passed */
    std::chrono::steady_clock::time_point time;
};

namespace ex_emulator
{

namespace
{

constexpr std::size_t allocation_alignment = 256;
constexpr std::size_t filled_bytes = 4
                                     << 20; /* of a new allocation: more of it costs time and finds no more */

struct State {
    std::recursive_mutex lock;
    std::map<std::uintptr_t, std::size_t> device, pinned; /* bytes by address */
    std::set<ex_emulated_stream *> streams;
    std::map<const void *, std::size_t> shared_limits;
    std::size_t total_bytes = std::size_t{1} << 30, allocated_bytes = 0;
    std::int64_t until_failure = 0;
    cudaError_t last = cudaSuccess;
    char text[512] = "";
} state;

bool inside(const std::map<std::uintptr_t, std::size_t> &map, const void *memory, std::size_t bytes)
{
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(memory);
    auto after = map.upper_bound(address);
    if (after == map.begin())
        return false;
    --after;
    return address - after->first <= after->second && bytes <= after->second - (address - after->first);
}

/* Runs the first piece of work of a stream. */
void step(ex_emulated_stream *stream)
{
    const std::function<void()> work = std::move(stream->work.front());
    stream->work.pop_front();
    if (!faulted())
        work();
}

void drain(ex_emulated_stream *stream)
{
    while (stream && !stream->work.empty())
        step(stream);
}

void drain_all()
{
    for (ex_emulated_stream *stream : state.streams)
        drain(stream);
}

cudaError_t status_now()
{
    return set_last(faulted() ? cudaErrorLaunchFailure : cudaSuccess);
}

void pass(cudaEvent_t event)
{
    event->stream = nullptr;
    event->time = std::chrono::steady_clock::now();
}

void wait_for(cudaEvent_t event)
{
    ex_emulated_stream *const stream = event->stream;
    while (event->stream == stream && stream && !stream->work.empty())
        step(stream);
}

void copy_now(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind)
{
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind == cudaMemcpyHostToHost ||
        (kind != cudaMemcpyDefault &&
         (to_device != on_device(to, bytes) || from_device != on_device(from, bytes))))
        return fault("copy of %zu bytes: the kind %d is not that of its ends, or one ends outside of its "
                     "allocation",
                     bytes, static_cast<int>(kind));
    std::memmove(to, from, bytes);
}

} // namespace

std::recursive_mutex &lock()
{
    return state.lock;
}

void fault(const char *format, ...)
{
    if (faulted())
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(state.text, sizeof state.text, format, arguments);
    va_end(arguments);
}

bool faulted()
{
    return state.text[0] != '\0';
}

bool made_to_fail()
{
    return state.until_failure > 0 && --state.until_failure == 0;
}

cudaError_t set_last(cudaError_t status)
{
    if (status != cudaSuccess)
        state.last = status;
    return status;
}

std::size_t shared_limit(const void *kernel)
{
    const auto found = state.shared_limits.find(kernel);
    return found == state.shared_limits.end() ? most_static_shared_bytes : found->second;
}

bool asked_for_shared(const void *kernel)
{
    return state.shared_limits.count(kernel) > 0;
}

void give(cudaStream_t stream, std::function<void()> work)
{
    if (stream)
        stream->work.push_back(std::move(work));
    else if (!faulted())
        work();
}

bool on_device(const void *memory, std::size_t bytes)
{
    return inside(state.device, memory, bytes);
}

cudaError_t allocate(void **memory, std::size_t bytes)
{
    const Guard guard(lock());
    if (bytes > state.total_bytes - state.allocated_bytes || made_to_fail())
        return set_last(cudaErrorMemoryAllocation);
    /* Exactly `bytes`, so that AddressSanitizer sees the first byte after them. */
    void *got = nullptr;
    if (bytes == 0 || posix_memalign(&got, allocation_alignment, bytes))
        return set_last(bytes ? cudaErrorMemoryAllocation : cudaErrorInvalidValue);
    std::memset(got, 0xff, std::min(bytes, filled_bytes));
    state.device[reinterpret_cast<std::uintptr_t>(got)] = bytes;
    state.allocated_bytes += bytes;
    *memory = got;
    return cudaSuccess;
}

cudaError_t allocate_pinned(void **memory, std::size_t bytes)
{
    const Guard guard(lock());
    void *const got = made_to_fail() ? nullptr : std::malloc(bytes);
    if (!got)
        return set_last(cudaErrorMemoryAllocation);
    std::memset(got, 0xff, bytes);
    state.pinned[reinterpret_cast<std::uintptr_t>(got)] = bytes;
    *memory = got;
    return cudaSuccess;
}

cudaError_t set_attribute(const void *kernel, cudaFuncAttribute attribute, int value)
{
    const Guard guard(lock());
    if (made_to_fail() || value < 0 ||
        (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize &&
         static_cast<std::size_t>(value) > most_shared_bytes))
        return set_last(cudaErrorInvalidValue);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
        state.shared_limits[kernel] = static_cast<std::size_t>(value);
    return cudaSuccess;
}

} // namespace ex_emulator

using namespace ex_emulator;

void ex_emulator_set_memory(int64_t bytes)
{
    const Guard guard(lock());
    state.total_bytes = static_cast<std::size_t>(bytes);
}

void ex_emulator_fail_call(int64_t n)
{
    const Guard guard(lock());
    state.until_failure = n;
}

const char *ex_emulator_error(void)
{
    return state.text;
}

void ex_emulator_clear(void)
{
    const Guard guard(lock());
    for (ex_emulated_stream *stream : state.streams)
        stream->work.clear();
    state.text[0] = '\0';
    state.last = cudaSuccess;
}

int64_t ex_emulator_allocated(void)
{
    const Guard guard(lock());
    return static_cast<int64_t>(state.allocated_bytes);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const Guard guard(lock());
    if (made_to_fail())
        return set_last(cudaErrorNoDevice);
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    const Guard guard(lock());
    return set_last(device == 0 && !made_to_fail() ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    const Guard guard(lock());
    if (device != 0 || made_to_fail())
        return set_last(cudaErrorInvalidDevice);
    *properties = cudaDeviceProp{};
    snprintf(properties->name, sizeof properties->name, "emulated GPU");
    std::memset(properties->uuid.bytes, 7, sizeof properties->uuid.bytes);
    properties->totalGlobalMem = state.total_bytes;
    properties->sharedMemPerBlock = most_static_shared_bytes;
    properties->sharedMemPerBlockOptin = most_shared_bytes;
    properties->maxThreadsPerBlock = 1024;
    properties->multiProcessorCount = 3; /* few, so that grids go round more than once */
    properties->major = 9;
    properties->l2CacheSize = 1 << 20;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    cudaDeviceProp properties;
    const cudaError_t status = cudaGetDeviceProperties(&properties, device);
    if (status != cudaSuccess)
        return status;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        *value = properties.maxThreadsPerBlock;
        return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
        *value = properties.multiProcessorCount;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *value = properties.major;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = properties.minor;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = 228 * 1024;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = static_cast<int>(properties.sharedMemPerBlockOptin);
        return cudaSuccess;
    }
    return set_last(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSynchronize(void)
{
    const Guard guard(lock());
    drain_all();
    return status_now();
}

cudaError_t cudaPeekAtLastError(void)
{
    return state.last;
}

cudaError_t cudaGetLastError(void)
{
    const Guard guard(lock());
    const cudaError_t last = state.last;
    state.last = cudaSuccess;
    return last;
}

const char *cudaGetErrorString(cudaError_t status)
{
    switch (status) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorInvalidConfiguration:
        return faulted() ? state.text : "invalid configuration argument";
    case cudaErrorLaunchFailure:
        return faulted() ? state.text : "unspecified launch failure";
    }
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t status)
{
    return cudaGetErrorString(status);
}

cudaError_t cudaMemGetInfo(std::size_t *free_bytes, std::size_t *total_bytes)
{
    const Guard guard(lock());
    if (made_to_fail())
        return set_last(cudaErrorInvalidValue);
    *free_bytes = state.total_bytes - state.allocated_bytes;
    *total_bytes = state.total_bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    const Guard guard(lock());
    if (!memory)
        return cudaSuccess;
    drain_all();
    const auto found = state.device.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == state.device.end())
        return set_last(cudaErrorInvalidValue);
    state.allocated_bytes -= found->second;
    state.device.erase(found);
    std::free(memory);
    return status_now();
}

cudaError_t cudaFreeHost(void *memory)
{
    const Guard guard(lock());
    drain_all();
    if (memory && !state.pinned.erase(reinterpret_cast<std::uintptr_t>(memory)))
        return set_last(cudaErrorInvalidValue);
    std::free(memory);
    return status_now();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    const Guard guard(lock());
    if (made_to_fail())
        return set_last(cudaErrorInvalidValue);
    if (bytes == 0)
        return cudaSuccess;
    if (kind == cudaMemcpyHostToDevice && !inside(state.pinned, from, bytes)) {
        /* Pageable memory is staged before the call returns. */
        const char *const host = static_cast<const char *>(from);
        const std::vector<char> staged(host, host + bytes);
        give(stream, [=]() { copy_now(to, staged.data(), bytes, kind); });
    } else {
        give(stream, [=]() { copy_now(to, from, bytes, kind); });
        if (kind == cudaMemcpyDeviceToHost && !inside(state.pinned, to, bytes))
            drain(stream); /* to pageable memory it returns when done */
    }
    return faulted() ? status_now() : cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind)
{
    return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes, cudaStream_t stream)
{
    const Guard guard(lock());
    if (made_to_fail())
        return set_last(cudaErrorInvalidValue);
    give(stream, [=]() {
        if (bytes && !on_device(to, bytes))
            return fault("memset of %zu bytes outside of an allocation", bytes);
        if (bytes)
            std::memset(to, value, bytes);
    });
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, std::size_t bytes)
{
    return cudaMemsetAsync(to, value, bytes, nullptr);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    const Guard guard(lock());
    if (made_to_fail())
        return set_last(cudaErrorMemoryAllocation);
    *stream = new ex_emulated_stream;
    state.streams.insert(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const Guard guard(lock());
    drain(stream);
    state.streams.erase(stream);
    delete stream;
    return status_now();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    const Guard guard(lock());
    if (made_to_fail())
        return set_last(cudaErrorInvalidValue);
    drain(stream);
    return status_now();
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    const Guard guard(lock());
    return stream && !stream->work.empty() ? set_last(cudaErrorNotReady) : status_now();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    const Guard guard(lock());
    if (made_to_fail())
        return set_last(cudaErrorMemoryAllocation);
    *event = new ex_emulated_event;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    const Guard guard(lock());
    wait_for(event);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const Guard guard(lock());
    event->stream = stream;
    give(stream, [event]() { pass(event); });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const Guard guard(lock());
    wait_for(event);
    return status_now();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    const Guard guard(lock());
    give(stream, [event]() { wait_for(event); });
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    const Guard guard(lock());
    if (from->stream || to->stream)
        return set_last(cudaErrorNotReady);
    *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
    return cudaSuccess;
}
