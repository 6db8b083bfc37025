/* Where a sample's tokens come from: drawn, or read from a Megatron pair of files. Any number of threads may
 * read. */
#ifndef EX_WALK_TOKENS_H
#define EX_WALK_TOKENS_H

#include <hbp/hbp.h>
#include <stdint.h>

#include "base/fault.h"

typedef struct ex_tokens ex_tokens;

/* Tokens that follow from (seed, sample, place) alone and can be learnt: each sample counts up in a stride of
 * its own, and one token in eight is noise. */
ex_tokens *ex_tokens_draw(uint64_t seed, int32_t vocab, ex_fault *fault);

/* Maps PREFIX.idx and PREFIX.bin, as Megatron-LM writes them (MMIDIDX version 1; integer types). Sample i is
 * sequence i; `end` is the target of a sequence's last token. The index is checked whole against the size of
 * PREFIX.bin. */
ex_tokens *ex_tokens_open(const char *prefix, int32_t vocab, int32_t end, ex_fault *fault);

/* Writes tokens first .. first + count of `sample` to out [count + 1], one more than asked for: the last is
 * the target of the one before it. -1 with a message when the sample or its tokens are not there, or a token
 * is not below vocab. */
int ex_tokens_read(const ex_tokens *tokens, int64_t sample, int64_t first, int64_t count, int32_t *out,
                   ex_fault *fault);

/* A number that differs where the source does: drawn or read, how many sequences and bytes, the end token. */
uint64_t ex_tokens_digest(const ex_tokens *tokens);

/* Looks up every sample of the plan in the index, so that one that is not there is told before the run, not
 * in the middle: -1 with a message that names the first. O(samples). */
int ex_tokens_check(const ex_tokens *tokens, const hbp_plan *plan, ex_fault *fault);

void ex_tokens_free(ex_tokens *tokens);

#endif
