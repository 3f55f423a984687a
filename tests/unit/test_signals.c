/* Signals and what is being computed: threads of ours take none, handlers run on a stack
 * of their own, and a training in a storm of signals gives the bits of one in peace. */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "base/signals.h"
#include "nn/initialise.h"
#include "nn/training.h"
#include "random/seeded.h"
#include "stream_fixture.h"

#include "base/banned.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- what a thread takes ---- */

/* What programs, profilers and MPI have handlers for. */
static const int handled[] = {SIGHUP,  SIGINT,  SIGTERM,  SIGUSR1, SIGUSR2,  SIGALRM,
                              SIGPROF, SIGCHLD, SIGWINCH, SIGCONT, SIGPIPE,  SIGIO,
                              SIGABRT, SIGQUIT, SIGTSTP,  SIGXCPU, SIGVTALRM};
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

static bool takes_none(void)
{
    sigset_t mask;
    bool good = pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0;
    for (size_t i = 0; i < COUNT(handled); i++)
        good = good && sigismember(&mask, handled[i]) == 1;
    for (int n = SIGRTMIN; n <= SIGRTMAX; n++)
        good = good && sigismember(&mask, n) == 1;
    for (size_t i = 0; i < COUNT(faults); i++)
        good = good && sigismember(&mask, faults[i]) == 0;
    return good;
}

enum { THREADS = 3 };

static void look(void *context, int number)
{
    ((bool *)context)[number] = takes_none();
}

static bool mask_is_empty(void)
{
    sigset_t mask;
    return pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && sigisemptyset(&mask);
}

static void test_pool(void)
{
    struct dpf_thread_pool pool;
    bool none[THREADS];
    CU_ASSERT_FATAL(dpf_thread_pool_init(&pool, THREADS, NULL) == DPF_OK);
    CU_ASSERT(mask_is_empty());
    dpf_thread_pool_run(&pool, look, none);
    dpf_thread_pool_release(&pool);
    CU_ASSERT(!none[0]);
    for (int i = 1; i < THREADS; i++)
        CU_ASSERT(none[i]);
}

/* ---- a training of thin products, which oneDNN computes with its stack in the heap ----
 */

static const char wide[] = "input x 16\na = dense x out=512\nb = relu a\n"
                           "c = dense b out=512\nd = relu c\ny = dense d out=5\n"
                           "output y\n";
enum { ROWS = 256, FEATURES = 16, CLASSES = 5, MICROBATCH = 32 };

struct rig {
    struct dpf_model model;
    struct dpf_header header;
    struct dpf_dataset data;
    struct dpf_engine engine;
    struct dpf_optimiser optimiser;
    struct dpf_training training;
    float *parameters;
};

