/* SPDX-License-Identifier: Apache-2.0
 *
 * The value of the event that a submission becomes.
 */
#ifndef WIRE_WIRE_EVENT_H
#define WIRE_WIRE_EVENT_H

#include "base/buf.h"
#include "domain/submission.h"

/* Appends {"request_id","tenant","type","submitted_at","data","documents":[{"id","name","media_type","size","sha256",
 * "uri"}]}. data is the caller's bytes as they are, null when absent; it must have been checked. */
void wire_event_append(const struct submission *submission, struct buf *out);

#endif
