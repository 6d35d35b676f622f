/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slipway-sim: arguments, and the parts wired together on a real loop until SIGTERM or SIGINT.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin.h"
#include "api.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "fault_rules.h"
#include "front.h"
#include "net/tls.h"
#include "pods.h"
#include "pool.h"
#include "store.h"
#include "trace.h"
#include "webhooks.h"
#include "workloads.h"

enum {
    WINDOW = 100 * 1000, /* changes that watches can go back to, as long as they have room */
    WINDOW_BYTES = 64 * 1024 * 1024,
    /* A document of 3 KB of text has 40 KB. 10 000 Deployments that all roll have a few hundred in
     * work at a time. */
    DOCUMENTS = 1000,
    EVENT_TTL_MS = 60 * 60 * 1000, /* as of the real server */
    FAULTS_MAX = 64,
};

static const char usage[] =
    "usage: slipway-sim [OPTION]...\n"
    "\n"
    "A Kubernetes cluster in one process, for trying things out: API server, workload controllers\n"
    "and kubelets, which only play. It has no scheduler, no network and no security (roles are\n"
    "stored, and everybody may do everything); nothing outlives it, and no container runs. Never "
    "a\n"
    "place for real workloads.\n"
    "\n"
    "The first line that it prints is a JSON object with the URLs of the API server and of the\n"
    "admin endpoint, as soon as both listen; they name the addresses below, or the loopback where\n"
    "those mean all of this machine.\n"
    "\n"
    "  --listen ADDRESS        of the API server (127.0.0.1:0: a free port)\n"
    "  --admin-listen ADDRESS  of the admin endpoint, plain HTTP (127.0.0.1:0): faults, kubelets\n"
    "  --tls-cert-file FILE    serve HTTPS with this certificate (PEM)\n"
    "  --tls-key-file FILE     and this key; without the two: plain HTTP\n"
    "  --token TEXT            bearer token of user \"admin\" (admin)\n"
    "  --nodes N               how many Nodes there are (3)\n"
    "  --fault RULE            a fault from the start, as JSON; may be given again and again:\n"
    "                          {\"path\": \"/deployments\", \"method\": \"PATCH\", \"percent\": "
    "5,\n"
    "                           \"status\": 429, \"retryAfter\": 1}\n"
    "                          or \"delay\": \"200ms\", \"cutAfter\": BYTES, \"silent\": true\n"
    "  --trace FILE            when each request came and each answer went, a line each\n"
    "  --log-level LEVEL       debug, info, warn, error (warn)\n"
    "  --help\n"
    "\n"
    "With kubectl: kubectl --server URL --token admin [--certificate-authority FILE] get nodes\n";

struct settings {
    const char *address, *admin_address, *cert_file, *key_file, *token, *trace_file;
    const char *faults[FAULTS_MAX];
    size_t fault_count;
    unsigned nodes;
    enum sw_level level;
};

struct sim {
    struct sw_loop *loop;
    struct sw_log_sink *sink;
    struct sw_log log;
    struct sw_tls_config *tls;
    struct sw_sim_store *store;
    struct sw_sim_webhooks *webhooks;
    struct sw_sim_api *api;
    struct sw_sim_workloads *workloads;
    struct sw_sim_pods *pods;
    struct sw_sim_fault_rules *rules;
    struct sw_sim_trace *trace;
    struct sw_sim_front *front;
    struct sw_sim_admin *admin;
    struct sw_signal *signals[2];
    struct sw_defer stop;
    bool is_stopped;
};

/* ---- arguments ---- */

static int parse_number(const char *text, unsigned max, unsigned *ret)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (!text[0] || *end || value < 1 || value > max)
        return -EINVAL;
    *ret = (unsigned)value;
    return 0;
}

