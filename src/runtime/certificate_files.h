/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A serving certificate in files: tls.crt and tls.key of a folder (a mounted Secret), read again
 * whenever they change. A pair that cannot be used is reported and the one before stays. One whose
 * end is near, or past, is served on and warned of, each day anew: whoever makes the files has not
 * renewed them.
 */
#ifndef SW_RUNTIME_CERTIFICATE_FILES_H
#define SW_RUNTIME_CERTIFICATE_FILES_H

struct sw_certificate_files;
struct sw_log;
struct sw_loop;
struct sw_metrics;
struct sw_tls_config;

/* config: of the new pair; borrowed for the call. Also for the first one, before open returns. */
typedef void (*sw_certificate_files_fn)(void *arg, struct sw_tls_config *config);

/* whose: "webhook", for log and metrics; a constant. folder and whoever is told are borrowed. Does
 * not keep the loop alive. */
int sw_certificate_files_open(struct sw_loop *loop, const char *folder, const char *whose,
                              struct sw_metrics *metrics, const struct sw_log *log,
                              sw_certificate_files_fn fn, void *arg,
                              struct sw_certificate_files **ret_files);
void sw_certificate_files_close(struct sw_certificate_files *files); /* takes NULL */
/* Why there is none that can be used; "" where there is one. */
const char *sw_certificate_files_why(const struct sw_certificate_files *files);

#endif
