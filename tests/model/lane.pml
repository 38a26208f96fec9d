/* SPDX-License-Identifier: Apache-2.0
 *
 * A lane between two relays: the lease that elects, the log that fences, publishing with one unacknowledged event per
 * key, the broker's lost acknowledgements and refusals, deferred keys and their draining, deletion of old log rows,
 * and a database that is set back to an earlier time. What is read, and that it comes in order of id, is reading.pml.
 *
 * Any FAULTS faults of any kind in any order. A relay may be slow anywhere, so it may act long after its lease ended:
 * its local deadline is left out, and with it the only thing that makes such a zombie rare.
 */
#ifndef FAULTS
#define FAULTS 2
#endif
#define EVENTS 3 /* Ids 1 and 3 have key A, 2 has key B. */
#define NOBODY 255

#define BIT(n) (1 << (n))
#define HAS(mask, n) (((mask) >> (n)) & 1)
#define KEY_A (BIT(1) | BIT(3))
#define KEY_B BIT(2)
#define ALL (KEY_A | KEY_B)
#define SAME_KEY(id) ((id) == 2 -> KEY_B : KEY_A)
#define BELOW(id) (BIT(id) - 1)
#define UP_TO(id) (BIT((id) + 1) - 1)

/* Properties: each is true until something breaks it. */
bit nothing_is_lost = 1;
bit order_per_key_holds = 1;
bit stale_settle_is_refused = 1;
bit everything_settles = 1;

byte faults_left = FAULTS;

/* A probe shows that a fault is reached: with PROBE, each is an error. */
#ifdef PROBE
#define REACHED(what) assert(what < 0)
#else
#define REACHED(what) skip
#endif
#define CRASH 1
#define FREEZE 2
#define LOST_ACK 3
#define REFUSAL 4
#define LOST_ANSWER 5
#define CLOCK_STEPS_BACK 6
#define OLD_ROWS_GO 7
#define FENCED 8
#define ADOPTED 9
#define DRAINED 10
#define RESTORED 11
#define GHOST_LANDS 12
#define ZOMBIE_SENDS 13
#define HAND_OVER 14

/* ---- The database ---- */

byte accepted = 0; /* The outbox: ids 1 to accepted. */

/* The log: its last row, and which rows are there. A token tells apart rows of one seq on two timelines. */
byte last_seq, last_incarnation = NOBODY, last_position;
bit last_token;
byte last_ahead; /* Acknowledged ahead of the last row's position, as its rows say. */
short rows = 1;
byte deferred; /* Ids. */

byte lane_owner = NOBODY, lane_owner_incarnation;
mtype = { LIVE, EXPIRED, FAR_AHEAD };
mtype lease = EXPIRED;

bit timeline; /* 1 after the restore. */

/* ---- The topic, and what is on its way there ---- */

byte published;  /* Ids, as the outbox has them now. */
byte wire[2];    /* Handed over by a relay, without a report. */
byte stale[2];   /* Of those, the ones that the restore undid. */
byte ghost;      /* Handed over by a process that has died. */

/* ---- The relays ---- */

bit alive[2] = {1, 1};
bit holds[2];
bit reviews[2];      /* Must look at the log's end before anything else. */
bit in_statement[2]; /* The log insert has read the last row and not yet inserted. */
bit guard_passed[2];
byte restarts[2];
byte seq[2], position[2];
bit token[2];
bit mem_timeline[2];
byte acked[2], refused[2], kept_back[2]; /* Of the stream: above position. */
byte drained[2];                         /* Of deferred: acknowledged. */
byte known[2];                           /* Of deferred: what holds its key in memory. */
byte i, n;

#define IS_SAME_SERVER(r) (mem_timeline[r] == timeline)
#define INCARNATION(r) ((r) + 2 * restarts[r])
#define HANDLED(r) (acked[r] | refused[r] | kept_back[r])
#define IS_SETTLED (accepted == EVENTS && last_position == EVENTS && deferred == 0)

