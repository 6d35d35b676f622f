/* SPDX-License-Identifier: Apache-2.0 */
/* The stream in memory: order, pieces, limits, ends, and closing from every callback. */
#include "net/stream.h"

#include <errno.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/util.h"
#include "test.h"

enum close_when {
    NEVER,
    ON_READ,
    ON_END,
    ON_DRAIN,
};

struct end {
    struct sw_stream *stream;
    struct sw_buf got;
    unsigned reads;
    unsigned drains;
    size_t largest;
    bool has_ended;
    int end_code;
    enum close_when close_when;
    bool closes_twice;
    bool pauses;
};

static struct sw_loop *loop;
static struct end a, b;

static void close_it(struct end *end)
{
    sw_stream_close(end->stream);
    if (end->closes_twice) {
        sw_stream_close(end->stream);
    }
    end->stream = NULL;
}

static void on_read(void *arg, const char *bytes, size_t len)
{
    struct end *end = arg;
    assert_non_null(end->stream);
    assert_false(end->has_ended);
    assert_true(len > 0);
    sw_buf_append(&end->got, bytes, len);
    end->reads++;
    end->largest = SW_MAX(end->largest, len);
    if (end->close_when == ON_READ) {
        close_it(end);
    } else if (end->pauses) {
        sw_stream_set_reading(end->stream, false);
    }
}

static void on_end(void *arg, int code)
{
    struct end *end = arg;
    assert_non_null(end->stream);
    assert_false(end->has_ended);
    end->has_ended = true;
    end->end_code = code;
    if (end->close_when == ON_END) {
        close_it(end);
    }
}

static void on_drain(void *arg)
{
    struct end *end = arg;
    assert_non_null(end->stream);
    end->drains++;
    assert_true(sw_stream_pending(end->stream) <= sw_stream_limit(end->stream) / 2);
    if (end->close_when == ON_DRAIN) {
        close_it(end);
    }
}

static const struct sw_stream_events events = {on_read, on_end, on_drain};

static void open_pipe(size_t limit, size_t max_piece)
{
    loop = sw_loop_virtual_new(0, 1);
    a = b = (struct end){0};
    sw_buf_init(&a.got, SIZE_MAX);
    sw_buf_init(&b.got, SIZE_MAX);
    sw_pipe_open(loop, limit, max_piece, &a.stream, &b.stream);
    sw_stream_start(a.stream, &events, &a);
    sw_stream_start(b.stream, &events, &b);
}

static void run(void)
{
    sw_loop_virtual_advance(loop, 0);
}

static void close_all(void)
{
    sw_stream_close(a.stream);
    sw_stream_close(b.stream);
    run();
    assert_int_equal(sw_loop_close(loop), 0);
    sw_buf_done(&a.got);
    sw_buf_done(&b.got);
}

TEST(carries_bytes_both_ways_and_calls_back_later)
{
    open_pipe(100, 0);
    assert_int_equal(sw_stream_write(a.stream, "hello ", 6), 0);
    assert_int_equal(sw_stream_write(a.stream, "there", 5), 0);
    assert_int_equal(sw_stream_write(b.stream, "hi", 2), 0);
    assert_int_equal(sw_stream_pending(a.stream), 11);
    assert_int_equal(a.reads + b.reads, 0);
    run();
    assert_string_equal(b.got.bytes, "hello there");
    assert_string_equal(a.got.bytes, "hi");
    assert_int_equal(b.reads, 1);
    assert_int_equal(sw_stream_pending(a.stream), 0);
    assert_string_equal(sw_stream_peer(a.stream), "pipe");
    close_all();
}

TEST(cuts_into_pieces)
{
    for (size_t piece = 1; piece <= 12; piece++) {
        open_pipe(100, piece);
        sw_stream_write(a.stream, "hello there", 11);
        sw_stream_finish(a.stream);
        run();
        assert_string_equal(b.got.bytes, "hello there");
        assert_int_equal(b.reads, (11 + piece - 1) / piece);
        assert_int_equal(b.largest, SW_MIN(piece, (size_t)11));
        assert_true(b.has_ended && b.end_code == 0);
        close_all();
    }
}

TEST(refuses_what_is_beyond_the_limit_and_says_when_there_is_room)
{
    open_pipe(10, 0);
    sw_stream_set_reading(b.stream, false);
    assert_int_equal(sw_stream_limit(a.stream), 10);
    assert_int_equal(sw_stream_write(a.stream, "12345678", 8), 0);
    assert_int_equal(sw_stream_write(a.stream, "901", 3), -ENOBUFS);
    assert_int_equal(sw_stream_pending(a.stream), 8);
    assert_int_equal(sw_stream_write(a.stream, "90", 2), 0);
    run();
    assert_int_equal(a.drains, 0);
    sw_stream_set_reading(b.stream, true);
    run();
    assert_int_equal(a.drains, 1);
    assert_string_equal(b.got.bytes, "1234567890");
    run();
    assert_int_equal(a.drains, 1);
    sw_stream_ask_drain(a.stream);
    assert_int_equal(a.drains, 1);
    run();
    assert_int_equal(a.drains, 2);
    close_all();
}

