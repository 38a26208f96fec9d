/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person adds to the row of onceward.audit that a change leaves; the
 * database adds the role and the time.
 */
#ifndef DB_DB_AUDIT_H
#define DB_DB_AUDIT_H

/* Who changes something, and why. Borrowed for the call; either may be NULL. */
struct db_audit {
    const char *by;
    const char *reason;
};

#endif
