/* The text of a network: whatever it says, parsing ends with a graph or an error, and a
 * graph is what its text says when it is read again. */
#include <stdlib.h>
#include <string.h>

#include "nn/model.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct dpf_model m, again;
    struct dpf_error e = {0};
    if (dpf_model_parse(&m, (const char *)data, size, "fuzz", &e) != DPF_OK)
        return 0;
    if (dpf_model_parse(&again, m.text, strlen(m.text), "again", &e) != DPF_OK ||
        again.count != m.count || again.span != m.span || again.output != m.output)
        abort();
    for (size_t i = 0; i < m.count; i++)
        for (int d = 0; d < m.nodes[i].input_count; d++)
            if (m.nodes[i].inputs[d] >= i)
                abort();
    dpf_model_release(&again);
    dpf_model_release(&m);
    return 0;
}
