/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes an Event, what raises the count of one, and what comes too fast.
 */
#include "test.h"

#include <slipway/kind.h>

#include "book.h"

static const struct sw_kind widgets = {.version = "v1", .kind = "Widget", .plural = "widgets"};

static struct sw_record record_of(const char *uid, const char *reason, const char *message)
{
    return (struct sw_record){
        .type = SW_NORMAL,
        .reason = reason,
        .message = message,
        .component = "test",
        .kind = &widgets,
        .namespace_ = "n",
        .name = "w",
        .uid = uid,
        .resource_version = "1",
    };
}

TEST(a_repeat_raises_the_count_of_the_one_event)
{
    struct book *book = book_new();
    struct sw_record record = record_of("u", "Happened", "it happened");
    struct book_event *first = book_enter(book, &record, 0, 1000);
    struct book_event *again = book_enter(book, &record, 10, 2000);

    assert_ptr_equal(first, again);
    assert_int_equal(again->count, 2);
    assert_int_equal(again->first_us, 1000);
    assert_int_equal(again->last_us, 2000);
    record.message = "something else";
    assert_ptr_not_equal(book_enter(book, &record, 20, 3000), first);
    record.message = "it happened";
    record.type = SW_WARNING;
    assert_ptr_not_equal(book_enter(book, &record, 20, 3000), first);
    assert_int_equal(book_size(book), 3);
    book_free(book);
}

TEST(names_are_unique_and_begin_with_the_object)
{
    struct book *book = book_new();
    struct sw_record a = record_of("u", "A", "m"), b = record_of("u", "B", "m");

    struct book_event *first = book_enter(book, &a, 0, 1000);
    struct book_event *second = book_enter(book, &b, 0, 1000);
    assert_string_not_equal(first->name, second->name);
    assert_memory_equal(first->name, "w.", 2);
    book_free(book);
}

TEST(twenty_five_of_a_kind_then_one_each_ten_seconds)
{
    struct book *book = book_new();
    struct sw_record record = record_of("u", "Happened", "again");
    struct sw_record other = record_of("u", "Other", "again");

    for (int i = 0; i < 25; i++)
        assert_non_null(book_enter(book, &record, 0, 1000));
    assert_null(book_enter(book, &record, 0, 1000));
    assert_null(book_enter(book, &record, 9999, 1000));
    assert_non_null(book_enter(book, &record, 10000, 1000));
    assert_null(book_enter(book, &record, 10000, 1000));
    assert_non_null(book_enter(book, &other, 10000, 1000));
    book_free(book);
}

TEST(one_that_comes_too_fast_costs_no_other_its_event)
{
    struct book *book = book_new();
    struct sw_record noisy = record_of("noisy", "Happened", "again");
    char uid[16];
    uint64_t now = 0;
    int entered = 0;

    for (int i = 0; i < 25; i++)
        assert_non_null(book_enter(book, &noisy, now, 1000));
    for (int i = 0; i < 20000; i++, now += 50) {
        snprintf(uid, sizeof(uid), "u%d", i);
        struct sw_record record = record_of(uid, "Happened", "m");
        assert_non_null(book_enter(book, &record, now, 1000));
        entered += book_enter(book, &noisy, now, 1000) != NULL;
    }
    assert_int_equal(entered, now / 10000 - 1);
    book_free(book);
}

TEST(fifty_a_second_over_all)
{
    struct book *book = book_new();
    char uid[16];
    int entered = 0;

    for (int i = 0; i < 1000; i++) {
        snprintf(uid, sizeof(uid), "u%d", i);
        struct sw_record record = record_of(uid, "Happened", "m");
        entered += book_enter(book, &record, (uint64_t)i, 1000) != NULL;
    }
    assert_in_range(entered, 140, 150);
    book_free(book);
}

TEST(an_old_event_is_not_raised_but_begun_anew)
{
    struct book *book = book_new();
    struct sw_record record = record_of("u", "Happened", "m");
    struct book_event *event = book_enter(book, &record, 0, 1000);
    char *name = strdup(event->name);

    event->is_stored = true;
    assert_ptr_equal(book_enter(book, &record, 3600 * 1000, 9000), event);
    assert_string_not_equal(event->name, name);
    assert_false(event->is_stored);
    assert_int_equal(event->count, 1);
    assert_int_equal(event->first_us, 9000);
    free(name);
    book_free(book);
}

TEST(one_that_goes_on_for_hours_is_one_event)
{
    struct book *book = book_new();
    struct sw_record record = record_of("u", "Happened", "m");
    struct book_event *event = NULL;

    for (uint64_t hour = 0; hour < 5; hour++) {
        event = book_enter(book, &record, hour * 3599 * 1000, 1000);
        event->is_stored = true;
    }
    assert_int_equal(event->count, 5);
    book_free(book);
}

TEST(an_expired_event_keeps_its_count_under_a_new_name)
{
    struct book *book = book_new();
    struct sw_record record = record_of("u", "Happened", "m");
    struct book_event *event = book_enter(book, &record, 0, 1000);

    book_enter(book, &record, 0, 2000);
    event->is_stored = true;
    book_renew(book, event, 3000);
    assert_false(event->is_stored);
    assert_int_equal(event->count, 2);
    /* Of what it counts; it does not begin after its end. */
    assert_int_equal(event->first_us, 1000);
    assert_int_equal(event->last_us, 2000);
    book_free(book);
}

TEST(the_number_remembered_is_bounded_and_the_queued_are_kept)
{
    struct book *book = book_new();
    char uid[16];
    struct book_event *queued = NULL;

    for (uint64_t i = 0; i < BOOK_EVENTS_MAX + 100; i++) {
        snprintf(uid, sizeof(uid), "u%d", (int)i);
        struct sw_record record = record_of(uid, "Happened", "m");
        struct book_event *event = book_enter(book, &record, i * 1000, 1000);
        if (!event)
            continue; /* two reasons that share a bucket */
        if (!queued) {
            queued = event;
            queued->is_queued = true;
        }
    }
    assert_true(book_size(book) <= BOOK_EVENTS_MAX);
    assert_string_equal(queued->uid, "u0");
    book_free(book);
}

TEST(a_long_message_is_cut_between_characters)
{
    struct book *book = book_new();
    char text[3000];

    for (size_t i = 0; i + 1 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    text[sizeof(text) - 2] = text[sizeof(text) - 1] = '\0';
    struct sw_record record = record_of("u", "Happened", text);
    struct book_event *event = book_enter(book, &record, 0, 1000);
    size_t len = strlen(event->message);
    assert_in_range(len, 1000, 1024);
    assert_string_equal(event->message + len - 3, "...");
    assert_int_equal((unsigned char)event->message[len - 4], 0xa9);
    book_free(book);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("book", a_repeat_raises_the_count_of_the_one_event),
        CASE("book", names_are_unique_and_begin_with_the_object),
        CASE("book", twenty_five_of_a_kind_then_one_each_ten_seconds),
        CASE("book", one_that_comes_too_fast_costs_no_other_its_event),
        CASE("book", fifty_a_second_over_all),
        CASE("book", an_old_event_is_not_raised_but_begun_anew),
        CASE("book", one_that_goes_on_for_hours_is_one_event),
        CASE("book", an_expired_event_keeps_its_count_under_a_new_name),
        CASE("book", the_number_remembered_is_bounded_and_the_queued_are_kept),
        CASE("book", a_long_message_is_cut_between_characters),
    };
    return RUN(tests);
}
