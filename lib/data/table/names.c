#include "data/table/names.h"

#include <string.h>

#include "base/checked.h"

#define FIRST_SLOTS 64

/* FNV-1a, and a mix on top: its low bits alone are poor on names that differ in a digit. */
static uint64_t hash_name(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    h = (h ^ (h >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}

/* Where `text` is, or the free slot where it would go. */
static int64_t find_slot(const hbp__names *names, const char *text)
{
    int64_t mask = names->slots - 1;
    int64_t at = (int64_t)(hash_name(text) & (uint64_t)mask);
    while (names->slot[at] && strcmp(names->name[names->slot[at] - 1], text) != 0)
        at = (at + 1) & mask;
    return at;
}

int32_t hbp__names_find(const hbp__names *names, const char *text)
{
    return names->slots ? names->slot[find_slot(names, text)] - 1 : -1;
}

static int grow_slots(const hbp__memory *memory, hbp__names *names)
{
    if (names->slots && 2 * ((int64_t)names->count + 1) <= names->slots)
        return 1;
    int64_t slots = names->slots ? 2 * names->slots : FIRST_SLOTS;
    int32_t *slot = hbp__new_zero(memory, (uint64_t)slots, sizeof *slot);
    if (!slot)
        return 0;
    hbp__delete(memory, names->slot);
    names->slot = slot;
    names->slots = slots;
    for (int32_t i = 0; i < names->count; i++)
        names->slot[find_slot(names, names->name[i])] = i + 1;
    return 1;
}

static int grow_names(const hbp__memory *memory, hbp__names *names)
{
    if (names->count < names->room)
        return 1;
    int64_t room = hbp__min_i64(names->room ? 2 * (int64_t)names->room : FIRST_SLOTS / 2, INT32_MAX);
    char **name = hbp__renew(memory, names->name, (uint64_t)room, sizeof *name);
    if (!name)
        return 0;
    names->name = name;
    names->room = (int32_t)room;
    return 1;
}

int hbp__names_add(const hbp__memory *memory, hbp__names *names, const char *text)
{
    if (names->count == INT32_MAX || !grow_slots(memory, names) || !grow_names(memory, names))
        return 0;
    uint64_t bytes = strlen(text) + 1;
    char *copy = hbp__new(memory, bytes, 1);
    if (!copy)
        return 0;
    memcpy(copy, text, bytes);
    names->slot[find_slot(names, text)] = names->count + 1;
    names->name[names->count++] = copy;
    return 1;
}

/* Slots can be freed without a trace because the last that came go first: no name was put behind one that
 * came later, growing included, which puts them in again in their order. */
void hbp__names_cut(const hbp__memory *memory, hbp__names *names, int32_t count)
{
    while (names->count > count) {
        char *last = names->name[names->count - 1];
        names->slot[find_slot(names, last)] = 0;
        hbp__delete(memory, last);
        names->count--;
    }
}

void hbp__names_free(const hbp__memory *memory, hbp__names *names)
{
    for (int32_t i = 0; i < names->count; i++)
        hbp__delete(memory, names->name[i]);
    hbp__delete(memory, names->name);
    hbp__delete(memory, names->slot);
    *names = (hbp__names){0};
}
