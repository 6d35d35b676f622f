/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the policy says of one Deployment, from memory alone: who selects it, who would hold it, and
 * the words for people. Pure; asked at admission and whenever somebody else wants to release it.
 */
#ifndef SW_COORDINATION_OPINION_H
#define SW_COORDINATION_OPINION_H

#include "plan.h"

/* groups: the coordinations of its namespace, by name. */
void coord_opinion(const struct coord_seen_group *groups, size_t group_count, bool rests_running,
                   const struct sw_question *question, struct sw_opinion *opinion);

#endif
