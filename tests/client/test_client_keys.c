/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys of the C client, and calls that it refuses before they are sent.
 */
#include "client.h"
#include "cmocka_all.h"
#include "digest/sha256.h"

static void test_key_new_is_a_random_uuid(void **state)
{
    (void)state;
    char one[ONCEWARD_KEY_SIZE];
    char other[ONCEWARD_KEY_SIZE];
    onceward_key_new(one);
    onceward_key_new(other);
    assert_int_equal(strlen(one), 36);
    assert_int_equal(strspn(one, "0123456789abcdef-"), 36);
    assert_true(one[14] == '4' && strchr("89ab", one[19]) != NULL);
    assert_true(one[8] == '-' && one[13] == '-' && one[18] == '-' && one[23] == '-');
    assert_string_not_equal(one, other);
}

static void assert_key_of(const char *user, const char *operation, const char *payload, const char *framed)
{
    unsigned char hash[SHA256_SIZE];
    char expected[SHA256_TEXT_SIZE];
    char key[ONCEWARD_KEY_SIZE];
    sha256(framed, strlen(framed), hash);
    sha256_to_text(hash, expected);
    onceward_key_of(user, operation, payload, strlen(payload), key);
    assert_string_equal(key, expected);
}

static void test_key_of_hashes_parts_with_their_lengths(void **state)
{
    (void)state;
    assert_key_of("u", "pay", "{}", "1:u3:pay2:{}");
    assert_key_of("", "", "", "0:0:0:");
    assert_key_of("up", "ay", "{}", "2:up2:ay2:{}"); /* Another key than the first. */
}

static void test_call_is_refused(void **state)
{
    (void)state;
    static const struct onceward_call calls[] = {
        {.method = "DELETE", .path = "/"},          {.method = "GET", .path = "requests"},
        {.method = "GET", .path = "/\r\nX: y"},     {.method = "POST", .path = "/", .key = "a\nb"},
        {.method = "POST", .path = "/", .key = ""}, {.method = "POST", .path = "/", .content_type = "a/b\r\nX: y"},
    };
    struct onceward_client *client = onceward_client_new("http://127.0.0.1:1", NULL);
    assert_non_null(client);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct onceward_answer answer;
        assert_false(onceward_client_call(client, &calls[i], &answer));
        assert_string_equal(answer.code, "call_invalid");
        assert_int_equal(answer.try_count, 0);
        onceward_answer_done(&answer);
    }
    onceward_client_free(&client);
    assert_null(client);
    assert_null(onceward_client_new("ftp://127.0.0.1", NULL));
}

static void test_nobody_there_is_no_answer(void **state)
{
    (void)state;
    struct onceward_client *client = onceward_client_new("http://127.0.0.1:1", NULL);
    struct onceward_receipt receipt;
    struct onceward_answer answer;
    onceward_client_set_patience(client, 300, 100);
    assert_false(onceward_client_submit(client, "k", "demo", NULL, &receipt, &answer));
    assert_string_equal(answer.code, "no_answer");
    assert_int_equal(answer.status, 0);
    assert_true(answer.try_count >= 2);
    onceward_answer_done(&answer);
    onceward_client_free(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_new_is_a_random_uuid),
        cmocka_unit_test(test_key_of_hashes_parts_with_their_lengths),
        cmocka_unit_test(test_call_is_refused),
        cmocka_unit_test(test_nobody_there_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
