/* SPDX-License-Identifier: Apache-2.0
 *
 * The submit transaction: callers that retry, two producers that run the same request at once, a document that arrives
 * meanwhile, lost answers and commits whose outcome nobody knows. What becomes of a committed outbox row is the next
 * model's, reading.pml.
 *
 * Calls 0 and 1 submit request 0, which has a row to lock and documents; calls 2 and 3 submit request 1, which is
 * created in the same transaction, so that only the constraint stands between them. -DREQUESTS=1 and =2 leave one of
 * the requests out (the other one), =3 has both.
 */
#ifndef FAULTS
#define FAULTS 3
#endif
#ifndef REQUESTS
#define REQUESTS 3
#endif
#define CALLS 4
#define HAS_REQUEST(r) ((REQUESTS >> (r)) & 1)
#define NOBODY 255

/* Properties: each is true until something breaks it. */
bit nothing_is_lost = 1;
bit request_is_queued_once = 1;
bit answers_agree = 1;
bit one_call_is_told_queued = 1;
bit event_has_every_document = 1;

byte faults_left = FAULTS;

/* A probe shows that a fault is reached: with PROBE, each is an error. */
#ifdef PROBE
#define REACHED(what) assert(what < 0)
#else
#define REACHED(what) skip
#endif
#define CRASH 1
#define UNKNOWN_AND_COMMITTED 2
#define UNKNOWN_AND_UNDONE 3
#define LOST_ANSWER 4
#define DUPLICATE 5
#define WAITED 6

/* ---- The database, by request ---- */

byte submission[2];                  /* The event id that the constraint holds; 0: none. */
byte claim[2] = {NOBODY, NOBODY};    /* Who has inserted it and not committed. */
byte row_lock = NOBODY;              /* Of request 0. */
byte outbox_rows[2];
byte outbox_event[2];
bit document;                        /* Committed in request 0. */
bit document_in_event;

/* ---- What callers were told ---- */

byte told_event[2];
byte told_queued[2];
byte answers_lost[2]; /* After a commit that queued. */
bit document_accepted;
byte calls_left = 2 * (HAS_REQUEST(0) + HAS_REQUEST(1));

#define LOCKS_ROW (r == 0)

inline end_transaction()
{
    claim[r] = (claim[r] == c -> NOBODY : claim[r]);
    row_lock = (row_lock == c -> NOBODY : row_lock);
    queues = 0
}

inline tell(e, queued)
{
    answers_agree = answers_agree && (told_event[r] == 0 || told_event[r] == (e));
    told_event[r] = e;
    told_queued[r] = told_queued[r] + (queued);
    printf("call %d, request %d: answer, event %d, queued %d\n", c, r, e, queued)
}

/* Submission and outbox row become visible together. */
inline commit()
{
    if
    :: queues ->
        submission[r] = event;
#ifndef DUAL_WRITE
        outbox_rows[r]++; outbox_event[r] = event;
#endif
        document_in_event = (r == 0 -> has_document : document_in_event);
        printf("call %d, request %d: committed, event %d, document %d\n", c, r, event, has_document)
    :: else
    fi
}

