/* keygen: make a CURVE key pair for encrypted streams. */
#include "stage/stage.h"
#include "transport/curve.h"

#include "base/banned.h"

static enum dpf_status on_run(struct dpf_stage *s, struct dpf_error *e)
{
    enum dpf_status status = dpf_curve_generate(s->arguments[0], e);
    if (status == DPF_OK)
        fprintf(s->text, "wrote %s.key (keep it secret) and %s.pub (hand it out)\n",
                s->arguments[0], s->arguments[0]);
    return status;
}

static const struct dpf_stage_info info = {
    .name = "keygen",
    .summary = "make a CURVE key pair for encrypted streams",
    .reads = "nothing",
    .writes = "NAME.key, readable by its owner only, and NAME.pub",
    .privacy = "none spent",
    .example = "dpflow keygen owner",
    .detail = "A reader that listens on tcp://0.0.0.0:5555 with --key reader.key and "
              "--peer-key\n"
              "owner.pub accepts only that owner, who connects with --key owner.key "
              "--peer-key\n"
              "reader.pub.",
    .arguments = "NAME",
    .min_arguments = 1,
    .max_arguments = 1,
    .kind = DPF_PROGRAM,
    .on_run = on_run,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
