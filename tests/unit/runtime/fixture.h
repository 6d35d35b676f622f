/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core on a virtual loop and a transport in memory, with modules that a test makes up: what start
 * does is a function of the test, found through the module's configuration.
 */
#ifndef TESTS_UNIT_RUNTIME_FIXTURE_H
#define TESTS_UNIT_RUNTIME_FIXTURE_H

#include <slipway/apps.h>
#include <slipway/module.h>

#include "base/loop.h"
#include "base/metrics.h"
#include "kube/lease.h"
#include "runtime/core.h"

#include "../kube/fake_transport.h"
#include "fake_fetcher.h"

struct fixture {
    struct sw_loop *loop;
    struct fake_transport *transport;
    struct fake_fetcher *fetcher; /* of requests to other servers */
    struct sw_metrics *metrics;
    struct fake_log log;
    struct sw_core *core;
};

/* What the configuration of a made-up module is. */
struct made_up {
    int (*start)(struct sw_instance *self, void *arg);
    void *arg;
    struct sw_instance *self;                          /* set before start */
    void (*stop)(struct sw_instance *self, void *arg); /* may be NULL */
};

/* Three names, so that several can run together. */
extern const struct sw_module module_one, module_two, module_three;

/* options NULL: all namespaces, no election, our name is "me". */
void fixture_init(struct fixture *f, const struct sw_core_options *options);
void fixture_done(struct fixture *f);
/* Starts the module; fails the test if it does not. */
void fixture_add(struct fixture *f, const struct sw_module *module, struct made_up *made_up);
/* Opens the core and lets the loop turn. */
void fixture_open(struct fixture *f);
void fixture_turn(struct fixture *f);

/* The body of a list; items: JSON objects joined by commas. */
const char *list_of(const char *version, const char *items);
/* A Deployment; labels: JSON object. Until eight calls later. */
const char *deployment(const char *namespace_, const char *name, const char *uid,
                       const char *version, const char *labels);
/* An event of a watch. */
const char *event(const char *type, const char *object);

/* Answers the list of Deployments that is asked for, and opens the watch that follows. */
struct fake_request *serve_deployments(struct fixture *f, const char *version, const char *items);

/* The line is in what /metrics says. */
bool fixture_shows(struct fixture *f, const char *line);

#endif
