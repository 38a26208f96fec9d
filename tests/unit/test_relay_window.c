/* SPDX-License-Identifier: Apache-2.0
 *
 * The window of a lane: one event of a key on its way, settling as a run from
 * the front, holding behind a refusal, carrying over a reset, leaving without
 * a hole, writing down what is acknowledged ahead of the place.
 */
#include "window_fixture.h"

/* ---- One of a key on its way ---- */

static void test_relay_window_sends_the_second_of_a_key_after_the_first_is_acknowledged(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "aab");
    struct relay_entry *first = send(fixture);
    struct relay_entry *other = send(fixture);
    assert_int_equal(first->id, 1);
    assert_int_equal(other->id, 3);
    assert_null(send(fixture));
    acknowledge(first);
    struct relay_entry *second = send(fixture);
    assert_int_equal(second->id, 2);
    acknowledge(second);
    acknowledge(other);
    assert_int_equal(settleable(fixture), 3);
}

static void test_relay_window_sends_more_of_a_key_where_its_topic_allows(void **state)
{
    struct fixture *fixture = *state;
    fixture->in_flight_per_key = 2;
    add_all(fixture, "aaa");
    struct relay_entry *one = send(fixture);
    struct relay_entry *two = send(fixture);
    assert_int_equal(one->id, 1);
    assert_int_equal(two->id, 2);
    assert_null(send(fixture));
    acknowledge(two);
    struct relay_entry *three = send(fixture);
    assert_int_equal(three->id, 3);
    acknowledge(one);
    acknowledge(three);
}

static void test_relay_window_sends_again_what_failed_before_what_follows(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "ab");
    struct relay_entry *first = send(fixture);
    struct relay_entry *second = send(fixture);
    report_failure(first, ERR_TRANSIENT);
    assert_null(send(fixture)); /* Not before it is time. */
    relay_window_retry(fixture->window);
    assert_ptr_equal(send(fixture), first);
    acknowledge(first);
    acknowledge(second);
}

static void test_relay_window_delays_all_of_a_key_together(void **state)
{
    struct fixture *fixture = *state;
    fixture->in_flight_per_key = 3;
    add_all(fixture, "aab");
    relay_window_delay(relay_window_next(fixture->window, false));
    struct relay_entry *other = send(fixture);
    assert_int_equal(other->id, 3);
    assert_null(send(fixture));
    relay_window_retry(fixture->window);
    struct relay_entry *one = send(fixture);
    struct relay_entry *two = send(fixture);
    assert_int_equal(one->id, 1);
    assert_int_equal(two->id, 2);
    acknowledge(one);
    acknowledge(two);
    acknowledge(other);
}

static void test_relay_window_puts_back_what_found_no_room(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "ab");
    struct relay_entry *entry = relay_window_next(fixture->window, false);
    relay_window_put_back(entry);
    assert_ptr_equal(send(fixture), entry);
    acknowledge(entry);
}

/* ---- Settling ---- */

static void test_relay_window_settles_only_a_run_from_the_front(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "abc");
    struct relay_entry *a = send(fixture);
    struct relay_entry *b = send(fixture);
    struct relay_entry *c = send(fixture);
    acknowledge(b);
    acknowledge(c);
    assert_int_equal(settleable(fixture), 0);
    struct relay_point point = relay_window_point_after(fixture->window, 0);
    assert_ptr_equal(point.to, fixture->to);
    assert_int_equal(point.position, 0);
    acknowledge(a);
    assert_int_equal(settleable(fixture), 3);
    assert_int_equal(relay_window_point_after(fixture->window, 1).position, 1);
    assert_int_equal(relay_window_point_after(fixture->window, 3).position, 3);
    settle(fixture, 3);
    assert_int_equal(relay_window_count(fixture->window), 0);
}

static void test_relay_window_begins_at_the_next_snapshot_when_all_is_settled(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "a");
    acknowledge(send(fixture));
    relay_window_read_to(fixture->window, 1000);
    assert_null(relay_window_range(fixture->window));
    assert_ptr_equal(relay_window_point_after(fixture->window, 0).to, fixture->to);
    struct relay_point point = relay_window_point_after(fixture->window, 1);
    assert_ptr_equal(point.from, fixture->to);
    assert_null(point.to);
    assert_int_equal(point.position, 0);
}