/* Rows below every holder's last decide nothing: forgotten, so that fewer states differ. Inside d_step. */
inline tidy()
{
    n = last_seq;
    n = (holds[0] && seq[0] < n -> seq[0] : n);
    n = (holds[1] && seq[1] < n -> seq[1] : n);
    rows = rows & ~(BIT(n) - 1);
    n = 0
}

inline forget(r)
{
    acked[r] = 0; refused[r] = 0; kept_back[r] = 0; drained[r] = 0; known[r] = 0
}

inline let_go(r)
{
    forget(r);
    holds[r] = 0; reviews[r] = 0; in_statement[r] = 0; guard_passed[r] = 0; seq[r] = 0; position[r] = 0; token[r] = 0;
    mem_timeline[r] = 0; ghost = ghost | (wire[r] & ~stale[r]); wire[r] = 0; stale[r] = 0
}

/* Takes the place and the deferred keys from the database. */
inline load(r)
{
    forget(r);
    seq[r] = last_seq; token[r] = last_token; position[r] = last_position; known[r] = deferred;
    acked[r] = last_ahead;
#ifndef CARRIED_BY_ID
    /* What another server's events left in flight has no part in this one's ids. */
    wire[r] = wire[r] & ~stale[r]; stale[r] = 0;
#endif
    mem_timeline[r] = timeline
}

/* ---- Taking ---- */

#define IS_OVER (lease == EXPIRED)
#ifdef JUMPING_CLOCK
#define FURTHER_AHEAD_THAN_A_LEASE FAR_AHEAD
#else
/* It counts as passed. */
#define FURTHER_AHEAD_THAN_A_LEASE EXPIRED
#endif
#define IS_FREE(r) (lane_owner == NOBODY || IS_OVER || (lane_owner == r && lane_owner_incarnation != INCARNATION(r)))

/* Owner and `taken` row in one transaction. */
inline take_lane(r)
{
    lane_owner = r; lane_owner_incarnation = INCARNATION(r); lease = LIVE;
    last_seq++;
    printf("relay %d takes the lane: row %d, position %d, deferred %x\n", r, last_seq, last_position, deferred); last_incarnation = INCARNATION(r); last_token = timeline;
    rows = rows | BIT(last_seq);
    holds[r] = 1
}

/* ---- The stream ---- */

#ifdef TWO_IN_FLIGHT
#define MAY_FLY(r, id) true
#define BEFORE_IT(r) (HANDLED(r) | wire[r])
#else
#define MAY_FLY(r, id) ((wire[r] & SAME_KEY(id)) == 0)
#define BEFORE_IT(r) HANDLED(r)
#endif
#define IS_NEXT(r, id) \
    ((id) > position[r] && (id) <= accepted && !HAS(HANDLED(r) | wire[r], id) && MAY_FLY(r, id) && \
     (SAME_KEY(id) & BELOW(id) & ~UP_TO(position[r]) & ~BEFORE_IT(r)) == 0)
#ifdef REFUSED_HOLDS_NOTHING
#define IS_HELD(r, id) false
#else
#define IS_HELD(r, id) (((known[r] | refused[r] | kept_back[r]) & SAME_KEY(id)) != 0)
#endif

inline handle(r, id)
{
    if
    :: IS_HELD(r, id) ->
        printf("relay %d keeps event %d back: its key is held\n", r, id);
        kept_back[r] = kept_back[r] | BIT(id)
    :: else ->
        if
        :: lane_owner != r -> REACHED(ZOMBIE_SENDS)
        :: else
        fi;
        printf("relay %d sends event %d\n", r, id);
        wire[r] = wire[r] | BIT(id)
    fi
}

/* The head of a key in deferred, as if an operator wished it at once. Read from the table, in order of id. */
#define TO_DRAIN(r) (deferred & known[r] & ~drained[r])
#define IS_HEAD(r, id) \
    (HAS(TO_DRAIN(r), id) && (wire[r] & SAME_KEY(id)) == 0 && (TO_DRAIN(r) & SAME_KEY(id) & BELOW(id)) == 0)

/* ---- Settling ---- */

