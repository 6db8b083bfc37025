/* Runs the threads of a block as fibers until all have ended. */
#include "fiber.h"
#include "state.h"
#include "warp_matrix.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace ex_emulator
{

enum class Wait { ready, barrier, warp, ended };

struct Copy {
    void *to;
    const void *from;
    int bytes, from_bytes, group;
};

struct Thread : Place {
    Wait wait;
    int number; /* in the block */
    const char *file;
    int line;
    unsigned mask;
    Operation operation;
    void *lane;
    int groups; /* of cp.async that were committed */
    std::vector<Copy> copies;
    Fiber fiber;
};

struct SharedArray {
    const void *key;
    std::size_t bytes;
    std::unique_ptr<char, void (*)(void *)> memory;
};

Place *here;

namespace
{

constexpr std::size_t stack_bytes = 128 * 1024;

struct Block {
    std::vector<std::unique_ptr<Thread>> threads; /* kept with their stacks */
    std::vector<int> order;                       /* of warps */
    int count = 0, at_barrier = 0, ended = 0;
    const Launch *launch = nullptr;
    std::vector<SharedArray> arrays;
    std::size_t static_bytes = 0;
    std::vector<char> dynamic_bytes;
    bool stop = false;
    Fiber scheduler;
} block;

ex_emulator_order thread_order;
std::uint64_t random_state = 1;

Thread *self()
{
    return static_cast<Thread *>(here);
}

std::uint64_t next_random() /* splitmix64 */
{
    std::uint64_t x = random_state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void shuffle_order(std::vector<int> &order)
{
    for (std::size_t i = order.size(); i > 1; i--)
        std::swap(order[i - 1], order[next_random() % i]);
}

std::vector<int> make_order(int count)
{
    std::vector<int> order(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++)
        order[static_cast<std::size_t>(i)] = thread_order == EX_EMULATOR_REVERSE ? count - 1 - i : i;
    if (thread_order == EX_EMULATOR_SHUFFLED)
        shuffle_order(order);
    return order;
}

void kernel_fault(const char *what)
{
    block.stop = true;
    if (!here)
        return fault("%s: %s", block.launch->name, what);
    fault("%s: block (%u, %u, %u), thread (%u, %u, %u): %s", block.launch->name, here->block.x, here->block.y,
          here->block.z, here->thread.x, here->thread.y, here->thread.z, what);
}

/* Back to the scheduler until this thread is ready again; for ever when the block is given up. */
void yield()
{
    Thread *const thread = self();
    do {
        fiber_switch(thread->fiber, block.scheduler);
    } while (block.stop);
}

void thread_entry()
{
    fiber_arrived(block.scheduler);
    block.launch->body();
    self()->wait = Wait::ended;
    block.ended++;
    yield();
    std::abort(); /* an ended thread is not run again */
}

void describe_standstill()
{
    int warp = 0, line = 0;
    const char *file = "";
    for (int i = 0; i < block.count; i++) {
        warp += block.threads[static_cast<std::size_t>(i)]->wait == Wait::warp;
        if (block.threads[static_cast<std::size_t>(i)]->wait == Wait::barrier) {
            file = block.threads[static_cast<std::size_t>(i)]->file;
            line = block.threads[static_cast<std::size_t>(i)]->line;
        }
    }
    char text[300];
    if (block.at_barrier)
        snprintf(
            text, sizeof text,
            "%d of %d threads wait at the barrier of %s:%d, %d in operations of their warp; %d have ended",
            block.at_barrier, block.count, file, line, warp, block.ended);
    else
        snprintf(text, sizeof text,
                 "%d of %d threads wait in operations of their warp that not all lanes of the mask reach; "
                 "%d have ended",
                 warp, block.count, block.ended);
    kernel_fault(text);
}

/* Runs the threads of a warp that are ready, once each; false when none is. */
bool step_warp(int warp)
{
    const int lanes = std::min(32, block.count - 32 * warp);
    const bool forward = thread_order == EX_EMULATOR_FORWARD;
    const int turn = thread_order == EX_EMULATOR_SHUFFLED ? static_cast<int>(next_random() % 32) : 0;
    bool any = false;
    for (int i = 0; i < lanes; i++) {
        const int lane = ((forward ? i : lanes - 1 - i) + turn) % lanes;
        Thread *const thread = block.threads[static_cast<std::size_t>(32 * warp + lane)].get();
        if (thread->wait != Wait::ready)
            continue;
        any = true;
        here = thread;
        fiber_switch(block.scheduler, thread->fiber);
        if (block.stop)
            return true;
    }
    return any;
}

/* Forward, warps go on in step with one another. In reverse each goes as far as it can before the next one
 * moves, past barriers that it is the last to reach: what it overwrites there others may not have read yet.
 * Shuffled, chance decides between the two. */
void run_threads()
{
    while (block.ended < block.count && !block.stop) {
        bool any = false;
        if (thread_order == EX_EMULATOR_SHUFFLED)
            shuffle_order(block.order);
        for (const int warp : block.order) {
            const bool far = thread_order == EX_EMULATOR_REVERSE ||
                             (thread_order == EX_EMULATOR_SHUFFLED && next_random() % 2);
            bool moved = step_warp(warp);
            any = any || moved;
            while (far && moved && !block.stop)
                moved = step_warp(warp);
            if (block.stop)
                return;
        }
        here = block.threads[0].get();
        if (!any && block.ended < block.count)
            describe_standstill();
    }
}

void run_block(const Launch &launch, unsigned x, unsigned y, unsigned z)
{
    block.at_barrier = block.ended = 0;
    block.arrays.clear();
    block.static_bytes = 0;
    std::fill(block.dynamic_bytes.begin(), block.dynamic_bytes.end(), static_cast<char>(0xff));
    for (int i = 0; i < block.count; i++) {
        Thread &thread = *block.threads[static_cast<std::size_t>(i)];
        const unsigned number = static_cast<unsigned>(i);
        thread.thread = {number % launch.block.x, number / launch.block.x % launch.block.y,
                         number / (launch.block.x * launch.block.y)};
        thread.block = {x, y, z};
        thread.block_size = launch.block;
        thread.grid_size = launch.grid;
        thread.wait = Wait::ready;
        thread.number = i;
        thread.groups = 0;
        thread.copies.clear();
        fiber_begin(thread.fiber, thread_entry);
    }
    block.order = make_order((block.count + 31) / 32);
    run_threads();
}

/* A launch that the hardware would refuse: "" when it is fine. */
const char *refusal(const Launch &launch)
{
    const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
    if (threads == 0 || threads > 1024 || launch.block.z > 64)
        return "a block has 1 to 1024 threads, 64 in z";
    if (!launch.grid.x || !launch.grid.y || !launch.grid.z || launch.grid.x > 0x7fffffffu ||
        launch.grid.y > 65535 || launch.grid.z > 65535)
        return "a grid has 1 to 2^31 - 1 blocks in x, to 65535 in y and z";
    if (launch.shared_bytes > shared_limit(launch.kernel))
        return "more dynamic shared memory than cudaFuncSetAttribute allows (48 KiB at first)";
    return "";
}

} // namespace

void run(const Launch &launch)
{
    block.launch = &launch;
    block.stop = false;
    block.count = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
    while (block.threads.size() < static_cast<std::size_t>(block.count)) {
        block.threads.push_back(std::make_unique<Thread>());
        if (!fiber_stack(block.threads.back()->fiber, stack_bytes)) {
            block.threads.pop_back();
            return fault("%s: no memory for the stacks of %d threads", launch.name, block.count);
        }
    }
    std::vector<char>(launch.shared_bytes).swap(block.dynamic_bytes);
    block.dynamic_bytes.shrink_to_fit();
    const unsigned y_count = launch.grid.y;
    const std::int64_t blocks = std::int64_t{launch.grid.x} * y_count * launch.grid.z;
    for (std::int64_t i = 0; i < blocks && !block.stop; i++) {
        const std::int64_t b = thread_order == EX_EMULATOR_FORWARD ? i : blocks - 1 - i;
        run_block(launch, static_cast<unsigned>(b % launch.grid.x),
                  static_cast<unsigned>(b / launch.grid.x % y_count),
                  static_cast<unsigned>(b / launch.grid.x / y_count));
    }
    here = nullptr;
    block.arrays.clear();
}

void launch(Launch &&launch, cudaStream_t stream)
{
    const Guard guard(lock());
    const char *const why = refusal(launch);
    if (made_to_fail() || *why) {
        if (*why)
            fault("%s: grid %u x %u x %u, block %u x %u x %u, %zu shared bytes: %s", launch.name,
                  launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x, launch.block.y, launch.block.z,
                  launch.shared_bytes, why);
        set_last(cudaErrorInvalidConfiguration);
        return;
    }
    give(stream, [launch]() { run(launch); });
}

void barrier(const char *file, int line)
{
    Thread *const thread = self();
    thread->file = file;
    thread->line = line;
    if (block.at_barrier) {
        for (int i = 0; i < block.count; i++) {
            const Thread &other = *block.threads[static_cast<std::size_t>(i)];
            if (other.wait == Wait::barrier && other.line != line) {
                kernel_fault("threads of one block wait at two different barriers");
                yield();
            }
            if (other.wait == Wait::barrier)
                break;
        }
    }
    thread->wait = Wait::barrier;
    if (++block.at_barrier == block.count) {
        block.at_barrier = 0;
        for (int i = 0; i < block.count; i++)
            block.threads[static_cast<std::size_t>(i)]->wait = Wait::ready;
    }
    yield();
}

void meet(unsigned mask, Operation operation, void *lane)
{
    Thread *const thread = self();
    const int first = thread->number & ~31;
    if (!(mask >> (thread->number & 31) & 1)) {
        kernel_fault("a lane calls an operation of its warp with a mask that leaves it out");
        yield();
    }
    thread->mask = mask;
    thread->operation = operation;
    thread->lane = lane;
    thread->wait = Wait::warp;
    void *lanes[32] = {};
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1))
            continue;
        if (first + i >= block.count) {
            kernel_fault("the mask of an operation of a warp names lanes that the block does not have");
            yield();
        }
        const Thread &other = *block.threads[static_cast<std::size_t>(first + i)];
        if (other.wait != Wait::warp || other.mask != mask || other.operation != operation) {
            yield(); /* the last one to come wakes all */
            return;
        }
        lanes[i] = other.lane;
    }
    operation(lanes, mask);
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1)
            block.threads[static_cast<std::size_t>(first + i)]->wait = Wait::ready;
    yield(); /* so that no lane is always first */
}

