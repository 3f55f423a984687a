#include "data/request.h"

#include "base/words.h"

#include "base/banned.h"

/* What some requests take and others do not. */
static const char *const special[] = {"labels",  "columns", "classes",  "count",
                                      "seed",    "side",    "channels", "data-dir",
                                      "partial", "size",    NULL};

enum dpf_status dpf_request_check(const struct dpf_load_request *q,
                                  const char *const *takes, const char *what,
                                  struct dpf_error *e)
{
    for (const char *const *name = special; q->given && *name; name++)
        if (dpf_option_given(q->given, *name) && !(takes && DPF_FIND(takes, *name)))
            return dpf_fail(e, DPF_USAGE, "option '--%s' does not apply to '%s'", *name,
                            what);
    return DPF_OK;
}