#ifdef SETTLE_BEFORE_ACK
#define IS_DONE(r, id) HAS(HANDLED(r) | wire[r], id)
#else
#define IS_DONE(r, id) HAS(HANDLED(r), id)
#endif
#define HAS_SOMETHING_TO_SETTLE(r) (IS_DONE(r, position[r] + 1) || drained[r] != 0 || IS_NEWS_AHEAD(r))

/* What the statement's snapshot says of the last row. */
#if defined(NO_FENCE) || defined(NO_LAST_ROW_GUARD)
#define PASSES_GUARD(r) true
#elif defined(NO_ATTEMPT_TOKEN)
#define PASSES_GUARD(r) (last_seq == seq[r])
#else
#define PASSES_GUARD(r) (last_seq == seq[r] && last_token == token[r] && IS_EXPECTED_SERVER(r))
#endif
/* The design's guard knows seq and token; that is not enough, see the README. */
#ifdef NO_SERVER_IN_GUARD
#define IS_EXPECTED_SERVER(r) true
#else
#define IS_EXPECTED_SERVER(r) IS_SAME_SERVER(r)
#endif
#ifdef NO_FENCE
#define NEXT_SEQ(r) (last_seq + 1)
#define NEXT_SEQ_SAID(r) last_seq
#else
#define NEXT_SEQ(r) (seq[r] + 1)
#define NEXT_SEQ_SAID(r) NEXT_SEQ(r)
#endif

/* Frees a key when all that is known of it has been drained. */
#ifdef FREE_BY_ID
#define FREED(r) drained[r]
#else
#define FREED(r) (drained[r] | \
    ((known[r] & KEY_A) != 0 && (known[r] & KEY_A & ~drained[r]) == 0 -> KEY_A : 0) | \
    ((known[r] & KEY_B) != 0 && (known[r] & KEY_B & ~drained[r]) == 0 -> KEY_B : 0))
#endif

/* What a row says of the events ahead of its position. */
#ifdef AHEAD_BEFORE_ACK
#define AHEAD(r) (acked[r] | wire[r])
#else
#define AHEAD(r) acked[r]
#endif
#define IS_NEWS_AHEAD(r) ((AHEAD(r) & ~UP_TO(position[r]) & ~last_ahead) != 0)

/* The row, and in its transaction what is deferred and what is freed. */
inline insert_row(r)
{
    n = position[r];
    do
    :: n < EVENTS && IS_DONE(r, n + 1) -> n++
    :: else -> break
    od;
    stale_settle_is_refused = last_incarnation == INCARNATION(r) && last_token == token[r];
    rows = rows | BIT(NEXT_SEQ(r));
    if
    :: NEXT_SEQ(r) > last_seq ->
        last_seq = NEXT_SEQ(r); last_incarnation = INCARNATION(r); last_token = timeline; last_position = n;
        last_ahead = AHEAD(r) & ~UP_TO(n)
    :: else
    fi;
    deferred = (deferred & ~FREED(r)) | ((refused[r] | kept_back[r]) & UP_TO(n));
    printf("relay %d inserts row %d: position %d, ahead %x, deferred is now %x\n", r, NEXT_SEQ_SAID(r), n, last_ahead, deferred)
}

/* What the relay knows once it has the answer. */
inline follow(r)
{
    seq[r] = NEXT_SEQ(r); token[r] = timeline;
    known[r] = (known[r] & ~FREED(r)) | ((refused[r] | kept_back[r]) & UP_TO(n));
    drained[r] = 0; position[r] = n;
    acked[r] = acked[r] & ~UP_TO(n); refused[r] = refused[r] & ~UP_TO(n); kept_back[r] = kept_back[r] & ~UP_TO(n)
}

#ifdef NO_FENCE
#define seq_follows(r) seq[r] = last_seq - 1
#else
#define seq_follows(r) skip
#endif