int lane_index()
{
    return self()->number & 31;
}

void *shared_array(const void *key, std::size_t bytes, std::size_t alignment)
{
    for (const SharedArray &array : block.arrays)
        if (array.key == key)
            return array.memory.get();
    block.static_bytes += bytes;
    const std::size_t both = block.static_bytes + block.launch->shared_bytes;
    if (block.static_bytes > most_static_shared_bytes || both > most_shared_bytes ||
        (both > most_static_shared_bytes && !asked_for_shared(block.launch->kernel))) {
        kernel_fault("more static shared memory than 48 KiB, or with the dynamic one more than 227 KiB, or "
                     "than the 48 KiB that cudaFuncSetAttribute need not be called for");
        yield();
    }
    alignment = std::max(alignment, sizeof(void *));
    void *memory = nullptr;
    if (posix_memalign(&memory, alignment, bytes))
        std::abort();
    std::memset(memory, 0xff, bytes);
    block.arrays.push_back({key, bytes, {static_cast<char *>(memory), std::free}});
    return memory;
}

void *shared_dynamic()
{
    return block.dynamic_bytes.data();
}

void cp_async(void *to, const void *from, int bytes, int from_bytes)
{
    const auto misaligned = [&](const void *p) { return reinterpret_cast<std::uintptr_t>(p) % bytes != 0; };
    if ((bytes != 4 && bytes != 8 && bytes != 16) || from_bytes < 0 || from_bytes > bytes || misaligned(to) ||
        misaligned(from)) {
        kernel_fault("cp.async of a size other than 4, 8, 16 bytes, or misaligned");
        yield();
    }
    std::memset(to, 0xff, static_cast<std::size_t>(bytes));
    self()->copies.push_back({to, from, bytes, from_bytes, self()->groups});
}