static void test_relay_window_settles_across_differences_one_after_the_other(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    add_all(fixture, "ab");
    relay_window_read_to(fixture->window, 1000);
    struct relay_snapshot *later = make_snapshot("950:950:", 2000, 2000);
    struct relay_range *next = relay_range_new(fixture->to, later, &err);
    relay_window_begin(fixture->window, next);
    add(fixture, 3, 'c');
    struct relay_entry *a = send(fixture);
    struct relay_entry *b = send(fixture);
    acknowledge(send(fixture));
    acknowledge(a);
    assert_ptr_equal(relay_window_point_after(fixture->window, 1).to, fixture->to);
    acknowledge(b);
    assert_ptr_equal(relay_window_point_after(fixture->window, 2).to, later);
    assert_int_equal(relay_window_point_after(fixture->window, 2).position, 2);
    assert_int_equal(relay_window_point_after(fixture->window, 3).position, 3);
    relay_range_unref(&next);
    relay_snapshot_unref(&later);
}

static void test_relay_window_is_full_at_its_limit(void **state)
{
    struct fixture *fixture = *state;
    const struct relay_window_options options = {
        .entry_count_max = 2, .bytes_max = 1024 * 1024, .in_flight_per_key = in_flight_per_key, .context = fixture};
    struct err err = ERR_INIT;
    relay_window_free(&fixture->window);
    fixture->window = relay_window_new(&options, &err);
    restart(fixture, false);
    add(fixture, 1, 'a');
    assert_true(relay_window_has_room(fixture->window));
    add(fixture, 2, 'a');
    assert_false(relay_window_has_room(fixture->window));
}

/* ---- Refused ---- */

static void test_relay_window_tries_a_refused_event_by_itself_before_a_verdict(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "aab");
    struct relay_entry *guilty = send(fixture);
    struct relay_entry *innocent = send(fixture);
    report_failure(guilty, ERR_PERMANENT);
    report_failure(innocent, ERR_PERMANENT); /* One batch. */
    assert_true(relay_window_has_suspect(fixture->window));
    assert_null(send(fixture)); /* The second of the key waits for the verdict on the first. */
    assert_ptr_equal(send_single(fixture), guilty);
    assert_ptr_equal(send_single(fixture), innocent);
    report_failure(guilty, ERR_PERMANENT);
    acknowledge(innocent);
    assert_int_equal(guilty->state, RELAY_PARKED);
    assert_string_equal(guilty->reason_code, "code");
    assert_int_equal(guilty->next->state, RELAY_HELD);
    assert_int_equal(settleable(fixture), 3);
    settle(fixture, 3);
    add(fixture, 4, 'a'); /* Still held when what held it is settled. */
    assert_null(send(fixture));
    assert_int_equal(settleable(fixture), 1);
}

static void test_relay_window_holds_keys_that_were_deferred_before(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    assert_true(relay_window_hold(fixture->window, "t", "a", &err));
    add_all(fixture, "ab");
    struct relay_entry *entry = send(fixture);
    assert_int_equal(entry->id, 2);
    acknowledge(entry);
    assert_int_equal(settleable(fixture), 2);
    restart(fixture, true); /* Whoever begins anew is told anew. */
    add(fixture, 1, 'a');
    entry = send(fixture);
    assert_int_equal(entry->id, 1);
    acknowledge(entry);
}

/* ---- Beginning anew ---- */

static void test_relay_window_does_not_send_again_what_it_carried_over(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "abcd");
    struct relay_entry *done = send(fixture);
    struct relay_entry *sent = send(fixture);
    struct relay_entry *failed = send(fixture);
    acknowledge(done);
    restart(fixture, true);
    assert_int_equal(relay_window_sent_count(fixture->window), 2);
    report_failure(failed, ERR_TRANSIENT);
    add_all(fixture, "abcd");
    assert_int_equal(settleable(fixture), 1);
    struct relay_entry *again = send(fixture);
    struct relay_entry *last = send(fixture);
    assert_int_equal(again->id, 3);
    assert_int_equal(last->id, 4);
    assert_null(send(fixture));
    acknowledge(sent);
    assert_int_equal(settleable(fixture), 2);
    acknowledge(again);
    acknowledge(last);
    assert_int_equal(settleable(fixture), 4);
}

static void test_relay_window_sends_again_what_another_server_may_not_know(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "a");
    acknowledge(send(fixture));
    restart(fixture, false);
    add_all(fixture, "a");
    struct relay_entry *entry = send(fixture);
    assert_int_equal(entry->id, 1);
    acknowledge(entry);
}

static void test_relay_window_keeps_a_key_back_while_a_carried_event_of_it_is_on_its_way(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "aa");
    struct relay_entry *sent = send(fixture);
    restart(fixture, true);
    add_all(fixture, "aa");
    assert_null(send(fixture));
    acknowledge(sent);
    struct relay_entry *second = send(fixture);
    assert_int_equal(second->id, 2);
    acknowledge(second);
}

/* ---- Leaving ---- */

