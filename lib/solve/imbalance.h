/* How much of a micro-batch's time its ranks wait. */
#ifndef HBP_SOLVE_IMBALANCE_H
#define HBP_SOLVE_IMBALANCE_H

/* Sum over `ranks` ranks of (most - own) / (most ranks), where `sum` is what they hold together and `most`
 * the largest share; 0 where there is nothing. Its mean over micro-batches is OmniBal's DistRatio (section
 * 3.2), and of tokens and of squares HBP's DBR and ABR. For planners: exact but for one rounding. */
static inline double hbp__imbalance(double most, double sum, double ranks)
{
    double whole = most * ranks;
    return most > 0 && sum < whole ? (whole - sum) / whole : 0;
}

/* The same as reports have it, whose last bits stand in files. */
static inline double hbp__reported_imbalance(double most, double sum, double ranks)
{
    double share = most > 0 ? 1 - sum / (most * ranks) : 0;
    return share > 0 ? share : 0;
}

#endif
