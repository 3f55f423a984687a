/* Any text as a pipeline file, with one setting from the command line. */
#include <stdint.h>

#include "pipeline/parse.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct dpf_setting setting = {"a", "3"};
    struct dpf_pipeline p;
    struct dpf_error e;
    for (size_t settings = 0; settings < 2; settings++)
        if (dpf_pipeline_parse(&p, (const char *)data, size, "fuzz.pipe", "/run",
                               &setting, settings, &e) == DPF_OK)
            dpf_pipeline_release(&p);
    return 0;
}
