/* Operations of a whole warp on matrix fragments, with the layouts of the PTX manual ("Matrix Fragments for
 * mma.m16n8k16 with floating point type", "ldmatrix"). What device/cuda writes as inline PTX calls these when
 * it runs here. */
#ifndef EX_EMULATOR_WARP_MATRIX_H
#define EX_EMULATOR_WARP_MATRIX_H

#include <cstdint>

namespace ex_emulator
{

/* mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32: d [16, 8] = a [16, 16] b [16, 8] + c. Sums run over k
 * in double and are rounded once: the hardware's order is not specified. */
void mma_m16n8k16_bf16(float d[4], const std::uint32_t a[4], const std::uint32_t b[2], const float c[4]);

/* ldmatrix.sync.aligned.m8n8.x<count>[.trans].shared.b16, count 1, 2 or 4: lane 8 i + r gives the address of
 * row r of matrix i, 8 elements of 16 bits; addresses must be multiples of 16. */
void ldmatrix(std::uint32_t *d, int count, bool transpose, const void *row);

/* cp.async.ca/cg.shared.global of 4, 8 or 16 bytes, of which the first `from_bytes` are read and the rest
 * become zero. It lands when cp_async_wait says so: before, `to` holds NaN patterns. */
void cp_async(void *to, const void *from, int bytes, int from_bytes);
void cp_async_commit();
void cp_async_wait(int groups); /* all but the last `groups` groups of this thread have landed */

} // namespace ex_emulator

#endif