/* 0: go on; 1: help was asked for; negative: a mistake, which stderr tells. */
static int parse(int argc, char *argv[], struct settings *s)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'},
        {"admin-listen", required_argument, NULL, 'a'},
        {"tls-cert-file", required_argument, NULL, 'c'},
        {"tls-key-file", required_argument, NULL, 'k'},
        {"token", required_argument, NULL, 't'},
        {"nodes", required_argument, NULL, 'n'},
        {"fault", required_argument, NULL, 'f'},
        {"trace", required_argument, NULL, 'T'},
        {"log-level", required_argument, NULL, 'L'},
        {"help", no_argument, NULL, 'h'},
        {NULL},
    };

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'l':
            s->address = optarg;
            break;
        case 'a':
            s->admin_address = optarg;
            break;
        case 'c':
            s->cert_file = optarg;
            break;
        case 'k':
            s->key_file = optarg;
            break;
        case 't':
            s->token = optarg;
            break;
        case 'n':
            if (parse_number(optarg, 10000, &s->nodes)) {
                fprintf(stderr, "slipway-sim: --nodes %s: a number from 1 to 10000\n", optarg);
                return -EINVAL;
            }
            break;
        case 'f':
            if (s->fault_count == FAULTS_MAX) {
                fprintf(stderr, "slipway-sim: more than %d times --fault\n", FAULTS_MAX);
                return -EINVAL;
            }
            s->faults[s->fault_count++] = optarg;
            break;
        case 'T':
            s->trace_file = optarg;
            break;
        case 'L':
            if (sw_log_level_parse(optarg, &s->level)) {
                fprintf(stderr, "slipway-sim: --log-level %s: debug, info, warn or error\n",
                        optarg);
                return -EINVAL;
            }
            break;
        case 'h':
            return 1;
        default: /* getopt has said it */
            fprintf(stderr, "slipway-sim --help tells what there is\n");
            return -EINVAL;
        }
    if (optind < argc) {
        fprintf(stderr, "slipway-sim: \"%s\" is no option; --help tells what there is\n",
                argv[optind]);
        return -EINVAL;
    }
    if (!s->cert_file != !s->key_file) {
        fprintf(stderr, "slipway-sim: --tls-cert-file and --tls-key-file come together\n");
        return -EINVAL;
    }
    return 0;
}

/* ---- starting ---- */

static int load_certificate(struct sim *sim, const struct settings *s, struct sw_error *error)
{
    enum { LIMIT_BYTES = 1024 * 1024 };
    char *certificate = NULL, *key = NULL;
    size_t len;

    if (!s->cert_file)
        return 0;
    int code = sw_file_read(s->cert_file, LIMIT_BYTES, &certificate, &len, error);
    if (!code)
        code = sw_file_read(s->key_file, LIMIT_BYTES, &key, &len, error);
    if (code) {
        sw_free(certificate);
        return code;
    }
    struct sw_tls_server_options options = {.certificate_pem = certificate, .key_pem = key};
    code = sw_tls_server_config_new(&options, &sim->tls, error);
    sw_free(certificate);
    sw_free_secret(key, len);
    return code;
}

static int add_faults(struct sim *sim, const struct settings *s, struct sw_error *error)
{
    for (size_t i = 0; i < s->fault_count; i++) {
        json_error_t why;
        json_t *rule = json_loads(s->faults[i], 0, &why);
        if (!rule)
            return sw_error_set(error, -EINVAL, "--fault %s: %s", s->faults[i], why.text);
        SW_AUTO(char, sw_free) name = sw_asprintf("argument-%zu", i + 1);
        int code = sw_sim_fault_rules_set(sim->rules, name, rule, error);
        json_decref(rule);
        if (code)
            return code;
    }
    return 0;
}

static void on_signal(void *arg, int signum)
{
    struct sim *sim = arg;

    (void)signum;
    sw_defer_start(&sim->stop);
}

static void stop(struct sw_defer *defer)
{
    struct sim *sim = container_of(defer, struct sim, stop);

    if (sim->is_stopped)
        return;
    sim->is_stopped = true;
    for (size_t i = 0; i < SW_ARRAY_SIZE(sim->signals); i++)
        sw_signal_close(sim->signals[i]);
    sw_sim_admin_close(sim->admin);
    sw_sim_front_close(sim->front);
    sim->workloads = sw_sim_workloads_free(sim->workloads);
    sim->pods = sw_sim_pods_free(sim->pods);
    sim->webhooks = sw_sim_webhooks_free(sim->webhooks);
    sim->api = sw_sim_api_free(sim->api);
}

static int open_sockets(struct sim *sim, const struct settings *s, struct sw_error *error)
{
    struct sw_sim_front_options front = {s->address, sim->tls, s->token, sim->trace};
    struct sw_sim_admin_options admin = {
        s->admin_address, sim->api, sim->store, sim->pods, sim->workloads, sim->rules,
    };
    int code =
        sw_sim_front_open(sim->loop, sim->api, sim->rules, &front, &sim->log, &sim->front, error);

    if (!code)
        code = sw_sim_admin_open(sim->loop, &admin, &sim->log, &sim->admin, error);
    return code;
}

