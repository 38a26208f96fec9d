/* SPDX-License-Identifier: Apache-2.0
 *
 * From the topic to the effect: two consumers and a replay over two partitions whose records repeat, the progress log,
 * the inbox, an effect in the same transaction or outside of the database, dead letters, rewinds by an operator, an
 * earlier state of the tables that is put back, and retention of topic and inbox.
 *
 * A transaction is three steps (cursor, inbox, effect and commit), each of which may wait for a rival or be the last
 * one of its process. Any FAULTS faults of any kind in any order.
 */
#ifndef FAULTS
#define FAULTS 2
#endif
#define NOBODY 255
#define OPERATOR 200

#define BIT(n) (1 << (n))
#define HAS(mask, n) (((mask) >> (n)) & 1)

/* Events: a1 and a2 have one key, b1 another. Partition 0 has a1 a2 a1, partition 1 has b1 a1. */
#define A1 0
#define A2 1
#define B1 2
#define EVENTS 3
#define ALL 7

/* Cursors: one per partition of the live scope, and one of a replay in a scope of its own over partition 0. */
#ifdef REPLAY
#define CURSORS 3
#else
#define CURSORS 2
#endif
/* Comparisons serve as numbers: a conditional cannot stand in an index. */
#define SCOPE(cur) ((cur) == 2)
#define PARTITION(cur) ((cur) == 1)

/* Workers: a consumer's part that serves one cursor. 0 and 1 are rivals for cursor 0. */
#define WORKERS (CURSORS + 1)
#define CURSOR_OF(w) (((w) > 1) * ((w) - 1))
#define CONSUMER_OF(w) ((w) != 0)

/* Properties: each is true until something breaks it. */
bit nothing_is_lost = 1;
bit effect_is_once_in_its_scope = 1;
bit order_per_key_holds = 1;
bit everything_settles = 1;

/* Some mutations break the order too; without it their loss is seen. */
#ifdef LOSS_ONLY
#define ASSERT_ORDER skip
#else
#define ASSERT_ORDER assert(order_per_key_holds)
#endif

byte faults_left = FAULTS;

/* A probe shows that a fault is reached: with PROBE, each is an error. */
#ifdef PROBE
#define REACHED(what) assert(what < 0)
#else
#define REACHED(what) skip
#endif
#define CRASH 1
#define REBALANCE 2
#define LOST_ANSWER 3
#define BAD_RECORD 4
#define REWOUND 5
#define RESTORED 6
#define FENCED 7
#define ADOPTED 8
#define DUPLICATE 9
#define REDRIVEN 10
#define PRUNED 11
#define REPEATED_CALL 12
#define ZOMBIE_COMMITS 13

/* ---- The topic ---- */

byte end_of[2];
byte low[2]; /* What is below is gone by retention. */
bit outbox_has = 1; /* The outbox still has a1, so a relay may publish it once more. */
byte broker_offset; /* Of cursor 0: what broker commits say. */

#define EVENT_AT(cur, offset) (((cur) != 1) * ((offset) == 1) * A2 + ((cur) == 1) * ((offset) == 0) * B1)
#define IS_ON_TOPIC(e) \
    ((e) == A1 -> end_of[0] == 4 || low[0] < 3 || low[1] < 2 : ((e) == A2 -> low[0] < 2 : low[1] < 1))

/* ---- The database ---- */

byte last_seq[CURSORS], last_incarnation[CURSORS], last_offset[CURSORS];
byte last_token; /* A bit per cursor: tells apart rows of one seq of before and after a restore. */
byte cursor_lock[CURSORS]; /* Who has inserted the next row and not committed. */
byte inbox[2];
byte inbox_lock[6];        /* Who has inserted and not committed, by scope and event. */
byte applied[2];
byte dead;
bit timeline;
bit order_given_up; /* Outside sink: one worker dead-lettered a1, another may still call for it. */

/* ---- The consumers ---- */

byte assigned = 0; /* Which of the rivals has cursor 0 by the group's word. */
mtype = { AWAY, HOLDS, MOVED, CLAIMED, CALLED, REVIEWS };
mtype state[WORKERS] = AWAY;
byte seq[WORKERS], offset[WORKERS], restarts[WORKERS];
byte token;  /* A bit per worker. */
byte fresh;  /* A bit per worker. */
byte i;