static void make_data(struct rig *g)
{
    struct dpf_shape x = {.rank = 1, .dim = {FEATURES}}, y = {.rank = 1, .dim = {1}};
    struct dpf_dataset_need need = {&g->model, "x", "y", dpf_loss_find("cross-entropy")};
    struct dpf_batch b;
    struct dpf_seeded r;
    CU_ASSERT_FATAL(dpf_header_add_field(&g->header, "x", DPF_F32, &x) != NULL);
    CU_ASSERT_FATAL(dpf_header_add_field(&g->header, "y", DPF_I32, &y) != NULL);
    CU_ASSERT_FATAL(dpf_batch_init(&b, &g->header, ROWS, NULL) == DPF_OK);
    dpf_seeded_init(&r, "test signals", 1, 0);
    for (int i = 0; i < ROWS * FEATURES; i++)
        ((float *)b.tensor[0].data)[i] = (float)dpf_seeded_normal(&r);
    for (int i = 0; i < ROWS; i++)
        ((int32_t *)b.tensor[1].data)[i] = (int32_t)dpf_seeded_below(&r, CLASSES);
    CU_ASSERT_FATAL(dpf_dataset_init(&g->data, &g->header, &need, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_dataset_add(&g->data, &g->header, &b, &need, NULL) == DPF_OK);
    dpf_batch_release(&b);
}

static void begin(struct rig *g, enum dpf_clip_rule rule)
{
    struct dpf_engine_setup setup = {.model = &g->model,
                                     .kernels = dpf_kernels_cpu(),
                                     .threads = THREADS,
                                     .microbatch = MICROBATCH,
                                     .training = true,
                                     .clipping = rule != DPF_CLIP_NONE};
    struct dpf_training_plan plan = {.epochs = 1000000,
                                     .lot = ROWS,
                                     .sampling = DPF_SAMPLE_SEQUENCE,
                                     .loss = dpf_loss_find("cross-entropy"),
                                     .rule = rule,
                                     .clip_l2 = 1,
                                     .seed = 3};
    *g = (struct rig){0};
    CU_ASSERT_FATAL(dpf_model_parse(&g->model, wide, sizeof wide - 1, "net", NULL) ==
                    DPF_OK);
    make_data(g);
    CU_ASSERT_FATAL(dpf_engine_init(&g->engine, &setup, NULL) == DPF_OK);
    g->parameters = dpf_calloc(g->model.span, sizeof *g->parameters);
    CU_ASSERT_FATAL(g->parameters != NULL);
    CU_ASSERT(dpf_initialise(&g->model, "he-normal", 4, g->parameters));
    dpf_engine_put(&g->engine, g->parameters);
    g->optimiser = dpf_optimiser_defaults(dpf_step_kind_find("adam"), 0.001);
    CU_ASSERT_FATAL(dpf_optimiser_init(&g->optimiser, &dpf_kernels_ref, NULL,
                                       g->model.span, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_training_init(&g->training, &plan, &g->engine, &g->optimiser,
                                      &g->data, NULL) == DPF_OK);
}

static void end(struct rig *g)
{
    dpf_training_release(&g->training);
    dpf_engine_release(&g->engine);
    dpf_optimiser_release(&g->optimiser);
    dpf_dataset_release(&g->data);
    dpf_header_release(&g->header);
    dpf_model_release(&g->model);
    free(g->parameters);
}

static void look_in_engine(struct dpf_worker *w, void *context)
{
    look(context, w->number);
}

static void test_engine(void)
{
    struct rig g;
    bool none[THREADS];
    begin(&g, DPF_CLIP_NONE);
    CU_ASSERT(mask_is_empty());
    CU_ASSERT(dpf_engine_run(&g.engine, look_in_engine, none, NULL) == DPF_OK);
    CU_ASSERT(!none[0]);
    for (int i = 1; i < THREADS; i++)
        CU_ASSERT(none[i]);
    end(&g);
}

/* ---- handlers ---- */

static volatile sig_atomic_t taken, elsewhere;

static void on_signal(int number)
{
    (void)number;
    stack_t s;
    char here;
    bool on_alternate = sigaltstack(NULL, &s) == 0 && s.ss_flags & SS_ONSTACK &&
                        (uintptr_t)&here >= (uintptr_t)s.ss_sp &&
                        (uintptr_t)&here < (uintptr_t)s.ss_sp + s.ss_size;
    if (getpid() != gettid()) /* a library's own thread, on its own stack */
        return;
    taken++;
    elsewhere += !on_alternate;
}

/* Handlers such as libraries install, without a word about stacks. */
static void install_as_libraries_do(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&a.sa_mask);
    CU_ASSERT(sigaction(SIGUSR1, &a, NULL) == 0);
    CU_ASSERT(sigaction(SIGPROF, &a, NULL) == 0);
    CU_ASSERT(sigaction(SIGCHLD, &a, NULL) == 0);
}

/* What went wrong, as a number; 0 for nothing. */
static int own_stack(void *context)
{
    (void)context;
    struct sigaction a;
    stack_t s;
    dpf_signals_install();
    if (sigaltstack(NULL, &s) != 0 || s.ss_flags & SS_DISABLE || s.ss_size < 65536)
        return 1;
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < COUNT(stops); i++)
        if (sigaction(stops[i], NULL, &a) != 0 || !(a.sa_flags & SA_ONSTACK))
            return 2;
    install_as_libraries_do();
    if (dpf_signals_leave_stack(NULL) != DPF_OK)
        return 3;
    raise(SIGUSR1);
    raise(SIGPROF);
    raise(SIGCHLD);
    if (taken != 3 || elsewhere != 0)
        return 4;
    if (sigaction(SIGUSR1, NULL, &a) != 0 || !(a.sa_flags & SA_RESTART))
        return 5;
    if (sigaction(SIGUSR2, NULL, &a) != 0 || a.sa_handler != SIG_DFL)
        return 6;
    /* the first signal is the one that is told */
    raise(SIGINT);
    raise(SIGTERM);
    return dpf_stop_requested() && dpf_stop_signal() == SIGINT ? 0 : 7;
}