/* What the end of the log means for its holder. */
inline review(r)
{
    if
    :: last_incarnation != INCARNATION(r) ->
        REACHED(FENCED); printf("relay %d is fenced\n", r); let_go(r)
    :: last_incarnation == INCARNATION(r) && last_seq == seq[r] && last_token == token[r] ->
        reviews[r] = 0;
        if
        :: mem_timeline[r] != timeline ->
#ifdef MEMORY_SURVIVES_SERVER
            mem_timeline[r] = timeline; stale[r] = 0
#else
            load(r)
#endif
        :: else
        fi
    :: last_incarnation == INCARNATION(r) && !(last_seq == seq[r] && last_token == token[r]) ->
        REACHED(ADOPTED); printf("relay %d finds a row of its own that it did not know: %d\n", r, last_seq);
#ifdef OWN_ROW_IS_A_FENCE
        let_go(r)
#else
        reviews[r] = 0; load(r)
#endif
    fi
}

#define WORKS(r) (holds[r] && !reviews[r] && !in_statement[r])

#define STREAM(id) :: d_step { WORKS(r) && IS_SAME_SERVER(r) && IS_NEXT(r, id) -> handle(r, id) }
#define DRAIN(id) :: d_step { WORKS(r) && IS_SAME_SERVER(r) && IS_HEAD(r, id) -> \
        printf("relay %d sends event %d from deferred\n", r, id); wire[r] = wire[r] | BIT(id) }

proctype relay(byte r)
{
end:
    do
    :: d_step { alive[r] && !holds[r] && !IS_SETTLED && IS_FREE(r) ->
#ifdef SET_BEFORE_TAKEOVER
        known[r] = deferred
       };
        d_step {
        if
        :: IS_FREE(r) ->
            take_lane(r); n = known[r]; load(r); known[r] = n; tidy()
        :: else -> known[r] = 0
        fi
       }
#else
        /* The deferred keys are read after this has committed: one step later would do as well. */
        take_lane(r); load(r); tidy()
       }
#endif
    STREAM(1) STREAM(2) STREAM(3)
    DRAIN(1) DRAIN(2) DRAIN(3)
#ifdef FREE_OUTSIDE_THE_LOG
    /* Not in one transaction with a row: whoever believes to be the owner frees. */
    :: d_step { WORKS(r) && drained[r] != 0 ->
        printf("relay %d frees %x outside the log\n", r, FREED(r)); n = FREED(r); deferred = deferred & ~n; known[r] = known[r] & ~n; drained[r] = 0; n = 0 }
    :: d_step { WORKS(r) && (IS_DONE(r, position[r] + 1) || IS_NEWS_AHEAD(r)) -> in_statement[r] = 1; guard_passed[r] = PASSES_GUARD(r) }
#else
    :: d_step { WORKS(r) && HAS_SOMETHING_TO_SETTLE(r) -> in_statement[r] = 1; guard_passed[r] = PASSES_GUARD(r) }
#endif
    /* The key decides between rivals. */
    :: d_step { in_statement[r] ->
        if
        :: guard_passed[r] && !HAS(rows, NEXT_SEQ(r)) -> insert_row(r); seq_follows(r); follow(r)
        :: else -> reviews[r] = 1
        fi;
        in_statement[r] = 0; guard_passed[r] = 0; tidy() }
#if defined(FENCE_PROPERTY)
        ; assert(stale_settle_is_refused)
#endif
    :: d_step { in_statement[r] && guard_passed[r] && !HAS(rows, NEXT_SEQ(r)) && faults_left > 0 ->
        REACHED(LOST_ANSWER); printf("the answer to relay %d's next row is lost\n", r);
        faults_left--; insert_row(r); reviews[r] = 1; in_statement[r] = 0; guard_passed[r] = 0; tidy() }
    /* Lets the lane go: its row and the owner in one transaction, when nothing is in flight and all is settled. */
    :: d_step { WORKS(r) && wire[r] == 0 && (HANDLED(r) | drained[r]) == 0 && lane_owner == r && PASSES_GUARD(r) &&
        !IS_SETTLED && faults_left > 0 ->
        REACHED(HAND_OVER); printf("relay %d lets the lane go\n", r);
        faults_left--; last_seq++; last_incarnation = INCARNATION(r); last_token = timeline;
        rows = rows | BIT(last_seq); lane_owner = NOBODY; let_go(r); tidy() }
    /* A snapshot from another server than before: what is in memory dies. */
    :: d_step { WORKS(r) && !IS_SAME_SERVER(r) -> reviews[r] = 1 }
    :: d_step { reviews[r] -> review(r); tidy() }
    od
}

