/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the outbox: writers whose transactions overlap, the sequence, snapshots as Postgres makes them, and one
 * lane's reader that publishes the difference of two snapshots, may die at any step, and goes on from what it wrote
 * to the lane's log. What the log itself withstands is in lane.pml; here it is a place to keep a position.
 *
 * Tables in the README of this folder say which function carries which step. A mutation is one -D switch.
 */
#ifndef WRITERS
#define WRITERS 3
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#define IDS 4 /* Writer 0 writes an event of key A and one of key B, writer 1 one of key B, writer 2 one of key A. */
#define XID_END 16

#define BIT(n) (1 << (n))
#define HAS(mask, n) (((mask) >> (n)) & 1)

/* ---- The database ---- */

byte next_xid = 1;
byte latest_completed = 0;
short running = 0;            /* Transactions that have an xid and have not ended. */
byte last_id = 0;             /* The sequence. */
byte row_xid[IDS + 1];
byte inserted = 0;            /* Rows by id, whatever became of their transaction. */
byte committed = 0;
byte key_b = 0;               /* Rows whose key is B; of the others it is A. */
byte truncated = 0;
byte lock_of[2] = {255, 255}; /* Who holds the row of a key that its writers lock first. */
byte writers_left = WRITERS;

/* ---- The topic ---- */

byte published = 0;

/* ---- What the lane's log says ---- */

byte log_from_max = 1, log_from_floor, log_to_max, log_to_floor, log_ceiling, log_position;
short log_from_list, log_to_list;

/* Properties: each is true until something breaks it. */
bit nothing_is_lost = 1;
bit order_per_key_holds = 1;
bit only_committed_is_published = 1;
bit retention_spares_the_unpublished = 1;

byte crashes_left = CRASHES;

/* A probe shows that a fault is reached: with PROBE, each is an error. */
#ifdef PROBE
#define REACHED(what) assert(what < 0)
#else
#define REACHED(what) skip
#endif
#define CRASH 1
#define ROLLBACK 2
#define LATE_ROW 3
#define TRUNCATED 4

/* pg_visible_in_snapshot(): whether it had ended, not whether it had committed. The table hides what rolled back. */
#define ENDED_IN(xid, max, list) ((xid) < (max) && !HAS(list, xid))

inline assign_xid(xid)
{
    d_step { xid = next_xid; next_xid++; printf("xid %d begins\n", xid); running = running | BIT(xid); assert(next_xid < XID_END) }
}

/* Inside d_step. */
inline end_xid(xid)
{
    running = running & ~BIT(xid);
    latest_completed = (xid > latest_completed -> xid : latest_completed)
}

/* xmax is the latest completed + 1; transactions that run at or above it are in no list. Inside d_step. */
inline snapshot(max, list)
{
    max = latest_completed + 1;
    list = running & (BIT(max) - 1);
    printf("the reader's snapshot: xmax %d, running below it %x; floor %d\n", max, list, to_floor)
}

/* ---- Writers ---- */

#if defined(ID_BEFORE_XID) || defined(SINGLE_ROWS)
#define WRITES_TWO false
#else
#define WRITES_TWO true
#endif

/* nextval and insert. Column defaults are evaluated in order: xid first. */
inline insert_row(k)
{
    d_step {
        last_id++;
        row_xid[last_id] = xid;
        inserted = inserted | BIT(last_id);
        mine = mine | BIT(last_id);
        key_b = (k == 1 -> key_b | BIT(last_id) : key_b);
        printf("xid %d inserts id %d, key %d\n", xid, last_id, k)
    }
}

inline unlock()
{
    lock_of[0] = (lock_of[0] == w -> 255 : lock_of[0]);
    lock_of[1] = (lock_of[1] == w -> 255 : lock_of[1])
}

#define KEY_OF(w) ((w) == 1 -> 1 : 0)

proctype writer(byte w)
{
    byte xid, mine;
#ifdef ID_BEFORE_XID
    /* The id is taken before the transaction has an xid. Such a writer cannot hold a lock: it writes key B alone. */
    byte id;
    if
    :: w == 1 ->
        d_step { last_id++; id = last_id };
        assign_xid(xid);
        d_step { row_xid[id] = xid; inserted = inserted | BIT(id); mine = BIT(id); key_b = key_b | BIT(id); id = 0 };
        goto ending
    :: else
    fi;
#endif
    /* Locking a row gives the transaction its xid, and then it may have to wait: the waiter can have the lower xid. */
    assign_xid(xid);
    atomic { lock_of[KEY_OF(w)] == 255 -> lock_of[KEY_OF(w)] = w };
    insert_row(KEY_OF(w));
    if
    :: w == 0 && WRITES_TWO ->
        atomic { lock_of[1] == 255 -> lock_of[1] = w };
        insert_row(1)
    :: else
    fi;
#ifdef ID_BEFORE_XID
ending:
#endif
    if
    :: d_step {
        printf("xid %d commits\n", xid);
        committed = committed | mine;
        end_xid(xid);
        unlock();
        xid = 0; mine = 0; writers_left--
       }
    :: d_step {
        REACHED(ROLLBACK); printf("xid %d rolls back\n", xid);
        end_xid(xid);
        unlock();
        xid = 0; mine = 0; writers_left--
       }
    fi
}

