/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of each command and flag: what --help, the man page and completion are made from.
 */
#include <stdint.h>

#include "options.h"

#define F(flag) (1U << (flag))
#define MANY SIZE_MAX

const struct ks_flag_text ks_flags[KS_FLAG_COUNT] = {
    [KS_KUBECONFIG] = {"kubeconfig",
                       0,
                       "FILE",
                       NULL,
                       true,
                       {"how to reach the cluster; else $KUBECONFIG, then ~/.kube/config"}},
    [KS_CONTEXT] =
        {"context", 0, "NAME", NULL, true, {"the context of the kubeconfig; else its current one"}},
    [KS_NAMESPACE] =
        {"namespace", 'n', "NAME", NULL, true, {"look here; else in the namespace of the context"}},
    [KS_ALL_NAMESPACES] = {"all-namespaces", 'A', NULL, NULL, false, {"look in all namespaces"}},
    [KS_OUTPUT] =
        {"output", 'o', "json|yaml", NULL, false, {"for programs: the same facts as JSON or YAML"}},
    [KS_WATCH] = {"watch",
                  'w',
                  NULL,
                  NULL,
                  false,
                  {"stay and show each change: drawn anew on a terminal, one",
                   "line a change elsewhere. Ctrl-C ends it"}},
    [KS_REASON] = {"reason",
                   0,
                   "TEXT",
                   NULL,
                   false,
                   {"why it is held, for whoever asks; shown by status and why"}},
    [KS_ALL] = {"all",
                0,
                NULL,
                NULL,
                false,
                {"everything that slipway holds in the namespace (with -A: in",
                 "the cluster), before slipway is removed"}},
    [KS_YES] = {"yes", 'y', NULL, NULL, false, {"do not ask"}},
    [KS_TIME_LIMIT] = {"time-limit",
                       0,
                       "DURATION",
                       NULL,
                       false,
                       {"with --all: for so long (3m) one after the other; what still",
                        "waits then goes at once"}},
    [KS_DRY_RUN] = {"dry-run",
                    0,
                    "server|none",
                    "server",
                    false,
                    {"server: let the API server check it, and change nothing"}},
    [KS_FULL] = {"full", 0, NULL, NULL, false, {"to the end, without further steps and checks"}},
    [KS_LET_ROLL] = {"release",
                     0,
                     NULL,
                     NULL,
                     false,
                     {"let the SteppedRollout be deleted although its template has",
                      "failed: the target then rolls as it is"}},
    [KS_TIMEOUT] = {"timeout",
                    0,
                    "DURATION",
                    NULL,
                    false,
                    {"wait so long (30s) until slipway has obeyed; 0: do not wait"}},
    [KS_SLIPWAY_NAMESPACE] = {"slipway-namespace",
                              0,
                              "NAME",
                              NULL,
                              false,
                              {"where slipway itself runs; else where its Deployment is",
                               "found, else kube-system"}},
    [KS_SERVICE_ACCOUNT] = {"service-account",
                            0,
                            "NAME",
                            NULL,
                            false,
                            {"the ServiceAccount that slipway runs under; else that of its",
                             "Deployment, else slipway"}},
    [KS_HELP] = {"help", 'h', NULL, NULL, true, {"what a command does, with examples"}},
    [KS_VERSION] = {"version", 0, NULL, NULL, true, {"show the version, end"}},
};

