#include "io/value/value.h"

#include <string.h>

#include "base/sort.h"

#define FEW_PAIRS 16 /* compared each with each */

void hbp__document_free(hbp__document *document)
{
    hbp__delete(&document->memory, document->values);
    hbp__delete(&document->memory, document->texts);
    *document = (hbp__document){.memory = document->memory};
}

const hbp__value *hbp__value_find(const hbp__value *map, const char *key)
{
    if (!hbp__value_is(map, HBP__MAP))
        return NULL;
    const size_t bytes = strlen(key);
    HBP__EACH_KEY(map, at)
    {
        if (at->kind == HBP__TEXT && at->count == bytes && memcmp(at->of.text, key, bytes) == 0)
            return at + 1;
    }
    return NULL;
}

const hbp__value *hbp__value_at(const hbp__value *list, uint32_t i)
{
    if (!hbp__value_is(list, HBP__LIST) || i >= list->count)
        return NULL;
    const hbp__value *at = list + 1;
    for (; i; i--)
        at = hbp__value_next(at);
    return at;
}

static int is_same(const hbp__value *a, const hbp__value *b)
{
    return a->count == b->count && memcmp(a->of.text, b->of.text, a->count) == 0;
}

/* FNV-1a: equal texts are neighbours in the order of it. */
static uint64_t hash_text(const hbp__value *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < text->count; i++)
        hash = (hash ^ (unsigned char)text->of.text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static const char *twice_of_few(const hbp__value *map)
{
    HBP__EACH_KEY(map, a)
    {
        HBP__EACH_KEY(map, b)
        {
            if (b >= a)
                break;
            if (is_same(a, b))
                return a->of.text;
        }
    }
    return NULL;
}

/* Keys in the order of their hashes, those of one hash each with each. */
static const char *twice_of_many(const hbp__value *const *keys, const uint64_t *hash, const uint32_t *order,
                                 uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k && hash[order[k - 1]] == hash[order[i]]; k--)
            if (is_same(keys[order[k - 1]], keys[order[i]]))
                return keys[order[i]]->of.text;
    return NULL;
}

hbp_status hbp__value_twice(hbp_context *context, const hbp__value *map, const char **key)
{
    const hbp__memory *memory = &context->memory;
    uint32_t count = 0;
    *key = NULL;
    if (map->count <= FEW_PAIRS) {
        *key = twice_of_few(map);
        return HBP_OK;
    }
    const hbp__value **keys = hbp__new(memory, map->count, sizeof *keys);
    uint64_t *hash = hbp__new(memory, map->count, sizeof *hash);
    uint32_t *order = hbp__new(memory, map->count, sizeof *order);
    int whole = keys && hash && order;
    if (whole) {
        HBP__EACH_KEY(map, at)
        {
            keys[count] = at;
            hash[count] = hash_text(at);
            order[count] = count;
            count++;
        }
        whole = hbp__sort_by_u64(memory, hash, order, count);
    }
    if (whole)
        *key = twice_of_many(keys, hash, order, count);
    hbp__delete(memory, keys);
    hbp__delete(memory, hash);
    hbp__delete(memory, order);
    return whole ? HBP_OK : hbp__fail_memory(context, "the keys of a map");
}
