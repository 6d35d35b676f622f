/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream and one store for each kind; deltas go out to every subscriber, filtered by what it
 * asked for. An object that begins or ceases to match a subscriber's selector is ADDED or DELETED
 * to that subscriber, as the API server would tell it over a stream of its own.
 */
#include "runtime/kinds.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/decode.h"
#include "kube/reflector.h"
#include "kube/store.h"
#include "runtime/core.h"
#include "runtime/instance.h"

struct subscription {
    struct sw_link link;
    struct sw_instance *instance;
    char *namespace_; /* NULL: all of the stream */
    char *name;       /* NULL: any */
    struct sw_selector *selector;
    sw_delta_fn on_delta;
    sw_listed_fn on_listed;
    void *arg;
    bool is_optional;
    bool is_aside;
};

/* Whom a stream or a subscriber is about. */
struct scope {
    const char *namespace_; /* NULL: all */
    const char *name;       /* NULL: any */
    const struct sw_selector *selector;
};

static struct sw_kind_entry *entry_of(struct sw_link *link)
{
    return container_of(link, struct sw_kind_entry, link);
}

static struct subscription *subscription_of(struct sw_link *link)
{
    return container_of(link, struct subscription, link);
}

/* ---- who gets what ---- */

static bool selects(struct scope scope, const struct sw_object *object)
{
    if (scope.namespace_ && strcmp(scope.namespace_, object->namespace_) != 0)
        return false;
    if (scope.name && strcmp(scope.name, object->name) != 0)
        return false;
    return !scope.selector || sw_selector_matches(scope.selector, &object->labels);
}

static void deliver(const struct subscription *s, const struct sw_change *change)
{
    struct scope scope = {s->namespace_, s->name, s->selector};
    struct sw_delta delta = {
        .old = change->old && selects(scope, change->old) ? change->old : NULL,
        .now = change->now && selects(scope, change->now) ? change->now : NULL,
        .is_from_list = change->is_from_list,
    };

    if (!s->on_delta || (!delta.old && !delta.now))
        return;
    delta.type = !delta.old ? SW_ADDED : delta.now ? SW_MODIFIED : SW_DELETED;
    s->on_delta(s->instance, s->arg, &delta);
}

static void on_change(void *arg, const struct sw_change *change)
{
    struct sw_kind_entry *entry = arg;

    SW_LIST_EACH (l, &entry->subscriptions)
        deliver(subscription_of(l), change);
}

static void say_listed(const struct sw_kind_entry *entry)
{
    const struct sw_core *core = entry->core;

    sw_log_info(&core->log, "listed, watching", SW_STR("kind", entry->name),
                SW_INT("objects", sw_store_size(entry->store)),
                SW_MS("took", sw_now_ms(core->loop) - entry->opened_ms));
}

static bool is_waited_for(const struct sw_kind_entry *entry)
{
    return !entry->is_optional && !entry->is_aside;
}

static void on_listed(void *arg, bool is_consistent)
{
    struct sw_kind_entry *entry = arg;
    struct sw_core *core = entry->core;

    if (!entry->is_listed) {
        entry->is_listed = true;
        core->kinds.unlisted -= is_waited_for(entry);
        say_listed(entry);
    }
    SW_LIST_EACH (l, &entry->subscriptions) {
        const struct subscription *s = subscription_of(l);
        if (s->on_listed)
            s->on_listed(s->instance, s->arg);
    }
    sw_leading_on_listed(&core->leading, entry, is_consistent);
}

/* ---- opening ---- */

static bool is_watched(const struct sw_kind_entry *entry)
{
    return sw_link_is_used(&entry->subscriptions);
}

