/* SPDX-License-Identifier: Apache-2.0 */
#include "producer_tokens.h"

#include "cmocka_all.h"

#include <stdio.h>

#include "domain/scope.h"

#define AGE_MS 1000
#define NOW_MS 100000

struct hash {
    unsigned char bytes[DB_TOKEN_HASH_SIZE];
};

static struct hash hash_of(unsigned number)
{
    struct hash hash = {.bytes = {(unsigned char)(number >> 8), (unsigned char)number, 9}};
    return hash;
}

static void learn(struct producer_tokens *tokens, unsigned number, const char *tenant, int64_t left_ms, int64_t now_ms)
{
    struct db_token_owner owner = {.scopes = SCOPE_READ, .left_ms = left_ms};
    struct producer_caller caller;
    assert_in_range(snprintf(owner.tenant, sizeof owner.tenant, "%s", tenant == NULL ? "" : tenant), 0,
                    sizeof owner.tenant - 1);
    assert_true(producer_tokens_learn(tokens, hash_of(number).bytes, tenant == NULL ? NULL : &owner, now_ms, &caller));
}

static enum producer_tokens_answer find(struct producer_tokens *tokens, unsigned number, int64_t now_ms)
{
    struct producer_caller caller = {.tenant = NULL};
    enum producer_tokens_answer answer = producer_tokens_find(tokens, hash_of(number).bytes, now_ms, &caller);
    assert_true(answer != PRODUCER_TOKENS_GOOD || (caller.tenant != NULL && caller.scopes == SCOPE_READ));
    return answer;
}

static void test_producer_tokens_are_believed_for_their_age(void **state)
{
    (void)state;
    struct producer_tokens *tokens = producer_tokens_new(AGE_MS);
    assert_int_equal(find(tokens, 1, NOW_MS), PRODUCER_TOKENS_ASK);
    learn(tokens, 1, "one", -1, NOW_MS);
    assert_int_equal(find(tokens, 1, NOW_MS), PRODUCER_TOKENS_GOOD);
    assert_int_equal(find(tokens, 1, NOW_MS + AGE_MS / 2 - 1), PRODUCER_TOKENS_GOOD);
    assert_int_equal(find(tokens, 1, NOW_MS + AGE_MS), PRODUCER_TOKENS_ASK);
    assert_int_equal(find(tokens, 2, NOW_MS), PRODUCER_TOKENS_ASK);
    producer_tokens_free(&tokens);
}

static void test_producer_tokens_end_with_the_token(void **state)
{
    (void)state;
    struct producer_tokens *tokens = producer_tokens_new(AGE_MS);
    learn(tokens, 1, "one", 100, NOW_MS);
    assert_int_equal(find(tokens, 1, NOW_MS + 99), PRODUCER_TOKENS_GOOD);
    assert_int_equal(find(tokens, 1, NOW_MS + 100), PRODUCER_TOKENS_ASK);
    producer_tokens_free(&tokens);
}

/* At half of the age one call looks again; the others do not wait for it. */
static void test_producer_tokens_send_one_to_look_again(void **state)
{
    (void)state;
    struct producer_tokens *tokens = producer_tokens_new(10 * AGE_MS);
    learn(tokens, 1, "one", -1, NOW_MS);
    struct producer_caller caller;
    assert_int_equal(producer_tokens_glance(tokens, hash_of(1).bytes, NOW_MS + 5 * AGE_MS, &caller),
                     PRODUCER_TOKENS_GOOD);
    assert_int_equal(producer_tokens_glance(tokens, hash_of(1).bytes, NOW_MS + 10 * AGE_MS, &caller),
                     PRODUCER_TOKENS_ASK);
    assert_int_equal(find(tokens, 1, NOW_MS + 5 * AGE_MS), PRODUCER_TOKENS_ASK);
    assert_int_equal(find(tokens, 1, NOW_MS + 5 * AGE_MS), PRODUCER_TOKENS_GOOD);
    assert_int_equal(find(tokens, 1, NOW_MS + 5 * AGE_MS + 999), PRODUCER_TOKENS_GOOD);
    assert_int_equal(find(tokens, 1, NOW_MS + 6 * AGE_MS), PRODUCER_TOKENS_ASK); /* That one was not heard of again. */
    learn(tokens, 1, "one", -1, NOW_MS + 6 * AGE_MS);
    assert_int_equal(find(tokens, 1, NOW_MS + 10 * AGE_MS), PRODUCER_TOKENS_GOOD);
    producer_tokens_free(&tokens);
}

