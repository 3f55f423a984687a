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
     * ReLU (Eq. 22: q=2, l=5, alpha=1e-4, beta=0.75), at most 1 (after pooling, which is
     * the same and less work); min-max for the dense layer. */
    {"adlm-mnist", "input x 1x28x28\n"
                   "c1 = conv x out=32 kernel=5 pad=2\n"
                   "r1 = relu c1\n"
                   "n1 = lrn r1 window=5 base=2 alpha=1e-4 beta=0.75\n"
                   "p1 = max-pool n1 kernel=2\n"
                   "b1 = cap p1\n"
                   "c2 = conv b1 out=64 kernel=5 pad=2\n"
                   "r2 = relu c2\n"
                   "n2 = lrn r2 window=5 base=2 alpha=1e-4 beta=0.75\n"
                   "p2 = max-pool n2 kernel=2\n"
                   "b2 = cap p2\n"
                   "f = flatten b2\n"
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
    /* The same, wider and with less dropout: within Table I, and better. */
    {"latent-fc256", "input x 92160 bits\n"
                     "d1 = dense x out=256\n"
                     "r1 = relu d1\n"
                     "o1 = dropout r1 rate=0.2\n"
                     "y = dense o1 out=10\n"
                     "output y\n"},
    /* Learned from public digits, to describe private ones by the values of r3. */
    {"embed-mnist", "input x 1x28x28\n"
                    "c1 = conv x out=32 kernel=3\n"
                    "r1 = relu c1\n"
                    "p1 = max-pool r1 kernel=2\n"
                    "c2 = conv p1 out=64 kernel=3\n"
                    "r2 = relu c2\n"
                    "p2 = max-pool r2 kernel=2\n"
                    "f = flatten p2\n"
                    "o1 = dropout f rate=0.25\n"
                    "d1 = dense o1 out=128\n"
                    "r3 = relu d1\n"
                    "o2 = dropout r3 rate=0.5\n"
                    "y = dense o2 out=10\n"
                    "output y\n"},
    /* The same, wider, for the 200 classes of synth-glyphs. */
    {"glyphs-mnist", "input x 1x28x28\n"
                     "c1 = conv x out=32 kernel=3\n"
                     "r1 = relu c1\n"
                     "p1 = max-pool r1 kernel=2\n"
                     "c2 = conv p1 out=64 kernel=3\n"
                     "r2 = relu c2\n"
                     "p2 = max-pool r2 kernel=2\n"
                     "f = flatten p2\n"
                     "o1 = dropout f rate=0.25\n"
                     "d1 = dense o1 out=768\n"
                     "r3 = relu d1\n"
                     "o2 = dropout r3 rate=0.5\n"
                     "y = dense o2 out=200\n"
                     "output y\n"},
    /* Never trained, with --init mirrored: contrasts of patches along random directions
     * and their mirror images (n1: divided by the patch's own contrast), what is for and
     * what against each (c2), pooled on a grid of 3x3, the square root of it (s2), mirror
     * images added up (y). */
    {"patches-cifar", "input x 3x32x32\n"
                      "c1 = conv x out=256 kernel=6 stride=2 bias=0\n"
                      "n1 = lrn c1 window=511 base=0.003 alpha=0.00390625 beta=0.5\n"
                      "c2 = conv n1 out=512 kernel=1\n"
                      "r2 = relu c2\n"
                      "p2 = average-pool r2 kernel=6 stride=4\n"
                      "s2 = lrn p2 window=1 base=1e-6 alpha=1 beta=0.25\n"
                      "f = flatten s2\n"
                      "y = dense f out=2304 bias=0\n"
                      "output y\n"},
    /* AdLM, section V-B: conv 3x3x128, 5x5x128, 5x5x256, dense 30; pooling as for MNIST,
     * which the text leaves open. */
    {"adlm-cifar", "input x 3x32x32\n"
                   "c1 = conv x out=128 kernel=3 pad=1\n"
                   "r1 = relu c1\n"
                   "n1 = lrn r1 window=5 base=2 alpha=1e-4 beta=0.75\n"
                   "p1 = max-pool n1 kernel=2\n"
                   "b1 = cap p1\n"
                   "c2 = conv b1 out=128 kernel=5 pad=2\n"
                   "r2 = relu c2\n"
                   "n2 = lrn r2 window=5 base=2 alpha=1e-4 beta=0.75\n"
                   "p2 = max-pool n2 kernel=2\n"
                   "b2 = cap p2\n"
                   "c3 = conv b2 out=256 kernel=5 pad=2\n"
                   "r3 = relu c3\n"
                   "n3 = lrn r3 window=5 base=2 alpha=1e-4 beta=0.75\n"
                   "p3 = max-pool n3 kernel=2\n"
                   "b3 = cap p3\n"
                   "f = flatten b3\n"
                   "d1 = dense f out=30\n"
                   "r4 = relu d1\n"
                   "n4 = min-max r4\n"
                   "y = dense n4 out=10\n"
                   "output y\n"},
    /* LATENT's networks without privacy, Figs. 7 and 8: whole, trained end to end. */
    {"plain-mnist", "input x 1x28x28\n"
                    "c1 = conv x out=32 kernel=3\n"
                    "r1 = relu c1\n"
                    "c2 = conv r1 out=64 kernel=3\n"
                    "r2 = relu c2\n"
                    "p1 = max-pool r2 kernel=2\n"
                    "o1 = dropout p1 rate=0.25\n"
                    "f = flatten o1\n"
                    "d1 = dense f out=128\n"
                    "r3 = relu d1\n"
                    "o2 = dropout r3 rate=0.5\n"
                    "y = dense o2 out=10\n"
                    "output y\n"},
    {"plain-cifar", "input x 3x32x32\n"
                    "c1 = conv x out=32 kernel=3 pad=1\n"
                    "r1 = relu c1\n"
                    "c2 = conv r1 out=32 kernel=3\n"
                    "r2 = relu c2\n"
                    "p1 = max-pool r2 kernel=2\n"
                    "o1 = dropout p1 rate=0.25\n"
                    "c3 = conv o1 out=64 kernel=3 pad=1\n"
                    "r3 = relu c3\n"
                    "c4 = conv r3 out=64 kernel=3\n"
                    "r4 = relu c4\n"
                    "p2 = max-pool r4 kernel=2\n"
                    "o2 = dropout p2 rate=0.25\n"
                    "f = flatten o2\n"
                    "d1 = dense f out=512\n"
                    "r5 = relu d1\n"
                    "o3 = dropout r5 rate=0.5\n"
                    "y = dense o3 out=10\n"
                    "output y\n"},
    /* Fay et al. (PATE for high-dimensional targets): a 3D U-Net with four poolings on
     * 64x64x64 patches of four channels, four classes. The text says no more: widths 16
     * to 256 and group normalisation, which private training can use, are ours. */
    {"unet3d", "input x 4x64x64x64\n"
               "ce1a = conv x out=16 kernel=3 pad=1\n"
               "ge1a = group-norm ce1a groups=8\n"
               "re1a = relu ge1a\n"
               "ce1b = conv re1a out=16 kernel=3 pad=1\n"
               "ge1b = group-norm ce1b groups=8\n"
               "re1b = relu ge1b\n"
               "p1 = max-pool re1b kernel=2\n"
               "ce2a = conv p1 out=32 kernel=3 pad=1\n"
               "ge2a = group-norm ce2a groups=8\n"
               "re2a = relu ge2a\n"
               "ce2b = conv re2a out=32 kernel=3 pad=1\n"
               "ge2b = group-norm ce2b groups=8\n"
               "re2b = relu ge2b\n"
               "p2 = max-pool re2b kernel=2\n"
               "ce3a = conv p2 out=64 kernel=3 pad=1\n"
               "ge3a = group-norm ce3a groups=8\n"
               "re3a = relu ge3a\n"
               "ce3b = conv re3a out=64 kernel=3 pad=1\n"
               "ge3b = group-norm ce3b groups=8\n"
               "re3b = relu ge3b\n"
               "p3 = max-pool re3b kernel=2\n"
               "ce4a = conv p3 out=128 kernel=3 pad=1\n"
               "ge4a = group-norm ce4a groups=8\n"
               "re4a = relu ge4a\n"
               "ce4b = conv re4a out=128 kernel=3 pad=1\n"
               "ge4b = group-norm ce4b groups=8\n"
               "re4b = relu ge4b\n"
               "p4 = max-pool re4b kernel=2\n"
               "ce5a = conv p4 out=256 kernel=3 pad=1\n"
               "ge5a = group-norm ce5a groups=8\n"
               "re5a = relu ge5a\n"
               "ce5b = conv re5a out=256 kernel=3 pad=1\n"
               "ge5b = group-norm ce5b groups=8\n"
               "re5b = relu ge5b\n"
               "u4 = conv-transpose re5b out=128 kernel=2 stride=2\n"
               "k4 = concat u4 re4b\n"
               "cd4a = conv k4 out=128 kernel=3 pad=1\n"
               "gd4a = group-norm cd4a groups=8\n"
               "rd4a = relu gd4a\n"
               "cd4b = conv rd4a out=128 kernel=3 pad=1\n"
               "gd4b = group-norm cd4b groups=8\n"
               "rd4b = relu gd4b\n"
               "u3 = conv-transpose rd4b out=64 kernel=2 stride=2\n"
               "k3 = concat u3 re3b\n"
               "cd3a = conv k3 out=64 kernel=3 pad=1\n"
               "gd3a = group-norm cd3a groups=8\n"
               "rd3a = relu gd3a\n"
               "cd3b = conv rd3a out=64 kernel=3 pad=1\n"
               "gd3b = group-norm cd3b groups=8\n"
               "rd3b = relu gd3b\n"
               "u2 = conv-transpose rd3b out=32 kernel=2 stride=2\n"
               "k2 = concat u2 re2b\n"
               "cd2a = conv k2 out=32 kernel=3 pad=1\n"
               "gd2a = group-norm cd2a groups=8\n"
               "rd2a = relu gd2a\n"
               "cd2b = conv rd2a out=32 kernel=3 pad=1\n"
               "gd2b = group-norm cd2b groups=8\n"
               "rd2b = relu gd2b\n"
               "u1 = conv-transpose rd2b out=16 kernel=2 stride=2\n"
               "k1 = concat u1 re1b\n"
               "cd1a = conv k1 out=16 kernel=3 pad=1\n"
               "gd1a = group-norm cd1a groups=8\n"
               "rd1a = relu gd1a\n"
               "cd1b = conv rd1a out=16 kernel=3 pad=1\n"
               "gd1b = group-norm cd1b groups=8\n"
               "rd1b = relu gd1b\n"
               "y = conv rd1b out=4 kernel=1\n"
               "output y\n"},
    /* The network of Abadi et al. with tanh, which keeps gradients small and loses less
     * to clipping (Papernot et al. 2021). */
    {"dpsgd-mnist", "input x 1x28x28\n"
                    "c1 = conv x out=16 kernel=8 stride=2 pad=3\n"
                    "t1 = tanh c1\n"
                    "p1 = max-pool t1 kernel=2 stride=1\n"
                    "c2 = conv p1 out=32 kernel=4 stride=2\n"
                    "t2 = tanh c2\n"
                    "p2 = max-pool t2 kernel=2 stride=1\n"
                    "f = flatten p2\n"
                    "d1 = dense f out=32\n"
                    "t3 = tanh d1\n"
                    "y = dense t3 out=10\n"
                    "output y\n"},
    /* The same idea for pictures of 32x32, after Papernot et al. 2021, narrower. */
    {"dpsgd-cifar", "input x 3x32x32\n"
                    "c1 = conv x out=32 kernel=3 pad=1\n"
                    "t1 = tanh c1\n"
                    "p1 = average-pool t1 kernel=2\n"
                    "c2 = conv p1 out=64 kernel=3 pad=1\n"
                    "t2 = tanh c2\n"
                    "p2 = average-pool t2 kernel=2\n"
                    "c3 = conv p2 out=64 kernel=3 pad=1\n"
                    "t3 = tanh c3\n"
                    "p3 = average-pool t3 kernel=2\n"
                    "f = flatten p3\n"
                    "d1 = dense f out=64\n"
                    "t4 = tanh d1\n"
                    "y = dense t4 out=10\n"
                    "output y\n"},
    /* The same for the embedded digits of 8x8. */
    {"dpsgd-digits", "input x 1x8x8\n"
                     "c1 = conv x out=16 kernel=3 pad=1\n"
                     "t1 = tanh c1\n"
                     "p1 = max-pool t1 kernel=2\n"
                     "f = flatten p1\n"
                     "y = dense f out=10\n"
                     "output y\n"},
    /* Frozen features for a private head: edges of eight directions (--init oriented),
     * how much of each in every 4x4 square. 392 numbers, none below 0. */
    {"oriented-mnist", "input x 1x28x28\n"
                       "c1 = conv x out=8 kernel=5 pad=2\n"
                       "r1 = relu c1\n"
                       "p1 = average-pool r1 kernel=4\n"
                       "f = flatten p1\n"
                       "output f\n"},
    /* Cheap to train 250 times on 240 pictures each (PATE): two convolutions and dropout.
     */
    {"teacher-mnist", "input x 1x28x28\n"
                      "c1 = conv x out=16 kernel=5 pad=2\n"
                      "r1 = relu c1\n"
                      "p1 = max-pool r1 kernel=2\n"
                      "c2 = conv p1 out=32 kernel=5\n"
                      "r2 = relu c2\n"
                      "p2 = max-pool r2 kernel=2\n"
                      "f = flatten p2\n"
                      "o1 = dropout f rate=0.4\n"
                      "y = dense o1 out=10\n"
                      "output y\n"},
    /* pCDBN's convolutional deep belief network (Phan et al. 2017, section 4.2): 32 and
     * 64 filters of 5x5, 25 hidden units, each layer a restricted Boltzmann machine. */
    {"cdbn-mnist", "input x 1x28x28\n"
                   "c1 = conv x out=32 kernel=5 pad=2 visible=1\n"
                   "h1 = sigmoid c1\n"
                   "p1 = max-pool h1 kernel=2\n"
                   "c2 = conv p1 out=64 kernel=5 visible=1\n"
                   "h2 = sigmoid c2\n"
                   "p2 = max-pool h2 kernel=2\n"
                   "f = flatten p2\n"
                   "d1 = dense f out=25 visible=1\n"
                   "h3 = sigmoid d1\n"
                   "y = dense h3 out=10\n"
                   "output y\n"},
    /* One layer of filters of 4x4, how much of each in every 7x7 square: what
     * pcdbn-figures sweeps over. */
    {"pcdbn-figures", "input x 1x28x28\n"
                      "c1 = conv x out=8 kernel=4 visible=1\n"
                      "h1 = sigmoid c1\n"
                      "p1 = average-pool h1 kernel=7 stride=6\n"
                      "f = flatten p1\n"
                      "output f\n"},
    /* Filters from the patches' released moments, then how much of each in every square,
     * relative to the record's other features: for a private head. Large squares
     * (`coarse`) are better where noise is large. */
    {"filters-mnist", "input x 1x28x28\n"
                      "c1 = conv x out=32 kernel=5 pad=2\n"
                      "r1 = relu c1\n"
                      "p1 = average-pool r1 kernel=6 stride=4 pad=1\n"
                      "g1 = group-norm p1 groups=8\n"
                      "f = flatten g1\n"
                      "output f\n"},
    {"filters-mnist-coarse", "input x 1x28x28\n"
                             "c1 = conv x out=32 kernel=5 pad=2\n"
                             "r1 = relu c1\n"
                             "p1 = average-pool r1 kernel=7\n"
                             "g1 = group-norm p1 groups=8\n"
                             "f = flatten g1\n"
                             "output f\n"},
    {"filters-digits", "input x 1x8x8\n"
                       "c1 = conv x out=16 kernel=3 pad=1\n"
                       "r1 = leaky-relu c1\n"
                       "p1 = average-pool r1 kernel=2\n"
                       "g1 = group-norm p1 groups=4\n"
                       "f = flatten g1\n"
                       "output f\n"},
    /* The same kind of network as cdbn-mnist for the embedded digits. */
    {"cdbn-digits", "input x 1x8x8\n"
                    "c1 = conv x out=24 kernel=3 pad=1 visible=1\n"
                    "h1 = sigmoid c1\n"
                    "p1 = max-pool h1 kernel=2\n"
                    "c2 = conv p1 out=40 kernel=3 visible=1\n"
                    "h2 = sigmoid c2\n"
                    "f = flatten h2\n"
                    "y = dense f out=10\n"
                    "output y\n"},
    /* pCDBN's model of behaviour (section 4.1) on windows of 30 attributes at 4 times
     * (`v`), biases that depend on the attributes now and on friends (`u`): ten bases of
     * 12x4, ten of 6x2, each pooled by 2, dropout before the classes. Padding by two
     * times is ours: the second bases are two times wide. */
    {"cdbn-wellness", "input x 151\n"
                      "v = slice x from=0 count=120\n"
                      "w = reshape v shape=1x30x4\n"
                      "u = slice x from=120 count=31\n"
                      "c1 = conv w u out=10 kernel=12x4 pad=0x2 visible=1\n"
                      "h1 = sigmoid c1\n"
                      "p1 = max-pool h1 kernel=2\n"
                      "c2 = conv p1 out=10 kernel=6x2 visible=1\n"
                      "h2 = sigmoid c2\n"
                      "p2 = max-pool h2 kernel=2x1\n"
                      "f = flatten p2\n"
                      "o = dropout f rate=0.5\n"
                      "y = dense o out=2\n"
                      "output y\n"},
    /* The same with hidden units' probabilities as polynomials (TCDBN). What the paper
     * divides by, a norm of the data, is a public number here. */
    {"tcdbn-wellness", "input x 151\n"
                       "v = slice x from=0 count=120\n"
                       "w = reshape v shape=1x30x4\n"
                       "u = slice x from=120 count=31\n"
                       "c1 = conv w u out=10 kernel=12x4 pad=0x2 visible=1\n"
                       "h1 = polynomial c1 degree=7 scale=2\n"
                       "p1 = max-pool h1 kernel=2\n"
                       "c2 = conv p1 out=10 kernel=6x2\n"
                       "h2 = polynomial c2 degree=7 scale=2\n"
                       "p2 = max-pool h2 kernel=2x1\n"
                       "f = flatten p2\n"
                       "o = dropout f rate=0.5\n"
                       "y = dense o out=2\n"
                       "output y\n"},
    /* Its two layers for filters that come from released coefficients, and what a head
     * reads: of the first layer (`f1`, 90 values), of the second (`f2`, 20). */
    {"pcdbn-wellness", "input x 151\n"
                       "v = slice x from=0 count=120\n"
                       "w = reshape v shape=1x30x4\n"
                       "u = slice x from=120 count=31\n"
                       "c1 = conv w u out=10 kernel=12x4 visible=1\n"
                       "h1 = sigmoid c1\n"
                       "p1 = average-pool h1 kernel=2x1\n"
                       "f1 = flatten p1\n"
                       "c2 = conv p1 out=10 kernel=6x1 visible=1\n"
                       "h2 = sigmoid c2\n"
                       "p2 = average-pool h2 kernel=2x1\n"
                       "f2 = flatten p2\n"
                       "output f2\n"},
    /* SctRBM: one conditional restricted Boltzmann machine on whole windows. */
    {"sctrbm-wellness", "input x 151\n"
                        "v = slice x from=0 count=120\n"
                        "u = slice x from=120 count=31\n"
                        "d1 = dense v u out=50 visible=1\n"
                        "h1 = sigmoid d1\n"
                        "y = dense h1 out=2\n"
                        "output y\n"},
    /* dPAH: the hidden layer of an auto-encoder of whole windows. */
    {"dpah-wellness", "input x 151\n"
                      "v = slice x from=0 count=120\n"
                      "u = slice x from=120 count=31\n"
                      "d1 = dense v u out=25 visible=1\n"
                      "h1 = sigmoid d1\n"
                      "output h1\n"},
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

const char *const dpf_architecture_names[] = {"abadi-mnist",
                                              "adlm-mnist",
                                              "adlm-cifar",
                                              "cnm-mnist",
                                              "cnm-cifar",
                                              "latent-fc",
                                              "plain-mnist",
                                              "plain-cifar",
                                              "unet3d",
                                              "tiny",
                                              "dpsgd-mnist",
                                              "dpsgd-digits",
                                              "oriented-mnist",
                                              "dpsgd-cifar",
                                              "latent-fc256",
                                              "embed-mnist",
                                              "glyphs-mnist",
                                              "patches-cifar",
                                              "teacher-mnist",
                                              "cdbn-mnist",

                                              "filters-mnist",
                                              "filters-mnist-coarse",
                                              "filters-digits",
                                              "cdbn-digits",
                                              "pcdbn-figures",
                                              "cdbn-wellness",
                                              "tcdbn-wellness",
                                              "pcdbn-wellness",
                                              "sctrbm-wellness",
                                              "dpah-wellness",
                                              NULL};

const char *dpf_architecture(const char *name)
{
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (strcmp(architectures[i].name, name) == 0)
            return architectures[i].text;
    return NULL;
}
