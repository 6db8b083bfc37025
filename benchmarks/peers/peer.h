/* What bench_peers calls a packer by: lengths in the form that its users have, then packs of them. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ways that a packer has, NULL past the last. */
const char *peer_name(int32_t way);

/* Lengths as the packer takes them; not timed. */
void *peer_open(const uint32_t *length, int64_t count);
void peer_close(void *lengths);

/* Packs of at most `capacity` tokens; what was made lies in *made until it is freed, which is not timed.
 * Returns the number of packs, -1 after an error. */
int64_t peer_pack(void *lengths, int32_t way, int64_t capacity, void **made);
void peer_free(int32_t way, void *made);

#ifdef __cplusplus
}
#endif

#endif
