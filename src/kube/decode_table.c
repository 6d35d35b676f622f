/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles a field table. The paths are first put into a tree of linked nodes, then written out in
 * the order of a walk. A mistake in a table is a mistake of whoever wrote it, so it is asserted.
 */
#include <string.h>

#include "base/util.h"
#include "kube/table.h"

const char sw_empty[1] = "";

enum { DEFAULT_LIMIT = 10000, DEFAULT_RAW_LIMIT = 64 * 1024 };

/* ---- building ---- */

struct twig {
    char *key;
    size_t key_len;
    struct twig *child, *next; /* in the order in which they were bound */
    const struct sw_bind **binds;
    size_t bind_count;
};

static struct twig *twig_new(const char *key, size_t len)
{
    struct twig *twig = SW_NEW(struct twig);
    twig->key = sw_strndup(key, len);
    twig->key_len = len;
    return twig;
}

static void twig_free(struct twig *twig)
{
    while (twig) {
        struct twig *next = twig->next;
        twig_free(twig->child);
        sw_free(twig->binds);
        sw_free(twig->key);
        sw_free(twig);
        twig = next;
    }
}

/* RFC 6901: ~1 is a slash, ~0 a tilde. Returns the new length. */
static size_t unescape_key(char *key, size_t len)
{
    size_t to = 0;
    for (size_t from = 0; from < len; from++, to++) {
        key[to] = key[from];
        if (key[from] == '~') {
            sw_assert(from + 1 < len && (key[from + 1] == '0' || key[from + 1] == '1'));
            key[to] = key[++from] == '0' ? '~' : '/';
        }
    }
    return to;
}

static struct twig *descend(struct twig *parent, const char *part, size_t part_len)
{
    struct twig *twig = twig_new(part, part_len);
    twig->key_len = unescape_key(twig->key, part_len);
    struct twig **link = &parent->child;
    for (; *link; link = &(*link)->next) {
        if ((*link)->key_len == twig->key_len &&
            memcmp((*link)->key, twig->key, twig->key_len) == 0) {
            twig_free(twig);
            return *link;
        }
    }
    *link = twig;
    return twig;
}

static void bind_path(struct twig *root, const struct sw_bind *bind)
{
    struct twig *twig = root;
    for (const char *p = bind->path; *p;) {
        sw_assert(*p == '/'); /* a JSON pointer */
        size_t len = strcspn(p + 1, "/");
        twig = descend(twig, p + 1, len);
        p += len + 1;
    }
    twig->binds = sw_realloc(twig->binds, twig->bind_count + 1, sizeof(*twig->binds));
    twig->binds[twig->bind_count++] = bind;
}

static void bind_paths(struct twig *root, const struct sw_bind *fields)
{
    for (; fields && fields->path; fields++) {
        bind_path(root, fields);
    }
}

/* ---- slots ---- */

static size_t member_size(int type)
{
    switch (type) {
    case SW_BIND_STRING:
    case SW_BIND_ENUM:
    case SW_BIND_CONTROLLER:
        return sizeof(const char *);
    case SW_BIND_INT32:
        return sizeof(int32_t);
    case SW_BIND_INT64:
    case SW_BIND_TIME:
        return sizeof(int64_t);
    case SW_BIND_BOOL:
    case SW_BIND_PRESENT:
        return sizeof(bool);
    case SW_BIND_INT_OR_PERCENT:
        return sizeof(struct sw_int_or_percent);
    case SW_BIND_STRINGS:
        return sizeof(struct sw_strings);
    case SW_BIND_LABELS:
    case SW_BIND_ANNOTATIONS:
    case SW_BIND_VALUES:
        return sizeof(struct sw_labels);
    case SW_BIND_CONDITIONS:
        return sizeof(struct sw_conditions);
    case SW_BIND_LIST:
        return sizeof(struct sw_list);
    case SW_BIND_HASH:
        return sizeof(struct sw_hash128);
    case SW_BIND_RAW:
        return sizeof(struct sw_raw);
    case SW_BIND_OBJECT:
        return 0;
    default:
        return SIZE_MAX; /* no type */
    }
}

static struct sw_table *element_table(const struct sw_bind *bind)
{
    switch ((int)bind->type) {
    case SW_BIND_LIST:
        sw_assert(bind->element && bind->element_size > 0);
        return sw_table_new(NULL, bind->element, bind->element_size);
    case SW_BIND_CONDITIONS:
        return sw_table_new(NULL, sw_condition_fields, sizeof(struct sw_condition));
    case SW_BIND_CONTROLLER:
        return sw_table_new(NULL, sw_owner_fields, sizeof(struct sw_owner));
    default:
        return NULL;
    }
}

