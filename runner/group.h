/* A group of calls: the calls of a case that share contexts. */
#ifndef RUNNER_GROUP_H_
#define RUNNER_GROUP_H_

#include "vendor.h"

/* Where the runner is in the bundle. A process that replaces a crashed one continues after this place. */
struct progress {
    uint64_t case_position, group;
    uint64_t calls;      /* number of calls that began */
    uint64_t is_pending; /* whether a call of the group has begun and the group is not complete */
    uint64_t committed; /* bytes of complete records in the file of results */
    uint64_t has_described_vendor, is_done;
    uint64_t write_failed; /* whether the results could not be written */
};

/* Make the calls of the group at `group`, and write their results. `contents` is the beginning of the contents of
 * storages. Return false after a complaint if the group is damaged. */
bool group_run(struct cursor* group, const unsigned char* contents, const struct vendor* vendor, struct output* output,
               struct progress* progress);
/* Skip a group; return false if it is damaged. */
bool group_skip(struct cursor* group);
/* Return the time since an arbitrary point in the past. */
double seconds(void);

#endif /* RUNNER_GROUP_H_ */
