/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An Event is one object seen through two groups: "" names its parts as of old (message,
 * involvedObject, count), events.k8s.io otherwise (note, regarding, deprecatedCount). It is stored
 * in the form of the first, as the real server does.
 * https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
 */
#ifndef TOOLS_SIM_EVENT_FORM_H
#define TOOLS_SIM_EVENT_FORM_H

#include <jansson.h>
#include <stdbool.h>

struct sw_sim_kind;

bool sw_sim_is_event(const struct sw_sim_kind *kind);
/* The event in the form of that kind, with its apiVersion; a new document of its own. One that has
 * the form already stays as it is. */
json_t *sw_sim_event_as(const json_t *event, const struct sw_sim_kind *kind);
/* The name that a field selector of events.k8s.io means in the stored form; others are returned. */
const char *sw_sim_event_field(const struct sw_sim_kind *kind, const char *path);

#endif