/* Whatever the age: whoever tried a token a moment before it was made does not wait for long. */
static void test_producer_tokens_ask_again_for_an_unknown_one(void **state)
{
    (void)state;
    struct producer_tokens *tokens = producer_tokens_new(60000);
    learn(tokens, 1, NULL, 0, NOW_MS);
    assert_int_equal(find(tokens, 1, NOW_MS + 999), PRODUCER_TOKENS_BAD);
    assert_int_equal(find(tokens, 1, NOW_MS + 1000), PRODUCER_TOKENS_ASK);
    producer_tokens_free(&tokens);
}

static void test_producer_tokens_forget_what_was_revoked(void **state)
{
    (void)state;
    struct producer_tokens *tokens = producer_tokens_new(AGE_MS);
    learn(tokens, 1, "one", -1, NOW_MS);
    learn(tokens, 1, NULL, 0, NOW_MS + 1);
    assert_int_equal(find(tokens, 1, NOW_MS + 2), PRODUCER_TOKENS_BAD);
    assert_int_equal(find(tokens, 1, NOW_MS + 1 + AGE_MS), PRODUCER_TOKENS_ASK);
    learn(tokens, 1, "one", -1, NOW_MS + 2 + AGE_MS); /* Made anew. */
    assert_int_equal(find(tokens, 1, NOW_MS + 3 + AGE_MS), PRODUCER_TOKENS_GOOD);
    producer_tokens_free(&tokens);
}

static void test_producer_tokens_are_not_kept_without_an_age(void **state)
{
    (void)state;
    struct producer_tokens *tokens = producer_tokens_new(0);
    learn(tokens, 1, "one", -1, NOW_MS);
    learn(tokens, 2, NULL, 0, NOW_MS);
    assert_int_equal(find(tokens, 1, NOW_MS), PRODUCER_TOKENS_ASK);
    assert_int_equal(find(tokens, 2, NOW_MS), PRODUCER_TOKENS_ASK);
    producer_tokens_free(&tokens);
}

/* However many come, each answer is right or a question. Those that are no tokens push no good one out. */
static void test_producer_tokens_stay_bounded(void **state)
{
    (void)state;
    struct producer_tokens *tokens = producer_tokens_new(AGE_MS);
    char tenant[16];
    for (unsigned i = 0; i < 512; i++) {
        assert_in_range(snprintf(tenant, sizeof tenant, "t%u", i % 50), 1, sizeof tenant - 1);
        learn(tokens, i, tenant, -1, NOW_MS);
    }
    for (unsigned i = 512; i < 60000; i++) {
        learn(tokens, i, NULL, 0, NOW_MS);
    }
    for (unsigned i = 0; i < 512; i++) {
        struct producer_caller caller;
        assert_in_range(snprintf(tenant, sizeof tenant, "t%u", i % 50), 1, sizeof tenant - 1);
        assert_int_equal(producer_tokens_find(tokens, hash_of(i).bytes, NOW_MS, &caller), PRODUCER_TOKENS_GOOD);
        assert_string_equal(caller.tenant, tenant);
    }
    for (unsigned i = 512; i < 60000; i++) {
        assert_int_not_equal(find(tokens, i, NOW_MS), PRODUCER_TOKENS_GOOD);
        learn(tokens, i, "late", -1, NOW_MS + 1);
    }
    producer_tokens_free(&tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_producer_tokens_are_believed_for_their_age),
        cmocka_unit_test(test_producer_tokens_end_with_the_token),
        cmocka_unit_test(test_producer_tokens_send_one_to_look_again),
        cmocka_unit_test(test_producer_tokens_forget_what_was_revoked),
        cmocka_unit_test(test_producer_tokens_ask_again_for_an_unknown_one),
        cmocka_unit_test(test_producer_tokens_are_not_kept_without_an_age),
        cmocka_unit_test(test_producer_tokens_stay_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