/* What stands in the struct while the key is absent; all else is zero. */
static void put_default(struct sw_table *table, const struct sw_slot *slot)
{
    char *member = table->blank + slot->offset;
    int32_t narrow = (int32_t)slot->otherwise;
    bool truth = slot->otherwise != 0;
    switch (slot->type) {
    case SW_BIND_INT32:
        sw_assert(narrow == slot->otherwise);
        memcpy(member, &narrow, sizeof(narrow));
        break;
    case SW_BIND_INT64:
        memcpy(member, &slot->otherwise, sizeof(slot->otherwise));
        break;
    case SW_BIND_BOOL:
        memcpy(member, &truth, sizeof(truth));
        break;
    default:
        sw_assert(slot->otherwise == 0); /* means nothing for this type */
    }
}

static void add_slot(struct sw_table *table, const struct sw_bind *bind)
{
    size_t size = member_size((int)bind->type);
    sw_assert(size != SIZE_MAX && bind->offset + size <= table->size);
    sw_assert(bind->limit < UINT32_MAX);
    struct sw_slot *slot = &table->slots[table->slot_count++];
    size_t limit = bind->type == SW_BIND_RAW ? DEFAULT_RAW_LIMIT : DEFAULT_LIMIT;
    *slot = (struct sw_slot){
        .type = (int)bind->type,
        .limit = (uint32_t)(bind->limit || (int)bind->type == SW_BIND_OBJECT ? bind->limit : limit),
        .offset = bind->offset,
        .size = size,
        .otherwise = bind->otherwise,
        .path = bind->path,
        .element = element_table(bind),
    };
    put_default(table, slot);
}

/* ---- writing out ---- */

struct tally {
    size_t nodes, slots, key_bytes;
};

static void count(const struct twig *twig, struct tally *tally)
{
    tally->nodes++;
    tally->slots += twig->bind_count;
    tally->key_bytes += twig->key_len + 1;
    for (const struct twig *child = twig->child; child; child = child->next) {
        count(child, tally);
    }
}

struct writer {
    struct sw_table *table;
    uint16_t edge_count;
    size_t key_bytes;
};

static void write_node(struct writer *writer, const struct twig *twig)
{
    struct sw_table *table = writer->table;
    struct sw_node *node = &table->nodes[table->node_count++];
    char *key = table->keys + writer->key_bytes;
    memcpy(key, twig->key, twig->key_len);
    writer->key_bytes += twig->key_len + 1;
    *node = (struct sw_node){
        .key = key,
        .key_len = (uint32_t)twig->key_len,
        .first_edge = writer->edge_count,
        .first_slot = table->slot_count,
        .slot_count = (uint16_t)twig->bind_count,
    };
    for (size_t i = 0; i < twig->bind_count; i++) {
        add_slot(table, twig->binds[i]);
    }
    for (const struct twig *child = twig->child; child; child = child->next) {
        node->edge_count++;
    }
    writer->edge_count = (uint16_t)(writer->edge_count + node->edge_count);
    struct sw_edge *edge = &table->edges[node->first_edge];
    for (const struct twig *child = twig->child; child; child = child->next, edge++) {
        *edge = (struct sw_edge){sw_key_tag(child->key, child->key_len), table->node_count};
        write_node(writer, child);
    }
    node->node_end = table->node_count;
    node->slot_end = table->slot_count;
}

struct sw_table *sw_table_new(const struct sw_bind *own, const struct sw_bind *fields, size_t size)
{
    struct twig *root = twig_new("", 0);
    struct tally tally = {0};
    bind_paths(root, own);
    bind_paths(root, fields);
    count(root, &tally);
    sw_assert(tally.nodes <= SW_TABLE_NODES && tally.slots <= UINT16_MAX);
    struct sw_table *table = SW_NEW(struct sw_table);
    table->nodes = sw_calloc(tally.nodes, sizeof(*table->nodes));
    table->edges = sw_calloc(tally.nodes, sizeof(*table->edges));
    table->slots = sw_calloc(tally.slots + 1, sizeof(*table->slots));
    table->keys = sw_malloc(tally.key_bytes);
    table->blank = sw_malloc(size);
    table->size = size;
    struct writer writer = {.table = table};
    write_node(&writer, root);
    twig_free(root);
    return table;
}

void sw_table_set_secret(struct sw_table *table)
{
    for (size_t i = 0; i < table->slot_count; i++) {
        struct sw_slot *slot = &table->slots[i];
        slot->type = slot->type == SW_BIND_LABELS ? SW_BIND_VALUES : slot->type;
        if (slot->element) {
            sw_table_set_secret(slot->element);
        }
    }
}

struct sw_table *sw_table_free(struct sw_table *table)
{
    if (table) {
        for (size_t i = 0; i < table->slot_count; i++) {
            sw_table_free(table->slots[i].element);
        }
        sw_free(table->nodes);
        sw_free(table->edges);
        sw_free(table->slots);
        sw_free(table->keys);
        sw_free(table->blank);
        sw_free(table);
    }
    return NULL;
}
