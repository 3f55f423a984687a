/* The table of the releases: a line for each, its name and its row. */
#include "release.h"

#include "base/banned.h"

#define RELEASES(X)                                                                      \
    X("records", records)                                                                \
    X("sum", sum)                                                                        \
    X("quadratic", quadratic)                                                            \
    X("relevance", relevance)                                                            \
    X("features", features)                                                              \
    X("energy", energy)

#define DECLARE(name, row) extern const struct dpf_release dpf_release_##row;
RELEASES(DECLARE)

#define ROW(name, row) {name, &dpf_release_##row},
const struct dpf_release_row dpf_releases[] = {RELEASES(ROW){NULL, NULL}};
