/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doubly linked lists of structs that carry the link themselves. A list is a link that stands for
 * its head; a link that is in no list points to itself, so removing it again does nothing.
 */
#ifndef SW_BASE_LIST_H
#define SW_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct sw_link {
    struct sw_link *next, *prev;
};

/* Before first use, of a head and of a member. */
static inline void sw_link_init(struct sw_link *link)
{
    link->next = link->prev = link;
}

/* Whether the member is in a list, or the list has a member. */
static inline bool sw_link_is_used(const struct sw_link *link)
{
    return link->next != link;
}

static inline void sw_link_remove(struct sw_link *link)
{
    link->next->prev = link->prev;
    link->prev->next = link->next;
    sw_link_init(link);
}

/* A member that is in another list is taken out of it. */
static inline void sw_link_add_last(struct sw_link *head, struct sw_link *link)
{
    sw_link_remove(link);
    link->prev = head->prev;
    link->next = head;
    link->prev->next = link;
    head->prev = link;
}

static inline void sw_link_add_first(struct sw_link *head, struct sw_link *link)
{
    sw_link_remove(link);
    sw_link_add_last(head->next, link);
}

/* The first member, or NULL. */
static inline struct sw_link *sw_link_first(const struct sw_link *head)
{
    return head->next != head ? head->next : NULL;
}

/* The member may remove itself from within the body. */
#define SW_LIST_EACH(link, head)                                                      \
    for (struct sw_link *link = (head)->next, *sw_next_ = link->next; link != (head); \
         link = sw_next_, sw_next_ = link->next)

#endif