/* Writes nothing, never ends: an open session of somebody else. */
#ifdef STRANGER
proctype stranger()
{
    byte xid;
    assign_xid(xid)
}
#endif

/* ---- The reader ---- */

byte from_max = 1, from_floor, to_max, to_floor, ceiling, position;
short from_list, to_list;
byte i, found, found_xid;
#ifdef SPLIT_BY_XID
byte position_xid, log_position_xid;
#endif

#ifdef DIRTY_READ
#define IN_TABLE(id) (HAS(inserted, id) && !HAS(truncated, id))
#define IS_IN_TO(id) true
#else
#define IN_TABLE(id) (HAS(committed, id) && !HAS(truncated, id))
#ifdef XMIN_HORIZON
#define IS_IN_TO(id) ((to_list & (BIT(row_xid[id] + 1) - 1)) == 0 && row_xid[id] < to_max)
#else
#define IS_IN_TO(id) ENDED_IN(row_xid[id], to_max, to_list)
#endif
#endif

#ifdef XMIN_HORIZON
#define WAS_IN_FROM(id) HAS(published, id)
#define IS_LATE(id) false
#else
#define WAS_IN_FROM(id) ENDED_IN(row_xid[id], from_max, from_list)
#define IS_LATE(id) (row_xid[id] < from_max && HAS(from_list, row_xid[id]) && IS_IN_TO(id))
#endif

/* Stream B: up to from's floor, of the transactions in from's list. Stream A: above the floor, up to to's ceiling. */
#define IN_B(id) ((id) <= from_floor && IN_TABLE(id) && IS_LATE(id))
#define IN_A(id) ((id) > from_floor && (id) <= ceiling && IN_TABLE(id) && IS_IN_TO(id) && !WAS_IN_FROM(id))

inline find_next()
{
    found = 0;
#if defined(ID_CURSOR)
    i = IDS;
    do
    :: i > position -> found = (HAS(committed, i) -> i : found); i--
    :: else -> break
    od;
#elif defined(SPLIT_BY_XID)
    found_xid = XID_END;
    i = 1;
    do
    :: i <= IDS ->
        if
        :: (IN_A(i) || IN_B(i)) && row_xid[i] < found_xid &&
           (row_xid[i] > position_xid || (row_xid[i] == position_xid && i > position)) ->
            found = i; found_xid = row_xid[i]
        :: else
        fi;
        i++
    :: else -> break
    od;
    found_xid = 0;
#else
    /* B, then A: together in order of id. */
    i = position + 1;
    do
    :: i <= IDS && i <= from_floor && found == 0 -> found = (IN_B(i) -> i : 0); i++
    :: else -> break
    od;
    i = (position > from_floor -> position + 1 : from_floor + 1);
    do
    :: i <= IDS && found == 0 -> found = (IN_A(i) -> i : 0); i++
    :: else -> break
    od;
#endif
    i = 0
}

#define SAME_KEY(id) (HAS(key_b, id) -> key_b : (255 & ~key_b))

inline publish(id)
{
    order_per_key_holds = HAS(published, id) || (published & SAME_KEY(id) & ~(BIT(id) - 1)) == 0;
    only_committed_is_published = HAS(committed, id);
    printf("the reader publishes id %d\n", id);
    if
    :: id <= from_floor -> REACHED(LATE_ROW)
    :: else
    fi;
    published = published | BIT(id)
}

/* A row of the lane's log. */
inline write_log()
{
    log_from_max = from_max; log_from_list = from_list; log_from_floor = from_floor;
    log_to_max = to_max; log_to_list = to_list; log_to_floor = to_floor;
    log_ceiling = ceiling; log_position = position;
#ifdef SPLIT_BY_XID
    log_position_xid = position_xid;
#endif
}

/* Without another crash to come nobody reads the log again. */
#ifdef RETENTION
#define LOG_MATTERS true
#else
#define LOG_MATTERS (crashes_left > 0)
#endif

