/* Open packs, equal ones held as one state with a multiplicity, in an order that the packer's rule asks for;
 * and the packers that place a histogram on them from the largest class down. */
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

/* Equal packs. States form a treap (Aragon and Seidel 1989) over `key`: (room, state) for best and worst fit,
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

/* Takes over the packs of all patterns. */
hbp_status hbp__packer_take_all(hbp__packer *packer, const hbp__classes *classes,
                                const hbp__patterns *patterns);

/* Appends the packs that hold anything to `patterns`, in order of opening as far as equal packs stand
 * together.
 */
hbp_status hbp__packer_write(hbp__packer *packer, hbp__patterns *patterns);

/* The classic packers on a histogram. Each equals its item-by-item form, at a cost that depends on the number
 * of classes and of different packs, not of items. */

/* Packs the classes from the largest down by `rule`: best fit decreasing, first fit decreasing (Johnson
 * 1974), or worst fit decreasing, which is shortest-pack-first histogram packing (Krell et al. 2021) with its
 * items placed one at a time. Appends to `patterns`. HBP_E_INFEASIBLE when an item fits no pack. O((classes +
 * state changes) log packs). */
hbp_status hbp__histogram_pack(hbp_context *context, const hbp__classes *classes, hbp__room room,
                               hbp__pack_rule rule, hbp__patterns *patterns);

/* HBP_E_INFEASIBLE when an item fits no pack, naming its size or weight. */
hbp_status hbp__classes_fit(hbp_context *context, const hbp__classes *classes, hbp__room room);

/* Packs the classes from the largest down onto `packs` packs: worst fit, which gives every pack its share of
 * large and small items, and once all but 1 / `last` of the room is taken best fit, which closes gaps (0:
 * worst fit to the end). What fits none of them opens packs of its own. Appends to `patterns`. All items must
 * fit a pack. O((items + packs) log packs). */
hbp_status hbp__level_pack(hbp_context *context, const hbp__classes *classes, hbp__room room, int64_t packs,
                           int64_t last, hbp__patterns *patterns);

#endif