static void test_relay_window_leaves_no_hole_behind_what_was_sent(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "aabcda");
    struct relay_entry *a = send(fixture);
    struct relay_entry *b = send(fixture);
    relay_window_stop_reading(fixture->window);
    assert_int_equal(relay_window_count(fixture->window), 3); /* a a b: the second a lies before b. */
    assert_int_equal(relay_window_position(fixture->window), 3);
    acknowledge(b);
    acknowledge(a);
    a = send(fixture);
    assert_int_equal(a->id, 2);
    assert_null(send(fixture));
    acknowledge(a);
    assert_int_equal(settleable(fixture), 3);
    assert_int_equal(relay_window_point_after(fixture->window, 3).position, 3);
}

static void test_relay_window_forgets_all_when_nothing_was_sent(void **state)
{
    struct fixture *fixture = *state;
    add_all(fixture, "aab");
    relay_window_stop_reading(fixture->window);
    assert_int_equal(relay_window_count(fixture->window), 0);
    assert_null(send(fixture));
    struct relay_point point = relay_window_point_after(fixture->window, 0);
    assert_ptr_equal(point.to, fixture->to);
    assert_int_equal(point.position, 0);
}

/* ---- Ahead of the place ---- */

static void test_relay_window_writes_down_what_is_ahead_of_a_waiting_key(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    add_all(fixture, "abac");
    struct relay_entry *entry = send(fixture); /* The first a has no report yet. */
    acknowledge(send(fixture));
    acknowledge(send(fixture));
    settle(fixture, settleable(fixture));
    assert_int_equal(relay_window_count(fixture->window), 4);
    assert_int_equal(relay_window_written_count(fixture->window), 2);
    assert_int_equal(relay_window_written_from(fixture->window, 0), 1);
    assert_null(relay_window_unwritten(fixture->window)->first);

    report_failure(entry, ERR_TRANSIENT);
    restart(fixture, false); /* Another process, which has the log. */
    assert_int_equal(relay_window_written_count(fixture->window), 0);
    assert_true(relay_window_know(fixture->window, 2, 1, 2, 1, &err));
    assert_true(relay_window_know(fixture->window, 4, 1, 4, 1, &err));
    add_all(fixture, "abac");
    entry = send(fixture);
    assert_int_equal(entry->id, 1);
    assert_null(send(fixture)); /* b and c are on the topic. */
    acknowledge(entry);
    assert_int_equal(settleable(fixture), 2);
    acknowledge(send(fixture));
    settle(fixture, settleable(fixture));
    assert_int_equal(relay_window_count(fixture->window), 0);
    assert_int_equal(relay_window_written_count(fixture->window), 0);
}

static void test_relay_window_believes_a_row_more_than_a_failed_report(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    add_all(fixture, "aa");
    struct relay_entry *entry = send(fixture);
    restart(fixture, true); /* The lane was with another relay meanwhile, which published it. */
    assert_true(relay_window_know(fixture->window, 1, 1, 1, 1, &err));
    add_all(fixture, "aa");
    report_failure(entry, ERR_TRANSIENT);
    relay_window_retry(fixture->window);
    entry = send(fixture);
    assert_int_equal(entry->id, 2);
    acknowledge(entry);
    settle(fixture, settleable(fixture));
    assert_int_equal(relay_window_count(fixture->window), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WINDOW_TEST(test_relay_window_sends_the_second_of_a_key_after_the_first_is_acknowledged),
        WINDOW_TEST(test_relay_window_sends_more_of_a_key_where_its_topic_allows),
        WINDOW_TEST(test_relay_window_sends_again_what_failed_before_what_follows),
        WINDOW_TEST(test_relay_window_delays_all_of_a_key_together),
        WINDOW_TEST(test_relay_window_puts_back_what_found_no_room),
        WINDOW_TEST(test_relay_window_settles_only_a_run_from_the_front),
        WINDOW_TEST(test_relay_window_begins_at_the_next_snapshot_when_all_is_settled),
        WINDOW_TEST(test_relay_window_settles_across_differences_one_after_the_other),
        WINDOW_TEST(test_relay_window_is_full_at_its_limit),
        WINDOW_TEST(test_relay_window_tries_a_refused_event_by_itself_before_a_verdict),
        WINDOW_TEST(test_relay_window_holds_keys_that_were_deferred_before),
        WINDOW_TEST(test_relay_window_writes_down_what_is_ahead_of_a_waiting_key),
        WINDOW_TEST(test_relay_window_believes_a_row_more_than_a_failed_report),
        WINDOW_TEST(test_relay_window_does_not_send_again_what_it_carried_over),
        WINDOW_TEST(test_relay_window_sends_again_what_another_server_may_not_know),
        WINDOW_TEST(test_relay_window_keeps_a_key_back_while_a_carried_event_of_it_is_on_its_way),
        WINDOW_TEST(test_relay_window_leaves_no_hole_behind_what_was_sent),
        WINDOW_TEST(test_relay_window_forgets_all_when_nothing_was_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