proctype call(byte c; byte r)
{
    byte event, known, attempts;
    bit queues, has_document;
retry:
    skip;
    /* The event id is minted before BEGIN. */
    d_step { event = attempts * CALLS + c + 1; attempts++; printf("call %d, request %d: begins, event %d\n", c, r, event) };
again:
#ifdef ONE_STATEMENT
    /* One statement with a sub-select keeps the snapshot from before the wait. */
    has_document = (LOCKS_ROW && document);
#endif
    if
    :: atomic { LOCKS_ROW && row_lock == NOBODY -> row_lock = c }
    :: !LOCKS_ROW
    fi;
#ifndef ONE_STATEMENT
    has_document = (LOCKS_ROW && document);
#endif
#if defined(NO_DEDUP_KEY)
    queues = 1;
#elif defined(CHECK_THEN_ACT)
    /* Selects what is committed, then inserts; nothing decides between two. */
    d_step { known = submission[r]; queues = known == 0 };
#else
    /* INSERT … ON CONFLICT DO NOTHING: waits for a rival's open row, then sees its answer or takes over. */
    if
    :: d_step { claim[r] != NOBODY -> REACHED(WAITED) }
    :: claim[r] == NOBODY
    fi;
    d_step { claim[r] == NOBODY ->
        if
        :: submission[r] == 0 -> claim[r] = c; queues = 1
        :: else -> REACHED(DUPLICATE); queues = 0
        fi };
#endif
    if
    /* The process dies before COMMIT: no answer, nothing stays. */
    :: d_step { faults_left > 0 -> REACHED(CRASH); printf("call %d: its producer dies\n", c);
        /* If an earlier COMMIT of unknown outcome was its own, nobody will be told. */
        faults_left--; answers_lost[r] = answers_lost[r] + (submission[r] == event); end_transaction(); event = 0 } ->
        goto retry
    :: d_step { commit(); known = submission[r] }
    /* The connection dies at COMMIT. Run again with the same event id: the constraint tells whose it was. */
    :: d_step { faults_left > 0 -> REACHED(UNKNOWN_AND_COMMITTED); printf("call %d: outcome unknown\n", c);
        faults_left--; commit(); end_transaction() } ->
#ifdef NEW_EVENT_FOR_UNKNOWN
        goto retry
#else
        goto again
#endif
    :: d_step { faults_left > 0 -> REACHED(UNKNOWN_AND_UNDONE); printf("call %d: outcome unknown\n", c);
        faults_left--; end_transaction() } -> goto again
    fi;
#ifdef DUAL_WRITE
    /* The event goes to the broker by itself, after the commit. */
    if
    :: d_step { queues -> outbox_rows[r]++; outbox_event[r] = event }
    :: d_step { queues && faults_left > 0 -> REACHED(CRASH); printf("call %d: its producer dies\n", c);
        faults_left--; answers_lost[r]++; end_transaction(); event = 0 } -> goto retry
    :: !queues
    fi;
#endif
    if
    :: d_step { tell(known, known == event); end_transaction() }
    /* The answer is lost on its way: the caller calls again, perhaps another producer. */
    :: d_step { faults_left > 0 -> REACHED(LOST_ANSWER); printf("call %d: its answer is lost\n", c);
        faults_left--; answers_lost[r] = answers_lost[r] + (known == event); end_transaction(); event = 0 } -> goto retry
    fi;
    d_step { calls_left--; attempts = 0; event = 0; known = 0; has_document = 0; queues = 0 }
}

/* Adds a document to request 0: locks its row first, refuses once it is submitted. */
active proctype uploader()
{
end:
    atomic { HAS_REQUEST(0) && row_lock == NOBODY -> row_lock = CALLS };
    d_step {
        if
        :: submission[0] == 0 -> document = 1; document_accepted = 1; printf("document added\n")
        :: else -> printf("document refused\n")
        fi;
        row_lock = NOBODY }
}

active proctype monitor()
{
    calls_left == 0 && row_lock == NOBODY;
    nothing_is_lost = (!HAS_REQUEST(0) || outbox_rows[0] >= 1) && (!HAS_REQUEST(1) || outbox_rows[1] >= 1);
    assert(nothing_is_lost);
    request_is_queued_once = outbox_rows[0] == HAS_REQUEST(0) && outbox_rows[1] == HAS_REQUEST(1) &&
        outbox_event[0] == submission[0] && outbox_event[1] == submission[1];
    assert(request_is_queued_once);
    assert(answers_agree);
    one_call_is_told_queued = told_queued[0] + answers_lost[0] == HAS_REQUEST(0) &&
        told_queued[1] + answers_lost[1] == HAS_REQUEST(1);
    assert(one_call_is_told_queued);
    event_has_every_document = !document_accepted || document_in_event;
    assert(event_has_every_document)
}

init {
    atomic {
        byte i;
        select(i : 0 .. FAULTS);
        faults_left = i; i = 0;
        if
        :: HAS_REQUEST(0) -> run call(0, 0); run call(1, 0)
        :: else
        fi;
        if
        :: HAS_REQUEST(1) -> run call(2, 1); run call(3, 1)
        :: else
        fi
    }
}
