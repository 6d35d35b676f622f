/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion: what may come next on the command line. kubectl 1.26 and newer runs
 * kubectl_complete-slipway with the words so far and reads lines "word<TAB>description", then
 * ":4" (KEP 2379 and cobra: no file names instead). The scripts for shells ask the same.
 */
#ifndef KS_COMPLETION_H
#define KS_COMPLETION_H

#include "options.h"

struct sw_buf;

/* The words behind "kubectl slipway"; the last one, perhaps empty, is to be completed. Prints. */
enum ks_exit ks_complete(int argc, char *const argv[]);

/* What the tables know, without the cluster: commands, flags, fixed values. Names that have to be
 * asked for are in *ret_names; then nothing was added. The words before the last are in *options,
 * as far as they could be read. */
void ks_complete_words(int argc, char *const argv[], struct sw_buf *out, enum ks_names *ret_names,
                       struct ks_options *ret_options);

/* -1: no such shell. */
int ks_completion_script(const char *shell, struct sw_buf *out);

#endif
