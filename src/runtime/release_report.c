/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was let go of, as a table.
 */
#include <string.h>

#include "base/buf.h"
#include "runtime/release_all_internal.h"

/* One that was marked again after it was let go of is told of once: with what mattered. */
static void hide_repeats(struct sw_release_all *all)
{
    for (size_t i = all->again; i < all->item_count; i++) {
        struct sw_release_item *later = all->items[i];
        for (size_t k = 0; k < i; k++) {
            struct sw_release_item *earlier = all->items[k];
            if (earlier->kind != later->kind || strcmp(earlier->name, later->name) != 0 ||
                strcmp(earlier->namespace_, later->namespace_) != 0)
                continue;
            (later->resumes || later->has_failed ? earlier : later)->is_hidden = true;
        }
    }
}

static void count(struct sw_release_all *all)
{
    for (size_t i = 0; i < all->item_count; i++) {
        const struct sw_release_item *item = all->items[i];
        if (item->is_hidden)
            continue;
        if (item->has_failed)
            all->result.failed++;
        else if (item->resumes)
            all->result.resumed++;
        else
            all->result.unmarked++;
    }
}

/* Of another kind than most: "StatefulSet db". */
static int name_len(const struct sw_release_item *item)
{
    size_t kind = item->kind == &sw_kind_deployment ? 0 : strlen(item->kind->kind) + 1;

    return (int)(kind + strlen(item->name));
}

static void print_name(const struct sw_release_all *all, const struct sw_release_item *item,
                       int width)
{
    if (item->kind != &sw_kind_deployment)
        sw_buf_printf(all->out, "%s ", item->kind->kind);
    sw_buf_printf(all->out, "%s%*s", item->name, width - name_len(item), "");
}

static void print_table(const struct sw_release_all *all)
{
    int namespace_ = (int)strlen("NAMESPACE"), name = (int)strlen("DEPLOYMENT");
    int held_by = (int)strlen("HELD BY");

    for (size_t i = 0; i < all->item_count; i++) {
        const struct sw_release_item *item = all->items[i];
        namespace_ = SW_MAX(namespace_, (int)strlen(item->namespace_));
        name = SW_MAX(name, name_len(item));
        held_by = SW_MAX(held_by, (int)strlen(item->held_by));
    }
    if (all->item_count > 0)
        sw_buf_printf(all->out, "%-*s  %-*s  %-*s  RESULT\n", namespace_, "NAMESPACE", name,
                      "DEPLOYMENT", held_by, "HELD BY");
    for (size_t i = 0; i < all->item_count; i++) {
        const struct sw_release_item *item = all->items[i];
        if (item->is_hidden)
            continue;
        sw_buf_printf(all->out, "%-*s  ", namespace_, item->namespace_);
        print_name(all, item, name);
        sw_buf_printf(all->out, "  %-*s  %s\n", held_by, item->held_by[0] ? item->held_by : "-",
                      item->result);
    }
}

static void print_left(const struct sw_release_all *all)
{
    size_t paused = 0, rolling = 0, late = 0;

    for (size_t i = 0; i < all->item_count; i++) {
        const struct sw_release_item *item = all->items[i];
        paused += item->is_left_paused && !item->is_hidden;
        rolling += item->is_left_rolling && !item->is_hidden;
        late += item->is_late && !item->is_hidden;
    }
    sw_buf_printf(all->out,
                  "left: %zu paused by people, %zu rolling; resumed together when the time was "
                  "over: %zu\n",
                  paused, rolling, late);
}

static void print_sum(const struct sw_release_all *all)
{
    const struct sw_release_all_result *result = &all->result;

    if (!result->is_list_complete)
        sw_buf_printf(all->out, "cannot list Deployments: %s\n", all->list_error.text);
    else if (all->item_count == 0)
        sw_buf_puts(all->out, "slipway holds nothing here\n");
    else
        sw_buf_printf(all->out, "%s: %zu resumed, %zu unmarked, %zu failed\n",
                      all->options.is_dry_run ? "would be" : "done", result->resumed,
                      result->unmarked, result->failed);
    if (sw_release_is_in_order(all) && !all->options.is_dry_run && all->item_count > 0)
        print_left(all);
}

void sw_release_report(struct sw_release_all *all)
{
    hide_repeats(all);
    count(all);
    print_table(all);
    print_sum(all);
}
