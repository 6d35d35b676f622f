/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for jansson's values. A document is hundreds of small pieces, made and freed together all
 * the time, between texts of some kilobytes that stay: what a general allocator copes with worst.
 * Here pieces of one size come from a list of free ones, and are never given back to the system.
 */
#ifndef TOOLS_SIM_POOL_H
#define TOOLS_SIM_POOL_H

/* Before the first value is made, by the program: jansson knows one allocator for all. Under a
 * sanitizer this does nothing, so that it sees each piece. */
void sw_sim_pool_use(void);

#endif