static char *text_of(const struct sw_selector *selector)
{
    return selector ? sw_selector_text(selector) : NULL;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* What all subscribers agree on; *ret_selector is new memory. */
static void narrow(const struct sw_kind_entry *entry, const char **ret_namespace,
                   const char **ret_name, char **ret_selector)
{
    const struct subscription *first = subscription_of(entry->subscriptions.next);
    const char *namespace_ = first->namespace_, *name = first->name;
    char *selector = text_of(first->selector);

    SW_LIST_EACH (l, &entry->subscriptions) {
        const struct subscription *s = subscription_of(l);
        SW_AUTO(char, sw_free) text = text_of(s->selector);
        if (!same(namespace_, s->namespace_))
            namespace_ = NULL;
        if (!same(name, s->name))
            name = NULL;
        if (!same(selector, text))
            selector = sw_free(selector);
    }
    *ret_namespace = namespace_;
    *ret_name = name;
    *ret_selector = selector;
}

static void open_entry(struct sw_kind_entry *entry)
{
    struct sw_core *core = entry->core;
    struct sw_reflector_options options = {.kind = entry->kind,
                                           .streams_lists = core->streams_lists};
    SW_AUTO(char, sw_free) selector = NULL;
    SW_AUTO(char, sw_free) field_selector = NULL;
    const char *name;

    narrow(entry, &options.namespace_, &name, &selector);
    options.label_selector = selector;
    options.field_selector = field_selector = name ? sw_asprintf("metadata.name=%s", name) : NULL;
    entry->is_optional = entry->is_aside = true;
    SW_LIST_EACH (l, &entry->subscriptions) {
        entry->is_optional = entry->is_optional && subscription_of(l)->is_optional;
        entry->is_aside = entry->is_aside && subscription_of(l)->is_aside;
    }
    options.is_optional = entry->is_optional;

    entry->namespace_ = options.namespace_ ? sw_strdup(options.namespace_) : NULL;
    entry->object_name = name ? sw_strdup(name) : NULL;
    if (selector) {
        int code = sw_selector_parse_text(selector, &entry->selector, (char[256]){0}, 256);
        sw_assert(code == 0); /* it is the text of one that was parsed */
    }
    core->kinds.unlisted += is_waited_for(entry);
    entry->opened_ms = sw_now_ms(core->loop);
    entry->store = sw_store_new(core->loop, entry->decoder, on_change, entry);
    entry->reflector = sw_reflector_new(core->loop, core->client, entry->decoder, entry->store,
                                        &options, core->metrics, &core->log, on_listed, entry);
}

void sw_kinds_open(struct sw_kinds *kinds)
{
    SW_LIST_EACH (l, &kinds->all)
        if (is_watched(entry_of(l)))
            open_entry(entry_of(l));
}

/* ---- entries ---- */

void sw_kinds_init(struct sw_kinds *kinds, struct sw_core *core)
{
    kinds->core = core;
    kinds->intern = sw_intern_new();
    sw_link_init(&kinds->all);
}

static void entry_free(struct sw_kind_entry *entry)
{
    sw_reflector_free(entry->reflector);
    sw_store_free(entry->store);
    sw_decoder_free(entry->decoder);
    sw_selector_free(entry->selector);
    sw_link_remove(&entry->link);
    sw_free(entry->namespace_);
    sw_free(entry->object_name);
    sw_free(entry->name);
    sw_free(entry);
}

void sw_kinds_done(struct sw_kinds *kinds)
{
    while (sw_link_is_used(&kinds->all))
        entry_free(entry_of(kinds->all.next));
    kinds->intern = sw_intern_free(kinds->intern);
}

struct sw_kind_entry *sw_kinds_find(const struct sw_kinds *kinds, const struct sw_kind *kind)
{
    for (struct sw_link *l = kinds->all.next; l != &kinds->all; l = l->next)
        if (entry_of(l)->kind == kind)
            return entry_of(l);
    return NULL;
}

struct sw_kind_entry *sw_kinds_entry(struct sw_kinds *kinds, const struct sw_kind *kind)
{
    struct sw_kind_entry *entry = sw_kinds_find(kinds, kind);

    if (entry)
        return entry;
    entry = SW_NEW(struct sw_kind_entry);
    entry->core = kinds->core;
    entry->kind = kind;
    entry->name = sw_asprintf("%s%s%s", kind->plural, kind->group[0] ? "." : "", kind->group);
    entry->decoder = sw_decoder_new(kind, kinds->intern);
    sw_link_init(&entry->subscriptions);
    sw_link_init(&entry->link);
    sw_link_add_last(&kinds->all, &entry->link);
    return entry;
}

static void subscription_free(struct subscription *s)
{
    sw_link_remove(&s->link);
    sw_selector_free(s->selector);
    sw_free(s->namespace_);
    sw_free(s->name);
    sw_free(s);
}

static void unsubscribe(struct sw_kind_entry *entry, const struct sw_instance *instance)
{
    SW_LIST_EACH (l, &entry->subscriptions)
        if (subscription_of(l)->instance == instance)
            subscription_free(subscription_of(l));
}

void sw_kinds_forget(struct sw_kinds *kinds, const struct sw_instance *instance)
{
    SW_LIST_EACH (l, &kinds->all)
        unsubscribe(entry_of(l), instance);
}

bool sw_kinds_are_listed(const struct sw_kinds *kinds)
{
    return kinds->unlisted == 0;
}

void sw_kinds_unlisted_text(const struct sw_kinds *kinds, struct sw_buf *out)
{
    for (struct sw_link *l = kinds->all.next; l != &kinds->all; l = l->next) {
        const struct sw_kind_entry *entry = entry_of(l);
        if (entry->reflector && !entry->is_listed && is_waited_for(entry))
            sw_buf_printf(out, "%s%s", out->len ? ", " : "", entry->name);
    }
}

/* ---- what answers say ---- */

const struct sw_object *sw_kind_learn_take(struct sw_kind_entry *entry,
                                           struct sw_object *object_taken,
                                           struct sw_object **ret_own)
{
    struct scope scope = {entry->namespace_, entry->object_name, entry->selector};

    *ret_own = NULL;
    if (!entry->store || !selects(scope, object_taken)) {
        /* No stream would ever tell of its changes: it must not get into the store, and one of its
         * name that is there does not match any longer. */
        if (entry->store)
            sw_store_delete(entry->store, object_taken->namespace_, object_taken->name,
                            object_taken->uid, object_taken->resource_version);
        *ret_own = object_taken;
        return object_taken;
    }
    /* Taken means: these may be gone when the store returns. */
    SW_AUTO(char, sw_free) namespace_ = sw_strdup(object_taken->namespace_);
    SW_AUTO(char, sw_free) name = sw_strdup(object_taken->name);
    sw_store_put_take(entry->store, object_taken);
    return sw_store_get(entry->store, namespace_, name);
}

void sw_kind_learn_gone(struct sw_kind_entry *entry, const char *namespace_, const char *name,
                        const char *uid)
{
    if (entry->store && uid[0])
        sw_store_delete(entry->store, namespace_, name, uid, "");
}

/* ---- watch.h ---- */

static int subscribe_namespace(struct sw_instance *self, const struct sw_kind *kind,
                               const char *asked, char **ret_namespace)
{
    const char *scope = kind->is_cluster_scoped ? NULL : self->core->namespace_;

    if (scope && asked && strcmp(scope, asked) != 0)
        return sw_fail(self, -EINVAL,
                       "it watches %s in namespace %s, but slipway is limited to namespace %s",
                       kind->plural, asked, scope);
    const char *namespace_ = asked ? asked : scope;
    *ret_namespace = namespace_ ? sw_strdup(namespace_) : NULL;
    return 0;
}

static struct subscription *subscribe(struct sw_instance *self, const struct sw_kind *kind,
                                      const struct sw_watch_options *options)
{
    struct sw_kind_entry *entry = sw_kinds_entry(&self->core->kinds, kind);
    struct subscription *s = SW_NEW(struct subscription);

    sw_link_init(&s->link);
    s->instance = self;
    s->on_delta = options->on_delta;
    s->on_listed = options->on_listed;
    s->arg = options->arg;
    s->is_optional = options->is_optional;
    sw_link_add_last(&entry->subscriptions, &s->link);
    return s;
}

void sw_kinds_watch_aside(struct sw_instance *self, const struct sw_kind *kind, const char *name,
                          const struct sw_watch_options *options)
{
    sw_assert(self->is_starting && kind->is_cluster_scoped == !options->namespace_);
    struct subscription *s = subscribe(self, kind, options);

    s->namespace_ = options->namespace_ ? sw_strdup(options->namespace_) : NULL;
    s->name = sw_strdup(name);
    s->is_aside = true;
}

int sw_watch(struct sw_instance *self, const struct sw_kind *kind,
             const struct sw_watch_options *options)
{
    struct sw_selector *selector = NULL;
    char why[256] = "";
    char *namespace_ = NULL;
    int code;

    sw_assert(self->is_starting);
    code = subscribe_namespace(self, kind, options->namespace_, &namespace_);
    if (code)
        return code;
    if (options->label_selector) {
        code = sw_selector_parse_text(options->label_selector, &selector, why, sizeof(why));
        if (code) {
            sw_free(namespace_);
            return sw_fail(self, code, "label selector \"%s\" of %s: %s", options->label_selector,
                           kind->plural, why);
        }
    }
    struct subscription *s = subscribe(self, kind, options);
    s->namespace_ = namespace_;
    s->selector = selector;
    return 0;
}

static const struct sw_store *store_of(const struct sw_instance *self, const struct sw_kind *kind)
{
    const struct sw_kind_entry *entry = sw_kinds_find(&self->core->kinds, kind);

    return entry ? entry->store : NULL;
}

bool sw_is_synced(const struct sw_instance *self, const struct sw_kind *kind)
{
    const struct sw_kind_entry *entry = sw_kinds_find(&self->core->kinds, kind);

    return entry && entry->is_listed;
}

void sw_relist(struct sw_instance *self, const struct sw_kind *kind)
{
    struct sw_kind_entry *entry = sw_kinds_find(&self->core->kinds, kind);

    if (entry && entry->reflector)
        sw_reflector_relist(entry->reflector);
}

const struct sw_object *sw_lookup(const struct sw_instance *self, const struct sw_kind *kind,
                                  const char *namespace_, const char *name)
{
    const struct sw_store *store = store_of(self, kind);

    return store ? sw_store_get(store, namespace_, name) : NULL;
}

struct filtered_visit {
    const struct sw_selector *selector;
    sw_visit_fn visit;
    void *arg;
};

static bool visit_if_selected(void *arg, const struct sw_object *object)
{
    const struct filtered_visit *f = arg;

    return !sw_selector_matches(f->selector, &object->labels) || f->visit(f->arg, object);
}

void sw_each(const struct sw_instance *self, const struct sw_kind *kind, const char *namespace_,
             const struct sw_selector *selector, sw_visit_fn visit, void *arg)
{
    const struct sw_store *store = store_of(self, kind);
    struct filtered_visit filtered = {selector, visit, arg};

    if (!store)
        return;
    if (selector)
        sw_store_each(store, namespace_, visit_if_selected, &filtered);
    else
        sw_store_each(store, namespace_, visit, arg);
}

void sw_each_owned(const struct sw_instance *self, const struct sw_kind *kind,
                   const char *owner_uid, sw_visit_fn visit, void *arg)
{
    const struct sw_store *store = store_of(self, kind);

    if (store)
        sw_store_each_owned(store, owner_uid, visit, arg);
}
