/* A direction, told by a direction near it: PrivUnit (Bhowmick et al. 2018) on a finite
 * set, alone or together with a label.
 *
 * There are N possible messages, the same for every record. A record ranks them by how
 * well they agree with it; the best t are its region. With probability
 * P = t e^e / (t e^e + N - t) a message is drawn uniformly from the region, else
 * uniformly from the rest.
 *
 * Claim. This is e-local DP for any two records (and their labels). Proof: a message has
 * probability P / t = e^e / D if it is in the region and (1 - P) / (N - t) = 1 / D if
 * not, D = t e^e + N - t; t and N do not depend on the record, so the ratio of two
 * records' probabilities of one message is e^e, 1 or e^-e. It does not matter how a
 * record ranks: agreement may be computed in floating point, with any error; all that is
 * needed of it is that it is a number, so that ranks exist. That is why the set is
 * finite: PrivUnit on the sphere itself would need exact draws of real numbers. P is
 * rounded down and draws are exact (random/bernoulli.h).
 *
 * The messages are K public directions v_j, drawn once from a public seed and turned for
 * every record by a public permutation of coordinates with signs, so that the gaps of the
 * set fall elsewhere for each. With labels the message says something about both, in the
 * way of the two that tells more at this epsilon (struct dpf_sphere, `tells_label`):
 * - a label and a direction, N = M K: the region has the true label and directions near
 *   the record's;
 * - a direction alone, N = K, after the record's direction was multiplied by the sign
 *   that a public, balanced code of the record's place gives to its label. The code is
 *   public; what depends on the label is only the sign.
 *
 * In both ways the sum of direction x code, over many records, has the sum of each
 * class's directions in its columns, times a constant and up to a vector common to all
 * columns. A message shows the place of its record, in public: shuffling would hide
 * nothing. */
#ifndef DPF_PRIVACY_SPHERE_H
#define DPF_PRIVACY_SPHERE_H

#include "base/status.h"
#include "random/secure.h"

enum { DPF_SPHERE_MAX_DIRECTIONS = 1 << 20, DPF_SPHERE_MAX_VALUES = 4096 };

struct dpf_sphere_plan {
    size_t values;     /* of a record; at least 2 */
    size_t labels;     /* M, or 0: no label */
    size_t directions; /* K */
    uint64_t seed;     /* public: all owners share it */
    uint64_t owner;    /* public: a number of the owner's, so that turns differ */
    double epsilon;
};

struct dpf_sphere {
    struct dpf_sphere_plan plan;
    float *codebook; /* [values, K] */
    bool tells_label;
    uint64_t messages, region; /* N, t */
    double inside;             /* P */
    double epsilon;            /* of this P, rounded up; at most what was asked for */
    double cosine, square;     /* means of v.u and (v.u)^2, u the record's direction with
                                * its sign: estimated, for those who read messages */
    float *agreement;          /* [K] */
    float *ranked;             /* [K] */
    uint32_t *order;           /* [values] */
    float *turned;             /* [values] */
};

/* DPF_USAGE names the number that is out of range. */
enum dpf_status dpf_sphere_init(struct dpf_sphere *m, const struct dpf_sphere_plan *plan,
                                struct dpf_error *e);
void dpf_sphere_release(struct dpf_sphere *m);
/* The message of the record at place `place`: a direction divided by the mean cosine, so
 * that its mean is about the record's (times the sign), and the code of the label: 1 at
 * the label told, 0 elsewhere; or the public signs. `code` is [labels] or NULL. A record
 * of zeros, or with something that is no number, has an arbitrary direction. */
void dpf_sphere_draw(struct dpf_sphere *m, struct dpf_random *r, uint64_t place,
                     const float *record, uint64_t label, float *out, float *code);

#endif
