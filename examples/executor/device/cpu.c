/* The CPU as a device: its memory is the process's own, and an operation is done when its call returns. */
#include "device/cpu.h"

#include <inttypes.h>
#include <stdlib.h>

/* Before every allocation stand its bytes, in a line of its own so that the rest is aligned. */
enum { ALIGNMENT = 256, PAGE = 4096 };

static void cpu_memory(ex_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    const ex_cpu *cpu = ex_cpu_of(device);
    ex_cpu_memory("", free_bytes, total_bytes);
    int64_t room = cpu->limit_bytes - device->allocated;
    if (*total_bytes > cpu->limit_bytes)
        *total_bytes = cpu->limit_bytes;
    if (*free_bytes > room)
        *free_bytes = room > 0 ? room : 0;
}

/* Every page is written once: what an overcommitting kernel promises twice is then refused here, with its
 * numbers, and not by a killed process in the middle of a step. */
static void *cpu_allocate(ex_device *device, int64_t bytes)
{
    if (device->fault.failed)
        return NULL;
    int64_t there, total;
    cpu_memory(device, &there, &total);
    void *block = NULL;
    int fits = bytes >= 0 && bytes <= there && bytes <= INT64_MAX - ALIGNMENT &&
               (uint64_t)bytes <= SIZE_MAX - ALIGNMENT;
    if (!fits || posix_memalign(&block, ALIGNMENT, (size_t)bytes + ALIGNMENT)) {
        ex_fail(&device->fault, "%s: %" PRId64 " bytes asked for; %" PRId64 " of %" PRId64 " are free%s",
                device->name, bytes, there, total,
                fits ? ", but the system gives no more to this process (ulimit -v)" : "");
        return NULL;
    }
    memcpy(block, &bytes, sizeof bytes);
    char *memory = (char *)block + ALIGNMENT;
    for (int64_t at = 0; at < bytes; at += PAGE)
        memory[at] = 0;
    device->allocated += bytes;
    if (device->most_allocated < device->allocated)
        device->most_allocated = device->allocated;
    return memory;
}

static void cpu_release(ex_device *device, void *memory)
{
    if (!memory)
        return;
    char *block = (char *)memory - ALIGNMENT;
    int64_t bytes;
    memcpy(&bytes, block, sizeof bytes);
    device->allocated -= bytes;
    free(block);
}

static void cpu_copy(ex_device *device, void *to, const void *from, int64_t bytes)
{
    if (!device->fault.failed && bytes > 0)
        memmove(to, from, (size_t)bytes);
}

static void cpu_zero(ex_device *device, void *to, int64_t bytes)
{
    if (!device->fault.failed && bytes > 0)
        memset(to, 0, (size_t)bytes);
}

static void cpu_sync(ex_device *device)
{
    (void)device;
}

static void cpu_free(ex_device *device)
{
    ex_cpu *cpu = ex_cpu_of(device);
    cpu_release(device, cpu->scratch);
    free(cpu);
}

static const ex_device_ops cpu_ops = {
    .free = cpu_free,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .memory = cpu_memory,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .sync = cpu_sync,
    .gemm = ex_cpu_gemm,
    .embed = ex_cpu_embed,
    .embed_back = ex_cpu_embed_back,
    .norm = ex_cpu_norm,
    .norm_back = ex_cpu_norm_back,
    .rotary = ex_cpu_rotary,
    .attention = ex_cpu_attention,
    .attention_back = ex_cpu_attention_back,
    .attention_scratch = ex_cpu_attention_scratch,
    .swiglu = ex_cpu_swiglu,
    .swiglu_back = ex_cpu_swiglu_back,
    .add = ex_cpu_add,
    .add_bias = ex_cpu_add_bias,
    .bias_back = ex_cpu_bias_back,
    .split = ex_cpu_split,
    .merge = ex_cpu_merge,
    .cross_entropy = ex_cpu_cross_entropy,
    .adam = ex_cpu_adam,
    .cast = ex_cpu_cast,
    .sum_squares = ex_cpu_sum_squares,
};

ex_device *ex_cpu_open(ex_type type, int32_t threads, ex_fault *fault)
{
    ex_cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu) {
        ex_fail(fault, "no memory for a CPU device: %zu bytes", sizeof *cpu);
        return NULL;
    }
    ex_device *device = &cpu->device;
    device->ops = &cpu_ops;
    device->type = type;
    device->host_memory = 1;
    cpu->limit_bytes = INT64_MAX;
    ex_cpu_name("", device->name, sizeof device->name);
    cpu->scratch = cpu_allocate(device, (int64_t)(EX_CPU_SCRATCH * sizeof *cpu->scratch));
    if (!cpu->scratch) {
        ex_fail(fault, "%s", device->fault.text);
        cpu_free(device);
        return NULL;
    }
    ex_cpu_threads(threads > 0 ? threads : 1);
    if (ex_cpu_warm() < 0) {
        ex_fail(
            fault,
            "%s: no memory for the buffers of matrix products, 128 MiB a rank; is it limited (ulimit -v)?",
            device->name);
        cpu_free(device);
        return NULL;
    }
    return device;
}

void ex_cpu_limit(ex_device *device, int64_t bytes)
{
    ex_cpu_of(device)->limit_bytes = bytes;
}
