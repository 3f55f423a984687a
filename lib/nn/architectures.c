/* The networks of the papers, by name. Each says where it comes from; what a paper leaves
 * open is decided here and written beside it. */
#include <string.h>

#include "nn/model.h"

#include "base/banned.h"

static const struct {
    const char *name, *text;
} architectures[] = {
    /* Abadi et al. 2016 as the TensorFlow Privacy tutorial has it: 26,010 parameters. */
    {"abadi-mnist", "input x 1x28x28\n"
                    "c1 = conv x out=16 kernel=8 stride=2 pad=3\n"
                    "r1 = relu c1\n"
                    "p1 = max-pool r1 kernel=2 stride=1\n"
                    "c2 = conv p1 out=32 kernel=4 stride=2\n"
                    "r2 = relu c2\n"
                    "p2 = max-pool r2 kernel=2 stride=1\n"
                    "f = flatten p2\n"
                    "d1 = dense f out=32\n"
                    "r3 = relu d1\n"
                    "y = dense r3 out=10\n"
                    "output y\n"},
    /* AdLM, section V: conv 5x5x32, pool, conv 5x5x64, pool, dense 25; LRN after every
     * ReLU (Eq. 22: q=2, l=5, alpha=1e-4, beta=0.75), min-max for the dense layer. */
    {"adlm-mnist", "input x 1x28x28\n"
                   "c1 = conv x out=32 kernel=5 pad=2\n"
                   "r1 = relu c1\n"
                   "n1 = lrn r1 window=5 base=2 alpha=1e-4 beta=0.75\n"
                   "p1 = max-pool n1 kernel=2\n"
                   "c2 = conv p1 out=64 kernel=5 pad=2\n"
                   "r2 = relu c2\n"
                   "n2 = lrn r2 window=5 base=2 alpha=1e-4 beta=0.75\n"
                   "p2 = max-pool n2 kernel=2\n"
                   "f = flatten p2\n"
                   "d1 = dense f out=25\n"
                   "r3 = relu d1\n"
                   "n3 = min-max r3\n"
                   "y = dense n3 out=10\n"
                   "output y\n"},
    /* LATENT's convolutional module for MNIST: never trained, 9,216 features. */
    {"cnm-mnist", "input x 1x28x28\n"
                  "c1 = conv x out=32 kernel=3\n"
                  "r1 = relu c1\n"
                  "c2 = conv r1 out=64 kernel=3\n"
                  "r2 = relu c2\n"
                  "p1 = max-pool r2 kernel=2\n"
                  "f = flatten p1\n"
                  "output f\n"},
    /* The same for CIFAR-10 pictures upscaled to 56x56: 9,216 features. */
    {"cnm-cifar", "input x 3x56x56\n"
                  "c1 = conv x out=32 kernel=3 pad=1\n"
                  "r1 = relu c1\n"
                  "c2 = conv r1 out=32 kernel=3\n"
                  "r2 = relu c2\n"
                  "p1 = max-pool r2 kernel=2\n"
                  "c3 = conv p1 out=64 kernel=3 pad=1\n"
                  "r3 = relu c3\n"
                  "c4 = conv r3 out=64 kernel=3\n"
                  "r4 = relu c4\n"
                  "p2 = max-pool r4 kernel=2\n"
                  "f = flatten p2\n"
                  "output f\n"},
    /* LATENT's trained part: packed bits, one hidden layer, dropout. */
    {"latent-fc", "input x 92160 bits\n"
                  "d1 = dense x out=128\n"
                  "r1 = relu d1\n"
                  "o1 = dropout r1 rate=0.5\n"
                  "y = dense o1 out=10\n"
                  "output y\n"},
    /* Small enough for a test, on the embedded digits. */
    {"tiny", "input x 1x8x8\n"
             "c1 = conv x out=8 kernel=3 pad=1\n"
             "r1 = relu c1\n"
             "p1 = max-pool r1 kernel=2\n"
             "f = flatten p1\n"
             "y = dense f out=10\n"
             "output y\n"},
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

const char *const dpf_architecture_names[] = {
    "abadi-mnist", "adlm-mnist", "cnm-mnist", "cnm-cifar", "latent-fc", "tiny", NULL};

const char *dpf_architecture(const char *name)
{
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (strcmp(architectures[i].name, name) == 0)
            return architectures[i].text;
    return NULL;
}
