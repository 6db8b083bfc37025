/* A walk over msgpack bytes from outside before msgpack-c sees them: it reserves what an array's header
 * promises, this believes a count only when as many bytes are left. */
#ifndef HBP_IO_MSGPACK_SCAN_H
#define HBP_IO_MSGPACK_SCAN_H

#include <stdint.h>

/* Maps and arrays inside each other. */
#define HBP__MSGPACK_DEPTH 8

/* Walks the first object of `data` [bytes]. 1: it is whole, well-formed, no deeper than HBP__MSGPACK_DEPTH
 * and of at most `max_objects` objects, itself included; *used is its size. 0: it is not; *used is where the
 * trouble begins. O(objects). */
int hbp__msgpack_scan(const uint8_t *data, uint64_t bytes, uint64_t max_objects, uint64_t *used);

#endif