static void test_own_stack(void)
{
    CU_ASSERT(in_child(own_stack, NULL, 10000) == 0);
}

/* ---- the storm ---- */

enum { STEPS = 60, MOST_TASKS = 64 };

struct storm {
    enum dpf_clip_rule rule;
    bool blows;
    char digest[DPF_FINGERPRINT_HEX + 1];
    int taken, elsewhere;
};

/* To the process, and to each of its threads by number. */
static void blow(pid_t target)
{
    char path[64];
    pid_t tasks[MOST_TASKS];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)target);
    DIR *d = opendir(path);
    for (struct dirent *t; d && count < MOST_TASKS && (t = readdir(d));)
        if (t->d_name[0] != '.')
            tasks[count++] = (pid_t)strtol(t->d_name, NULL, 10);
    for (size_t i = 0; kill(target, SIGUSR1) == 0; i++) {
        kill(target, SIGPROF);
        if (count)
            syscall(SYS_tgkill, target, tasks[i % count], SIGUSR1);
        usleep(20);
    }
}

static int train_in_storm(void *context)
{
    struct storm *s = context;
    struct rig g;
    const struct dpf_epoch_report *report;
    dpf_signals_install();
    install_as_libraries_do();
    begin(&g, s->rule);
    pid_t self = getpid(), wind = s->blows ? fork() : -1;
    if (wind == 0) {
        blow(self);
        _exit(0);
    }
    for (int i = 0; i < STEPS; i++)
        if (dpf_training_step(&g.training, &report, NULL) != DPF_OK)
            return 1;
    if (wind > 0)
        kill(wind, SIGKILL);
    dpf_engine_get(&g.engine, g.parameters);
    struct dpf_fingerprint f;
    dpf_fingerprint_init(&f);
    dpf_fingerprint_add(&f, g.parameters, g.model.span * sizeof *g.parameters);
    dpf_fingerprint_hex(&f, s->digest);
    s->taken = taken;
    s->elsewhere = elsewhere;
    end(&g);
    return 0;
}

static void test_storm(void)
{
    static const enum dpf_clip_rule rules[] = {DPF_CLIP_NONE, DPF_CLIP_FLAT};
    struct storm *s = mmap(NULL, 2 * sizeof *s, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(s != MAP_FAILED);
    for (size_t i = 0; i < COUNT(rules); i++) {
        s[0] = (struct storm){.rule = rules[i]};
        s[1] = (struct storm){.rule = rules[i], .blows = true};
        CU_ASSERT(in_child(train_in_storm, &s[0], 60000) == 0);
        CU_ASSERT(in_child(train_in_storm, &s[1], 60000) == 0);
        CU_ASSERT(s[1].taken >= 100);
        CU_ASSERT(s[1].elsewhere == 0);
        CU_ASSERT(s[0].digest[0] != '\0');
        CU_ASSERT(memcmp(s[0].digest, s[1].digest, sizeof s[0].digest) == 0);
    }
    munmap(s, 2 * sizeof *s);
}

const char dpf_suite[] = "signals";
const struct dpf_test dpf_tests[] = {
    {"threads of the pool take no signal but faults", test_pool},
    {"nor do threads of an engine", test_engine},
    {"handlers, a library's too, run on a stack of their own", test_own_stack},
    {"a training in a storm of signals gives the same bits", test_storm},
    {0},
};
