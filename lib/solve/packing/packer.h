/* Open packs, alike ones held as one state with a multiplicity, in an order that the packer's rule asks for.
 */
#ifndef HBP_SOLVE_PACKER_H
#define HBP_SOLVE_PACKER_H

#include <stdint.h>

#include "base/context.h"
#include "solve/packing/patterns.h"

/* Where an item goes, among the packs it fits. */
typedef enum hbp__pack_rule {
    HBP__BEST_FIT,  /* the least room */
    HBP__FIRST_FIT, /* opened first */
    HBP__WORST_FIT  /* the most room: shortest pack first */
} hbp__pack_rule;

/* Alike packs. States form a treap (Aragon and Seidel 1989) over `key`: (room, state) for best and worst fit,
 * the number of the state's first pack in order of opening for first fit. */
typedef struct hbp__pack_state {
    uint64_t key;
    uint64_t priority;
    int64_t room;
    int64_t most_room; /* in this subtree */
    int64_t weight;    /* that can still be added */
    int64_t times;
    int64_t first; /* number of the first of these packs, in order of opening */
    int32_t held;  /* last link of what the packs hold; -1: nothing */
    int32_t left, right;
} hbp__pack_state;

/* What packs hold, as chains that states share. */
typedef struct hbp__pack_link {
    int32_t before;
    hbp__run run;
} hbp__pack_link;

typedef struct hbp__packer {
    hbp_context *context;
    hbp__pack_rule rule;
    hbp__room room;
    hbp__pack_state *state;
    int64_t states, state_room;
    hbp__pack_link *link;
    int64_t links, link_room;
    int64_t opened; /* packs */
    int32_t root;
} hbp__packer;

void hbp__packer_open(hbp_context *context, hbp__pack_rule rule, hbp__room room, hbp__packer *packer);
void hbp__packer_close(hbp__packer *packer);

/* Packs `number` items of one class; each goes where the rule says, as if one came after the other. Items
 * that fit no open pack open packs of their own, or with `left` not NULL stay out and are counted there.
 * O((runs changed) log). */
hbp_status hbp__packer_place(hbp__packer *packer, const hbp__classes *classes, int64_t class_index,
                             int64_t number, int64_t *left);

/* Takes over the packs of one pattern; of none, opens empty ones. */
hbp_status hbp__packer_take(hbp__packer *packer, const hbp__classes *classes, int64_t times,
                            const hbp__run *run, int64_t runs);

/* Appends the packs that hold anything to `patterns`, in order of opening as far as alike packs stand
 * together.
 */
hbp_status hbp__packer_write(hbp__packer *packer, hbp__patterns *patterns);

#endif
