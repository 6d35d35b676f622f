/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timers of time.h: each belongs to an instance.
 */
#ifndef SW_RUNTIME_ALARM_H
#define SW_RUNTIME_ALARM_H

#include <slipway/time.h>

#include "base/list.h"
#include "base/loop.h"

struct sw_alarm {
    struct sw_link link;
    struct sw_instance *instance;
    sw_alarm_fn fn;
    void *arg;
    struct sw_timer timer;
};

#endif
