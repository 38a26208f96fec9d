/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire_write.h"

#include "cmocka_all.h"
#include "wire/wire_event.h"
#include "wire/wire_json.h"

static void test_wire_write_separates_and_nests(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1000);
    struct wire_writer writer = wire_write_begin(&out);
    wire_write_object(&writer, NULL);
    wire_write_text(&writer, "a", NULL);
    wire_write_array(&writer, "b");
    wire_write_int(&writer, NULL, INT64_MIN);
    wire_write_object(&writer, NULL);
    wire_write_object_end(&writer);
    wire_write_bool(&writer, NULL, true);
    wire_write_array_end(&writer);
    wire_write_raw(&writer, "c", "{ }", 3);
    wire_write_object_end(&writer);
    assert_string_equal(out.data, "{\"a\":null,\"b\":[-9223372036854775808,{},true],\"c\":{ }}");
    buf_done(&out);
}

static void test_wire_event_carries_the_data_as_it_was_written(void **state)
{
    (void)state;
    static const char data[] = "{ \"x\" : 1.00 }";
    const struct submission_document documents[] = {{.document_id = "d1",
                                                     .name = "a \"b\"",
                                                     .media_type = "text/plain",
                                                     .size = 5,
                                                     .sha256 = "ab",
                                                     .uri = "http://h/d1"}};
    const struct submission submission = {.request_id = "r",
                                          .tenant = "default",
                                          .type = "t",
                                          .submitted_at = "2026-01-01T00:00:00.000000Z",
                                          .data = {data, sizeof data - 1},
                                          .documents = documents,
                                          .document_count = 1};
    struct buf out;
    buf_init(&out, 10000);
    wire_event_append(&submission, &out);
    assert_string_equal(out.data,
                        "{\"request_id\":\"r\",\"tenant\":\"default\",\"type\":\"t\",\"submitted_at\":"
                        "\"2026-01-01T00:00:00.000000Z\",\"data\":{ \"x\" : 1.00 },\"documents\":[{\"id\":\"d1\","
                        "\"name\":\"a \\\"b\\\"\",\"media_type\":\"text/plain\",\"size\":5,\"sha256\":\"ab\","
                        "\"uri\":\"http://h/d1\"}]}");
    struct wire_value root;
    struct err err = ERR_INIT;
    assert_true(wire_json_check(out.data, out.size, &root, &err));
    struct wire_value found = wire_json_at(&root, "data");
    assert_int_equal(found.size, sizeof data - 1);
    assert_memory_equal(found.text, data, found.size);
    buf_reset(&out);
    struct submission bare = submission;
    bare.data = (struct bytes){0};
    bare.document_count = 0;
    wire_event_append(&bare, &out);
    assert_non_null(strstr(out.data, "\"data\":null,\"documents\":[]}"));
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_write_separates_and_nests),
        cmocka_unit_test(test_wire_event_carries_the_data_as_it_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
