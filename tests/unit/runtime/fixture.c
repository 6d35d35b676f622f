/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core under test, and bodies for its requests.
 */
#include "fixture.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

#include "../test.h"

#define WALL_US INT64_C(1767225600000000)

static int start_made_up(struct sw_instance *self, const void *config)
{
    /* The core hands on what it was given; here it is not really constant. */
    struct made_up *made_up = (struct made_up *)(uintptr_t)config;

    *(struct made_up **)sw_state(self) = made_up;
    made_up->self = self;
    return made_up->start ? made_up->start(self, made_up->arg) : 0;
}

static void stop_made_up(struct sw_instance *self)
{
    struct made_up *made_up = *(struct made_up **)sw_state(self);

    if (made_up->stop)
        made_up->stop(self, made_up->arg);
}

#define MADE_UP(module_name)                                                      \
    {                                                                             \
        SW_MODULE_HEAD(module_name), .state_size = sizeof(struct made_up *),      \
                                     .start = start_made_up, .stop = stop_made_up \
    }

const struct sw_module module_one = MADE_UP("one");
const struct sw_module module_two = MADE_UP("two");
const struct sw_module module_three = MADE_UP("three");

void fixture_init(struct fixture *f, const struct sw_core_options *options)
{
    static const struct sw_core_options usual = {.username = "me"};
    struct sw_core_options with_fetcher = options ? *options : usual;

    f->loop = sw_loop_virtual_new(WALL_US, 1);
    f->transport = fake_transport_new(f->loop);
    f->metrics = sw_metrics_new();
    f->fetcher = fake_fetcher_new(f->loop);
    with_fetcher.fetcher = &f->fetcher->base;
    fake_log_init(&f->log, f->loop);
    f->core = sw_core_new(f->loop, &f->transport->base, &with_fetcher, f->metrics, &f->log.log);
}

void fixture_done(struct fixture *f)
{
    f->core = sw_core_free(f->core);
    sw_loop_virtual_advance(f->loop, 0);
    assert_int_equal(fake_open_count(f->transport), 0);
    fake_transport_free(f->transport);
    fake_fetcher_free(f->fetcher);
    sw_metrics_free(f->metrics);
    fake_log_done(&f->log);
    assert_int_equal(sw_loop_close(f->loop), 0);
}

void fixture_add(struct fixture *f, const struct sw_module *module, struct made_up *made_up)
{
    struct sw_error error = {0};

    if (sw_core_add(f->core, module, made_up, &error))
        fail_msg("%s", error.text);
}

void fixture_turn(struct fixture *f)
{
    sw_loop_virtual_advance(f->loop, 0);
}

void fixture_open(struct fixture *f)
{
    sw_core_open(f->core);
    fixture_turn(f);
}

/* ---- bodies ---- */

static char *next_text(void)
{
    static char texts[8][8192];
    static unsigned at;

    return texts[at++ % 8];
}

static const char *format(const char *form, ...) __attribute__((format(printf, 1, 2)));

static const char *format(const char *form, ...)
{
    char *text = next_text();
    va_list args;

    va_start(args, form);
    int len = vsnprintf(text, 8192, form, args);
    va_end(args);
    assert_in_range(len, 0, 8191);
    return text;
}

const char *list_of(const char *version, const char *items)
{
    return format("{\"kind\":\"DeploymentList\",\"apiVersion\":\"apps/v1\","
                  "\"metadata\":{\"resourceVersion\":\"%s\"},\"items\":[%s]}",
                  version, items);
}

const char *deployment(const char *namespace_, const char *name, const char *uid,
                       const char *version, const char *labels)
{
    return format("{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"metadata\":{"
                  "\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%s\","
                  "\"labels\":%s},\"spec\":{\"replicas\":1,\"template\":{}}}",
                  namespace_, name, uid, version, labels);
}

const char *event(const char *type, const char *object)
{
    return format("{\"type\":\"%s\",\"object\":%s}\n", type, object);
}

struct fake_request *serve_deployments(struct fixture *f, const char *version, const char *items)
{
    fake_answer(fake_the(f->transport, "/deployments?limit="), 200, NULL, list_of(version, items));
    struct fake_request *watch = fake_the(f->transport, "/deployments?watch=");
    fake_head(watch, 200, NULL);
    fixture_turn(f);
    return watch;
}

bool fixture_shows(struct fixture *f, const char *line)
{
    SW_AUTO(char, sw_free) whole = sw_asprintf("\n%s\n", line);
    struct sw_buf text;

    sw_buf_init(&text, SIZE_MAX);
    assert_int_equal(sw_metrics_write(f->metrics, SW_METRICS_TEXT, &text), 0);
    bool is_there = strstr(text.bytes, whole) != NULL;
    sw_buf_done(&text);
    return is_there;
}