static int start(struct sim *sim, const struct settings *s, struct sw_error *error)
{
    static const int signums[] = {SIGTERM, SIGINT};
    int code = 0;

    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < SW_ARRAY_SIZE(signums) && !code; i++)
        code = sw_signal_open(sim->loop, signums[i], on_signal, sim, &sim->signals[i]);
    if (!code)
        code = load_certificate(sim, s, error);
    if (!code)
        code = add_faults(sim, s, error);
    if (!code && s->trace_file)
        code = sw_sim_trace_open(s->trace_file, &sim->trace, error);
    if (!code)
        code = open_sockets(sim, s, error);
    return code;
}

static void make_parts(struct sim *sim, const struct settings *s)
{
    sim->sink = sw_log_sink_new(sim->loop, STDERR_FILENO, SW_LOG_CONSOLE, s->level);
    sim->log = (struct sw_log){.sink = sim->sink, .name = "sim"};
    sim->store = sw_sim_store_new(1, WINDOW);
    sw_sim_store_limit(sim->store, &(struct sw_sim_limits){DOCUMENTS, WINDOW_BYTES});
    sim->webhooks = sw_sim_webhooks_new(sim->loop, &sim->log);
    struct sw_sim_api_options api = {
        .admission = sw_sim_webhooks_caller(sim->webhooks),
        .event_ttl_ms = EVENT_TTL_MS,
    };
    sim->api = sw_sim_api_new(sim->loop, sim->store, &api, &sim->log);
    sim->workloads =
        sw_sim_workloads_new(sim->loop, sim->store, sim->api,
                             &(struct sw_sim_workloads_options){.records_events = true});
    sim->pods = sw_sim_pods_new(sim->loop, sim->store, sim->api, s->nodes);
    sim->rules = sw_sim_fault_rules_new(sim->loop);
    sw_defer_init(&sim->stop, sim->loop, stop);
}

/* A watch for each kind of each client. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The part of ADDRESS:PORT that a client on this machine connects to. */
static char *host_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    char *host = colon ? sw_strndup(address, (size_t)(colon - address)) : sw_strdup(address);
    const char *here = strcmp(host, "0.0.0.0") == 0 || !*host ? "127.0.0.1"
                       : strcmp(host, "[::]") == 0            ? "[::1]"
                                                              : NULL;
    if (here) {
        sw_free(host);
        host = sw_strdup(here);
    }
    return host;
}

static void say_where(const struct sim *sim, const struct settings *s)
{
    SW_AUTO(char, sw_free) host = host_of(s->address);
    SW_AUTO(char, sw_free) admin = host_of(s->admin_address);
    printf("{\"server\": \"%s://%s:%u\", \"admin\": \"http://%s:%u\"}\n",
           sim->tls ? "https" : "http", host, sw_sim_front_port(sim->front), admin,
           sw_sim_admin_port(sim->admin));
    fflush(stdout);
}

static int run(const struct settings *s)
{
    struct sim sim = {0};
    struct sw_error error = {0};
    int code = sw_loop_open(&sim.loop);

    if (code) {
        fprintf(stderr, "slipway-sim: cannot make a loop: %s\n", sw_strerror(code));
        return 1;
    }
    raise_file_limit();
    make_parts(&sim, s);
    code = start(&sim, s, &error);
    if (code) {
        fprintf(stderr, "slipway-sim: %s\n", error.text[0] ? error.text : sw_strerror(code));
        sw_defer_start(&sim.stop);
    } else {
        say_where(&sim, s);
    }
    sw_loop_run(sim.loop);
    if (sw_sim_trace_close(sim.trace)) {
        fprintf(stderr, "slipway-sim: %s is not complete: it could not be written\n",
                s->trace_file);
        code = -EIO;
    }
    sw_sim_fault_rules_free(sim.rules);
    sw_sim_store_free(sim.store);
    sw_tls_config_unref(sim.tls);
    sw_log_sink_free(sim.sink);
    return sw_loop_close(sim.loop) || code ? 1 : 0;
}

int main(int argc, char *argv[])
{
    struct settings settings = {
        .address = "127.0.0.1:0",
        .admin_address = "127.0.0.1:0",
        .token = "admin",
        .nodes = 3,
        .level = SW_LEVEL_WARN,
    };
    int code = parse(argc, argv, &settings);

    sw_sim_pool_use();
    if (code < 0)
        return 2;
    if (code > 0) {
        fputs(usage, stdout);
        return 0;
    }
    return run(&settings);
}
