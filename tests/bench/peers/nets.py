"""The networks of the comparison as PyTorch modules.

Every parameter is called NODE.weight or NODE.bias after its node in dpflow's network
text, so a state_dict saved here is a checkpoint there. PyTorch's weights of a picture's
convolution have four dimensions, dpflow's have five (a depth of one): the same numbers in
the same order. TEXTS has networks in dpflow's language: unet3d-small is no named
architecture there.
"""

import torch
import torch.nn.functional as F
from torch import nn

TEXTS = {
    "unet3d-small": """\
input x 1x16x16x16
c1a = conv x out=8 kernel=3 pad=1
g1a = group-norm c1a groups=4
r1a = relu g1a
c1b = conv r1a out=8 kernel=3 pad=1
g1b = group-norm c1b groups=4
r1b = relu g1b
p1 = max-pool r1b kernel=2
c2a = conv p1 out=16 kernel=3 pad=1
g2a = group-norm c2a groups=4
r2a = relu g2a
c2b = conv r2a out=16 kernel=3 pad=1
g2b = group-norm c2b groups=4
r2b = relu g2b
p2 = max-pool r2b kernel=2
c3a = conv p2 out=32 kernel=3 pad=1
g3a = group-norm c3a groups=4
r3a = relu g3a
c3b = conv r3a out=32 kernel=3 pad=1
g3b = group-norm c3b groups=4
r3b = relu g3b
u2 = conv-transpose r3b out=16 kernel=2 stride=2
j2 = concat u2 r2b
d2a = conv j2 out=16 kernel=3 pad=1
gd2a = group-norm d2a groups=4
rd2a = relu gd2a
d2b = conv rd2a out=16 kernel=3 pad=1
gd2b = group-norm d2b groups=4
rd2b = relu gd2b
u1 = conv-transpose rd2b out=8 kernel=2 stride=2
j1 = concat u1 r1b
d1a = conv j1 out=8 kernel=3 pad=1
gd1a = group-norm d1a groups=4
rd1a = relu gd1a
d1b = conv rd1a out=8 kernel=3 pad=1
gd1b = group-norm d1b groups=4
rd1b = relu gd1b
y = conv rd1b out=4 kernel=1
output y
""",
}


def lrn(x, window=5, base=2.0, alpha=1e-4, beta=0.75):
    """x / (base + alpha * sum of squares over the window of channels)^beta."""
    # PyTorch takes the mean over the window, zeros beyond the border included, where
    # dpflow and the paper take the sum.
    return F.local_response_norm(x, window, alpha=alpha * window, beta=beta, k=base)


def min_max(x):
    """Each record onto [0,1] by its own minimum and maximum; a constant one to 0."""
    low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    varies = high > low
    # Dividing by 1 and not by 0: torch.where over the quotient would hide the NaN from
    # the values, but not from their gradients.
    span = torch.where(varies, high - low, torch.ones_like(low))
    return (x - low) / span * varies


class AbadiMnist(nn.Module):
    shape, classes = (1, 28, 28), 10

    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 8, stride=2, padding=3)
        self.c2 = nn.Conv2d(16, 32, 4, stride=2)
        self.d1 = nn.Linear(512, 32)
        self.y = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2, 1)
        x = F.max_pool2d(F.relu(self.c2(x)), 2, 1)
        return self.y(F.relu(self.d1(x.flatten(1))))


class AdlmMnist(nn.Module):
    shape, classes = (1, 28, 28), 10

    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 32, 5, padding=2)
        self.c2 = nn.Conv2d(32, 64, 5, padding=2)
        self.d1 = nn.Linear(3136, 25)
        self.y = nn.Linear(25, 10)

    def forward(self, x):
        x = F.max_pool2d(lrn(F.relu(self.c1(x))), 2).clamp(max=1)
        x = F.max_pool2d(lrn(F.relu(self.c2(x))), 2).clamp(max=1)
        return self.y(min_max(F.relu(self.d1(x.flatten(1)))))


