/* Architectures that take their sizes from the records they are for: the name of one is
 * `linear`, or a word with a number behind it, as in `fc:128`. */
#ifndef DPF_NN_FITTED_H
#define DPF_NN_FITTED_H

#include "base/status.h"
#include "base/text.h"
#include "nn/model.h"
#include "wire/header.h"

struct dpf_fitting; /* what a text is written from */

/* A table of base/words.h. */
struct dpf_fitted {
    const char *name;     /* without its number */
    const char *number;   /* the number in help, "H"; NULL: it has none */
    uint64_t least, most; /* of it */
    const char *help;
    bool spatial; /* it reads pictures or volumes, and gives scores for each position */
    void (*write)(struct dpf_text *text, const struct dpf_fitting *f);
};
extern const struct dpf_fitted dpf_fitted[];

/* Whether --arch means one of them: such a network is known only when a header is. */
bool dpf_arch_is_fitted(const char *arch);
/* The network for records with this field and target. What does not fit is DPF_USAGE. */
enum dpf_status dpf_model_fit(struct dpf_model *m, const char *arch,
                              const struct dpf_field *x, const struct dpf_field *y,
                              struct dpf_error *e);

#endif