#define INCARNATION(w) ((w) + 8 * restarts[w])
#define CUR CURSOR_OF(w)
#define EVENT EVENT_AT(CUR, offset[w])
#define LOCK inbox_lock[SCOPE(CUR) * 3 + EVENT]
#define IS_ASSIGNED(w) ((w) > 1 || assigned == (w))
#ifdef OFFSET_FIRST
#define REACHED_OFFSET(cur) ((cur) == 0 -> broker_offset : last_offset[cur])
#else
#define REACHED_OFFSET(cur) last_offset[cur]
#endif
#define IS_AT_END(cur) (REACHED_OFFSET(cur) == end_of[PARTITION(cur)])

inline effect(scope, e)
{
    effect_is_once_in_its_scope = !HAS(applied[scope], e);
    order_per_key_holds = e != A1 || !HAS(applied[scope], A2) || order_given_up;
    applied[scope] = applied[scope] | BIT(e);
    printf("    effect of event %d in scope %d\n", e, scope)
}

/* Inside d_step: the locks of a transaction that ends. */
inline release(w)
{
    cursor_lock[CUR] = (cursor_lock[CUR] == w -> NOBODY : cursor_lock[CUR]);
    i = 0;
    do
    :: i < 6 -> inbox_lock[i] = (inbox_lock[i] == w -> NOBODY : inbox_lock[i]); i++
    :: else -> break
    od;
    i = 0
}

inline leave(w)
{
    state[w] = AWAY; seq[w] = 0; offset[w] = 0; token = token & ~BIT(w); fresh = fresh & ~BIT(w)
}

inline set_token(w, value)
{
    token = ((value) -> token | BIT(w) : token & ~BIT(w))
}

inline adopt(w)
{
    seq[w] = last_seq[CUR]; set_token(w, HAS(last_token, CUR));
#ifdef OFFSET_FIRST
    offset[w] = (CUR == 0 -> broker_offset : last_offset[CUR]);
#else
    offset[w] = last_offset[CUR];
#endif
    state[w] = HOLDS
}

/* The next row of the log, as it is seen once its transaction has committed. */
inline next_row(w, to)
{
    last_seq[CUR]++; last_incarnation[CUR] = INCARNATION(w); last_offset[CUR] = to;
    last_token = (timeline -> last_token | BIT(CUR) : last_token & ~BIT(CUR))
}

inline take(w)
{
    next_row(w, last_offset[CUR]);
    printf("consumer %d takes cursor %d: row %d, offset %d\n", CONSUMER_OF(w), CUR, last_seq[CUR], last_offset[CUR]);
    adopt(w)
}

inline follow(w)
{
    seq[w] = last_seq[CUR]; offset[w]++; set_token(w, timeline);
    fresh = fresh & ~BIT(w); state[w] = HOLDS
}

#if defined(NO_FENCE)
#define PASSES_GUARD(w) true
#elif defined(NO_ATTEMPT_TOKEN)
#define PASSES_GUARD(w) (last_seq[CUR] == seq[w])
#else
#define PASSES_GUARD(w) (last_seq[CUR] == seq[w] && HAS(last_token, CUR) == HAS(token, w))
#endif


/* Cursor first: it fences, and fails fast. Waits for a rival's open row. */
inline move_cursor(w)
{
    if
    :: PASSES_GUARD(w) ->
        cursor_lock[CUR] = w; state[w] = MOVED;
        printf("consumer %d begins at cursor %d, offset %d\n", CONSUMER_OF(w), CUR, offset[w]);
#ifdef OFFSET_FIRST
        broker_offset = (CUR == 0 -> offset[w] + 1 : broker_offset);
#endif
#ifdef CURSOR_IN_ITS_OWN_TRANSACTION
        next_row(w, offset[w] + 1); cursor_lock[CUR] = NOBODY
#endif
    :: else -> state[w] = REVIEWS
    fi
}

inline claim(w)
{
#if defined(NO_INBOX)
    fresh = fresh | BIT(w);
#else
    if
    :: HAS(inbox[SCOPE(CUR)], EVENT) -> REACHED(DUPLICATE)
    :: else ->
        fresh = fresh | BIT(w);
#if defined(INBOX_IN_ITS_OWN_TRANSACTION)
        inbox[SCOPE(CUR)] = inbox[SCOPE(CUR)] | BIT(EVENT)
#elif !defined(CHECK_THEN_ACT)
        LOCK = w
#endif
    fi;
#endif
    state[w] = CLAIMED
}

