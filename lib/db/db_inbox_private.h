/* SPDX-License-Identifier: Apache-2.0
 *
 * A claim of the inbox as one call among others of a flush.
 */
#ifndef DB_DB_INBOX_PRIVATE_H
#define DB_DB_INBOX_PRIVATE_H

#include "db/db_inbox.h"
#include "db_private.h"

/* The call; params, an empty list, has to live as long. */
struct db_call db_inbox_claim_call(const struct db_inbox_claim *claim, struct db_params *params);
/* Fills the claim's ret_is_fresh from the answer. */
void db_inbox_claim_read(const struct db_inbox_claim *claim, const PGresult *result);

#endif
