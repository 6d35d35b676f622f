/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every exporter tells of its process (process_*), and slipway_build_info.
 */
#ifndef SW_RUNTIME_PROCESS_METRICS_H
#define SW_RUNTIME_PROCESS_METRICS_H

struct sw_loop;
struct sw_metrics;
struct sw_process_metrics;

/* Both are borrowed. */
struct sw_process_metrics *sw_process_metrics_new(struct sw_loop *loop, struct sw_metrics *metrics);
struct sw_process_metrics *sw_process_metrics_free(struct sw_process_metrics *process);

#endif
