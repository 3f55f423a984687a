#include "privacy/randomiser.h"

#include "base/words.h"

#include "base/banned.h"

/* A line for each: its name, and its row in randomisers/. */
#define METHODS(X)                                                                       \
    X("rr", rr)                                                                          \
    X("ue", ue)                                                                          \
    X("oue", oue)                                                                        \
    X("moue", moue)                                                                      \
    X("uer", uer)                                                                        \
    X("response", response)                                                              \
    X("sampled-bit", sampled_bit)                                                        \
    X("privunit", privunit)                                                              \
    X("olh", olh)

#define DECLARE(name, row) extern const struct dpf_randomiser dpf_randomiser_##row;
METHODS(DECLARE)

#define ROW(name, row) {name, &dpf_randomiser_##row},
const struct dpf_randomiser_row dpf_randomisers[] = {METHODS(ROW){NULL, NULL}};

static bool lists(const char *const *names, const char *name)
{
    return names && DPF_FIND(names, name);
}

bool dpf_randomiser_needs(const struct dpf_randomiser *m, const char *option)
{
    return lists(m->needs, option);
}

bool dpf_randomiser_takes(const struct dpf_randomiser *m, const char *option)
{
    return lists(m->needs, option) || lists(m->may, option);
}