/* What becomes visible all at once. */
inline commit_effect(w)
{
    if
    :: HAS(fresh, w) ->
        printf("consumer %d commits at cursor %d, offset %d: fresh\n", CONSUMER_OF(w), CUR, offset[w]);
        effect(SCOPE(CUR), EVENT);
        inbox[SCOPE(CUR)] = inbox[SCOPE(CUR)] | BIT(EVENT)
    :: else ->
        printf("consumer %d commits at cursor %d, offset %d: duplicate\n", CONSUMER_OF(w), CUR, offset[w])
    fi;
    if
    :: !IS_ASSIGNED(w) -> REACHED(ZOMBIE_COMMITS)
    :: else
    fi;
#if !defined(CURSOR_IN_ITS_OWN_TRANSACTION) && !defined(PROGRESS_AFTER_THE_EFFECT)
    next_row(w, offset[w] + 1);
#endif
    release(w)
}

/* What the end of the log says to one whose row did not go in, or who does not know. */
inline review(w)
{
    fresh = fresh & ~BIT(w);
    if
    :: last_seq[CUR] == seq[w] && HAS(last_token, CUR) == HAS(token, w) -> state[w] = HOLDS
    :: else ->
        if
        :: last_incarnation[CUR] == INCARNATION(w) -> REACHED(ADOPTED); adopt(w)
        :: last_incarnation[CUR] == OPERATOR ->
            printf("consumer %d is rewound\n", CONSUMER_OF(w)); REACHED(REWOUND); leave(w)
        :: else -> printf("consumer %d is fenced\n", CONSUMER_OF(w)); REACHED(FENCED); leave(w)
        fi
    fi
}

inline crash(w)
{
    REACHED(CRASH);
    printf("consumer %d dies\n", CONSUMER_OF(w));
    faults_left--; release(w); leave(w); restarts[w]++
}

#define HAS_RECORD(w) (offset[w] < end_of[PARTITION(CUR)])
#define IS_DONE (IS_AT_END(0) && IS_AT_END(1) && IS_AT_END(CURSORS - 1) && (applied[0] | dead) == ALL)

