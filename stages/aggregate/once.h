/* A release that happens once: `--once FILE`.
 *
 * A program that is killed and started again would draw its noise again, and whoever saw
 * both releases could average them. So the whole release is drawn into a new file beside
 * FILE, of this run alone, is synced, and gets the name FILE in one step, which fails if
 * there is a FILE already. Only then is it passed on, from FILE, and only when all of it
 * has left does the program speak of what was drawn.
 *
 * Claim. Of all runs of `aggregate` with one FILE, on one machine, at most one passes
 * anything on, and FILE holds it whole; however many of them are killed, and when. Runs
 * that end before that have shown nothing: no record, no line, and no count of records.
 *
 * Proof. Nothing is written to an output before linkat(2) has made FILE: it makes a name
 * only if there is none. A later run finds FILE when it starts and ends; one that started
 * before fails at its own link, and its draft is gone with it. The draft is a new inode
 * with mode 0600 and without a name (or, where the file system has no such files, with
 * one drawn at random, opened with O_EXCL): no other run writes to it, before or after it
 * is FILE. A run that was killed may leave a draft of the second kind. FILE's content was
 * synced before the link, and its folder before anything is passed on, so a crash of the
 * machine does not lose the name of what others have seen.
 *
 * It takes for granted that the file system knows hard links, and that FILE
 * stays where it is, and is the same in every run: who removes it, or gives another name,
 * makes another release, which costs again. */
#ifndef DPF_STAGE_ONCE_H
#define DPF_STAGE_ONCE_H

#include "base/file.h"
#include "stage/stage.h"

/* Zero-initialise. */
struct dpf_once {
    const char *path; /* NULL: straight to the outputs */
    int fd;           /* of the draft, if `open` */
    bool open;
    char *draft;                      /* its name, if it has one */
    bool drawing;                     /* the stage's writer is that of the draft */
    struct dpf_stream_writer outputs; /* meanwhile: those of the stage */
};

/* DPF_PRIVACY, naming FILE, if the release was made before; DPF_USAGE if it is no file,
 * or an output, too. */
enum dpf_status dpf_once_check(const struct dpf_once *o, const struct dpf_parsed *given,
                               struct dpf_error *e);
/* Instead of dpf_stage_begin(): what is written from here on goes to the draft. */
enum dpf_status dpf_once_begin(struct dpf_once *o, struct dpf_stage *s,
                               struct dpf_error *e);
/* The release is whole: give it its name, then pass it on. */
enum dpf_status dpf_once_commit(struct dpf_once *o, struct dpf_stage *s,
                                struct dpf_error *e);
void dpf_once_release(struct dpf_once *o, struct dpf_stage *s);

#endif