inline die()
{
    REACHED(CRASH); printf("the reader dies\n");
    crashes_left--;
    from_max = log_from_max; from_list = log_from_list; from_floor = log_from_floor;
    to_max = log_to_max; to_list = log_to_list; to_floor = log_to_floor;
    ceiling = log_ceiling; position = log_position; found = 0;
#ifdef SPLIT_BY_XID
    position_xid = log_position_xid;
#endif
    if
    :: LOG_MATTERS
    :: else ->
        log_from_max = 0; log_from_list = 0; log_from_floor = 0; log_to_max = 0; log_to_list = 0; log_to_floor = 0;
        log_ceiling = 0; log_position = 0
    fi;
#ifdef POSITION_ALONE
    to_max = 0; to_list = 0; to_floor = 0; ceiling = 0;
#endif
}

/* The read-only look of an idle reader. */
#ifdef ID_CURSOR
#define HAS_NEWS ((committed & ~(BIT(position + 1) - 1)) != 0)
#elif defined(XMIN_HORIZON)
#define IS_BELOW_XMIN(id) (HAS(committed & ~published, id) && (running & (BIT(row_xid[id] + 1) - 1)) == 0)
#define HAS_NEWS (IS_BELOW_XMIN(1) || IS_BELOW_XMIN(2) || IS_BELOW_XMIN(3) || IS_BELOW_XMIN(4))
#else
#define HAS_NEWS (last_id > from_floor || (from_list & ~running) != 0)
#endif

#define IS_IDLE (to_max == 0)

active proctype reader()
{
    byte own_xid;
    do
    :: IS_IDLE && HAS_NEWS ->
#if defined(ID_CURSOR)
        d_step { to_max = 1; ceiling = IDS };
#else
        /* Statement 1: floor and an own xid, in a transaction that has ended before statement 2. */
#ifdef FLOOR_AFTER_XID
        assign_xid(own_xid);
        to_floor = last_id;
#else
        to_floor = last_id;
#ifndef FLOOR_WITHOUT_XID
        assign_xid(own_xid);
#endif
#endif
#ifndef FLOOR_WITHOUT_XID
        d_step { end_xid(own_xid); own_xid = 0 };
#endif
        /* Statement 2: the snapshot, then the ceiling. */
#ifdef CEILING_FIRST
        ceiling = last_id;
#endif
        d_step { snapshot(to_max, to_list) };
#ifdef STANDBY_SNAPSHOT
        to_list = 0;
#endif
#ifndef CEILING_FIRST
        ceiling = last_id;
#endif
#endif
    :: !IS_IDLE ->
        d_step { find_next() };
        if
        :: found != 0 ->
            d_step {
                publish(found);
                position = found;
#ifdef SPLIT_BY_XID
                position_xid = row_xid[found];
#endif
                found = 0
            }
        :: found == 0 ->
            /* The range is finished: from := to. */
            d_step {
                printf("the reader is through with its range\n");
#ifndef ID_CURSOR
                from_max = to_max; from_list = to_list; from_floor = to_floor; position = 0;
#endif
#ifdef SPLIT_BY_XID
                position_xid = 0;
#endif
                to_max = 0; to_list = 0; to_floor = 0; ceiling = 0
            }
        fi;
        assert(order_per_key_holds);
        assert(only_committed_is_published);
        if
        :: d_step { LOG_MATTERS -> write_log() }
        :: skip
        fi
    :: d_step { crashes_left > 0 -> die() }
    :: writers_left == 0 && IS_IDLE && !HAS_NEWS -> break
    od;
    nothing_is_lost = (committed & ~(published | truncated)) == 0;
    assert(nothing_is_lost)
}

/* ---- Retention ---- */

#ifdef RETENTION

/* One partition, which holds the first id. It is locked, so nobody has an open transaction with a row in it; its
 * greatest xid must be below the xmin of from as the log has it. */
active proctype retention()
{
end:
    d_step {
        HAS(inserted, 1) && !HAS(running, row_xid[1]) &&
#ifdef RETENTION_BY_POSITION
        log_position > 1
#else
        row_xid[1] < log_from_max && (log_from_list & (BIT(row_xid[1] + 1) - 1)) == 0
#endif
        -> REACHED(TRUNCATED); printf("retention removes id 1\n"); truncated = BIT(1);
        retention_spares_the_unpublished = (committed & truncated & ~published) == 0
    };
    assert(retention_spares_the_unpublished)
}
#endif

init {
    atomic {
        i = 0;
        do
        :: i < WRITERS -> run writer(i); i++
        :: else -> break
        od;
        i = 0;
#ifdef STRANGER
        run stranger()
#endif
    }
}
