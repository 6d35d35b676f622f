/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events go by themselves, a time after they were last written (--event-ttl of the real server,
 * where etcd's leases do it). Each writing is a ticket; one whose event has been written since is
 * worth nothing any more.
 */
#include <string.h>

#include "api_internal.h"
#include "base/util.h"
#include "event_form.h"

struct ticket {
    struct sw_link link; /* in the order in which they are due: the time is the same for all */
    const struct sw_sim_kind *kind;
    uint64_t version, due_ms;
    char *name; /* behind the namespace */
    char namespace_[];
};

struct sw_sim_expiry {
    struct sw_sim_api *api;
    struct sw_link tickets;
    struct sw_timer timer;
};

static void wait_for_first(struct sw_sim_expiry *expiry)
{
    struct sw_link *first = sw_link_first(&expiry->tickets);
    if (first && !sw_timer_is_active(&expiry->timer)) {
        sw_timer_start_at(&expiry->timer, container_of(first, struct ticket, link)->due_ms);
    }
}

static void drop_ticket(struct ticket *ticket)
{
    sw_link_remove(&ticket->link);
    sw_free(ticket);
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_sim_expiry *expiry = container_of(timer, struct sw_sim_expiry, timer);
    struct sw_sim_store *store = expiry->api->store;
    uint64_t now_ms = sw_now_ms(expiry->api->loop);
    struct sw_link *first;
    while ((first = sw_link_first(&expiry->tickets)) != NULL) {
        struct ticket *ticket = container_of(first, struct ticket, link);
        if (ticket->due_ms > now_ms) {
            break;
        }
        const struct sw_sim_object *event =
            sw_sim_store_get(store, ticket->kind, ticket->namespace_, ticket->name);
        if (event && event->version == ticket->version) {
            sw_sim_store_remove(store, event);
        }
        drop_ticket(ticket);
    }
    wait_for_first(expiry);
}

struct sw_sim_expiry *sw_sim_expiry_new(struct sw_sim_api *api)
{
    struct sw_sim_expiry *expiry = SW_NEW(struct sw_sim_expiry);
    expiry->api = api;
    sw_link_init(&expiry->tickets);
    sw_timer_init(&expiry->timer, api->loop, on_timer);
    return expiry;
}

struct sw_sim_expiry *sw_sim_expiry_free(struct sw_sim_expiry *expiry)
{
    if (!expiry) {
        return NULL;
    }
    sw_timer_stop(&expiry->timer);
    SW_LIST_EACH (link, &expiry->tickets) {
        drop_ticket(container_of(link, struct ticket, link));
    }
    return sw_free(expiry);
}

void sw_sim_expiry_change(struct sw_sim_expiry *expiry, const struct sw_sim_change *change)
{
    const struct sw_sim_object *object = change->object;
    uint64_t ttl_ms = expiry->api->options.event_ttl_ms;
    if (!ttl_ms || change->type == SW_SIM_DELETED || !sw_sim_is_event(object->kind)) {
        return;
    }
    size_t space = strlen(object->namespace_) + 1, name = strlen(object->name) + 1;
    struct ticket *ticket = sw_calloc(1, sizeof(*ticket) + space + name);
    sw_link_init(&ticket->link);
    ticket->kind = object->kind;
    ticket->version = object->version;
    ticket->due_ms = sw_now_ms(expiry->api->loop) + ttl_ms;
    memcpy(ticket->namespace_, object->namespace_, space);
    ticket->name = memcpy(ticket->namespace_ + space, object->name, name);
    sw_link_add_last(&expiry->tickets, &ticket->link);
    wait_for_first(expiry);
}
