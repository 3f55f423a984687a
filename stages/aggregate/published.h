/* `--publish-cost`: the cost that the votes themselves give, released with noise. */
#ifndef DPF_STAGE_PUBLISHED_H
#define DPF_STAGE_PUBLISHED_H

#include "aggregate.h"
#include "ledger/event.h"
#include "privacy/vote_smooth.h"

/* Zero-initialise. */
struct dpf_published {
    const struct dpf_aggregate *v;
    struct dpf_vote_smooth smooth;
    struct dpf_spending spent; /* for the release itself */
    double epsilon;            /* of these votes, released */
};

/* Its options go together. */
enum dpf_status dpf_published_check(struct dpf_stage *s, struct dpf_error *e);
/* The plan, all of it public. */
enum dpf_status dpf_published_plan(struct dpf_published *p, const struct dpf_aggregate *v,
                                   const struct dpf_vote_plan *vote, struct dpf_error *e);
void dpf_published_tell_plan(const struct dpf_published *p);
void dpf_published_release(struct dpf_published *p);
/* Read all votes and draw the figure. It must not be shown before the ledger left, which
 * says what it cost. */
enum dpf_status dpf_published_draw(struct dpf_published *p, struct dpf_aggregate *v,
                                   struct dpf_random *random, struct dpf_error *e);
/* A line about it. */
void dpf_published_tell(const struct dpf_published *p, struct dpf_text *said);
/* Make the event of the answers claim it; and the event of its own release, whose share
 * of delta this is. */
void dpf_published_claim(const struct dpf_published *p, struct dpf_mechanism_event *m);
void dpf_published_add_event(const struct dpf_published *p, struct dpf_stage *s,
                             double share);

#endif