const struct ks_command ks_commands[KS_COMMAND_COUNT] = {
    [KS_STATUS] =
        {
            .name = "status",
            .usage = "[NAME...] [-A] [-w] [-o json|yaml]",
            .summary = "who rolls, who waits in which order, how far stepped rollouts are",
            .text =
                {
                    "One line for each coordination, and under it one for each Deployment that",
                    "has its turn or waits for one. Whoever has nothing to roll is only counted.",
                    "",
                    "TURN is \"now\" for one that rolls, else its place in the queue. PROGRESS",
                    "counts Pods of the new template that are available, of those wanted. TIME is",
                    "how long it has been rolling, or has waited.",
                    "",
                    "A coordination that slipway has not looked at since it was last changed is",
                    "\"Unseen\": if that lasts, no slipway runs. doctor says more.",
                    "",
                    "Then one line for each SteppedRollout: its phase, the step where it stands,",
                    "updated Pods, and what it waits for; under it the last result of each check,",
                    "with value and range. Names are those of either kind.",
                },
            .examples =
                {
                    {"What happens in this namespace?", "kubectl slipway status"},
                    {"Watch all of the cluster", "kubectl slipway status -A -w"},
                    {"How many wait in all? (jq)",
                     "kubectl slipway status -A -o json | jq '[.items[].pending] | add'"},
                },
            .names = KS_GROUPS,
            .most = MANY,
            .flags = F(KS_ALL_NAMESPACES) | F(KS_WATCH) | F(KS_OUTPUT),
        },
    [KS_WHY] =
        {
            .name = "why",
            .usage = "DEPLOYMENT | KIND/NAME [-o json|yaml]",
            .summary = "who holds a workload, since when, and what it waits for",
            .text =
                {
                    "Says in words why a Deployment does not roll, or that it may: held for its",
                    "turn and by whom, paused by a person, held by slipway.dev/hold, behind one",
                    "that has failed, behind a member that is unavailable (the availability",
                    "guard), suspended, at rest; and what to do about it.",
                    "",
                    "Of one that a SteppedRollout steps: the step, each check with value and",
                    "range, whose confirmation is missing. statefulset/NAME and daemonset/NAME",
                    "are looked for among the targets, steppedrollout/NAME by its own name.",
                },
            .examples =
                {
                    {"My change does not arrive. Why?", "kubectl slipway why checkout -n shop"},
                    {"Which check keeps the database back?",
                     "kubectl slipway why statefulset/db -n shop"},
                    {"The reason alone, for a script (jq)",
                     "kubectl slipway why checkout -o json | jq -r .reason"},
                },
            .names = KS_WORKLOADS,
            .least = 1,
            .most = 1,
            .flags = F(KS_OUTPUT),
        },
    [KS_PLAN] =
        {
            .name = "plan",
            .usage = "[COORDINATION...] [-A] [-o json|yaml]",
            .summary = "the order in which those that wait would roll",
            .text =
                {
                    "The controller's own rules, played forward from what the cluster looks like",
                    "now: whoever has its turn completes, the next is chosen, until nobody waits",
                    "or nobody may go on. Those of one STEP roll at the same time (maxActive).",
                    "",
                    "What it cannot foresee: a rollout that fails, a member that becomes",
                    "unavailable, a change that comes meanwhile, a hold or a pause that a person",
                    "puts on or takes off, and how long anything takes. Each of them may change",
                    "the order. atRest where a coordination does not say counts as Paused, and",
                    "modules other than coordination and pausing are not asked: a stepped one",
                    "takes as long as its checks, and keeps its turn meanwhile.",
                },
            .examples =
                {
                    {"In which order will these roll?", "kubectl slipway plan -n shop"},
                    {"Let catalog go last, and see", "kubectl slipway skip catalog -n shop && "
                                                     "kubectl slipway plan -n shop"},
                },
            .names = KS_COORDINATIONS,
            .most = MANY,
            .flags = F(KS_ALL_NAMESPACES) | F(KS_OUTPUT),
        },
    [KS_HOLD] =
        {
            .name = "hold",
            .usage = "DEPLOYMENT... [--reason TEXT]",
            .summary = "do not let a Deployment roll until it is released",
            .text =
                {
                    "Sets the annotation slipway.dev/hold: slipway pauses the Deployment and",
                    "passes it over, and the others of its coordination go on. One in the middle",
                    "of its turn keeps its place. It still scales, and lost Pods are replaced.",
                    "",
                    "Better than kubectl rollout pause: pausing one that slipway already holds",
                    "leaves no trace, and it would roll when its turn comes.",
                },
            .examples =
                {
                    {"Not before the database is ready",
                     "kubectl slipway hold checkout --reason 'waits for the database'"},
                    {"And on again", "kubectl slipway release checkout"},
                },
            .names = KS_DEPLOYMENTS,
            .least = 1,
            .most = MANY,
            .flags = F(KS_REASON) | F(KS_DRY_RUN),
        },
    [KS_RELEASE] =
        {
            .name = "release",
            .usage = "DEPLOYMENT... | --all [-A] [--time-limit DURATION] [--yes]",
            .summary = "undo hold; with --all let go of everything that slipway holds",
            .text =
                {
                    "Of a Deployment: takes the annotation slipway.dev/hold away. It does not",
                    "jump the queue: where a coordination holds it too, it rolls in its turn.",
                    "",
                    "With --all: what slipway release-all does. Every Deployment that slipway",
                    "paused is resumed, and slipway's annotations go; a person's own pause stays.",
                    "All at once and in no order, or, with --time-limit, for so long one after the",
                    "other in each namespace. Stop slipway before, or it holds them again; helm",
                    "uninstall does all of this by itself. Asks first, unless --yes.",
                },
            .examples =
                {
                    {"Undo a hold", "kubectl slipway release checkout"},
                    {"What would be let go?", "kubectl slipway release --all -A --dry-run"},
                    {"Let go of everything",
                     "kubectl scale deployment/slipway -n kube-system "
                     "--replicas=0 && kubectl slipway release --all -A --time-limit 10m"},
                },
            .names = KS_DEPLOYMENTS,
            .most = MANY,
            .flags =
                F(KS_ALL) | F(KS_ALL_NAMESPACES) | F(KS_TIME_LIMIT) | F(KS_YES) | F(KS_DRY_RUN),
        },
    [KS_SKIP] =
        {
            .name = "skip",
            .usage = "DEPLOYMENT...",
            .summary = "let all that wait now go before this Deployment",
            .text =
                {
                    "Sets the annotation slipway.dev/skip to this moment: the Deployment goes",
                    "behind all that wait now, and not behind those that come later. A rollout",
                    "that has begun goes on.",
                },
            .examples = {{"The others first", "kubectl slipway skip checkout"}},
            .names = KS_DEPLOYMENTS,
            .least = 1,
            .most = MANY,
            .flags = F(KS_DRY_RUN),
        },
    [KS_SUSPEND] =
        {
            .name = "suspend",
            .usage = "COORDINATION...",
            .summary = "a change freeze: who rolls finishes, nobody new starts",
            .text =
                {
                    "Sets spec.suspend. Where GitOps or Helm applies the coordination, it will",
                    "put the field back: this command says so, and names who where it can tell.",
                    "Then change the manifest too.",
                },
            .examples =
                {
                    {"Freeze", "kubectl slipway suspend shop -n shop"},
                    {"And on again", "kubectl slipway resume shop -n shop"},
                },
            .names = KS_COORDINATIONS,
            .least = 1,
            .most = MANY,
            .flags = F(KS_DRY_RUN),
        },
    [KS_RESUME] =
        {
            .name = "resume",
            .usage = "COORDINATION...",
            .summary = "end the freeze: the next in line starts",
            .text =
                {
                    "Clears spec.suspend. What suspend says of GitOps and Helm holds here too.",
                },
            .examples = {{"The freeze is over", "kubectl slipway resume shop -n shop"}},
            .names = KS_COORDINATIONS,
            .least = 1,
            .most = MANY,
            .flags = F(KS_DRY_RUN),
        },
    [KS_RESTART] =
        {
            .name = "restart",
            .usage = "DEPLOYMENT...",
            .summary = "restart its Pods, in its turn; also while it is paused",
            .text =
                {
                    "Sets kubectl.kubernetes.io/restartedAt in the Pod template, as kubectl",
                    "rollout restart does, which refuses a paused Deployment: and whatever is",
                    "coordinated is paused at rest. It rolls when its turn comes. One that a",
                    "person has paused restarts when that person resumes it.",
                },
            .examples =
                {
                    {"Restart one", "kubectl slipway restart checkout"},
                    {"Restart all of an application, one at a time",
                     "kubectl slipway restart cart catalog checkout && "
                     "kubectl slipway status -w"},
                },
            .names = KS_DEPLOYMENTS,
            .least = 1,
            .most = MANY,
            .flags = F(KS_DRY_RUN),
        },
    [KS_PROMOTE] =
        {
            .name = "promote",
            .usage = "STEPPEDROLLOUT... [--full] [--timeout DURATION]",
            .summary = "let a stepped rollout go on to its next step, or to the end",
            .text =
                {
                    "Sets the annotation slipway.dev/promote, waits until slipway has obeyed and",
                    "taken it off, and says where the rollout stands then. Checks of the step and",
                    "confirmations that are missing are passed over: a person has decided.",
                },
            .examples =
                {
                    {"The next step, although its checks still run",
                     "kubectl slipway promote web -n shop"},
                    {"All of it, now", "kubectl slipway promote web --full"},
                },
            .names = KS_ROLLOUTS,
            .least = 1,
            .most = MANY,
            .flags = F(KS_FULL) | F(KS_TIMEOUT) | F(KS_DRY_RUN),
        },
    [KS_ABORT] =
        {
            .name = "abort",
            .usage = "STEPPEDROLLOUT... [--release] [--timeout DURATION]",
            .summary = "give a stepped rollout up: as if its checks had failed",
            .text =
                {
                    "Sets the annotation slipway.dev/abort: the rollout fails, and what onFailure",
                    "says follows (Retreat, Rollback, Hold). Its template is kept out until",
                    "another comes, or until retry.",
                    "",
                    "One that has failed and is held where it stands (onFailure: Hold) goes back.",
                    "",
                    "With --release nothing is given up: a SteppedRollout is kept, when it is",
                    "deleted, as long as its failed template is held, since that would roll",
                    "then. This lets it go all the same."
                },
            .examples =
                {
                    {"Back, now", "kubectl slipway abort web -n shop"},
                    {"Delete it although its template has failed: that rolls then",
                     "kubectl delete steppedrollout web --wait=false && "
                     "kubectl slipway abort web --release"},
                },
            .names = KS_ROLLOUTS,
            .least = 1,
            .most = MANY,
            .flags = F(KS_LET_ROLL) | F(KS_TIMEOUT) | F(KS_DRY_RUN),
        },
    [KS_RETRY] =
        {
            .name = "retry",
            .usage = "STEPPEDROLLOUT... [--timeout DURATION]",
            .summary = "let a template that has failed try again, from the first step",
            .text =
                {
                    "Sets the annotation slipway.dev/retry: slipway forgets that the template has",
                    "failed. For when the checks were wrong, or their provider was, and not the",
                    "template; another template needs no retry.",
                },
            .examples = {{"Prometheus is back", "kubectl slipway retry web -n shop"}},
            .names = KS_ROLLOUTS,
            .least = 1,
            .most = MANY,
            .flags = F(KS_TIMEOUT) | F(KS_DRY_RUN),
        },
    [KS_DOCTOR] =
        {
            .name = "doctor",
            .usage = "[--slipway-namespace NAME] [--service-account NAME] [-o json|yaml]",
            .summary = "is slipway installed as it should be? What to do where it is not",
            .text =
                {
                    "Looks at the CRD, the webhook configuration, whether the API server reaches",
                    "the webhook and trusts it (by a dry run that stores nothing), the",
                    "permissions of slipway's ServiceAccount, its replicas and Lease, whether its",
                    "version fits this plugin, and at coordinations and stepped rollouts that cannot",
                    "work.",
                    "",
                    "Needs the rights of an administrator; what may not be looked at is said to",
                    "be unknown, and is no finding. Changes nothing.",
                    "",
                    "Exit status 3 where something is wrong; warnings alone are 0.",
                },
            .examples =
                {
                    {"After installing", "kubectl slipway doctor"},
                    {"In a pipeline, what is wrong alone (jq)",
                     "kubectl slipway doctor -o json | jq '.items[] | select(.result==\"bad\")'"},
                },
            .flags = F(KS_SLIPWAY_NAMESPACE) | F(KS_SERVICE_ACCOUNT) | F(KS_OUTPUT),
        },
    [KS_COMPLETION] =
        {
            .name = "completion",
            .usage = "bash|zsh",
            .summary = "a script that completes commands, flags and names",
            .text =
                {
                    "With kubectl 1.26 or newer and kubectl_complete-slipway on the PATH nothing",
                    "is needed beside kubectl's own completion. For older ones, and for those who",
                    "type kubectl-slipway, source the script that this prints, after kubectl's.",
                },
            .examples =
                {
                    {"In ~/.bashrc", "source <(kubectl completion bash); "
                                     "source <(kubectl slipway completion bash)"},
                    {"In ~/.zshrc", "source <(kubectl completion zsh); "
                                    "source <(kubectl slipway completion zsh)"},
                },
            .names = KS_SHELLS,
            .least = 1,
            .most = 1,
        },
};
