/* LightBinPack's optimized best fit decreasing, as its Python module calls it. */
#include "lightbinpack/cpp/obfd.cpp"

#include "peer.h"

typedef std::vector<std::vector<int>> packs;

const char *peer_name(int32_t way)
{
    return way == 0 ? "LightBinPack, obfd" : nullptr;
}

void *peer_open(const uint32_t *length, int64_t count)
{
    return new std::vector<int>(length, length + count);
}

void peer_close(void *lengths)
{
    delete static_cast<std::vector<int> *>(lengths);
}

int64_t peer_pack(void *lengths, int32_t, int64_t capacity, void **made)
{
    try {
        packs *found = new packs(obfd(*static_cast<std::vector<int> *>(lengths), (int)capacity));
        *made = found;
        return (int64_t)found->size();
    } catch (const std::exception &) {
        return -1;
    }
}

void peer_free(int32_t, void *made)
{
    delete static_cast<packs *>(made);
}