TEST(stops_while_paused)
{
    open_pipe(100, 2);
    b.pauses = true;
    sw_stream_write(a.stream, "123456", 6);
    run();
    assert_string_equal(b.got.bytes, "12");
    sw_stream_finish(a.stream);
    run();
    assert_string_equal(b.got.bytes, "12");
    sw_stream_set_reading(b.stream, true);
    assert_string_equal(b.got.bytes, "12");
    run();
    assert_string_equal(b.got.bytes, "1234");
    assert_false(b.has_ended);
    sw_stream_set_reading(b.stream, true);
    run();
    assert_string_equal(b.got.bytes, "123456");
    assert_true(b.has_ended);
    close_all();
}

TEST(may_be_paused_before_the_start)
{
    loop = sw_loop_virtual_new(0, 1);
    a = b = (struct end){0};
    sw_buf_init(&a.got, SIZE_MAX);
    sw_buf_init(&b.got, SIZE_MAX);
    sw_pipe_open(loop, 10, 0, &a.stream, &b.stream);
    sw_stream_set_reading(b.stream, false);
    sw_stream_write(a.stream, "x", 1);
    run();
    sw_stream_start(b.stream, &events, &b);
    run();
    assert_int_equal(b.reads, 0);
    sw_stream_set_reading(b.stream, true);
    run();
    assert_string_equal(b.got.bytes, "x");
    close_all();
}

TEST(may_still_write_after_the_other_side_has_ended)
{
    open_pipe(100, 0);
    sw_stream_finish(a.stream);
    run();
    assert_true(b.has_ended && b.end_code == 0);
    assert_int_equal(sw_stream_write(a.stream, "x", 1), -EPIPE);
    assert_int_equal(sw_stream_write(b.stream, "late", 4), 0);
    run();
    assert_string_equal(a.got.bytes, "late");
    assert_false(a.has_ended);
    close_all();
}

TEST(drops_what_is_pending_unless_finished)
{
    open_pipe(100, 0);
    sw_stream_write(a.stream, "lost", 4);
    sw_stream_close(a.stream);
    a.stream = NULL;
    run();
    assert_int_equal(b.got.len, 0);
    assert_true(b.has_ended && b.end_code == 0);
    assert_int_equal(sw_stream_write(b.stream, "x", 1), -EPIPE);
    close_all();

    open_pipe(100, 1);
    sw_stream_write(a.stream, "kept", 4);
    sw_stream_finish(a.stream);
    sw_stream_close(a.stream);
    a.stream = NULL;
    run();
    assert_string_equal(b.got.bytes, "kept");
    assert_true(b.has_ended && b.end_code == 0);
    close_all();
}

TEST(a_reset_overtakes_what_is_on_its_way)
{
    open_pipe(100, 0);
    sw_stream_write(a.stream, "lost", 4);
    sw_stream_finish(a.stream);
    sw_stream_reset(a.stream);
    a.stream = NULL;
    run();
    assert_int_equal(b.got.len, 0);
    assert_true(b.has_ended && b.end_code == -ECONNRESET);
    close_all();
}

TEST(may_be_closed_from_every_callback_and_twice)
{
    for (int when = ON_READ; when <= ON_DRAIN; when++) {
        for (int other_first = 0; other_first < 2; other_first++) {
            open_pipe(4, 1);
            struct end *closer = when == ON_DRAIN ? &a : &b;
            closer->close_when = (enum close_when)when;
            closer->closes_twice = true;
            sw_stream_write(a.stream, "1234", 4);
            sw_stream_write(a.stream, "5", 1);
            sw_stream_finish(a.stream);
            if (other_first && when != ON_DRAIN) {
                sw_stream_close(a.stream);
                a.stream = NULL;
            }
            run();
            assert_null(closer->stream);
            assert_int_equal(b.reads, when == ON_READ ? 1 : 4);
            close_all();
        }
    }
}

TEST(tells_nothing_after_closing)
{
    open_pipe(100, 0);
    sw_stream_write(a.stream, "x", 1);
    sw_stream_close(b.stream);
    sw_stream_finish(a.stream); /* towards an end that is closed */
    b.stream = NULL;
    run();
    assert_int_equal(b.reads, 0);
    assert_false(b.has_ended);
    assert_true(a.has_ended);
    close_all();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("pipe", carries_bytes_both_ways_and_calls_back_later),
        CASE("pipe", cuts_into_pieces),
        CASE("pipe", refuses_what_is_beyond_the_limit_and_says_when_there_is_room),
        CASE("pipe", stops_while_paused),
        CASE("pipe", may_be_paused_before_the_start),
        CASE("pipe", may_still_write_after_the_other_side_has_ended),
        CASE("pipe", drops_what_is_pending_unless_finished),
        CASE("pipe", a_reset_overtakes_what_is_on_its_way),
        CASE("pipe", may_be_closed_from_every_callback_and_twice),
        CASE("pipe", tells_nothing_after_closing),
    };
    return RUN(tests);
}
