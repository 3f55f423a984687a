# dpflow: differentially private training as a Unix dataflow.
#
#   make demo            build, then run the main job on embedded data
#   make check           build, then run all tests
#   make                 build everything into build/
#   make check-sanitize  all tests under AddressSanitizer and UBSan
#   make check-peers     compare streams with Python's msgpack (throw-away venv)
#   make bench           speed and memory, as ratios within one run
#   make bench-peers     the same against PyTorch, Opacus, dp-accounting (throw-away venv, 3 GB)
#   make fuzz            every parser under libFuzzer, FUZZ_SECONDS each
#   make man             man pages into build/man
#   make install         into PREFIX
#   make format lint     clang-format; the lint tests alone
#   make clean
#
# Knobs (make NAME=value):
#   BUILD=build          where everything is built
#   PREFIX=/usr/local    where `make install` puts it; DESTDIR goes in front
#   CC=cc                the compiler
#   CFLAGS="-O3 -g"      optimisation and debugging
#   WERROR=1             warnings are errors; 0 for unknown compilers
#   SANITIZE=            1: AddressSanitizer and UBSan
#   NO_INSTALL=          1: never call apt-get, only name what is missing
#   FUZZ_SECONDS=120     time for each fuzzer
#   V=                   1: show commands

BUILD        ?= build
PREFIX       ?= /usr/local
DESTDIR      ?=
CFLAGS       ?= -O3 -g
WERROR       ?= 1
SANITIZE     ?=
NO_INSTALL   ?=
FUZZ_SECONDS ?= 120
V            ?=

Q := $(if $(V),,@)
.DEFAULT_GOAL := all
.SUFFIXES:
.DELETE_ON_ERROR:
.SECONDARY:

# ---------------------------------------------------------------- Debian packages
# PROBE:PACKAGE[,ALTERNATIVE], a header that tells whether it is there. The names differ
# between releases of Debian in two cases.

BUILD_NEEDS := msgpack.h:libmsgpack-c-dev,libmsgpack-dev xxhash.h:libxxhash-dev \
    sodium.h:libsodium-dev zmq.h:libzmq3-dev zlib.h:zlib1g-dev lzma.h:liblzma-dev \
    nifti/znzlib.h:libnifti-dev jansson.h:libjansson-dev png.h:libpng-dev \
    oneapi/dnnl/dnnl.h:libdnnl-dev -lopenblas:libopenblas-dev lapacke.h:liblapacke-dev \
    fftw3.h:libfftw3-dev mpfr.h:libmpfr-dev
CHECK_NEEDS := CUnit/CUnit.h:libcunit1-dev pgrep:procps xxh128sum:xxhash
MPI_NEEDS   := mpirun:openmpi-bin mpicc:libopenmpi-dev
FUZZ_NEEDS  := clang:clang libfuzzer:libclang-rt-14-dev,libclang-rt-19-dev

# $(call need,LIST,required|optional): install what is missing.
need = $(Q)CC="$(CC)" NO_INSTALL="$(NO_INSTALL)" sh .ci/need $(2) $(1)

# ------------------------------------------------------------------ optional parts

HAVE_MPI  := $(shell command -v mpicc >/dev/null 2>&1 && command -v mpirun >/dev/null 2>&1 && echo 1)
HAVE_CUDA := $(shell command -v nvcc >/dev/null 2>&1 && echo 1)

# --------------------------------------------------------------------------- flags

WARNINGS := -Wall -Wextra -Wpedantic -Wvla -Wmissing-prototypes -Wshadow \
    $(if $(filter 1,$(WERROR)),-Werror)
# -ffp-contract=off: generated data and scaled records are the same on every machine.
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(CFLAGS) $(WARNINGS) -fPIC -ffp-contract=off \
    -Ilib -Itests/unit -I$(BUILD)/gen -isystem /usr/include/nifti -MMD -MP $(SANITIZE_FLAGS)
ifneq ($(SANITIZE),)
SANITIZE_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all \
    -fno-omit-frame-pointer