void cp_async_commit()
{
    self()->groups++;
}

void cp_async_wait(int groups)
{
    Thread *const thread = self();
    std::vector<Copy> &copies = thread->copies;
    std::size_t done = 0;
    for (; done < copies.size() && copies[done].group < thread->groups - groups; done++) {
        const Copy &copy = copies[done];
        std::memset(copy.to, 0, static_cast<std::size_t>(copy.bytes));
        std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.from_bytes));
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(done));
}

} // namespace ex_emulator

void __syncwarp(unsigned mask)
{
    ex_emulator::meet(
        mask, [](void *const[32], unsigned) {}, nullptr);
}

unsigned __ballot_sync(unsigned mask, int predicate)
{
    struct Lane {
        int predicate;
        unsigned votes;
    } lane = {predicate, 0};
    ex_emulator::meet(
        mask,
        [](void *const lanes[32], unsigned all) {
            unsigned votes = 0;
            for (int i = 0; i < 32; i++)
                if (all >> i & 1 && static_cast<Lane *>(lanes[i])->predicate)
                    votes |= 1u << i;
            for (int i = 0; i < 32; i++)
                if (all >> i & 1)
                    static_cast<Lane *>(lanes[i])->votes = votes;
        },
        &lane);
    return lane.votes;
}

void ex_emulator_set_order(ex_emulator_order order, uint64_t seed)
{
    const ex_emulator::Guard guard(ex_emulator::lock());
    ex_emulator::thread_order = order;
    ex_emulator::random_state = seed;
}