proctype worker(byte w)
{
end:
    do
    :: d_step { state[w] == AWAY && IS_ASSIGNED(w) && cursor_lock[CUR] == NOBODY -> take(w) }
    :: d_step { state[w] == REVIEWS -> review(w) }
#ifndef IDLE_NEVER_LOOKS
    :: d_step { state[w] == HOLDS && !HAS_RECORD(w) && !(last_seq[CUR] == seq[w] && HAS(last_token, CUR) == HAS(token, w)) ->
        state[w] = REVIEWS }
#endif
#if !defined(OUTSIDE)
#ifdef PROGRESS_AFTER_THE_EFFECT
    /* Inbox and effect in one transaction, the cursor in the next. */
    :: d_step { state[w] == HOLDS && HAS_RECORD(w) -> state[w] = MOVED }
    :: d_step { state[w] == CALLED && cursor_lock[CUR] == NOBODY ->
        if
        :: PASSES_GUARD(w) -> next_row(w, offset[w] + 1); follow(w)
        :: else -> state[w] = REVIEWS
        fi }
#else
    :: d_step { state[w] == HOLDS && HAS_RECORD(w) && cursor_lock[CUR] == NOBODY -> move_cursor(w) }
#endif
    /* Waits for a rival's uncommitted row of the same event, and then sees what became of it. */
    :: d_step { state[w] == MOVED && LOCK == NOBODY -> claim(w) }
    :: d_step { state[w] == CLAIMED ->
        commit_effect(w);
#ifdef PROGRESS_AFTER_THE_EFFECT
        fresh = fresh & ~BIT(w); state[w] = CALLED
#else
        follow(w)
#endif
        };
        assert(effect_is_once_in_its_scope); ASSERT_ORDER
    :: d_step { state[w] == CLAIMED && faults_left > 0 ->
        REACHED(LOST_ANSWER); printf("the answer is lost of: ");
        faults_left--; commit_effect(w); state[w] = REVIEWS };
        assert(effect_is_once_in_its_scope); ASSERT_ORDER
    /* The sink refuses the record for good: a dead letter, in the transaction that moves the cursor. */
    :: d_step { state[w] == CLAIMED && HAS(fresh, w) && faults_left > 0 && SCOPE(CUR) == 0 ->
        REACHED(BAD_RECORD); printf("consumer %d dead-letters event %d\n", CONSUMER_OF(w), EVENT);
        faults_left--; dead = dead | BIT(EVENT); inbox[0] = inbox[0] | BIT(EVENT);
#ifdef PROGRESS_AFTER_THE_EFFECT
        release(w); fresh = fresh & ~BIT(w); state[w] = CALLED
#else
#ifndef CURSOR_IN_ITS_OWN_TRANSACTION
        next_row(w, offset[w] + 1);
#endif
        release(w); follow(w)
#endif
        }
#else
    /* A sink elsewhere: claim, call with the key, complete. A claim's lease may end at any time, so it keeps nobody
     * from calling. */
    :: d_step { state[w] == HOLDS && HAS_RECORD(w) && cursor_lock[CUR] == NOBODY ->
        if
        :: HAS(inbox[SCOPE(CUR)], EVENT) ->
            REACHED(DUPLICATE);
            if
            :: PASSES_GUARD(w) -> next_row(w, offset[w] + 1); follow(w)
            :: else -> state[w] = REVIEWS
            fi
        :: else ->
#ifdef DONE_BEFORE_THE_CALL
            inbox[SCOPE(CUR)] = inbox[SCOPE(CUR)] | BIT(EVENT);
#endif
            state[w] = CLAIMED
        fi }
    :: d_step { state[w] == CLAIMED ->
        printf("consumer %d calls for event %d in scope %d\n", CONSUMER_OF(w), EVENT, SCOPE(CUR));
        if
#ifdef SINK_WITHOUT_KEYS
        :: true -> effect(SCOPE(CUR), EVENT)
#elif defined(KEY_WITHOUT_SCOPE)
        :: !HAS(applied[0] | applied[1], EVENT) -> effect(SCOPE(CUR), EVENT)
        :: else -> skip
#else
        :: !HAS(applied[SCOPE(CUR)], EVENT) -> effect(SCOPE(CUR), EVENT)
        :: else -> REACHED(REPEATED_CALL)
#endif
        fi;
        state[w] = CALLED };
        assert(effect_is_once_in_its_scope); ASSERT_ORDER
    :: d_step { state[w] == CALLED && cursor_lock[CUR] == NOBODY ->
        if
        :: PASSES_GUARD(w) ->
            inbox[SCOPE(CUR)] = inbox[SCOPE(CUR)] | BIT(EVENT);
            next_row(w, offset[w] + 1); follow(w)
        :: else -> state[w] = REVIEWS
        fi }
    /* The sink refuses it for good. */
    :: d_step { state[w] == CLAIMED && cursor_lock[CUR] == NOBODY && PASSES_GUARD(w) && faults_left > 0 &&
        SCOPE(CUR) == 0 && !HAS(inbox[0] | applied[0], EVENT) ->
        REACHED(BAD_RECORD); printf("consumer %d dead-letters event %d\n", CONSUMER_OF(w), EVENT);
        faults_left--; dead = dead | BIT(EVENT); inbox[0] = inbox[0] | BIT(EVENT);
        order_given_up = order_given_up || EVENT == A1;
        next_row(w, offset[w] + 1); follow(w) }
    :: d_step { state[w] == CALLED && cursor_lock[CUR] == NOBODY && PASSES_GUARD(w) && faults_left > 0 ->
        REACHED(LOST_ANSWER); printf("the answer is lost to consumer %d's completion\n", CONSUMER_OF(w));
        faults_left--;
        inbox[SCOPE(CUR)] = inbox[SCOPE(CUR)] | BIT(EVENT);
        next_row(w, offset[w] + 1); state[w] = REVIEWS }
#endif
    :: d_step { state[w] != AWAY && faults_left > 0 && !IS_DONE -> crash(w) }
    od
}

/* ---- The group, the operator, retention ---- */

bit has_operated, has_repeated;

#define NO_TRANSACTION \
    (cursor_lock[0] == NOBODY && cursor_lock[1] == NOBODY && inbox_lock[0] == NOBODY && inbox_lock[1] == NOBODY && \
     inbox_lock[2] == NOBODY)

inline rewind(cur)
{
    last_seq[cur]++; last_incarnation[cur] = OPERATOR; last_offset[cur] = low[PARTITION(cur)];
    last_token = (timeline -> last_token | BIT(cur) : last_token & ~BIT(cur))
}