endif
AVX2_FLAGS := $(if $(filter x86_64 amd64,$(shell uname -m)),-mavx2 -mfma)
MSGPACK_LIB = $(if $(wildcard /usr/lib/*/libmsgpack-c.so),-lmsgpack-c,-lmsgpackc)
LIBS = $(MSGPACK_LIB) -lxxhash -lsodium -lzmq -lz -llzma -lniftiio -lznz -ljansson -lpng -lpthread \
    -ldnnl -llapacke -lopenblas -lfftw3 -lmpfr -lgmp -lgomp -ldl -lm
LINK = $(CC) $(CFLAGS) $(SANITIZE_FLAGS) -Wl,--as-needed

# --------------------------------------------------------------------------- files

LIB_SOURCES   := $(wildcard lib/*/*.c lib/*/*/*.c)
STAGE_NAMES   := $(filter-out dpflow,$(patsubst stages/%.c,%,$(wildcard stages/*.c)) \
    $(patsubst stages/%/,%,$(wildcard stages/*/)))
TEST_SOURCES  := $(wildcard tests/unit/test_*.c tests/kernels/test_*.c tests/privacy/test_*.c)
LIB_OBJECTS   := $(LIB_SOURCES:%.c=$(BUILD)/obj/%.o)
STAGES        := $(STAGE_NAMES:%=$(BUILD)/libexec/dpflow/%)
TESTS         := $(addprefix $(BUILD)/tests/,$(notdir $(TEST_SOURCES:.c=)))
# Transports of cluster/: their schemes are never taken for paths, built or not.
TRANSPORTS    := mpi
PLUGINS       := $(if $(HAVE_MPI),$(BUILD)/libexec/dpflow/dpflow-mpi.so)
LIBRARY       := $(BUILD)/lib/libdpflow.a

.PHONY: all build demo check check-run check-sanitize check-peers bench bench-peers fuzz man install \
    format lint clean report always need-build need-check need-mpi need-fuzz

# Packages first, in a make of its own: probes and rules then see what was installed.
all: need-build
	$(Q)$(MAKE) --no-print-directory report build

need-build:
	$(call need,$(BUILD_NEEDS),required)
need-check: need-build
	$(call need,$(CHECK_NEEDS),required)
need-mpi:
	$(call need,$(MPI_NEEDS),optional)
need-fuzz: need-build
	$(call need,$(FUZZ_NEEDS),required)

report:
	@printf 'dpflow: %s pipes and files, ZeroMQ   %s MPI   %s CUDA compiler (for later)\n' "✓" \
	    "$(if $(HAVE_MPI),✓,✗)" "$(if $(HAVE_CUDA),✓,✗)"

build: $(BUILD)/bin/dpflow $(STAGES) $(PLUGINS)

$(BUILD)/gen/stages.inc: stages/stages.list
	@mkdir -p $(@D)
	$(Q)awk '!/^#/ && NF > 2 { name = $$1; spends = $$2 == "yes" ? "true" : "false"; \
	    $$1 = $$2 = ""; sub(/^ +/, ""); \
	    printf "    {\"%s\", %s, \"%s\"},\n", name, spends, $$0 }' $< > $@

$(BUILD)/gen/transports.inc: Makefile
	@mkdir -p $(@D)
	$(Q)printf '    "%s",\n' $(TRANSPORTS) > $@

# Rows of tables that stand beside the code of lib/data (data/formats.h, data/sets.h):
# $(call rows,TYPE,PREFIX,MACRO) names them, MACRO(symbol, "name").
rows = sed -n 's/^const struct $(1) $(2)\([a-z0-9_]*\) = .*/\1/p' $(wildcard lib/data/*.c) | \
    awk '{ name = $$1; gsub(/_/, "-", name); printf "$(3)(%s, \"%s\")\n", $$1, name }'
# Made anew by every make, as a file may be gone; replaced only if it changed.
replace = cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(BUILD)/gen/formats.inc: always
	@mkdir -p $(@D)
	$(Q)$(call rows,dpf_format,dpf_format_,FORMAT) > $@.new && $(replace)
$(BUILD)/gen/data_sets.inc: always
	@mkdir -p $(@D)
	$(Q){ $(call rows,dpf_data_set,dpf_set_,SET) && \
	    awk '$$1 == "set" { symbol = $$2; gsub(/-/, "_", symbol); \
	        printf "SET(%s, \"%s\")\n", symbol, $$2 }' datasets/sets.list; } > $@.new && $(replace)
$(BUILD)/gen/stored_sets.inc: datasets/sets.list datasets/sets.awk
	@mkdir -p $(@D)
	$(Q)awk -f datasets/sets.awk $< > $@

$(BUILD)/obj/lib/data/formats.o: $(BUILD)/gen/formats.inc
$(BUILD)/obj/lib/data/sets.o: $(BUILD)/gen/data_sets.inc
$(BUILD)/obj/lib/data/stored.o: $(BUILD)/gen/stored_sets.inc
$(BUILD)/obj/lib/pipeline/stages.o: $(BUILD)/gen/stages.inc
$(BUILD)/obj/lib/transport/registry.o: $(BUILD)/gen/transports.inc
$(BUILD)/obj/lib/data/digits.o: datasets/digits.mp

# Kernels may reorder sums and fuse products; NaN and infinity stay what they are. No sum may
# be cut by where a row lies in memory, so that every row is summed in the same order.
NO_PEELING := $(shell $(CC) -Werror --param vect-max-peeling-for-alignment=0 -x c -c /dev/null \
    -o /dev/null 2>/dev/null && echo --param vect-max-peeling-for-alignment=0)
$(BUILD)/obj/lib/kernels/cpu/%.o: ALL_CFLAGS += -ffp-contract=fast -fno-math-errno \
    -fno-trapping-math -fno-signed-zeros -fassociative-math $(NO_PEELING)
$(BUILD)/obj/lib/random/normal.o $(BUILD)/obj/lib/random/noise.o: \
    ALL_CFLAGS += -fno-math-errno -fno-trapping-math
# Exact whatever the rounding: products may be fused.
$(BUILD)/obj/lib/random/noise.o: ALL_CFLAGS += -ffp-contract=fast
$(BUILD)/obj/lib/kernels/cpu/layers_avx2.o: ALL_CFLAGS += $(AVX2_FLAGS)
# Sums in the order in which they are written: a row's result is one fixed expression.
$(BUILD)/obj/lib/kernels/cpu/rows.o: ALL_CFLAGS += -ffp-contract=off -fno-associative-math

# No value of an enum is passed over where rows are told apart.
$(foreach room,nn kernels ledger account privacy exchange,$(BUILD)/obj/lib/$(room)/%.o) \
    $(BUILD)/obj/stages/%.o: ALL_CFLAGS += -Wswitch-enum

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC    $<")
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

$(LIBRARY): $(LIB_OBJECTS)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# A stage is a file, or a folder with its name.
stage_objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard stages/$(1).c stages/$(1)/*.c))
.SECONDEXPANSION:
$(BUILD)/libexec/dpflow/%: $$(call stage_objects,$$*) $(LIBRARY)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(LINK) $(filter %.o,$^) $(LIBRARY) $(LIBS) -o $@

$(BUILD)/bin/dpflow: $(BUILD)/obj/stages/dpflow.o $(LIBRARY)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(LINK) $< $(LIBRARY) $(LIBS) -o $@

$(BUILD)/libexec/dpflow/dpflow-mpi.so: cluster/mpi.c $(LIBRARY)
	@mkdir -p $(@D) $(BUILD)/obj/cluster
	$(if $(Q),@echo "  MPICC $@")
	$(Q)OMPI_CC="$(CC)" mpicc $(filter-out -Wpedantic -MMD -MP,$(ALL_CFLAGS)) -shared \
	    $< -Wl,--exclude-libs,ALL $(LIBRARY) $(LIBS) -o $@

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(BUILD)/obj/tests/unit/harness.o $(LIBRARY)
	@mkdir -p $(@D)
	$(Q)$(LINK) $^ -lcunit $(LIBS) -o $@

$(BUILD)/tests/%: $(BUILD)/obj/tests/kernels/%.o $(BUILD)/obj/tests/unit/harness.o $(LIBRARY)
	@mkdir -p $(@D)
	$(Q)$(LINK) $^ -lcunit $(LIBS) -o $@

$(BUILD)/tests/%: $(BUILD)/obj/tests/privacy/%.o $(BUILD)/obj/tests/unit/harness.o $(LIBRARY)
	@mkdir -p $(@D)
	$(Q)$(LINK) $^ -lcunit $(LIBS) -o $@

$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o $(LIBRARY)
	@mkdir -p $(@D)
	$(Q)$(LINK) $^ $(LIBS) -o $@

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

# ------------------------------------------------------------------------ main job

demo: all
	$(Q)$(BUILD)/bin/dpflow run pipelines/first-look.pipe --dir $(BUILD)/demo
	@cat $(BUILD)/demo/statistics.txt
	$(Q)$(BUILD)/bin/dpflow run pipelines/plain-digits.pipe --dir $(BUILD)/demo-plain
	$(Q)$(BUILD)/bin/dpflow run pipelines/dpsgd-digits.pipe --dir $(BUILD)/demo-private
	@echo
	@echo "Trained without privacy"
	@sed -n 2p $(BUILD)/demo-plain/score.txt
	@echo "Trained privately, by DP-SGD"
	@sed -n 2p $(BUILD)/demo-private/score.txt
	@cat $(BUILD)/demo-private/cost.txt
	@echo
	@echo "Look at  $(BUILD)/demo/pictures/x.png   the digits, a row for each class"
	@echo "         $(BUILD)/demo/*.mp             every named stream: dpflow inspect -i FILE"
	@echo "         $(BUILD)/demo-private          the model, its score, metrics.json, account.json"
	@echo "         pipelines/dpsgd-digits.pipe   what ran; dpflow account -i MODEL  what it cost"

# --------------------------------------------------------------------------- tests

check: need-check need-mpi
	$(Q)$(MAKE) --no-print-directory report build check-run

check-run: $(TESTS) build
	$(Q)BUILD="$(BUILD)" bash tests/run

check-sanitize: need-check need-mpi
	$(Q)TEST_SECONDS=900 $(MAKE) --no-print-directory BUILD=$(BUILD)/sanitize SANITIZE=1 \
	    CFLAGS="-O1 -g" build check-run

check-peers: all
	$(Q)BUILD="$(BUILD)" bash tests/bench/peers/check

bench: all need-mpi
	$(Q)$(MAKE) --no-print-directory build $(BUILD)/bench/engine $(BUILD)/bench/privacy
	$(Q)BUILD="$(BUILD)" bash tests/bench/run

bench-peers: all
	$(Q)$(MAKE) --no-print-directory build $(BUILD)/bench/engine $(BUILD)/bench/privacy
	$(Q)BUILD="$(BUILD)" bash tests/bench/peers/bench

fuzz: need-fuzz
	$(Q)$(MAKE) --no-print-directory build
	$(Q)BUILD="$(BUILD)" FUZZ_SECONDS="$(FUZZ_SECONDS)" LIBS="$(LIBS)" bash tests/fuzz/run

lint:
	$(Q)BUILD="$(BUILD)" bash tests/run lint

format:
	clang-format -i $$(git ls-files '*.c' '*.h')
	for file in $$(git ls-files '*.inc'); do \
	    clang-format --assume-filename=x.c < $$file > $$file.new && mv $$file.new $$file; \
	done

# ------------------------------------------------------------- man pages, installation

man: all
	@mkdir -p $(BUILD)/man
	$(Q)for stage in $(notdir $(STAGES)); do \
	    $(BUILD)/libexec/dpflow/$$stage --dump-man > $(BUILD)/man/dpflow-$$stage.1 || exit 1; \
	done
	$(Q)$(BUILD)/bin/dpflow --dump-man > $(BUILD)/man/dpflow.1
	@echo "man pages are in $(BUILD)/man"

install: man
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/dpflow \
	    $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/dpflow/pipelines \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install $(BUILD)/bin/dpflow $(DESTDIR)$(PREFIX)/bin/
	install $(STAGES) $(wildcard $(BUILD)/libexec/dpflow/*.so) \
	    $(DESTDIR)$(PREFIX)/libexec/dpflow/
	install -m 644 $(BUILD)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 pipelines/*.pipe $(DESTDIR)$(PREFIX)/share/dpflow/pipelines/
	$(BUILD)/bin/dpflow completion bash \
	    > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/dpflow

clean:
	rm -rf $(BUILD)
