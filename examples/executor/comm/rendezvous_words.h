/* The first words between rank 0 and a rank that comes. */
#ifndef EX_COMM_RENDEZVOUS_WORDS_H
#define EX_COMM_RENDEZVOUS_WORDS_H

#include <stdint.h>
#include <string.h>

#include "comm/wire.h"

#define EX_WORDS_MAGIC "hbpmeet1"
enum { EX_GREETING_BYTES = 16, EX_HELLO_BYTES = 32 };

typedef struct ex_hello {
    uint64_t nonce, run;
    uint32_t rank, ranks;
} ex_hello;

static inline void ex_words_greeting(unsigned char at[EX_GREETING_BYTES], uint64_t nonce)
{
    memcpy(at, EX_WORDS_MAGIC, 8);
    ex_wire_put(at + 8, nonce, 8);
}

/* 0 when it is a greeting. */
static inline int ex_words_read_greeting(const unsigned char at[EX_GREETING_BYTES], uint64_t *nonce)
{
    *nonce = ex_wire_get(at + 8, 8);
    return memcmp(at, EX_WORDS_MAGIC, 8) != 0;
}

static inline void ex_words_hello(unsigned char at[EX_HELLO_BYTES], const ex_hello *hello)
{
    memcpy(at, EX_WORDS_MAGIC, 8);
    ex_wire_put(at + 8, hello->nonce, 8);
    ex_wire_put(at + 16, hello->run, 8);
    ex_wire_put(at + 24, hello->rank, 4);
    ex_wire_put(at + 28, hello->ranks, 4);
}

static inline int ex_words_read_hello(const unsigned char at[EX_HELLO_BYTES], ex_hello *hello)
{
    hello->nonce = ex_wire_get(at + 8, 8);
    hello->run = ex_wire_get(at + 16, 8);
    hello->rank = (uint32_t)ex_wire_get(at + 24, 4);
    hello->ranks = (uint32_t)ex_wire_get(at + 28, 4);
    return memcmp(at, EX_WORDS_MAGIC, 8) != 0;
}

#endif