/* ---- The broker ---- */

inline append(id)
{
    order_per_key_holds = HAS(published, id) || (published & SAME_KEY(id) & ~UP_TO(id)) == 0;
    printf("broker appends event %d\n", id);
    published = published | BIT(id)
}

inline report(r, id)
{
    wire[r] = wire[r] & ~BIT(id); stale[r] = stale[r] & ~BIT(id);
    if
    :: id > position[r] -> acked[r] = acked[r] | BIT(id)
    :: else -> REACHED(DRAINED); drained[r] = drained[r] | BIT(id)
    fi
}

#define ON_WIRE(r, id) \
    :: d_step { HAS(wire[r], id) && !HAS(stale[r], id) -> append(id); report(r, id) } \
    :: d_step { HAS(stale[r], id) -> report(r, id) } \
    :: d_step { HAS(wire[r], id) && !HAS(stale[r], id) && faults_left > 0 && !HAS(published, id) -> \
        REACHED(LOST_ACK); printf("the next acknowledgement is lost\n"); faults_left--; append(id) } \
    REFUSAL_OF(r, id)
#ifdef RESTORE
#define REFUSAL_OF(r, id)
#else
#define REFUSAL_OF(r, id) \
    :: d_step { HAS(wire[r], id) && faults_left > 0 -> \
        REACHED(REFUSAL); printf("broker refuses event %d of relay %d\n", id, r); faults_left--; wire[r] = wire[r] & ~BIT(id); \
        refused[r] = (id > position[r] -> refused[r] | BIT(id) : refused[r]) }
#endif
#define ON_GHOST(id) \
    :: d_step { HAS(ghost, id) -> REACHED(GHOST_LANDS); append(id); ghost = ghost & ~BIT(id) } \
    :: d_step { HAS(ghost, id) -> ghost = ghost & ~BIT(id) }

active proctype broker()
{
end:
    do
    ON_WIRE(0, 1) ON_WIRE(0, 2) ON_WIRE(0, 3) ON_WIRE(1, 1) ON_WIRE(1, 2) ON_WIRE(1, 3)
    ON_GHOST(1) ON_GHOST(2) ON_GHOST(3)
        ; assert(order_per_key_holds)
    od
}

/* ---- Time, and what goes wrong in it ---- */

inline crash(r)
{
    REACHED(CRASH); printf("relay %d dies\n", r); faults_left--; let_go(r); restarts[r]++; tidy()
}

#ifdef YOUNG_ROWS_GO
#define ARE_OLD true
#else
#define ARE_OLD (!in_statement[0] && !in_statement[1])
#endif

active proctype world()
{
end:
    do
    /* A process dies, and is started again or not. */
    :: d_step { alive[0] && holds[0] && !IS_SETTLED && faults_left > 0 -> crash(0) }
    :: d_step { alive[1] && holds[1] && !IS_SETTLED && faults_left > 0 -> crash(1) }
    :: d_step { alive[0] && holds[0] && !IS_SETTLED && faults_left > 0 && alive[1] ->
        crash(0); alive[0] = 0; printf("relay 0 stays dead\n") }
    :: d_step { alive[1] && holds[1] && !IS_SETTLED && faults_left > 0 && alive[0] ->
        crash(1); alive[1] = 0; printf("relay 1 stays dead\n") }
    /* A lease ends: its relay is dead, or was frozen too long. */
    :: d_step { lane_owner != NOBODY && lease == LIVE && !alive[lane_owner] ->
        printf("the dead relay's lease ends\n"); lease = EXPIRED }
    :: d_step { lane_owner != NOBODY && lease == LIVE && alive[lane_owner] && !IS_SETTLED && faults_left > 0 ->
        REACHED(FREEZE); printf("relay %d is frozen past its lease\n", lane_owner); faults_left--; lease = EXPIRED }
#ifndef RESTORE
    :: d_step { lane_owner != NOBODY && lease == LIVE && !IS_SETTLED && faults_left > 0 ->
        REACHED(CLOCK_STEPS_BACK); printf("the database's clock steps back\n"); faults_left--;
        lease = FURTHER_AHEAD_THAN_A_LEASE }
    /* Rows older than any statement, but for the last. */
    :: d_step { rows != BIT(last_seq) && ARE_OLD ->
        REACHED(OLD_ROWS_GO); printf("old rows of the log are deleted\n"); rows = BIT(last_seq) }
#endif
    od
}