active proctype world()
{
end:
    do
    /* Cursor 0 goes to the other consumer; the one before does not hear of it. */
    :: d_step { faults_left > 0 && !IS_DONE -> REACHED(REBALANCE);
        faults_left--; assigned = 1 - assigned; printf("cursor 0 is assigned to consumer %d\n", assigned) }
    /* An operator has a dead letter tried again: claim and effect in one transaction. */
    :: d_step { dead != 0 && NO_TRANSACTION ->
        REACHED(REDRIVEN); printf("an operator redrives dead letters\n");
        i = 0;
        do
        :: i < EVENTS ->
            if
            :: HAS(dead, i) && !HAS(applied[0], i) -> effect(0, i)
            :: else
            fi;
            i++
        :: else -> break
        od;
        /* Whoever dead-letters an event lets its key go on: the order is given up with it. */
        i = 0; dead = 0; order_per_key_holds = 1 };
        assert(effect_is_once_in_its_scope)
#ifdef REWIND
    /* What was applied stays applied. */
    :: d_step { !has_operated && cursor_lock[0] == NOBODY ->
        printf("an operator rewinds cursor 0 to %d\n", low[0]); has_operated = 1; rewind(0) }
#endif
#ifdef FORGET
    /* The effects were lost: they are forgotten, and both cursors rewound, in one transaction. */
    :: d_step { !has_operated && NO_TRANSACTION ->
        printf("an operator forgets and rewinds\n");
        has_operated = 1; inbox[0] = 0; applied[0] = 0; dead = 0; rewind(0); rewind(1) }
#endif
#ifdef RETENTION
    :: d_step { low[0] < last_offset[0] -> low[0]++; printf("retention: partition 0 begins at %d\n", low[0]) }
    :: d_step { low[1] < last_offset[1] -> low[1]++; printf("retention: partition 1 begins at %d\n", low[1]) }
    :: d_step { outbox_has && low[0] > 0 -> outbox_has = 0; printf("the outbox lets a1 go\n") }
    :: d_step { outbox_has && !has_repeated ->
        has_repeated = 1; end_of[0] = 4; printf("a relay publishes a1 once more\n") }
#ifdef PRUNED_WITH_REPLAY
#define IS_OLD true
#elif defined(PRUNED_BY_TOPIC_ALONE)
#define IS_OLD !IS_ON_TOPIC(A1)
#else
#define IS_OLD (!outbox_has && !IS_ON_TOPIC(A1))
#endif
    :: d_step { HAS(inbox[0] & applied[0], A1) && IS_OLD ->
        REACHED(PRUNED); printf("the inbox lets a1 go\n"); inbox[0] = inbox[0] & ~BIT(A1) }
#endif
    od
}

#ifdef RESTORE
bit has_backup, was_restored;
byte b_seq[2], b_incarnation[2], b_offset[2], b_inbox, b_applied, b_dead;

active proctype restore()
{
end:
    do
    :: d_step { !has_backup && !was_restored && faults_left > 0 ->
        has_backup = 1; printf("backup\n");
        b_seq[0] = last_seq[0]; b_incarnation[0] = last_incarnation[0]; b_offset[0] = last_offset[0];
        b_seq[1] = last_seq[1]; b_incarnation[1] = last_incarnation[1]; b_offset[1] = last_offset[1];
        b_inbox = inbox[0]; b_applied = applied[0]; b_dead = dead }
    /* The tables are put back while the consumers run; it waits for open transactions. */
    :: d_step { has_backup && faults_left > 0 && NO_TRANSACTION ->
        REACHED(RESTORED); printf("restore\n");
        faults_left--; has_backup = 0; was_restored = 1; timeline = 1;
#ifndef CURSOR_ELSEWHERE
        last_token = 0;
        last_seq[0] = b_seq[0]; last_incarnation[0] = b_incarnation[0]; last_offset[0] = b_offset[0];
        last_seq[1] = b_seq[1]; last_incarnation[1] = b_incarnation[1]; last_offset[1] = b_offset[1];
#endif
        inbox[0] = b_inbox; dead = b_dead;
#ifndef OUTSIDE
        applied[0] = b_applied;
#endif
        b_seq[0] = 0; b_incarnation[0] = 0; b_offset[0] = 0; b_seq[1] = 0; b_incarnation[1] = 0; b_offset[1] = 0;
        b_inbox = 0; b_applied = 0; b_dead = 0 }
    od
}
#endif

active proctype monitor()
{
    /* Nobody can take a step any more. Lost is what every cursor has passed and what had no effect. */
    timeout ->
    nothing_is_lost = !(IS_AT_END(0) && IS_AT_END(1)) || (applied[0] | dead) == ALL;
    assert(nothing_is_lost);
#ifdef REPLAY
    nothing_is_lost = !IS_AT_END(2) || (applied[1] & (BIT(A1) | BIT(A2))) == (BIT(A1) | BIT(A2));
    assert(nothing_is_lost);
#endif
    everything_settles = IS_DONE && dead == 0;
    assert(everything_settles)
}

init {
    atomic {
        select(i : 0 .. FAULTS);
        faults_left = i; i = 0;
        end_of[0] = 3; end_of[1] = 2;
        do
        :: i < CURSORS -> cursor_lock[i] = NOBODY; last_incarnation[i] = NOBODY; i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < 6 -> inbox_lock[i] = NOBODY; i++
        :: else -> break
        od;
        i = 0;
        run worker(0); run worker(1); run worker(2)
#ifdef REPLAY
        ; run worker(3)
#endif
    }
}
