/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the webhook configuration in the cluster up to date: the MutatingWebhookConfiguration of
 * the configured name and, where a module has registered a validating path, the
 * ValidatingWebhookConfiguration of the same name. What is kept and what is the operator's stands
 * in webhook_mend.h.
 *
 * It is started like a module, after all others, and uses what modules use. Every replica watches
 * the object (by its name alone) and shows in a metric whether it is right; the leader mends it.
 * Neither readiness nor leading waits for it.
 *
 *   the object               the leader
 *   is not there             says so once, and waits: chart or kubectl make it
 *   lacks an entry of ours   says so once; mends the others
 *   has an annotation that   says so once, where certificates are our own: nobody would trust them
 *   gives caBundle away
 *   differs                  patches it, on the version and the places that it has seen
 *   is changed back again    patches it each time, but less and less often (PACE_ in the source),
 *   and again                and says so once
 *   may not be patched       says so once, and tries again, rarely
 *
 * caBundle is the file ca.crt beside the webhook's certificate, read again whenever it changes.
 * Without the file caBundle stays as it is; with one that cannot be used, what was read before
 * counts on. A file that holds a private key is not used: the object can be read by many. With
 * certificates of our own (self_signed.h) caBundle is what the Secret says is to be trusted.
 */
#ifndef SW_RUNTIME_WEBHOOK_CONFIGURATION_H
#define SW_RUNTIME_WEBHOOK_CONFIGURATION_H

struct sw_module;
struct sw_self_signed_options;

struct sw_webhook_configuration_options {
    const char *name;        /* of the objects */
    const char *cert_folder; /* with ca.crt, or without; NULL: certificates of our own */
    const struct sw_self_signed_options *self_signed; /* in which case these are needed */
};

/* For sw_core_add, last; its config is a struct sw_webhook_configuration_options. */
extern const struct sw_module sw_webhook_configuration;

#endif