/* ---- Writers, and a restore ---- */

#ifdef RESTORE
bit has_backup, was_restored;
byte b_seq, b_incarnation, b_position, b_ahead, b_accepted, b_owner, b_owner_incarnation;
short b_rows;

/* Every relay that is at work remembers a row that the backup does not have. */
#ifdef RESTORE_BEHIND_ALL
#define LOG_MOVED ((!holds[0] || seq[0] > b_seq) && (!holds[1] || seq[1] > b_seq))
#else
#define LOG_MOVED true
#endif

active proctype writer()
{
end:
    do
    :: d_step { accepted < EVENTS -> accepted++; printf("event %d is accepted\n", accepted) }
    :: d_step { !has_backup && !was_restored && faults_left > 0 ->
        printf("backup: row %d, position %d, %d events\n", last_seq, last_position, accepted);
        has_backup = 1; b_seq = last_seq; b_incarnation = last_incarnation; b_position = last_position; b_ahead = last_ahead;
        b_accepted = accepted; b_owner = lane_owner; b_owner_incarnation = lane_owner_incarnation; b_rows = rows }
    /* The server is another one; connections may be swapped unseen. What was accepted since is forgotten. */
    :: d_step { has_backup && faults_left > 0 && LOG_MOVED ->
        REACHED(RESTORED); printf("restore to row %d, position %d, %d events\n", b_seq, b_position, b_accepted);
        faults_left--; was_restored = 1; timeline = 1; has_backup = 0;
        last_seq = b_seq; last_incarnation = b_incarnation; last_token = 0; last_position = b_position; last_ahead = b_ahead;
        accepted = b_accepted; lane_owner = b_owner; lane_owner_incarnation = b_owner_incarnation; lease = EXPIRED;
        rows = b_rows;
        /* Statements under way die with the server that ran them. */
        reviews[0] = reviews[0] || in_statement[0]; reviews[1] = reviews[1] || in_statement[1];
        in_statement[0] = 0; in_statement[1] = 0; guard_passed[0] = 0; guard_passed[1] = 0;
        stale[0] = wire[0] & ~UP_TO(accepted); stale[1] = wire[1] & ~UP_TO(accepted);
        ghost = ghost & UP_TO(accepted); published = published & UP_TO(accepted);
        b_seq = 0; b_incarnation = 0; b_position = 0; b_ahead = 0; b_accepted = 0; b_owner = 0; b_owner_incarnation = 0; b_rows = 0 }
    od
}
#endif

active proctype monitor()
{
    /* Nobody can take a step any more. Lost is what the cursor has passed and what is nowhere else. */
    timeout ->
    nothing_is_lost = (UP_TO(last_position) & ALL & ~(published | deferred)) == 0;
    assert(nothing_is_lost);
    everything_settles = IS_SETTLED && published == ALL;
#ifndef LOSS_AND_ORDER_ONLY
    assert(everything_settles)
#endif
}

init {
    atomic {
#ifdef RESTORE
        accepted = 1;
#else
        accepted = EVENTS;
#endif
        /* Fewer faults too, so that whatever would only be healed by a further fault is found. */
        select(i : 0 .. FAULTS);
        faults_left = i; i = 0;
        run relay(0); run relay(1)
    }
}
