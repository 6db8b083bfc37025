/* Little-endian numbers of `bytes` bytes, whatever the machine's order. */
#ifndef HBP_IO_LITTLE_ENDIAN_H
#define HBP_IO_LITTLE_ENDIAN_H

#include <stdint.h>

static inline uint64_t hbp__get_le(const uint8_t *data, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)data[i] << (8 * i);
    return value;
}

static inline void hbp__put_le(uint8_t *data, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        data[i] = (uint8_t)(value >> (8 * i));
}

#endif
