/* Layers for any machine. */
#define ADD_LAYERS dpf_cpu_add_layers_base
#include "kernels/cpu/layers.inc"

#include "base/banned.h"
