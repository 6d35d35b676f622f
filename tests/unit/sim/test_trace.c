/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file in which slipway-sim says when requests came and answers went.
 */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/util.h"
#include "trace.h"

static char *written(const char *path)
{
    struct sw_error error;
    char *text;
    size_t len;

    assert_int_equal(sw_file_read(path, 65536, &text, &len, &error), 0);
    return text;
}

TEST(has_a_line_for_each_event)
{
    char *folder = test_folder_new();
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/trace", folder);
    struct sw_sim_trace *trace;
    struct sw_error error;
    const char *body = "{\n\t\"a\": 1\n}";
    struct sw_sim_trace_request request = {
        "admin", "127.0.0.1:40000", "PATCH", "/api/v1/pods", "x=1", body, strlen(body)};
    struct sw_sim_trace_request nobody = {NULL, "127.0.0.1:40000", "GET", "/", "", "", 0};

    assert_int_equal(sw_sim_trace_open(path, &trace, &error), 0);
    assert_int_equal(sw_sim_trace_number(trace), 1);
    assert_int_equal(sw_sim_trace_number(trace), 2);
    sw_sim_trace_request(trace, 10, 1, &request);
    sw_sim_trace_request(trace, 11, 2, &nobody);
    sw_sim_trace_answer(trace, 12, 1, 409, 77);
    sw_sim_trace_piece(trace, 13, 2, "{}\n{}\n", 6);
    assert_int_equal(sw_sim_trace_close(trace), 0);
    SW_AUTO(char, sw_free) text = written(path);
    assert_string_equal(
        text, "10\t1\trequest\tadmin\t127.0.0.1:40000\tPATCH\t/api/v1/pods?x=1\t{  \"a\": 1 }\n"
              "11\t2\trequest\t\t127.0.0.1:40000\tGET\t/\t\n"
              "12\t1\tanswer\t409\t77\n"
              "13\t2\tpiece\t{} {} \n");
    test_folder_done(folder);
}

TEST(of_nobody_is_not_written)
{
    struct sw_sim_trace_request request = {"a", "b", "GET", "/", "", "", 0};

    assert_int_equal(sw_sim_trace_number(NULL), 0);
    sw_sim_trace_request(NULL, 1, 0, &request);
    sw_sim_trace_answer(NULL, 1, 0, 200, 0);
    sw_sim_trace_piece(NULL, 1, 0, "x", 1);
    assert_int_equal(sw_sim_trace_close(NULL), 0);
}

TEST(that_cannot_be_written_is_an_error)
{
    struct sw_sim_trace *trace;
    struct sw_error error;

    assert_int_equal(sw_sim_trace_open("/nonexistent/trace", &trace, &error), -ENOENT);
    assert_non_null(strstr(error.text, "/nonexistent/trace"));
    assert_int_equal(sw_sim_trace_open("/dev/full", &trace, &error), 0);
    sw_sim_trace_answer(trace, 1, 1, 200, 0);
    assert_int_equal(sw_sim_trace_close(trace), -EIO);
}

TEST(clock_does_not_go_back)
{
    uint64_t before = sw_sim_trace_now();

    assert_true(before > 0 && sw_sim_trace_now() >= before);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("trace", has_a_line_for_each_event),
        CASE("trace", of_nobody_is_not_written),
        CASE("trace", that_cannot_be_written_is_an_error),
        CASE("trace", clock_does_not_go_back),
    };

    return RUN(tests);
}
