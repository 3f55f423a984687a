/* What is different for answers of teachers: they are private, so that who may send them,
 * and who may read what is kept, is checked here; and nobody speaks for another. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "account/ledger.h"
#include "base/file.h"
#include "base/memory.h"
#include "collect.h"
#include "exchange/answer_stream.h"
#include "ledger/source.h"

#include "base/banned.h"

enum dpf_status dpf_curator_check_header(const struct dpf_curator *c,
                                         const struct dpf_header *h, struct dpf_error *e)
{
    struct dpf_answers answers;
    if (!c->answers)
        return dpf_account_check_release(h, NULL, e);
    enum dpf_status status = dpf_answers_read_alone(&answers, h, e);
    if (status == DPF_OK)
        dpf_answers_release(&answers);
    return status;
}

/* Teachers of one release answer the same queries: `aggregate` would refuse others. */
enum dpf_status dpf_curator_check_asked(const struct dpf_curator *c,
                                        const struct dpf_header *h, struct dpf_error *e)
{
    struct dpf_answers kept, sent;
    enum dpf_status status = dpf_answers_read_alone(&kept, &c->like, e);
    if (status != DPF_OK)
        return status;
    status = dpf_answers_read_alone(&sent, h, e);
    if (status == DPF_OK) {
        if (!dpf_ledger_same(&kept.asked, &sent.asked))
            status = dpf_fail(e, DPF_BAD_STREAM,
                              "these are answers to other queries than those of the "
                              "owners before: all have to be asked the same stream");
        dpf_answers_release(&sent);
    }
    dpf_answers_release(&kept);
    return status;
}

/* `aggregate` would refuse a teacher that comes twice, when it is too late to ask. */
enum dpf_status dpf_curator_check_teachers(const struct dpf_curator *c, size_t owner,
                                           const struct dpf_header *h,
                                           struct dpf_error *e)
{
    enum { MOST = 4096 }; /* they are compared two by two */
    struct dpf_answers a;
    enum dpf_status status = dpf_answers_read_alone(&a, h, e);
    if (status != DPF_OK)
        return status;
    if (a.count > MOST)
        status =
            dpf_fail(e, DPF_BAD_STREAM,
                     "an owner sends answers of %zu teachers: at most %d", a.count, MOST);
    for (size_t i = 0; status == DPF_OK && i < a.count; i++) {
        if (dpf_answers_find(&a, a.teachers[i].id) < i)
            status = dpf_fail(e, DPF_BAD_STREAM, "teacher '%s' is there twice",
                              a.teachers[i].name);
        for (size_t k = 0; status == DPF_OK && k < c->teacher_count; k++)
            if (c->teachers[k].id == a.teachers[i].id && c->teachers[k].owner != owner)
                status = dpf_fail(e, DPF_BAD_STREAM,
                                  "teacher '%s' has come with the key of another owner",
                                  a.teachers[i].name);
    }
    dpf_answers_release(&a);
    return status;
}

enum dpf_status dpf_curator_keep_teachers(struct dpf_curator *c, size_t owner,
                                          const struct dpf_header *h, struct dpf_error *e)
{
    struct dpf_answers a;
    enum dpf_status status = dpf_answers_read_alone(&a, h, e);
    if (status != DPF_OK)
        return status;
    if (dpf_grow(&c->teachers, &c->teacher_capacity, c->teacher_count + a.count,
                 sizeof *c->teachers))
        for (size_t i = 0; i < a.count; i++)
            c->teachers[c->teacher_count++] =
                (struct dpf_curator_teacher){a.teachers[i].id, owner};
    else
        status = dpf_fail_memory(e);
    dpf_answers_release(&a);
    return status;
}

enum dpf_status dpf_curator_close_folder(const char *path, struct dpf_error *e)
{
    struct stat s;
    if (!dpf_is_dir(path)) {
        mode_t before = umask(0077); /* folders above it, too */
        enum dpf_status status = dpf_make_dirs(path, e);
        umask(before);
        if (status != DPF_OK)
            return status;
    }
    if (stat(path, &s) != 0)
        return dpf_fail_errno(e, "cannot read '%s'", path);
    if (s.st_uid != geteuid() || (s.st_mode & 0077) != 0)
        return dpf_fail(e, DPF_PRIVACY,
                        "others may enter '%s': answers without noise are kept in a "
                        "folder of their receiver alone (chmod 700)",
                        path);
    return DPF_OK;
}
