/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module whose start fails after it has registered things, which the core must take back.
 */
#include <errno.h>

#include <slipway/admission.h>
#include <slipway/apps.h>
#include <slipway/arbiter.h>
#include <slipway/queue.h>
#include <slipway/record.h>
#include <slipway/time.h>
#include <slipway/watch.h>

static enum sw_result work(struct sw_instance *self, void *arg, struct sw_run *run)
{
    (void)self;
    (void)arg;
    (void)run;
    return SW_DONE;
}

static void ask(struct sw_instance *self, const struct sw_question *question,
                struct sw_opinion *opinion)
{
    (void)self;
    (void)question;
    (void)opinion;
}

static void review(struct sw_instance *self, const struct sw_review *asked,
                   struct sw_review_answer *answer)
{
    (void)self;
    (void)asked;
    (void)answer;
}

static void sink(struct sw_instance *self, const struct sw_record *record)
{
    (void)self;
    (void)record;
}

static void ring(struct sw_instance *self, void *arg)
{
    (void)self;
    (void)arg;
}

static void on_leading(struct sw_instance *self, bool is_leading)
{
    (void)self;
    (void)is_leading;
}

static int start(struct sw_instance *self, const void *config)
{
    struct sw_queue_options queue = {.name = "failing", .fn = work};
    struct sw_watch_options watch = {.label_selector = "a=b"};
    struct sw_admission admission = {.path = "/failing", .kind = &sw_kind_deployment, .fn = review};

    (void)config;
    sw_queue_new(self, &queue);
    sw_alarm_set(sw_alarm_new(self, ring, NULL), 10);
    sw_on_leading(self, on_leading);
    if (sw_arbiter_register(self, &sw_kind_deployment, ask) || sw_sink_register(self, sink) ||
        sw_admission_register(self, &admission) || sw_watch(self, &sw_kind_deployment, &watch))
        return -EIO;
    return sw_fail(self, -EINVAL, "the %s is missing", "thing");
}

SW_API extern const struct sw_module sw_module_failing;
const struct sw_module sw_module_failing = {SW_MODULE_HEAD("failing"), .start = start};
