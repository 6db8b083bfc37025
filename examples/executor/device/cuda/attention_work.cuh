/* What a block of an attention kernel has to do: a tile of rows of one document.
 *
 * The longest documents are listed in the kernel's parameters, longest first, so that the heaviest blocks
 * start first and nothing has to be uploaded. Where there are more documents than the list holds, the rest
 * finds itself: document i is given the blocks from borders[i] / rows + i on, which is at least as many as
 * it has tiles, since ceil(length / rows) <= (begin + length) / rows - begin / rows + 1; a binary search over
 * borders turns the block back into the document, and blocks left over end at once. */
#ifndef EX_DEVICE_CUDA_ATTENTION_WORK_CUH
#define EX_DEVICE_CUDA_ATTENTION_WORK_CUH

#include <algorithm>
#include <cstdint>

#include "device/cuda/launch.cuh"
#include "device/device.h"

namespace ex_attention
{

constexpr int32_t list_size = 448; /* 3.6 KB of the 4 KB that kernel parameters may take everywhere */

struct work_list {
    int32_t count;               /* documents in the list */
    int32_t cut;                 /* documents longer than this are listed */
    int32_t blocks;              /* of listed documents */
    int32_t documents;           /* in all */
    int32_t document[list_size]; /* longest first, ties by index */
    int32_t first[list_size];    /* its first block */
};

/* One tile of one document; tokens are counted from the document's first. */
struct piece {
    int64_t begin;  /* of the document, in the pack */
    int32_t length; /* of the document */
    int32_t row;    /* first of the tile */
};

/* Everything that all kernels are told. */
struct shape {
    int64_t tokens;
    int32_t heads, kv_heads, dim;

    __host__ __device__ int64_t stride() const /* elements from one row of qkv to the next */
    {
        return (int64_t)(heads + 2 * kv_heads) * dim;
    }
    __host__ __device__ int32_t group() const /* query heads that share a key-value head */
    {
        return heads / kv_heads;
    }
};

/* Fills the list for tiles of `rows` rows; returns the number of blocks. O(documents log list_size). */
static inline int64_t list_work(const ex_documents *documents, int64_t tokens, int32_t rows, work_list *work)
{
    struct entry {
        int32_t length, document;
    } heap[list_size] = {};
    const auto before = [](const entry &a, const entry &b) {
        return a.length != b.length ? a.length > b.length : a.document < b.document;
    };
    int32_t held = 0; /* a heap with the shortest of the longest on top */
    for (int64_t i = 0; i < documents->count; i++) {
        const int32_t length = documents->host_borders[i + 1] - documents->host_borders[i];
        const entry one = {length, (int32_t)i};
        if (held == list_size) {
            if (!before(one, heap[0]))
                continue;
            std::pop_heap(heap, heap + held--, before);
        }
        heap[held++] = one;
        std::push_heap(heap, heap + held, before);
    }
    work->documents = (int32_t)documents->count;
    work->cut = documents->count > list_size ? heap[0].length : 0;
    std::sort_heap(heap, heap + held, before);
    int64_t blocks = 0;
    int32_t count = 0;
    for (; count < held && heap[count].length > work->cut; count++) {
        work->document[count] = heap[count].document;
        work->first[count] = (int32_t)blocks;
        blocks += (heap[count].length + (int64_t)rows - 1) / rows;
    }
    work->count = count;
    work->blocks = (int32_t)blocks;
    return documents->count > list_size ? blocks + tokens / rows + documents->count : blocks;
}

/* Which tile of a document has most to do: the last one of queries sees all keys, the first one of keys is
 * seen by all queries. Blocks start with it. */
enum heaviest { first_tile, last_tile };

/* The piece of block `block`; false when it has none. All threads of a block get the same answer. */
template <int32_t rows, heaviest from>
static __device__ __forceinline__ bool find_piece(const work_list &work, const int32_t *borders,
                                                  int32_t block, piece *found)
{
    int32_t tile, document, below = 0;
    const bool listed = block < work.blocks;
    if (listed) {
        int32_t above = work.count;
        while (above - below > 1) {
            const int32_t middle = (below + above) / 2;
            if (work.first[middle] <= block)
                below = middle;
            else
                above = middle;
        }
        document = work.document[below];
        tile = block - work.first[below];
    } else {
        int32_t above = work.documents;
        block -= work.blocks;
        while (above - below > 1) {
            const int32_t middle = below + (above - below) / 2;
            if (borders[middle] / rows + middle <= block)
                below = middle;
            else
                above = middle;
        }
        document = below;
        tile = block - (borders[document] / rows + document);
    }
    const int32_t begin = borders[document];
    found->begin = begin;
    found->length = borders[document + 1] - begin;
    const int32_t tiles = (found->length + rows - 1) / rows;
    found->row = (from == first_tile ? tile : tiles - 1 - tile) * rows;
    return listed || (found->length <= work.cut && tile < tiles);
}

} // namespace ex_attention

#endif
