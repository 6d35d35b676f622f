/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock, chance and timers for modules: those of the loop, so that a test replaces them all.
 */
#include "runtime/alarm.h"

#include "base/util.h"
#include "runtime/core.h"
#include "runtime/instance.h"

uint64_t sw_time_ms(const struct sw_instance *self)
{
    return sw_now_ms(self->core->loop);
}

int64_t sw_time_wall_us(const struct sw_instance *self)
{
    return sw_wall_us(self->core->loop);
}

uint64_t sw_time_random(struct sw_instance *self)
{
    return sw_random(self->core->loop);
}

static void fire(struct sw_timer *timer)
{
    struct sw_alarm *alarm = container_of(timer, struct sw_alarm, timer);

    alarm->fn(alarm->instance, alarm->arg);
}

/* Weak: what a module waits for must not keep a process alive that has been told to end. */
struct sw_alarm *sw_alarm_new(struct sw_instance *self, sw_alarm_fn fn, void *arg)
{
    struct sw_alarm *alarm = SW_NEW(struct sw_alarm);

    alarm->instance = self;
    alarm->fn = fn;
    alarm->arg = arg;
    sw_timer_init_weak(&alarm->timer, self->core->loop, fire);
    sw_link_init(&alarm->link);
    sw_link_add_last(&self->alarms, &alarm->link);
    return alarm;
}

void sw_alarm_set(struct sw_alarm *alarm, uint64_t after_ms)
{
    sw_timer_start(&alarm->timer, after_ms);
}

void sw_alarm_clear(struct sw_alarm *alarm)
{
    sw_timer_stop(&alarm->timer);
}

void sw_alarm_free(struct sw_alarm *alarm)
{
    if (!alarm)
        return;
    sw_timer_stop(&alarm->timer);
    sw_link_remove(&alarm->link);
    sw_free(alarm);
}