class PlainCifar(nn.Module):
    """The network that the LATENT paper compares itself with."""

    shape, classes = (3, 32, 32), 10

    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 32, 3, padding=1)
        self.c2 = nn.Conv2d(32, 32, 3)
        self.c3 = nn.Conv2d(32, 64, 3, padding=1)
        self.c4 = nn.Conv2d(64, 64, 3)
        self.d1 = nn.Linear(2304, 512)
        self.y = nn.Linear(512, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c2(F.relu(self.c1(x)))), 2)
        x = F.dropout(x, 0.25, self.training)
        x = F.max_pool2d(F.relu(self.c4(F.relu(self.c3(x)))), 2)
        x = F.dropout(x, 0.25, self.training)
        x = F.relu(self.d1(x.flatten(1)))
        return self.y(F.dropout(x, 0.5, self.training))


class Unet3dSmall(nn.Module):
    shape, classes = (1, 16, 16, 16), 4

    # A convolution and its norm: their nodes, channels in and out.
    BLOCKS = (("c1a", "g1a", 1, 8), ("c1b", "g1b", 8, 8),
              ("c2a", "g2a", 8, 16), ("c2b", "g2b", 16, 16),
              ("c3a", "g3a", 16, 32), ("c3b", "g3b", 32, 32),
              ("d2a", "gd2a", 32, 16), ("d2b", "gd2b", 16, 16),
              ("d1a", "gd1a", 16, 8), ("d1b", "gd1b", 8, 8))

    def __init__(self):
        super().__init__()
        for conv, norm, channels, out in self.BLOCKS:
            self.add_module(conv, nn.Conv3d(channels, out, 3, padding=1))
            self.add_module(norm, nn.GroupNorm(4, out, eps=1e-5))
        self.u2 = nn.ConvTranspose3d(32, 16, 2, stride=2)
        self.u1 = nn.ConvTranspose3d(16, 8, 2, stride=2)
        self.y = nn.Conv3d(8, 4, 1)

    def level(self, x, *convs):
        for conv, norm, _, _ in self.BLOCKS:
            if conv in convs:
                x = F.relu(getattr(self, norm)(getattr(self, conv)(x)))
        return x

    def forward(self, x):
        skip1 = self.level(x, "c1a", "c1b")
        skip2 = self.level(F.max_pool3d(skip1, 2), "c2a", "c2b")
        x = self.level(F.max_pool3d(skip2, 2), "c3a", "c3b")
        x = self.level(torch.cat([self.u2(x), skip2], 1), "d2a", "d2b")
        x = self.level(torch.cat([self.u1(x), skip1], 1), "d1a", "d1b")
        return self.y(x)


class FittedUnet(nn.Module):
    """`unet:8` for volumes of 1x48x64x48 and 3 classes: four poolings, two convolutions a
    level with instance normalisation and leaky ReLU (../../../lib/nn/fitted.c)."""
    shape, classes, width, levels = (1, 48, 64, 48), 3, 8, 5

    def __init__(self):
        super().__init__()
        wide, before = [self.width << i for i in range(self.levels)], self.shape[0]
        self.down, self.up, self.rise = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for out in wide:
            self.down.append(self.pair(before, out))
            before = out
        for out in reversed(wide[:-1]):
            self.rise.append(nn.ConvTranspose3d(2 * out, out, 2, stride=2))
            self.up.append(self.pair(2 * out, out))
        self.y = nn.Conv3d(wide[0], self.classes, 1)

    @staticmethod
    def pair(channels, out):
        layers = []
        for before in (channels, out):
            layers += [nn.Conv3d(before, out, 3, padding=1, bias=False),
                       nn.InstanceNorm3d(out, affine=True), nn.LeakyReLU(0.01)]
        return nn.Sequential(*layers)

    def forward(self, x):
        skips = []
        for level in self.down:
            x = level(F.max_pool3d(x, 2) if skips else x)
            skips.append(x)
        for rise, level, skip in zip(self.rise, self.up, reversed(skips[:-1])):
            x = level(torch.cat([rise(x), skip], 1))
        return self.y(x)


NETS = {"abadi-mnist": AbadiMnist, "adlm-mnist": AdlmMnist, "plain-cifar": PlainCifar,
        "unet3d-small": Unet3dSmall, "unet:8=1x48x64x48:3": FittedUnet}
